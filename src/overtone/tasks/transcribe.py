"""Write down the words that are spoken."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """System prompt, then the order to transcribe and the sound."""
    order = prompts.fill("transcribe.user")
    said = spoken(item, condition, turn, sound, prompts.fill("choose.words"))
    return assemble(item, condition, turn, history, prompts.fill("transcribe.system"), (order, *said))
