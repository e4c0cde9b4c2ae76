"""Stored replies made by hand, for the metrics' tests."""

from __future__ import annotations

from overtone.metrics import Answered
from overtone.schema import Item, Key, Option


def item(
    task: str,
    *,
    references: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    gold: str = "",
    language: str = "en",
) -> Item:
    provenance = ("target", "alternative", "words", "harmful")
    return Item(
        id="b/s/1",
        benchmark="b",
        level={"transcribe": 1, "choose": 1, "converse": 3}[task],
        task=task,
        category={"transcribe": "asr", "choose": "emotion", "converse": "conversation"}[task],
        case="s/1/target",
        group="s/1",
        style="target",
        turns=(),
        references=references,
        options=tuple(Option("ABCD"[i], text, provenance[i]) for i, text in enumerate(options)),
        gold=gold,
        language=language,
    )


def answered(of: Item, text: str, refused: bool = False) -> Answered:
    return Answered(Key(of.id, "task/audio"), of, text, refused, "stop", "")
