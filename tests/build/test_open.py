"""Overtone-Open: twelve scripts for every cue, each within the rules, their questions balanced and diagnostic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from overtone.benchmarks import Selection
from overtone.build import script as script_module
from overtone.build.questions import (
    Question,
    conflict,
    false_cue,
    fixed,
    reasoning,
    true_of,
    understanding,
)
from overtone.build.review_sheets import decide, read_reviews
from overtone.build.script import TWO_WAY, Script, read_collection, read_conflicts, read_set
from overtone.cues import BY_SLUG, CUES, EXTENSION_STEMS, REASONING, UNDERSTANDING, cue_of_option
from tests.build import authoring_rules
from tests.build.question_counts import counts

FOLDER = Path(script_module.__file__).parent / "open"


@pytest.fixture(scope="module")
def scripts() -> tuple[Script, ...]:
    return read_set("open")


def test_every_cue_is_the_target_of_twelve_scripts(scripts: tuple[Script, ...]) -> None:
    assert Counter(s.cue for s in scripts) == {c.slug: 12 for c in CUES}


def test_no_rule_of_the_authoring_guide_that_a_machine_can_check_is_broken(scripts: tuple[Script, ...]) -> None:
    assert authoring_rules.problems(scripts) == []


def test_a_cue_meets_several_alternatives_topics_and_voices(scripts: tuple[Script, ...]) -> None:
    for cue in CUES:
        mine = [s for s in scripts if s.cue == cue.slug]
        if cue.dimension != "speaker":
            assert len({s.alternative for s in mine}) >= 4, cue.slug
        assert len({s.topic for s in mine}) >= 5, cue.slug
        assert len({s.voice for s in mine}) >= 3, cue.slug


def test_both_sexes_speak_equally_often(scripts: tuple[Script, ...]) -> None:
    sexes = Counter(s.sex_in("target") for s in scripts)
    assert abs(sexes["male"] - sexes["female"]) <= 0.05 * len(scripts)


def test_at_least_1800_reasoning_questions_of_ten_categories_move_with_the_voice(scripts: tuple[Script, ...]) -> None:
    asked = reasoning(scripts, 0)
    assert len(asked) >= 1800
    assert {q.category for q in asked} == set(REASONING)
    assert sum(not q.part for q in asked) >= 1800
    by_stem: dict[tuple[str, str], list[str]] = {}
    for q in (q for q in asked if not q.part):
        by_stem.setdefault((q.script.id, q.category), []).append(q.options[q.gold])
    assert all(len(set(answers)) == len(answers) >= 2 for answers in by_stem.values())


@pytest.fixture(scope="module")
def everything(scripts: tuple[Script, ...]) -> list[Question]:
    clashes = read_conflicts("open")
    drawn = (understanding(scripts, 0), reasoning(scripts, 0), false_cue(scripts, 0), fixed(scripts, 0))
    return [q for questions in (*drawn, conflict(clashes, 0)) for q in questions]


def test_right_letters_are_spread_in_every_category_and_part(everything: list[Question]) -> None:
    table = counts(everything)
    width = dict.fromkeys(table.position, 0)
    for q in everything:
        name = q.category if not q.part or q.category.startswith(q.part) else f"{q.category} ({q.part})"
        width[name] = max(width[name], len(q.options))
    for name, letters in table.position.items():
        if "(fixed)" not in name:
            counted = [letters.get(chr(65 + i), 0) for i in range(width[name])]
            assert max(counted) - min(counted) <= 4, (name, counted)
    for name, letters in table.position.items():
        assert sum(letters.values()) == sum(table.style[name].values())


def test_all_tasks_and_extensions_are_asked_with_ids_of_their_own(everything: list[Question]) -> None:
    assert {q.category for q in everything} == set(UNDERSTANDING) | set(REASONING) | set(EXTENSION_STEMS)
    assert {q.part for q in everything} >= {"", "control", "false-cue", "conflict"}
    assert len({q.id for q in everything}) == len(everything)


def test_every_cue_is_asked_about_in_every_way_it_can_be(everything: list[Question]) -> None:
    table = counts(everything)
    for cue in CUES:
        row = table.cue[cue.slug]
        assert row["coarse"] >= 12 and row[cue.task] >= 12, cue.slug
        assert sum(n for name, n in row.items() if name in REASONING) >= 24, cue.slug
        if cue.dimension != "speaker":
            assert row["false-cue"] >= 6, cue.slug
    assert table.style["false-cue"]["neutral"] == len([s for s in everything if s.part == "false-cue"]) // 2


def test_two_way_answers_are_even_overall_and_within_each_target_cue(everything: list[Question]) -> None:
    by: dict[tuple[str, str], Counter[str]] = {}
    for q in everything:
        if not q.part and q.category in TWO_WAY:
            by.setdefault((q.category, q.script.cue), Counter())[q.options[q.gold]] += 1
    for key, answers in by.items():
        assert {answers[option] for option in TWO_WAY[key[0]]} == {sum(answers.values()) // 2}, key


def test_there_are_at_least_sixty_conflicts_of_words_and_voice(everything: list[Question]) -> None:
    clashes = read_conflicts("open")
    assert len(clashes) >= 60
    for category in ("conflict-words", "conflict-voice", "conflict-agreement"):
        assert sum(q.category == category for q in everything) == 2 * len(clashes)
    for s in clashes:  # what the words say must not be true of the voice that says otherwise
        assert s.says not in true_of(s, "target"), s.id
        assert BY_SLUG[s.cue].dimension == BY_SLUG[s.says].dimension, s.id


def test_no_distractor_is_true_of_its_clip(scripts: tuple[Script, ...]) -> None:
    asked = understanding(scripts, 0)
    assert {q.category for q in asked} == set(UNDERSTANDING)
    for q in asked:
        assert cue_of_option(q.options[q.gold]) == q.script.cue_in(q.style), q.id
        wrong = {cue_of_option(text) for number, text in enumerate(q.options) if number != q.gold}
        assert None not in wrong
        if q.category != "age":  # its three options are always all there
            assert not {c.slug for c in wrong if c} & true_of(q.script, q.style), q.id


def test_everything_was_accepted_by_two_readers_in_the_third_round() -> None:
    everything = read_collection("open").everything
    decision = decide(everything, read_reviews(FOLDER / "reviews"))
    assert not decision.pending and not decision.rejected
    assert set(decision.accepted) == {one.id for one in everything}
    assert [r.number for r in decision.rounds] == [1, 2, 3]
    assert all(r.agreement.units == len(everything) for r in decision.rounds[1:]), "each read by two or more"


@pytest.mark.full
@pytest.mark.local
@pytest.mark.timeout(3600)
def test_the_whole_set_is_built_and_loads(scripts: tuple[Script, ...], tmp_path: Path) -> None:
    from overtone.benchmarks.open import load
    from overtone.build.builder import build

    built = build("open", tmp_path, jobs=2)
    left = built.gate_report.scripts
    assert len({s.id for s in scripts} - left) >= 468, sorted(left)
    assert not built.gate_report.blocks
    assert built.sound_seconds / built.wall_seconds >= 8
    benchmark = load(tmp_path)
    items = list(benchmark.items(Selection()))
    assert benchmark.warnings == []
    assert {i.part for i in items} == {"", "control", "false-cue", "conflict", "dialogue"}
    reasoning = [i for i in items if i.level == 2 and not i.part]
    assert len(reasoning) >= 1800 and len({i.category for i in reasoning}) == 10
    assert len({i.group for i in items if i.part == "conflict"}) >= 60
    assert len({i.group for i in items if i.part == "dialogue"}) >= 40
    cued = sum(bool(i.cue) for i in items if i.part == "false-cue")
    assert 2 * cued == sum(i.part == "false-cue" for i in items)
