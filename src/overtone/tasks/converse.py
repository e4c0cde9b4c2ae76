"""Reply to what the user says, in text and, where the model can, in speech."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """System prompt of the condition's variant, the turns so far, and the user's turn: sound, words, or both."""
    said = spoken(item, condition, turn, sound, prompts.fill("converse.words"), bare="{words}")
    return assemble(item, condition, turn, history, prompts.converse_system(item, condition, turn), said)
