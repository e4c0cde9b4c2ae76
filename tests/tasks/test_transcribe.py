"""What a model is sent when it is to write down what is said."""

from __future__ import annotations

from typing import Any

from overtone.schema import Condition, Sound
from overtone.tasks import load_prompts
from overtone.tasks.transcribe import messages


def test_the_order_goes_before_the_sound_and_the_words_are_not_shown(make_item: Any, sound: Sound) -> None:
    prompts = load_prompts("openai:m", {})
    system, user = messages(make_item("transcribe"), Condition(), 0, (), sound, prompts)
    assert (system.role, user.role) == ("system", "user")
    assert user.parts == (prompts.texts["transcribe.user"], sound) and "done" not in user.text


def test_a_model_that_takes_no_order_gets_the_sound_alone(make_item: Any, sound: Sound) -> None:
    made = messages(make_item("transcribe"), Condition(), 0, (), sound, load_prompts("openai:VITA-Audio", {}))
    assert [m.role for m in made] == ["system", "user"] and made[1].parts == (sound,)


def test_a_model_without_a_system_prompt_gets_none(make_item: Any, sound: Sound) -> None:
    made = messages(make_item("transcribe"), Condition(), 0, (), sound, load_prompts("worker:echox", {}))
    assert [m.role for m in made] == ["user"] and len(made[0].parts) == 2
