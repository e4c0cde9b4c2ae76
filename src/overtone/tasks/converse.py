"""Reply to the user, in text and, if the model can speak, in speech."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """Return the system prompt of the condition, the turns so far, and the user's turn: sound, words, or both."""
    utterance = spoken(item, condition, turn, sound, prompts.fill("converse.words"), bare="{words}")
    return assemble(item, condition, turn, history, prompts.converse_system(item, condition, turn), utterance)
