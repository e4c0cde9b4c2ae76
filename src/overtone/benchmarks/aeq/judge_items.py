"""Rows of AEQ-Bench that ask a model to judge: choose the best of several spoken replies, or rate one as people did."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from overtone.benchmarks._files import Fields, kind_of, text
from overtone.errors import DataError
from overtone.paths import shown
from overtone.schema import Clip, Item, Option, Turn

CHOOSE = "Which recording is the most empathetic reply to what the user says, in this situation and in this voice?"
RATE = {  # what is rated → the question
    "coherence": "How well does the reply fit the situation and what the user says?",
    "supportiveness": "How much does the reply support the user emotionally?",
    "delivery": "How well does the voice of the reply (its melody, pace, pauses and warmth) suit the user?",
    "empathy": "How empathetic is the reply to this user in this situation?",
}
HEARD = "I have heard what the user says. Let me hear the reply to it."
STEPS = (("A", "Good", "3"), ("B", "Fair", "2"), ("C", "Poor", "1"))
REPLY = ("reply_audio", "response_audio", "candidate_audio", "candidate")
LABEL = ("human_label", "label", "rating", "human")  # of a row that rates one thing: empathy
_LETTER = re.compile(r"\W*(?:opt(?:ion)?[-_ ]?)?([a-z])\W*", re.I)


class Judged(Struct, frozen=True):
    item: Item


def judged(
    benchmark: str, fields: Fields, name: str, group: str, setting: str, said: str,
    find: Callable[[str], str | None], context: str, words: str, where: str,
) -> list[Judged | str]:  # fmt: skip
    """The questions of a row, or for those whose recording is missing their names; none where nothing is judged."""

    def item(kind: str, turns: tuple[Turn, ...], question: str, options: tuple[Option, ...], gold: str) -> Judged:
        made = Item(
            f"{benchmark}/judge/{kind}/{name}", benchmark, 2, "choose", f"judge-{kind}", name, group, "", turns,
            source=setting, context=context, question=question, options=options, gold=gold, language="en",
        )  # fmt: skip
        return Judged(made)

    if fields.get("options") is not None:
        clips = {letter: find(path) for letter, path in _options(fields["options"], where).items()}
        if None in clips.values():
            return [name]
        answer = _LETTER.fullmatch(text(fields, ("answer", "gold", "label"), where))
        gold = answer[1].upper() if answer else ""
        if gold and gold not in clips:
            raise DataError(f"{where}: the right answer {gold} is none of the options {', '.join(sorted(clips))}")
        options = tuple(Option(letter, "", clip=Clip(clip)) for letter, clip in sorted(clips.items()) if clip)
        return [item("choice", (Turn(Clip(said), words),), CHOOSE, options, gold)]
    labels = {key: fields[key] for key in RATE if _step(fields.get(key))}
    single = next((fields[key] for key in LABEL if _step(fields.get(key))), None)
    if single is not None and not labels:
        labels["empathy"] = single
    named = next((str(fields[key]) for key in REPLY if isinstance(fields.get(key), str) and fields[key].strip()), "")
    if not labels or not named:
        return []
    reply = find(named)
    if reply is None:
        return [name]
    turns = (Turn(Clip(said), words, given=HEARD), Turn(Clip(reply)))
    menu = tuple(Option(letter, word) for letter, word, _ in STEPS)
    return [item(f"rate-{key}", turns, RATE[key], menu, _step(label)) for key, label in labels.items()]


def _step(label: object) -> str:
    """The letter of Good, Fair or Poor, also as 3, 2 or 1; "" for anything else."""
    if isinstance(label, bool) or not isinstance(label, str | int | float):
        return ""
    plain = f"{label:g}" if isinstance(label, int | float) else label.strip().lower()
    return next((letter for letter, word, number in STEPS if plain in (word.lower(), number)), "")


def _options(given: object, where: str) -> dict[str, str]:
    if not isinstance(given, dict) or len(given) < 2 or not all(isinstance(path, str) for path in given.values()):
        raise DataError(f"{where}: 'options' holds {kind_of(given)}, but two or more recordings are expected")
    found = {}
    for key, path in given.items():
        letter = _LETTER.fullmatch(str(key))
        if letter is None:
            raise DataError(f"{where}: an option is called {shown(str(key))!r}; opt-A, opt-B, … are expected")
        found[letter[1].upper()] = path
    return found
