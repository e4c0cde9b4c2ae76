"""Answer a question about a recording by choosing one of its options."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.schema import Condition, Item, Message, Sound
from overtone.tasks import Prompts, assemble, spoken


def messages(
    item: Item, condition: Condition, turn: int, history: Sequence[Message], sound: Sound | None, prompts: Prompts
) -> tuple[Message, ...]:
    """System prompt with the required answer form, then the question, its options and the sound. Of several turns only
    the last carries the question."""
    options = "\n".join(f"{option.letter}. {option.text}" for option in item.options)
    last = turn == len(item.turns) - 1
    asked = prompts.fill("choose.user", question=item.question, options=options) if last else ""
    said = spoken(item, condition, turn, sound, prompts.fill("choose.words"))
    system = prompts.fill("choose.system", letters="/".join(letters(item, prompts)))
    return assemble(item, turn, history, system, (asked, *said))


def letters(item: Item, prompts: Prompts) -> tuple[str, ...]:
    """The letters the prompt lists: four whatever the question offers (more where it offers more), or its own."""
    own = tuple(option.letter for option in item.options)
    setting = prompts.texts["choose.letters"]
    if setting == "item":
        return own
    return tuple(dict.fromkeys((*setting, *own)))
