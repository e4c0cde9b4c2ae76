"""Predictions made elsewhere as a model: a benchmark's own result file is scored without asking anybody.

The file is a list of objects, one to a line or in one array, or an object id → text. Both names that MMAU's predictions
go by are read, and those of others.
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
    """`predictions:FILE?field=NAME`. An item is recognised by its id, or by an end of it that the file names."""

    slots = None

    def __init__(self, spec: Spec) -> None:
        self.field: str = spec.typed({"field": str}).get("field", "")
        if not spec.name:
            raise UsageError("predictions: which file? write predictions:FILE")
        self.spec = spec
        data = read_plain(Path(spec.name), _MAX_BYTES)
        self._sha256 = hashlib.sha256(data).hexdigest()
        self._texts: dict[str, str] = {}
        for name, text in _read(data, spec.name, (self.field,) if self.field else TEXTS):
            if self._texts.setdefault(name, text) != text:
                raise DataError(f"{shown(spec.name)}: two different predictions for {shown(name)}; keep one")
        if not self._texts:
            known = self.field or ", ".join(TEXTS)
            raise DataError(f"{shown(spec.name)}: holds no prediction under {known}; name its field: ?field=NAME")

    async def open(self) -> None:
        """Nothing to start: the file is read."""

    async def ask(self, request: Request) -> Reply:
        parts = request.key.item.split("/")
        for start in range(len(parts)):
            found = self._texts.get("/".join(parts[start:]))
            if found is not None:
                return Reply(found, finish="stop")
        raise ModelFailure("not_recorded", f"{self.spec.name} holds no prediction for {request.key.item}")

    async def close(self) -> None:
        """Nothing to release."""

    def describe(self) -> dict[str, Any]:
        return {"predictions": self._sha256, "field": self.field}


def _read(data: bytes, name: str, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Id and text of everything in the file that has both."""
    for where, value in _values(data, name):
        if not isinstance(value, dict):
            raise DataError(f"{where}: an object is expected")
        identity = next((str(value[key]) for key in IDS if isinstance(value.get(key), str | int)), "")
        texts = {value[key] for key in fields if isinstance(value.get(key), str)}
        if not identity:
            raise DataError(f"{where}: has no id under {', '.join(IDS)}")
        if len(texts) > 1:
            named = " and ".join(key for key in fields if isinstance(value.get(key), str))
            raise DataError(f"{where}: {named} differ; name the one that counts: ?field=NAME")
        if "task_name" in value and "dataset_name" in value:  # AIR-Bench counts from 0 in each
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


def load(spec: Spec) -> Predictions:
    return Predictions(spec)
