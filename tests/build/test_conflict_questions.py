"""Conflicts: the words' question stays with the words, the voice's moves with the voice, agreement tells the twins."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pytest

from overtone.build.questions import Question, conflict, true_of
from overtone.build.script import Script
from overtone.cues import BY_SLUG, cue_of_option

SAID = ("happy", "sad", "angry", "fear", "tired", "disgust")
TWO = {"target": "x", "alternative": "y"}


def clash(number: int, says: str, voice: str) -> Script:
    return Script(
        f"cf_{number:03}", voice, says, "home", ("arlo", "dora")[number % 2], "Words.", TWO, TWO, says=says
    )  # fmt: skip


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    fit = [(a, b) for a, b in itertools.permutations(SAID, 2) if b not in true_of(clash(0, b, a), "target") - {a}]
    return [clash(i, says, voice) for i, (voice, says) in enumerate(fit + fit + fit[:11])]


@pytest.fixture(scope="module")
def asked(scripts: list[Script]) -> list[Question]:
    return conflict(scripts, seed=0)


def test_three_questions_are_asked_on_each_of_the_two_clips(asked: list[Question], scripts: list[Script]) -> None:
    kinds = ("conflict-words", "conflict-voice", "conflict-agreement")
    wanted = [(s.id, style, kind) for s in scripts for style in TWO for kind in kinds]
    assert [(q.script.id, q.style, q.category) for q in asked] == wanted
    assert {q.part for q in asked} == {"conflict"}
    assert len({q.id for q in asked}) == len(asked)


def test_words_and_voice_are_asked_with_the_same_options_on_both_clips(asked: list[Question]) -> None:
    by: dict[str, set[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(set)
    for q in asked:
        if q.category != "conflict-agreement":
            by[q.script.id].add((q.options, q.provenance))
            assert sorted(q.provenance) == ["", "", "voice", "words"] and len(set(q.options)) == 4
    assert all(len(options) == 1 for options in by.values())


def test_the_right_answer_follows_words_voice_and_agreement(asked: list[Question]) -> None:
    for q in asked:
        right = q.options[q.gold]
        if q.category == "conflict-words":
            assert right == BY_SLUG[q.script.says].option and q.provenance[q.gold] == "words"
        elif q.category == "conflict-voice":
            cue = q.script.cue_in(q.style)
            assert cue is not None and right == cue.option
            assert q.provenance[q.gold] == ("voice" if q.style == "target" else "words")
        else:
            assert right == ("Inconsistent" if q.style == "target" else "Consistent")
            assert q.provenance[q.gold] == q.style


def test_what_is_added_is_neither_said_nor_heard(asked: list[Question]) -> None:
    for q in (q for q in asked if q.category != "conflict-agreement"):
        added = {c.slug for p, t in zip(q.provenance, q.options, strict=True) if not p and (c := cue_of_option(t))}
        assert len(added) == 2
        assert not added & (true_of(q.script, "target") | true_of(q.script, "alternative")), q.id


def test_added_options_are_of_the_same_task_where_it_has_enough(asked: list[Question]) -> None:
    for q in asked:
        if {q.script.says, q.script.cue} == {"happy", "sad"} and q.category != "conflict-agreement":
            assert {c.task for text in q.options if (c := cue_of_option(text))} == {"emotion"}


def test_added_options_are_cues_that_other_scripts_carry_where_there_are_such(asked: list[Question]) -> None:
    options = Counter(t for q in asked if q.category == "conflict-voice" for t in q.options)
    assert sum(options[BY_SLUG[slug].option] for slug in SAID) > 0.9 * sum(options.values())


@pytest.mark.parametrize("category", ["conflict-words", "conflict-voice"])
def test_letters_are_in_balance(category: str, asked: list[Question]) -> None:
    letters = Counter(q.answer for q in asked if q.category == category)
    assert max(letters.values()) - min(letters.values()) <= 4, letters  # one script counts twice among the words


def test_plain_scripts_are_not_asked_and_the_seed_alone_decides(scripts: list[Script], asked: list[Question]) -> None:
    assert conflict([Script("id_1", "sad", "happy", "home", "arlo", "Words.", TWO, TWO)], 0) == []
    assert conflict(scripts, 0) == asked != conflict(scripts, 1)
