"""Rate the valence, arousal and dominance of a sentence with three numbers from 1 to 9."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import DataError
from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble

DIGITS = tuple(str(digit) for digit in range(1, 10))
DIMENSIONS = ("valence", "arousal", "dominance")


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """Return the question with the sentence. It is the same in every condition, so that answers and likelihoods can be
    compared."""
    words = item.turns[turn].words
    if not words:
        raise DataError(f"{item.id}: turn {turn} has no words to rate")
    return assemble(item, condition, turn, history, "", (_asked(item, words, prompts),))


def continuations(item: Item) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives whose likelihood answers the question: a digit for each of the three dimensions."""
    return (DIGITS,) * len(DIMENSIONS)


def without(item: Item, prompts: Prompts) -> tuple[Message, ...]:
    """Return the question without the sentence."""
    return (Message("user", (_asked(item, "", prompts),)),)


def _asked(item: Item, words: str, prompts: Prompts) -> str:
    return prompts.fill("rate.user", question=item.question, words=words)
