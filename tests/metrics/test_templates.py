"""Replies out of a mould: what opens and ends them, and descriptions of the recording in place of a reply."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

import overtone.build
from overtone.errors import UsageError
from overtone.metrics import Answered
from overtone.metrics.templates import PATTERNS, described, load, phrases, split
from overtone.schema import Item, Key, Score, Turn

TOPICS = (
    "the lamp",
    "her choir",
    "a bus",
    "two eggs",
    "my coat",
    "their dog",
    "our sink",
    "the fair",
    "a letter",
    "snow",
)


def answered(
    place: int,
    text: str,
    *,
    group: str = "",
    condition: str = "enhance/audio",
    benchmark: str = "aeq",
    language: str = "en",
) -> Answered:
    name = f"{benchmark}/{place}"
    item = Item(name, benchmark, 3, "converse", "context", name, group or f"g{place}", "", (Turn(None),))
    item = msgspec.structs.replace(item, language=language)
    return Answered(Key(name, condition), item, text)


def scored(replies: list[Answered]) -> list[dict[str, Score]]:
    metric = load()
    metric.survey(replies)
    return [{score.metric: score for score in scores} for scores in metric.score(replies)]


def plain(count: int, first: int = 0) -> list[Answered]:
    """Replies that share nothing with each other."""
    return [answered(n, f"word{n} alpha{n} and then beta{n} gamma{n} end{n}") for n in range(first, first + count)]


def test_phrases_are_three_to_five_words_without_marks_and_case() -> None:
    opening = ["i'm so sorry", "i'm so sorry to", "i'm so sorry to hear"]
    assert phrases("I'm SO sorry, to hear — that!") == {
        "opening": [opening],
        "ending": [["to hear that", "sorry to hear that", "so sorry to hear that"]],
        "sentence": [opening],
        "closing": [],
    }
    assert phrases("I’m so sorry")["opening"] == [["i'm so sorry"]]
    assert not any(phrases("Oh no").values())


def test_every_sentence_has_an_opening_and_the_last_long_enough_one_is_the_closing() -> None:
    found = phrases("Dr. Lee is here. But you know, it helps!\n\nShall we go now? Okay?")
    assert [sentence[0] for sentence in found["sentence"]] == ["dr lee is", "but you know", "shall we go"]
    assert found["closing"] == [["shall we go", "shall we go now"]]


def test_a_set_phrase_inside_every_reply_is_found_wherever_its_sentence_stands() -> None:
    """The example of AEQ-Bench's paper: all replies differ, but each has a sentence that begins "But you know"."""
    inside = [
        answered(n, f"Word{n} alpha{n} beta{n}. But you know, {TOPICS[n]} will mend. Gamma{n} delta{n} end{n}.")
        for n in range(10)
    ]
    tails = [answered(n, f"Word{n} alpha{n} beta{n}! But you know, thing{n} will mend soon{n}.") for n in range(10)]
    for replies, closing in ((inside, 0.0), (tails, 1.0)):
        found = scored(replies)
        assert [s["template_opening"].value for s in found] == [0.0] * 10
        assert [s["template_ending"].value for s in found] == [0.0] * 10
        assert [s["template_sentence"].value for s in found] == [1.0] * 10
        assert found[0]["template_sentence"].detail["template"] == "but you know"
        assert [s["template_closing"].value for s in found] == [closing] * 10


def test_a_reply_counts_once_however_often_it_repeats_a_phrase() -> None:
    loop = answered(0, "But you know, yes. " * 50)
    assert scored([loop, *plain(40, 1)])[0]["template_sentence"].value == 0.0


def test_a_reply_of_one_sentence_has_no_closing() -> None:
    (one,) = scored([answered(0, "Let us see what can be done.")])
    assert one["template_closing"].value is None and "fewer than two sentences" in one["template_closing"].reason


def test_chinese_phrases_are_characters_and_its_marks_end_sentences() -> None:
    assert [s for s in split("你好。我很抱歉！真的", "zh") if s] == ["你好", "我很抱歉", "真的"]
    assert [p[0] for p in phrases("我很抱歉听到这个。不过你知道，会好的。", "zh")["sentence"]] == [
        "我很抱歉",
        "不过你知",
    ]
    replies = [answered(n, f"第{n}件事真的不容易{n}。不过你知道，{n}天以后会好的。", language="zh") for n in range(8)]
    found = scored(replies)
    assert [s["template_closing"].value for s in found] == [1.0] * 8
    assert found[0]["template_closing"].detail["template"] == "不过你知道"
    assert found[0]["analytic"].value is None and "English" in found[0]["analytic"].reason


def test_spanish_marks_part_sentences_and_belong_to_no_phrase() -> None:
    found = phrases("¿Qué te pasó ayer? ¡No me digas eso!", "es")["sentence"]
    assert [sentence[0] for sentence in found] == ["qué te pasó", "no me digas"]


def test_an_opening_that_five_of_a_hundred_share_is_a_template_and_four_are_none() -> None:
    five = [answered(n, f"I'm so sorry, {TOPICS[n]} must be hard on person{n} today{n}") for n in range(5)]
    found = scored([*five, *plain(95, 5)])
    assert [s["template_opening"].value for s in found] == [1.0] * 5 + [0.0] * 95
    assert found[0]["template_opening"].detail["template"] == "i'm so sorry"
    assert found[0]["template_opening"].detail["opening"] == "i'm so sorry the lamp"
    assert {s["template_ending"].value for s in found} == {0.0}
    assert not any(s["template_opening"].value for s in scored([*five[:4], *plain(90, 5)]))
    assert not any(s["template_opening"].value for s in scored([*five, *plain(96, 5)])), "5 of 101 is less than 5 %"


def test_the_longest_shared_ending_is_named() -> None:
    tails = [answered(n, f"thing{n} is yours but you know") for n in range(6)]
    found = scored([*tails, *plain(20, 6)])
    assert [s["template_ending"].value for s in found] == [1.0] * 6 + [0.0] * 20
    assert found[0]["template_ending"].detail["template"] == "is yours but you know"


def test_the_same_reply_to_the_variants_of_one_group_is_no_template() -> None:
    """Asked without its context, an utterance gets the same reply in every variant: that is no habit of the model."""
    same = [answered(n, "Let us see what can be done", group="g") for n in range(8)]
    assert not any(s["template_opening"].value for s in scored([*same, *plain(20, 8)]))


def test_conditions_are_looked_at_apart() -> None:
    here = [answered(n, f"Of course my {TOPICS[n]} friend{n}", condition="zero/audio") for n in range(5)]
    there = [answered(n, f"Of course my {TOPICS[n]} friend{n}", condition="basic/audio") for n in range(5, 9)]
    found = scored([*here, *there])
    assert [s["template_opening"].value for s in found] == [1.0] * 5 + [0.0] * 4


def test_a_short_or_empty_reply_is_unscored_with_the_reason() -> None:
    (short,) = scored([answered(0, "Oh no!")])
    assert short["template_opening"].reason == "fewer than 3 words" and short["analytic"].value == 0.0
    (empty,) = scored([answered(0, " ")])
    assert empty["analytic"].value is None and empty["analytic"].reason == "the reply has no words"


DESCRIPTIONS = {
    "The speaker sounds tired and wants to go home.": "the speaker sounds",
    "It sounds like the user is expressing frustration about the delay.": "the speaker sounds",
    "Well, the speaker’s voice clearly conveys sadness.": "the speaker sounds",
    "I can tell from the speaker's tone that this matters.": "the speaker's tone",
    "There is a sad emotion in the audio, with slow pacing.": "the tone of the speaker",
    "The audio clip conveys a sense of urgency.": "the audio conveys",
    "This recording features a woman who talks about money.": "the audio conveys",
    "In this audio, someone asks for help.": "in the audio",
    "Sure. Based on the recording, they are amused.": "in the audio",
    "I think the woman in the recording wants company.": "the person in the recording",
    "The tone is rather neutral and the pace is even.": "the tone is sad",
    "A man's voice says that the train is late.": "a voice says",
    "The sentence is spoken in a calm, flat tone.": "spoken in a tone",
}
REPLIES = (
    "You sound tired. Sit down, I'll make the tea.",
    "Your voice tells me this isn't easy; take your time.",
    "The speaker sounds muffled to me too, so let's try the other cable.",
    "I'd turn the audio down before the neighbours knock.",
    "Send me the recording, and I'll listen tonight.",
    "If the user seems lost, show them the hint first.",
    "He sounds like a kind man; I'd give him the coins.",
    "The woman at the desk said the form is fine.",
    "Based on what you tell me, I would wait until Monday.",
    "The tone of your letter is fine, send it.",
    "The guest speaker is late, so you have ten minutes.",
    "The clip on the bag is broken, I'll sew it.",
    "I hear that you're sad, and I'm here.",
    "It sounds like you've had a day of it.",
    "The voice teacher is calm, you'll like her.",
    "The mood at work is better since she left, isn't it?",
)


@pytest.mark.parametrize(("text", "pattern"), DESCRIPTIONS.items())
def test_a_description_of_the_recording_is_known_by_its_pattern(text: str, pattern: str) -> None:
    assert described(text) == pattern


@pytest.mark.parametrize("text", REPLIES)
def test_a_reply_to_somebody_is_no_description(text: str) -> None:
    assert described(text) == ""


def test_every_pattern_has_a_sentence_that_only_it_explains() -> None:
    assert set(DESCRIPTIONS.values()) == set(PATTERNS)


def test_no_reference_reply_of_the_open_sets_is_called_a_description() -> None:
    texts = []
    for path in sorted(Path(overtone.build.__file__).parent.glob("[ao]*/*.toml")):
        texts += _replies(tomllib.loads(path.read_text(encoding="utf-8")))
    assert len(texts) > 500
    assert [text for text in texts if described(text)] == []


def _replies(tree: object) -> list[str]:
    if isinstance(tree, list):
        return [text for v in tree for text in _replies(v)]
    if not isinstance(tree, dict):
        return []
    own = tree.get("reply", {})
    told = list(own.values()) if isinstance(own, dict) else [own]
    return told + [text for v in tree.values() for text in _replies(v)]


def test_other_benchmarks_are_scored_where_that_is_asked_for() -> None:
    other = answered(0, "Hello there you", benchmark="echomind").item
    assert not load().applies(other) and load(everywhere="yes").applies(other)
    assert not load(everywhere="yes").applies(msgspec.structs.replace(other, task="choose"))
    with pytest.raises(UsageError, match="yes or no"):
        load(everywhere="maybe")
