"""A run small enough to check by hand."""

from __future__ import annotations

from pathlib import Path

from overtone.runs.store import Ask, Store
from overtone.schema import Clip, Item, Option, Reply, Score, Turn

OPTIONS = tuple(
    Option(letter, f"option {letter}", p) for letter, p in zip("ABCD", ("target", "words", "", ""), strict=True)
)
RUBRICS = '{"cspeechrel": {"label": "Speech relevance (C4)", "low": 1, "high": 5, "styles": ["target", "alternative"]}}'


def item(
    name: str,
    task: str,
    *,
    level: int = 1,
    category: str = "emotion",
    script: str = "s1",
    options: int = 4,
    **more: object,
) -> Item:
    defaults: dict[str, object] = {
        "benchmark": "toy",
        "case": f"synthesis/{script}/target",
        "group": f"synthesis/{script}",
        "style": "target",
        "turns": (Turn(Clip("a.wav"), "one two three four"),),
        "cue": "sad",
        "dimension": "paralinguistic",
    }
    if task == "choose":
        defaults |= {"options": OPTIONS[:options], "gold": "A", "question": "which?"}
    return Item(id=name, level=level, task=task, category=category, **(defaults | more))  # type: ignore[arg-type]


class Maker:
    """Adds asks to a store one by one, each with what became of it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.create(folder)

    def ask(self, one: Item, condition: str = "task/audio") -> Ask:
        self.store.plan([(one, [condition])], 1)
        return self.store.open_asks(0, 10_000)[-1]

    def pending(self, one: Item, condition: str = "task/audio") -> None:
        self.ask(one, condition)

    def failed(self, one: Item, reason: str = "timeout", condition: str = "task/audio") -> None:
        self.store.add_failure(self.ask(one, condition), 0, reason, "detail", 3)

    def answered(self, one: Item, text: str, *scores: Score, condition: str = "task/audio", **reply: object) -> None:
        ask = self.ask(one, condition)
        self.store.add_reply(ask, 0, Reply(text, **reply), sent=b"[]", latency=1.0, attempts=1)  # type: ignore[arg-type]
        self.store.add_scores((ask.id, s) for s in scores)

    def choice(self, one: Item, letter: str | None, status: str = "parsed", *, version: int = 1) -> None:
        value = float(letter == one.gold)
        detail: dict[str, float | int | str | None] = {"status": status, "answer": letter}
        strict = value if status == "parsed" else 0.0
        self.answered(
            one,
            f"The answer is {letter}",
            Score("accuracy", f"accuracy|v{version}", value, detail=detail),
            Score("accuracy_strict", f"accuracy_strict|v{version}", strict, detail=detail),
        )

    def transcript(self, one: Item, errors: int, words: int) -> None:
        detail: dict[str, float | int | str | None] = {
            "hits": words - errors,
            "substitutions": errors,
            "deletions": 0,
            "insertions": 0,
            "reference_words": words,
        }
        scores = [Score(m, f"{m}|v1", errors / words, detail=detail) for m in ("wer", "wer_raw")]
        self.answered(one, "heard", *scores)

    def done(self) -> Path:
        self.store.close()
        return self.store.folder
