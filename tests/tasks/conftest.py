"""Items and a sound to build messages from."""

from __future__ import annotations

from typing import Any

import pytest

from overtone.schema import Clip, Item, Option, Sound, Turn


@pytest.fixture
def sound() -> Sound:
    return Sound(b"RIFF", "0" * 64, 1.0)


@pytest.fixture
def make_item() -> Any:
    """An item about a sad voice whose alternative is happy; fields may be changed."""

    def make(task: str, **changes: Any) -> Item:
        fields: dict[str, Any] = {
            "id": f"b/s/{task}/1", "benchmark": "b", "level": 3, "task": task, "category": "x", "case": "s/1/target",
            "group": "s/1", "style": "target", "turns": (Turn(Clip("a.wav"), "It is done {topic}.", "sad"),),
            "cue": "sad", "other_cue": "happy", "dimension": "paralinguistic", "topic": "no_specific_topics",
        }  # fmt: skip
        if task == "choose":
            fields |= {"question": "Who?", "options": (Option("A", "Ann"), Option("B", "Bob")), "gold": "B"}
        return Item(**(fields | changes))

    return make
