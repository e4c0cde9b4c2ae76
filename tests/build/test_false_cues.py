"""False cues: a cued clip and its neutral twin, the same question, and only hearing tells them apart."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from overtone.build.questions import Question, false_cue, true_of
from overtone.build.script import Script, read_set
from overtone.cues import BY_SLUG, NOTHING_SPECIAL, cue_of_option


@pytest.fixture(scope="module")
def scripts() -> tuple[Script, ...]:
    return read_set("open")


@pytest.fixture(scope="module")
def asked(scripts: tuple[Script, ...]) -> list[Question]:
    return false_cue(scripts, seed=0)


def pairs(asked: list[Question]) -> list[tuple[Question, Question]]:
    return list(zip(asked[::2], asked[1::2], strict=True))


def test_every_script_of_voice_or_surroundings_is_asked_on_a_cued_and_on_the_neutral_clip(
    asked: list[Question], scripts: tuple[Script, ...]
) -> None:
    wanted = [s.id for s in scripts if BY_SLUG[s.cue].dimension != "speaker"]
    assert [cued.script.id for cued, _ in pairs(asked)] == wanted
    for cued, neutral in pairs(asked):
        assert cued.script == neutral.script
        assert cued.style in ("target", "alternative") and neutral.style == "neutral"
        assert (cued.question, cued.options, cued.provenance) == (neutral.question, neutral.options, neutral.provenance)
        assert cued.part == neutral.part == cued.category == "false-cue"


def test_the_cue_is_right_on_the_cued_clip_and_nothing_special_on_the_neutral(asked: list[Question]) -> None:
    assert cue_of_option(NOTHING_SPECIAL) is None
    for cued, neutral in pairs(asked):
        assert neutral.options[neutral.gold] == NOTHING_SPECIAL and neutral.provenance[neutral.gold] == "nothing"
        assert cue_of_option(cued.options[cued.gold]) == cued.script.cue_in(cued.style)
        assert cued.provenance[cued.gold] == cued.style
        readings = {"target", "alternative"} if cued.script.cue != cued.script.alternative else {cued.style, ""}
        assert sorted(cued.provenance) == sorted(["", "nothing", *readings])


def test_no_wrong_option_is_true_of_the_cued_clip_and_the_added_one_of_no_clip(asked: list[Question]) -> None:
    for cued, _ in pairs(asked):
        for i, (provenance, text) in enumerate(zip(cued.provenance, cued.options, strict=True)):
            cue = cue_of_option(text)
            if cue is None or i == cued.gold:
                continue
            assert cue.slug not in true_of(cued.script, cued.style), cued.id
            if not provenance:
                assert all(cue.slug not in true_of(cued.script, style) for style in cued.script.styles), cued.id
                assert cue.category not in ("speed", "volume"), cued.id  # nobody measures them here


def test_half_of_each_cues_scripts_use_the_alternative_clip(asked: list[Question]) -> None:
    used = Counter((cued.script.cue, cued.style) for cued, _ in pairs(asked))
    assert all(n == 6 for n in used.values()) and len(used) == 2 * 35


def test_letters_are_in_balance_on_cued_and_on_neutral_clips(asked: list[Question]) -> None:
    for questions in zip(*pairs(asked), strict=True):
        letters = Counter(q.answer for q in questions)
        assert max(letters[x] for x in "ABCD") - min(letters[x] for x in "ABCD") <= 2, letters


def test_a_clip_of_which_the_other_cue_may_be_true_is_not_the_cued_one(scripts: tuple[Script, ...]) -> None:
    stormy = replace(next(s for s in scripts if s.cue == "wind"), alternative="thunder")  # a storm has wind as well
    for seed in range(5):
        assert [q.style for q in false_cue([stormy], seed)] == ["target", "neutral"]
    crowd = replace(stormy, cue="applause", alternative="cheering")  # each may be true of the other
    assert false_cue([crowd], 0) == []


def test_two_kinds_of_one_cue_get_a_second_added_option(scripts: tuple[Script, ...]) -> None:
    laughs = next(s for s in scripts if s.cue == "laughter")
    both = replace(laughs, alternative="laughter", manner={"target": "hearty", "alternative": "nervous"})
    for seed in range(5):
        cued, neutral = false_cue([both], seed)
        assert len(set(cued.options)) == 4 and cued.options == neutral.options
        assert sorted(cued.provenance) == sorted(["", "", cued.style, "nothing"])


def test_scripts_without_a_neutral_clip_and_conflicts_are_not_asked(scripts: tuple[Script, ...]) -> None:
    plain = next(s for s in scripts if s.cue == "sad")
    two = {"target": "a", "alternative": "b"}
    assert false_cue([replace(plain, reply=two, style=two)], 0) == []
    assert false_cue([replace(plain, says=plain.alternative)], 0) == []
    assert len(false_cue([plain], 0)) == 2


def test_the_seed_alone_decides(scripts: tuple[Script, ...], asked: list[Question]) -> None:
    assert false_cue(scripts, 0) == asked
    assert false_cue(scripts, 1) != asked
    assert len({q.id for q in asked}) == len(asked)
