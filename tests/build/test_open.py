"""Overtone-Open: twelve scripts for every cue, each within the rules, their questions balanced and diagnostic."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from overtone.build import rules
from overtone.build import script as script_module
from overtone.build.make import build
from overtone.build.questions import positions, reasoning, true_of, understanding
from overtone.build.script import Script, read_set
from overtone.cues import CUES, REASONING, UNDERSTANDING, cue_of_option

FOLDER = Path(script_module.__file__).parent / "open"


@pytest.fixture(scope="module")
def scripts() -> tuple[Script, ...]:
    return read_set("open")


def test_every_cue_is_the_target_of_twelve_scripts(scripts: tuple[Script, ...]) -> None:
    assert Counter(s.cue for s in scripts) == {c.slug: 12 for c in CUES}


def test_no_rule_of_the_authoring_guide_that_a_machine_can_check_is_broken(scripts: tuple[Script, ...]) -> None:
    assert rules.problems(scripts) == []


def test_a_cue_meets_several_alternatives_topics_and_voices(scripts: tuple[Script, ...]) -> None:
    for cue in CUES:
        mine = [s for s in scripts if s.cue == cue.slug]
        if cue.dimension != "speaker":
            assert len({s.alternative for s in mine}) >= 4, cue.slug
        assert len({s.topic for s in mine}) >= 5, cue.slug
        assert len({s.voice for s in mine}) >= 3, cue.slug


def test_both_sexes_speak_equally_often(scripts: tuple[Script, ...]) -> None:
    sexes = Counter(s.voice_in("target").sex for s in scripts)
    assert abs(sexes["male"] - sexes["female"]) <= 0.05 * len(scripts)


def test_at_least_1800_reasoning_questions_of_ten_categories_move_with_the_voice(scripts: tuple[Script, ...]) -> None:
    asked = reasoning(scripts, 0)
    assert len(asked) >= 1800
    assert {q.category for q in asked} == set(REASONING)
    by_stem: dict[tuple[str, str], set[str]] = {}
    for q in asked:
        by_stem.setdefault((q.script.id, q.category), set()).add(q.options[q.gold])
    assert all(len(answers) == 2 for answers in by_stem.values())


def test_right_letters_are_spread(scripts: tuple[Script, ...]) -> None:
    for asked in (understanding(scripts, 0), reasoning(scripts, 0)):
        for category, letters in positions(asked).items():
            assert max(letters.values()) - min(letters.values()) <= 0.15 * sum(letters.values()) + 2, category


def test_no_distractor_is_true_of_its_clip(scripts: tuple[Script, ...]) -> None:
    asked = understanding(scripts, 0)
    assert {q.category for q in asked} == set(UNDERSTANDING)
    for q in asked:
        assert cue_of_option(q.options[q.gold]) == q.script.cue_in(q.style), q.id
        wrong = {cue_of_option(text) for number, text in enumerate(q.options) if number != q.gold}
        assert None not in wrong
        if q.category != "age":  # its three options are always all there
            assert not {c.slug for c in wrong if c} & true_of(q.script, q.style), q.id


def test_every_script_has_been_read_by_a_second_person(scripts: tuple[Script, ...]) -> None:
    read: Counter[str] = Counter()
    for path in sorted((FOLDER / "reviews").glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                assert row["verdict"] in ("accepted", "revised"), row
                read[row["script"]] += 1
    assert read == {s.id: 1 for s in scripts}


@pytest.mark.full
@pytest.mark.local
@pytest.mark.timeout(900)
def test_the_whole_set_is_built_and_loads(scripts: tuple[Script, ...], tmp_path: Path) -> None:
    from overtone.benchmarks.open import load

    build("open", tmp_path, jobs=2)
    benchmark = load(tmp_path)
    items = list(benchmark.items(frozenset({1, 2, 3}), frozenset({"target", "alternative", "neutral"}), "all"))
    assert benchmark.warnings == []
    clips = {item.turns[0].clip.path for item in items if item.turns[0].clip}
    assert len(clips) == sum(len(s.styles) for s in scripts)
