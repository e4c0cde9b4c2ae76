"""The settings of a judge: model, rubrics, repeats, order and budget. All of them can be given in a SPEC."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from msgspec import Struct

from overtone.errors import UsageError
from overtone.spec import Spec, parse_spec

Hears = Literal["audio", "description", "nothing"]
STANDARD = ("echomind", "implicit", "ves", "false-cue")
KEYS: dict[str, type] = {  # a judge's own keys in its SPEC; the others are its model's
    "rubrics": str,
    "label": str,
    "repeats": int,
    "calls": str,
    "hears": str,
    "format": str,
    "swap": bool,
    "least": int,
    "again": int,
    "connections": int,
    "budget_requests": int,
    "budget_usd": float,
}


class Policy(Struct, frozen=True):
    """The settings for asking a judge: number of repeats, form of the requests, budget."""

    repeats: int = 1
    temperature: float | None = 0.0  # None (temperature=none): not sent
    seed: int | None = 0  # seed of repeat 0; repeat r has seed + r; None (seed=none): not sent
    calls: Literal["together", "apart"] = "together"  # one call, or one per dimension against the halo effect
    hears: Hears = "audio"  # the sounds, a measured description of them, or nothing
    format: Literal["text", "schema"] = "text"  # only asked for in words, or also enforced by the endpoint
    swap: bool = True  # pairs are asked in both orders
    least: int = 1  # minimum of valid verdicts for a score
    again: int = 1  # retries for an unreadable answer
    connections: int = 16
    budget_requests: int | None = None
    budget_usd: float | None = None


class Judge(Struct, frozen=True):
    """A model as a judge. `spec` has only the model's keys; `label` names the judge in scores."""

    spec: Spec
    rubrics: tuple[str, ...]
    policy: Policy
    label: str

    @property
    def identity(self) -> str:
        """The model's kind and name."""
        return f"{self.spec.kind}:{self.spec.name}" if self.spec.name else self.spec.kind


def parse_judge(text: str) -> Judge:
    """Parse a judge's SPEC, `kind:name?rubrics=echomind,ves&repeats=3&…`. Keys of a model's SPEC are allowed too."""
    return judge_of(parse_spec(text))


def judge_of(whole: Spec) -> Judge:
    """Return the judge that a parsed SPEC describes. Raises UsageError."""
    own = {k: v for k, v in whole.options.items() if k in KEYS}
    options = Spec(whole.kind, whole.name, own).typed(KEYS)
    rest = {k: v for k, v in whole.options.items() if k not in KEYS}
    given: dict[str, Any] = {k: v for k, v in options.items() if k in Policy.__struct_fields__}
    for key in ("temperature", "seed"):
        if key in rest:
            value = rest.pop(key)
            given[key] = None if value == "none" else Spec(whole.kind, whole.name, {key: value}).typed({})[key]
    if given.get("temperature", 0.0) is not None:
        rest["temperature"] = f"{given.get('temperature', 0.0):g}"
    rest.setdefault("speech", "no")
    policy = Policy(**given)
    _check(whole, policy)
    rubrics = tuple(name.strip() for name in options.get("rubrics", ",".join(STANDARD)).split(",") if name.strip())
    if not rubrics:
        raise UsageError(f"{whole}: rubrics is empty; name some, e.g. rubrics={','.join(STANDARD)}")
    label = options.get("label") or _label(whole)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", label):
        raise UsageError(f"{whole}: label must be letters, digits, '.', '_' and '-', not {label!r}")
    return Judge(Spec(whole.kind, whole.name, rest), rubrics, policy, label)


def _label(spec: Spec) -> str:
    last = (spec.name or spec.kind).rstrip("/").rpartition("/")[2]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._") or spec.kind
    hears = spec.options.get("hears", "audio")
    return plain if hears == "audio" else f"{plain}.{hears}"


def _check(spec: Spec, policy: Policy) -> None:
    for key, kinds in (("calls", ("together", "apart")), ("hears", get_args(Hears)), ("format", ("text", "schema"))):
        if getattr(policy, key) not in kinds:
            raise UsageError(f"{spec}: {key} must be {' or '.join(kinds)}, not {getattr(policy, key)!r}")
    for key, least in (("repeats", 1), ("least", 1), ("again", 0), ("connections", 1)):
        if not least <= getattr(policy, key) <= 10_000:
            raise UsageError(f"{spec}: {key} must be at least {least} and at most 10000, not {getattr(policy, key)}")
    for key in ("budget_requests", "budget_usd"):
        value = getattr(policy, key)
        if value is not None and not value > 0:
            raise UsageError(f"{spec}: {key} must be greater than 0, not {value}")
    if policy.least > policy.repeats * (2 if policy.swap else 1):
        raise UsageError(f"{spec}: least={policy.least} is more than the verdicts per reply; raise repeats")
