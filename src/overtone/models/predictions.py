"""A file of predictions as a model: scores the results of another program without asking a model.

The file holds objects, one per line or in one array, or one object that maps ids to texts. The field names of several
benchmarks are known, including both that MMAU uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from overtone.errors import DataError, ModelFailure, UsageError
from overtone.paths import read_plain, shown
from overtone.schema import Reply, Request
from overtone.spec import Spec

IDS = ("item", "id", "uniq_id", "utt_id", "question_id")
TEXTS = ("model_output", "model_prediction", "prediction", "response", "text")
_MAX_BYTES = 500_000_000


class Predictions:
    """The model `predictions:FILE?field=NAME`. The file refers to an item by its id or by the last parts of its id."""

    slots = None

    def __init__(self, spec: Spec) -> None:
        self.field: str = spec.typed({"field": str}).get("field", "")
        if not spec.name:
            raise UsageError("predictions: the file's path is missing; write predictions:FILE")
        self.spec = spec
        data = read_plain(Path(spec.name), _MAX_BYTES)
        self._sha256 = hashlib.sha256(data).hexdigest()
        self._texts: dict[str, str] = {}
        for name, text in _read(data, spec.name, (self.field,) if self.field else TEXTS):
            if self._texts.setdefault(name, text) != text:
                raise DataError(f"{shown(spec.name)}: two different predictions for {shown(name)}; keep one")
        if not self._texts:
            known = self.field or ", ".join(TEXTS)
            raise DataError(f"{shown(spec.name)}: no prediction under {known}; name its field: ?field=NAME")

    async def open(self) -> None:
        """Do nothing: the file has already been read."""

    async def ask(self, request: Request) -> Reply:
        parts = request.key.item.split("/")
        for start in range(len(parts)):
            text = self._texts.get("/".join(parts[start:]))
            if text is not None:
                return Reply(text, finish="stop")
        raise ModelFailure("not_recorded", f"{self.spec.name} contains no prediction for {request.key.item}")

    async def close(self) -> None:
        """Do nothing: no resource is held."""

    def describe(self) -> dict[str, Any]:
        return {"predictions": self._sha256, "field": self.field}


def _read(data: bytes, name: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the id and text of every object that has both."""
    for where, value in _values(data, name):
        if not isinstance(value, dict):
            raise DataError(f"{where}: an object is expected")
        identity = next((str(value[key]) for key in IDS if isinstance(value.get(key), str | int)), "")
        texts = {value[key] for key in fields if isinstance(value.get(key), str)}
        if not identity:
            raise DataError(f"{where}: has no id under {', '.join(IDS)}")
        if len(texts) > 1:
            named = " and ".join(key for key in fields if isinstance(value.get(key), str))
            raise DataError(f"{where}: {named} differ; choose one: ?field=NAME")
        if "task_name" in value and "dataset_name" in value:  # AIR-Bench numbers items from 0 in each dataset
            identity = f"{value['task_name']}_{value['dataset_name']}/{identity}"
        if texts:
            yield identity, texts.pop()


def _values(data: bytes, name: str) -> Iterator[tuple[str, Any]]:
    shown_name = shown(name)
    try:
        tree: Any = msgspec.json.decode(data)
    except RecursionError:
        raise DataError(f"{shown_name}: not usable JSON: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        tree = None
    if isinstance(tree, list):
        yield from ((f"{shown_name}: position {n}", value) for n, value in enumerate(tree))
    elif isinstance(tree, dict) and all(isinstance(value, str) for value in tree.values()) and not set(IDS) & set(tree):
        yield from ((f"{shown_name}: {shown(key)}", {"id": key, TEXTS[0]: value}) for key, value in tree.items())
    else:
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                try:
                    yield f"{shown_name}, line {number}", msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise DataError(f"{shown_name}, line {number}: not valid JSON: {error}") from None


load = Predictions
