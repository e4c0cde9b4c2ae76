"""Answer a question about a recording by choosing one of its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from overtone.errors import DataError
from overtone.schema import LIKELIHOOD, Condition, Item, Message, Option, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item,
    condition: Condition,
    turn: int,
    history: Sequence[Message],
    sound: Sound | None,
    prompts: Prompts,
    choices: Mapping[str, Sound] | None = None,
) -> tuple[Message, ...]:
    """Return the system prompt with the required form of the answer, then the question, its options and the sound.

    In a dialogue only the last turn has the question. Options that are recordings (`choices`, by letter) come last,
    each after its letter. In the condition `likelihood`, the question comes after the sound, without options and
    without a system prompt.
    """
    last = turn == len(item.turns) - 1
    utterance = spoken(item, condition, turn, sound, prompts.fill("choose.words"))
    if condition.prompt == LIKELIHOOD:
        question = f"\n{_asked(item, prompts)}" if last else ""  # a blank line before the question
        return assemble(item, condition, turn, history, "", (*utterance, question))
    parts: tuple[str | Sound, ...] = utterance
    if last:
        recorded = choices or {}
        options = "\n".join(f"{option.letter}. {_shown(option, recorded, prompts)}" for option in item.options)
        question = prompts.fill("choose.user", question=item.question, options=options)
        lead = (prompts.fill("choose.said"),) if recorded and utterance else ()
        parts = (question, *lead, *utterance, *_announced(recorded, prompts))
    system = prompts.fill("choose.system", letters="/".join(letters(item, prompts)))
    return assemble(item, condition, turn, history, system, parts)


def continuations(item: Item) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives whose likelihood answers the question: the texts of its options, in one step."""
    return (tuple(option.text for option in item.options),)


def without(item: Item, prompts: Prompts) -> tuple[Message, ...]:
    """Return the question alone, without the clip, its words and the earlier turns."""
    return (Message("user", (_asked(item, prompts),)),)


def _asked(item: Item, prompts: Prompts) -> str:
    return prompts.fill("choose.likelihood", question=item.question)


def _shown(option: Option, recorded: Mapping[str, Sound], prompts: Prompts) -> str:
    if option.clip is None:
        return option.text
    if option.letter not in recorded:
        raise DataError(f"option {option.letter} is a recording, but its sound is missing")
    return prompts.fill("choose.recorded", letter=option.letter)


def _announced(recorded: Mapping[str, Sound], prompts: Prompts) -> Iterator[str | Sound]:
    for letter, sound in recorded.items():
        yield prompts.fill("choose.option", letter=letter)
        yield sound


def letters(item: Item, prompts: Prompts) -> tuple[str, ...]:
    """Return the letters that the prompt lists: the question's, and those in the prompts' setting `choose.letters`."""
    own = tuple(option.letter for option in item.options)
    setting = prompts.texts["choose.letters"]
    if setting == "item":
        return own
    return tuple(dict.fromkeys((*setting, *own)))
