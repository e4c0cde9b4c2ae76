"""Rows of AEQ-Bench that ask a model to judge: choose the best of several spoken replies, or rate one reply. The right
answers are those of people."""

from __future__ import annotations

from collections.abc import Callable

from overtone.benchmarks._files import Fields, text
from overtone.benchmarks._folder import LETTER, MOST_EMPATHETIC, option_paths, spoken_options
from overtone.schema import Clip, Item, Option, Turn

RATE = {  # rated quality → the question
    "coherence": "How well does the reply fit the situation and what the user says?",
    "supportiveness": "How much does the reply support the user emotionally?",
    "delivery": "How well does the voice of the reply (its melody, pace, pauses and warmth) suit the user?",
    "empathy": "How empathetic is the reply to this user in this situation?",
}
HEARD = "I have heard what the user says. Let me hear the reply to it."
STEPS = (("A", "Good", "3"), ("B", "Fair", "2"), ("C", "Poor", "1"))
REPLY = ("reply_audio", "response_audio", "candidate_audio", "candidate")
LABEL = ("human_label", "label", "rating", "human")  # keys of a single rating, which is about empathy


def judge_items(
    benchmark: str, fields: Fields, name: str, group: str, setting: str, utterance: str,
    find: Callable[[str], str | None], context: str, words: str, where: str,
) -> list[Item] | None:  # fmt: skip
    """Return the items for a row's questions to a judge: [] if it has no questions, None if a recording is missing."""

    def item(kind: str, turns: tuple[Turn, ...], question: str, options: tuple[Option, ...], gold: str) -> Item:
        return Item(
            f"{benchmark}/judge/{kind}/{name}", benchmark, 2, "choose", f"judge-{kind}", name, group, "", turns,
            source=setting, context=context, question=question, options=options, gold=gold, language="en",
        )  # fmt: skip

    if fields.get("options") is not None:
        clips = {letter: find(path) for letter, path in option_paths(fields["options"], where).items()}
        if None in clips.values():
            return None
        answer = LETTER.fullmatch(text(fields, ("answer", "gold", "label"), where))
        gold = answer[1].upper() if answer else ""
        options = spoken_options(clips, gold, where)
        return [item("choice", (Turn(Clip(utterance), words),), MOST_EMPATHETIC, options, gold)]
    labels = {key: fields[key] for key in RATE if _step(fields.get(key))}
    single = next((fields[key] for key in LABEL if _step(fields.get(key))), None)
    if single is not None and not labels:
        labels["empathy"] = single
    named = next((str(fields[key]) for key in REPLY if isinstance(fields.get(key), str) and fields[key].strip()), "")
    if not labels or not named:
        return []
    reply = find(named)
    if reply is None:
        return None
    turns = (Turn(Clip(utterance), words, given=HEARD), Turn(Clip(reply)))
    menu = tuple(Option(letter, word) for letter, word, _ in STEPS)
    return [item(f"rate-{key}", turns, RATE[key], menu, _step(label)) for key, label in labels.items()]


def _step(label: object) -> str:
    """Return the letter for Good, Fair or Poor, which may also be written as 3, 2 or 1; "" for any other label."""
    if isinstance(label, bool) or not isinstance(label, str | int | float):
        return ""
    plain = f"{label:g}" if isinstance(label, int | float) else label.strip().lower()
    return next((letter for letter, word, number in STEPS if plain in (word.lower(), number)), "")
