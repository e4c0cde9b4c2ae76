"""A made-up run on a made-up open set: all parts, validated cues and others, a model that listens with half an ear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from overtone import cues
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Option, Reply, Score, Turn

READINGS = ("target", "alternative", "words", "harmful")
TEXTS = {
    "target": "Offer to sit down together first.",
    "alternative": "Join in the good mood and ask for more.",
    "words": "Give the plain facts.",
    "harmful": "Tell them to pull themselves together.",
    "voice": "The voice carries sadness.",
    "nothing": "Nothing special can be heard.",
    "": "The speaker coughs.",
}


def make_open_run(folder: Path, *, scripts: int = 60, skill: float = 0.65, seed: int = 5, validated: int = 2) -> Path:
    """`validated`: of three cues so many are."""
    rng = np.random.default_rng(seed)
    items = list(_items(scripts, validated))
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "open", "model": "openai:some-model", "created": "2026-03-01T12:00:00Z"})
        store.plan([(i, ["enhance/audio" if i.task == "converse" else "task/audio"]) for i in items], 1)
        for ask in store.open_asks(0, 10**6):
            for turn in range(len(ask.item.turns)):
                text, scores = _answer(ask.item, rng, skill)
                store.add_reply(ask, turn, Reply(text), sent=b"[]", latency=0.5 + rng.random(), attempts=1)
                last = turn == len(ask.item.turns) - 1
                store.add_scores([(ask.id, score) for score in scores], turn=None if last else turn)
        store.commit()
    return folder


def _items(scripts: int, validated: int) -> Iterator[Item]:
    all_cues = [c for c in cues.CUES if c.dimension != "speaker"]
    sure = {c.slug: "validated" if (n + 2) % 3 < validated else "unvalidated" for n, c in enumerate(all_cues)}
    for number in range(scripts):
        cue, other = all_cues[number % len(all_cues)].slug, all_cues[(number + 5) % len(all_cues)].slug
        group = f"synthesis/o{number}"
        words = "They have moved the meeting to four o’clock."

        def item(
            style: str, carried: str, level: int, task: str, category: str, part: str = "", **more: object
        ) -> Item:
            default = {"turns": (Turn(Clip(f"{number}/{style}.wav"), words, carried),)}  # noqa: B023
            return Item(
                id=f"open/{group}/{style}/{category}/{part}", benchmark="open", level=level, task=task,  # noqa: B023
                category=category, case=f"{group}/{style}", group=group, style=style, cue=carried,  # noqa: B023
                dimension=cues.BY_SLUG[cue].dimension, part=part, status=sure.get(carried, ""),  # noqa: B023
                topic="work", **(default | more),  # type: ignore[arg-type]
            )  # fmt: skip

        for style, carried in (("target", cue), ("alternative", other), ("neutral", ""), ("control", "")):
            part = "control" if style == "control" else ""
            right = {"neutral": "words", "control": "words"}.get(style, style)
            if style == "target":
                yield item(style, carried, 1, "transcribe", "asr", references=(words,))
            if carried:
                yield item(style, carried, 1, "choose", cues.BY_SLUG[carried].task, **_options(number, READINGS, style))
            yield item(style, carried, 2, "choose", "empathy", part, **_options(number + 1, READINGS, right))
            yield item(style, carried, 3, "converse", "conversation", part, references=("A reference reply.",))
            if style in ("target", "neutral"):
                heard = ("target", "alternative", "", "nothing")
                right = "nothing" if style == "neutral" else style
                yield item(style, carried, 1, "choose", "false-cue", "false-cue", **_options(number, heard, right))
        yield item("target", cue, 2, "choose", "intent", "fixed", **_options(number, READINGS, "target"))
        if number % 5 == 1:
            for style, carried in (("target", cue), ("alternative", other)):
                said = ("words", "voice", "", "harmful")
                heard_right = "voice" if style == "target" else "words"
                for about, right in (("words", "words"), ("voice", heard_right), ("agreement", heard_right)):
                    given = _options(number, said if about != "agreement" else ("words", "voice"), right)
                    yield item(style, carried, 2, "choose", f"conflict-{about}", "conflict", **given)
        if number % 4 == 0:
            for style, second in (("changed", other), ("steady", cue)):
                turns = (
                    Turn(Clip(f"{number}/1.wav"), words, cue, "I see. How are you holding up?"),
                    Turn(Clip(f"{number}/2-{style}.wav"), "So now I have the evening free.", second, "Enjoy it!"),
                )
                yield item(style, second, 3, "converse", "dialogue", "dialogue", turns=turns)


def _options(number: int, readings: tuple[str, ...], right: str) -> dict[str, object]:
    turned = readings[number % len(readings) :] + readings[: number % len(readings)]
    options = tuple(Option("ABCD"[n], TEXTS[r], r) for n, r in enumerate(turned))
    return {"question": "What fits best?", "options": options, "gold": "ABCD"[turned.index(right)]}


def _answer(item: Item, rng: np.random.Generator, skill: float) -> tuple[str, list[Score]]:
    if item.task == "choose":
        letters = [o.letter for o in item.options]
        worded = next((o.letter for o in item.options if o.provenance == "words"), letters[0])
        letter: str | None = (
            item.gold if rng.random() < skill else worded if rng.random() < 0.6 else str(rng.choice(letters))
        )
        if rng.random() < 0.02:
            letter = None
        detail: dict[str, float | int | str | None] = {"answer": letter, "status": "parsed" if letter else "hedged"}
        value = float(letter == item.gold)
        return f"The answer is: {letter}", [
            Score(m, f"{m}|v1", value, detail=detail) for m in ("accuracy", "accuracy_strict")
        ]
    if item.task == "transcribe":
        counts: dict[str, float | int | str | None] = {
            "hits": 7, "substitutions": 1, "deletions": 0, "insertions": 0, "reference_words": 8,
        }  # fmt: skip
        return "They have moved the meeting.", [Score(m, f"{m}|v1", 0.125, detail=counts) for m in ("wer", "wer_raw")]
    return "That leaves room for something nice.", [
        Score("semsim", "semsim|v1|minilm", float(np.clip(rng.normal(0.55, 0.15), 0, 1)))
    ]
