"""Two small runs of the same items, to be compared: made through the real store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overtone.results.load import Reading, open_run
from overtone.schema import Item, Score
from tests.results.small import Maker, item

DIMENSION = "cspeechrel"
ZERO = "zero/audio"


def asked(number: int, **more: Any) -> Item:
    """The voice question of one script."""
    return item(f"q{number}", "choose", script=f"s{number}", **more)


def talked(number: int, **more: Any) -> Item:
    """The conversation of one script."""
    return item(f"c{number}", "converse", level=3, category="conversation", script=f"s{number}", **more)


def judged(value: float | None, label: str = "j", signature: str = "|v1|judge:openai:j|text:stream") -> Score:
    name = f"{DIMENSION}@{label}"
    return Score(name, name + signature, value, "" if value is not None else "unread")


def answers(folder: Path, right: Sequence[bool | None], *, version: int = 1, meta: Mapping[str, str] = {}) -> Path:
    """A run of one question a script: right, wrong, or (None) a failure."""
    maker = Maker(folder)
    for number, one in enumerate(right):
        if one is None:
            maker.failed(asked(number))
        else:
            maker.choice(asked(number), "A" if one else "B", version=version)
    maker.store.set_meta({"benchmark": "toy", "model": folder.name, "label": folder.name, **meta})
    return maker.done()


def talks(folder: Path, values: Sequence[float | None], *, signature: str = "|v1|judge:openai:j|text:stream") -> Path:
    """A run of one judged reply a script."""
    maker = Maker(folder)
    for number, value in enumerate(values):
        maker.answered(talked(number), "well", judged(value, signature=signature), condition=ZERO)
    told = {DIMENSION: {"label": "Speech relevance (C4)", "low": 1, "high": 5, "styles": ["target", "alternative"]}}
    rubrics = msgspec.json.encode(told).decode()
    maker.store.set_meta({"benchmark": "toy", "model": folder.name, "label": folder.name, "rubrics": rubrics})
    return maker.done()


def opened(*folders: Path) -> list[Reading]:
    return [open_run(folder, light=True) for folder in folders]
