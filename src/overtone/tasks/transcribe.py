"""Transcribe the spoken words."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """Return the system prompt, then the instruction to transcribe and the sound."""
    instruction = prompts.fill("transcribe.user")
    utterance = spoken(item, condition, turn, sound, prompts.fill("choose.words"))
    return assemble(item, condition, turn, history, prompts.fill("transcribe.system"), (instruction, *utterance))
