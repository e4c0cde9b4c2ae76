"""Which texts a model is asked with, where each came from, and under which conditions an item is asked."""

from __future__ import annotations

from typing import Any

import pytest

from overtone.errors import UsageError
from overtone.schema import INPUTS, Clip, Condition, Turn
from overtone.tasks import FROM_COPY, FROM_DEFAULT, VARIANTS, conditions, load_prompts

CONVERSATION = ("zero", "basic", "enhance", "oracle", "oracle-false", "warm", "plain")


def test_a_plain_model_is_asked_in_our_words() -> None:
    prompts = load_prompts("openai:some-model", {})
    assert set(prompts.origins.values()) == {FROM_DEFAULT} and set(prompts.origins) == set(prompts.texts)
    assert prompts.texts["zero.system"] == "" and not any("{role" in text for text in prompts.texts.values())


def test_the_users_copy_is_used_and_said_to_be() -> None:
    prompts = load_prompts("openai:m", {"basic.system": "You are kind. Topic/scenario: {{ topic }}."})
    assert prompts.texts["basic.system"] == "You are kind. Topic/scenario: {topic}."
    assert prompts.origins["basic.system"] == FROM_COPY and prompts.origins["zero.system"] == FROM_DEFAULT
    assert prompts.hash != load_prompts("openai:m", {}).hash


@pytest.mark.parametrize("mark", ["{topic}", "{{topic}}", "${topic}", "<topic>", "[Topic]", "{ TOPIC }"])
def test_a_topic_is_filled_in_however_the_copy_marks_it(make_item: Any, mark: str) -> None:
    prompts = load_prompts("m:m", {"basic.system": f"Be kind. The topic is {mark}. Use {{braces}} at will."})
    text = prompts.converse_system(make_item("converse", topic="family"), Condition("basic"))
    assert text == "Be kind. The topic is family. Use {braces} at will."


def test_without_a_topic_only_its_sentence_goes(make_item: Any) -> None:
    prompts = load_prompts("m:m", {"basic.system": "Be kind. The topic is {topic}. Answer once."})
    assert prompts.converse_system(make_item("converse", topic=""), Condition("basic")) == "Be kind. Answer once."
    ours = load_prompts("m:m", {}).converse_system(make_item("converse", topic=""), Condition("basic"))
    assert "about" not in ours and ours.count("\n") == 1


def test_an_unknown_key_gets_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'basic\.system'"):
        load_prompts("m:m", {"basic.sytem": "x"})


@pytest.mark.parametrize(
    ("model", "key", "empty"),
    [
        ("worker:ICTNLP/LLaMA-Omni2-7B", "transcribe.system", False),
        ("worker:DeSTA2.5-Audio", "transcribe.system", False),
        ("openai:vita-audio-plus", "transcribe.user", True),
        ("worker:EchoX-8B", "transcribe.system", True),
        ("openai:Qwen/Qwen2.5-Omni-7B", "zero.system", False),
    ],
)
def test_models_that_need_other_words_get_them_with_the_reason(model: str, key: str, empty: bool) -> None:
    special, plain = load_prompts(model, {}), load_prompts("openai:other", {})
    assert special.texts[key] != plain.texts[key] and (special.texts[key] == "") is empty
    assert "changed for this model: " in special.origins[key]
    assert special.texts["choose.user"] == plain.texts["choose.user"]


def test_qwen_keeps_its_identity_in_front_of_a_foreign_text_too() -> None:
    copy = {"enhance.speaker.system": "You are an assistant in a shop. Topic: {topic}. Mind the voice."}
    text = load_prompts("openai:qwen2.5-omni-7b", copy).texts["enhance.speaker.system"]
    assert text.startswith("You are Qwen,") and text.endswith(" Topic: {topic}. Mind the voice.") and "shop" not in text


ECHOX = "Make out what the voice says, then reply to it."


def test_echox_has_one_sentence_for_basic_and_no_role_in_enhance() -> None:
    special, plain = load_prompts("worker:echox", {}), load_prompts("worker:x", {})
    assert special.texts["zero.system"] == "" and special.texts["basic.system"] == ECHOX
    enhanced = [key for key in special.texts if key.startswith("enhance.")]
    assert len(enhanced) == 4
    for key in enhanced:
        role = plain.texts["role.service" if "speaker" in key else "role.plain"]
        assert plain.texts[key].startswith(role)
        assert special.texts[key] == ECHOX + plain.texts[key].removeprefix(role)
        assert "{topic}" in special.texts[key]
    assert special.texts["choose.system"] == plain.texts["choose.system"], "its role stays where a letter is asked for"


def test_echox_is_asked_the_same_beside_a_copy_of_echominds_prompts() -> None:
    copy = {"basic.system": "You are kind. The topic is {topic}. Reply."}
    copy |= {"enhance.speaker.system": "You are an assistant in a shop.\nTopic: {topic}.\nMind the voice."}
    texts = load_prompts("worker:EchoX", copy).texts
    assert texts["basic.system"] == ECHOX
    assert texts["enhance.speaker.system"] == f"{ECHOX}\nTopic: {{topic}}.\nMind the voice."
    ours = {"basic.system": "{role.plain}\nAnswer the question."}
    assert load_prompts("worker:EchoX", ours).texts["basic.system"] == f"{ECHOX}\nAnswer the question."


def test_a_conversation_is_asked_under_each_variant_and_input(make_item: Any) -> None:
    found = conditions(make_item("converse", context="A call."), CONVERSATION, INPUTS)
    assert len({c.name for c in found}) == len(CONVERSATION) * len(INPUTS) == len(found)
    assert [c.name for c in conditions(make_item("converse"), ["zero", "oracle"], ["audio"])] == [
        "zero/audio",
        "oracle/audio",
    ]


def test_other_tasks_have_one_prompt_and_no_transcript_is_asked_for_where_it_is_shown(make_item: Any) -> None:
    told = make_item("choose", context="A call.")
    assert [c.name for c in conditions(told, CONVERSATION, INPUTS)] == [f"task/{i}" for i in INPUTS]
    assert [c.name for c in conditions(make_item("transcribe"), ["zero"], INPUTS)] == ["task/audio", "task/silence"]


def test_without_a_context_nothing_is_asked_without_it_or_with_it_alone(make_item: Any) -> None:
    without = [i for i in INPUTS if i not in ("alone", "context")]
    assert [c.input for c in conditions(make_item("converse"), ["zero"], INPUTS)] == without
    turns = (Turn(Clip("1.wav"), "one"), Turn(Clip("2.wav"), "two"))
    dialogue = make_item("converse", context="A call.", turns=turns)
    assert [c.input for c in conditions(dialogue, ["zero"], ["context", "alone"])] == ["alone"]


def test_unknown_variants_and_inputs_are_refused(make_item: Any) -> None:
    with pytest.raises(UsageError, match="'p4'"):
        conditions(make_item("converse"), ["p4"], ["audio"])
    with pytest.raises(UsageError, match="'video'"):
        conditions(make_item("converse"), ["zero"], ["video"])


def test_every_variant_is_listed_and_is_a_condition() -> None:
    assert {Condition.parse(f"{name}/audio").name for name in VARIANTS} == {f"{name}/audio" for name in VARIANTS}


def test_the_version_and_hash_of_the_prompts_move_together() -> None:
    """When a text changes, raise `version` in default.toml and write the new pair here."""
    prompts = load_prompts("openai:plain", {})
    assert (prompts.version, prompts.hash) == (5, "587a019f5d67")


def test_warm_and_plain_differ_in_one_word_and_follow_a_models_own_role() -> None:
    ours = load_prompts("openai:m", {}).texts
    assert ours["warm.system"].replace("warm", "neutral") == ours["plain.system"]
    assert ours["plain.system"].startswith(ours["basic.system"])
    assert load_prompts("openai:Qwen2.5-Omni-7B", {}).texts["warm.system"].startswith("You are Qwen")


def test_an_item_without_a_recording_is_asked_in_writing_under_that_name(make_item: Any) -> None:
    item = make_item("choose", turns=(Turn(None, "M: Hello."),))
    assert [c.name for c in conditions(item, ["enhance"], ["audio"])] == ["task/transcript"]
    assert [c.name for c in conditions(item, ["enhance"], ["both", "transcript"])] == ["task/transcript"]
    assert [c.name for c in conditions(item, ["enhance"], ["audio", "recognised"])] == ["task/recognised"]
