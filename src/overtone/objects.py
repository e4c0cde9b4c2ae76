"""Python objects in place of names: functions and objects as models, metrics and benchmarks of this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeVar

from overtone import registry
from overtone.errors import UsageError
from overtone.metrics import Answered
from overtone.models import python
from overtone.schema import Item, Score

T = TypeVar("T")


def register(target: T, name: str = "") -> T:
    """Make a Python object usable by name in this process and return it, so that it also works as a decorator.

    A module defines `ROOM = "metrics"` (or another room) and becomes that plug-in. An object with `applies` and
    `score` is a metric; an object with `ask`, or any other callable, is a model, `python:NAME`. Raises UsageError for
    anything else.
    """
    if isinstance(target, ModuleType):
        registry.add(name or target.__name__.rpartition(".")[2], target)
    elif hasattr(target, "score") and hasattr(target, "applies"):
        metric_name(target, name)
    elif hasattr(target, "ask") or callable(target):
        model_spec(target, name)
    else:
        raise UsageError(
            f"{type(target).__name__} is neither a module with ROOM, nor a metric (applies, score), nor a model "
            "(ask, or a function)"
        )
    return target


def model_spec(model: Any, name: str = "") -> str:
    """Return the SPEC of a model. A text is returned unchanged; an object is registered as `python:NAME`."""
    if isinstance(model, str):
        return model
    if not hasattr(model, "ask") and not callable(model):
        raise UsageError(f"model is {type(model).__name__}; give a SPEC, a function, or an object with a method ask")
    return str(python.add(name or _name_of(model), model))


def metric_name(metric: Any, name: str = "") -> str:
    """Return the name of a metric. A text is returned unchanged; an object or function is registered by its name.

    A function takes an `Answered` (the item, the reply's text, its reference, its sound) and returns a number, or None
    for a reply that it does not score. It is called for every reply.
    """
    if isinstance(metric, str):
        return metric
    if not hasattr(metric, "score"):
        if not callable(metric):
            raise UsageError(f"metric is {type(metric).__name__}; give a name, a function, or an object with score")
        metric = FunctionMetric(metric, name)
    name = name or str(getattr(metric, "name", "")) or _name_of(metric)
    module = ModuleType(name, type(metric).__doc__ or f"The metric {name} of this process.")
    module.ROOM = "metrics"  # type: ignore[attr-defined]
    module.ON_REQUEST = True  # type: ignore[attr-defined]
    module.load = lambda: metric  # type: ignore[attr-defined]
    if hasattr(metric, "SCORES"):
        module.SCORES = metric.SCORES  # type: ignore[attr-defined]
    registry.add(name, module)
    return name


class FunctionMetric:
    """A metric made from a function. It has the function's name, and its signature contains the hash of the source."""

    version = 1

    def __init__(self, function: Callable[[Answered], float | None], name: str = "") -> None:
        self.name = name or _name_of(function).replace("-", "_")
        self._function = function
        self._signature = f"{self.name}|v1|source:{python.source_hash(function)[:12] or 'unknown'}"

    def applies(self, item: Item) -> bool:
        return True

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self._one(self._function(one)) for one in answered]

    def _one(self, value: float | None) -> list[Score]:
        if value is None:
            return []
        return [Score(self.name, self._signature, float(value))]


def benchmark_name(benchmark: Any) -> str:
    """Return the name of a benchmark. A text is returned unchanged; a module or object with `load` is registered."""
    if isinstance(benchmark, str):
        return benchmark
    if not callable(getattr(benchmark, "load", None)):
        raise UsageError(f"benchmark is {type(benchmark).__name__}; give a name, or a module or object with load(data)")
    name = _name_of(benchmark)
    module = ModuleType(name, benchmark.__doc__ or name)
    module.ROOM, module.load = "benchmarks", benchmark.load  # type: ignore[attr-defined]
    for declared in ("SUITE", "METRICS", "predictions"):
        if hasattr(benchmark, declared):
            setattr(module, declared, getattr(benchmark, declared))
    registry.add(name, module)
    return name


def _name_of(target: Any) -> str:
    """Return a name made of letters, digits and dashes: the object's own, else its class's."""
    own = getattr(target, "name", None) or getattr(target, "__name__", None) or type(target).__name__
    plain = re.sub(r"[^a-z0-9]+", "-", str(own).rpartition(".")[2].lower()).strip("-")
    return plain if plain and plain[0].isalpha() else f"object-{plain}".rstrip("-")
