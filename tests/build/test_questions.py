"""Questions about clips: true answers, false distractors, letters in balance."""

from __future__ import annotations

from collections import Counter

import pytest

from overtone.build.questions import Question, positions, reasoning, true_of, understanding
from overtone.build.script import TWO_WAY, Script
from overtone.cues import ALSO_TRUE, BY_SLUG, UNDERSTANDING, cue_of_option


@pytest.fixture(scope="module")
def heard(scripts: tuple[Script, ...]) -> list[Question]:
    return understanding(scripts, seed=0)


@pytest.fixture(scope="module")
def reasoned(scripts: tuple[Script, ...]) -> list[Question]:
    return reasoning(scripts, seed=0)


def test_the_right_option_states_the_cue_of_the_clip(heard: list[Question]) -> None:
    for q in heard:
        assert cue_of_option(q.options[q.gold]) == q.script.cue_in(q.style), q.id


def test_no_distractor_is_true_of_its_clip(heard: list[Question]) -> None:
    for q in heard:
        mine = q.script.cue_in(q.style)
        wrong = {cue_of_option(text) for i, text in enumerate(q.options) if i != q.gold}
        assert None not in wrong and mine not in wrong and len(wrong) == len(q.options) - 1, q.id
        slugs = {c.slug for c in wrong if c is not None}
        if q.category == "age":
            assert slugs == {"child", "elderly", "adult"} - {mine.slug if mine else ""}
        else:
            assert not slugs & true_of(q.script, q.style), q.id


@pytest.mark.parametrize(
    ("cue", "other"),
    [("sobbing", "sad"), ("shout", "angry"), ("tired", "slow"), ("laughter", "happy"), ("thunder", "rain"),
     ("cheering", "applause"), ("children", "child"), ("ringtone", "music"), ("honking", "car"), ("yawn", "tired")],
)  # fmt: skip
def test_what_a_listener_may_also_say_is_never_a_distractor(cue: str, other: str, heard: list[Question]) -> None:
    asked = [q for q in heard if (c := q.script.cue_in(q.style)) and c.slug == cue]
    assert asked
    assert all(BY_SLUG[other].option not in q.options for q in asked)


def test_the_speakers_own_sex_and_age_are_never_offered_as_wrong(heard: list[Question]) -> None:
    for q in (q for q in heard if q.category == "coarse"):
        wrong = {text for i, text in enumerate(q.options) if i != q.gold}
        assert BY_SLUG[q.script.voice_in(q.style).sex].option not in wrong, q.id
        assert BY_SLUG["adult"].option not in wrong, q.id


def test_the_table_of_what_is_also_true_knows_only_cues() -> None:
    assert set(ALSO_TRUE) <= set(BY_SLUG)
    assert all(also <= set(BY_SLUG) for also in ALSO_TRUE.values())


def test_each_target_clip_gets_its_fine_task_and_a_coarse_question(
    heard: list[Question], scripts: tuple[Script, ...]
) -> None:
    asked = {(q.script.id, q.style, q.category) for q in heard}
    for s in scripts:
        assert (s.id, "target", "coarse") in asked
        assert (s.id, "target", BY_SLUG[s.cue].task) in asked
        assert (s.id, "alternative", BY_SLUG[s.alternative].task) in asked
    assert {q.category for q in heard} == set(UNDERSTANDING)


def test_coarse_options_come_from_different_categories(heard: list[Question]) -> None:
    for q in (q for q in heard if q.category == "coarse"):
        cues = [cue_of_option(text) for text in q.options]
        assert len({c.category for c in cues if c}) == 4, q.id


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_right_letters_are_in_balance_within_every_category(scripts: tuple[Script, ...], seed: int) -> None:
    heard, reasoned = understanding(scripts, seed), reasoning(scripts, seed)
    for category, letters in positions(heard).items():
        width = max(len(q.options) for q in heard if q.category == category)
        counts = [letters.get(chr(65 + i), 0) for i in range(width)]
        assert max(counts) - min(counts) <= 1, (category, counts)
    for category, letters in positions(reasoned).items():
        width = max(len(q.options) for q in reasoned if q.category == category)
        counts = [letters.get(chr(65 + i), 0) for i in range(width)]
        assert max(counts) - min(counts) <= (0 if category in TWO_WAY else 2), (category, counts)


def test_the_same_options_stand_on_both_clips_and_the_right_one_moves(reasoned: list[Question]) -> None:
    pairs: dict[tuple[str, str], list[Question]] = {}
    for q in reasoned:
        pairs.setdefault((q.script.id, q.category), []).append(q)
    for both in pairs.values():
        target, alternative = both
        assert (target.style, alternative.style) == ("target", "alternative")
        assert target.question == alternative.question and target.options == alternative.options
        assert target.gold != alternative.gold
        assert target.provenance[target.gold] == "target"
        assert alternative.provenance[alternative.gold] == "alternative"


def test_no_letter_and_no_reading_answers_more_than_chance_by_itself(reasoned: list[Question]) -> None:
    letters = Counter(q.answer for q in reasoned if len(q.options) == 4)
    assert max(letters.values()) / sum(letters.values()) < 0.3


def test_ids_are_unique(heard: list[Question], reasoned: list[Question]) -> None:
    assert len({q.id for q in heard}) == len(heard)
    assert len({q.id for q in reasoned}) == len(reasoned)


def test_another_seed_draws_other_questions(scripts: tuple[Script, ...], heard: list[Question]) -> None:
    assert [q.options for q in understanding(scripts, seed=1)] != [q.options for q in heard]
    assert [q.options for q in understanding(scripts, seed=0)] == [q.options for q in heard]
