"""Results of a study from its answers: planted rankings, agreement against the statistics room, severity, votes."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.stats import agreement as krippendorff
from overtone.stats import kappa
from overtone.studio.labels import Given
from overtone.studio.study import Study
from overtone.studio.study_results import sentences, study_results
from tests.studio.helpers import new_study
from tests.studio.labels.helpers import simulate, units_of


def study(folder: Path, *flags: str, names: tuple[str, ...] = ("one", "two", "three")) -> Study:
    return new_study(folder, *flags, names=names, scripts=12)


def test_planted_preferences_give_the_planted_ranking(tmp_path: Path) -> None:
    made = study(tmp_path)
    given = simulate(made, {"one": 2.2, "two": 3.0, "three": 4.0}, raters=40, each=18, careless=4)
    found = study_results(made, given, judges=False)
    assert (found.sessions, found.usable) == (40, 36)
    for question in found.questions:
        means = {row.system: row.mean.value for row in question.systems}
        assert means["one"] < means["two"] < means["three"]  # type: ignore[operator]
        assert all(gap.decision.verdict == "decided" and gap.p < 0.01 for gap in question.gaps)  # type: ignore[operator]
        assert question.raters == 36 and question.level == "ordinal"
        assert question.spread["raters"] == pytest.approx(0.5, abs=0.25)
        pulled = [abs(row.everyone.value - 3) < abs(row.mean.value - 3) for row in question.systems[::2]]  # type: ignore[operator]
        assert all(pulled)
    assert msgspec.json.encode(found)  # the owner's page gets it as JSON


def test_votes_give_the_planted_ranking_with_shares(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "ab")
    given = simulate(made, {"one": 2.5, "two": 3.2, "three": 3.9}, raters=40, each=20)
    (question,) = study_results(made, given, judges=False).questions
    leads = {(gap.first, gap.second): gap for gap in question.gaps}
    assert all(gap.gap.high < 0 for gap in leads.values())  # type: ignore[operator]
    assert leads["one", "three"].gap.value < leads["one", "two"].gap.value  # type: ignore[operator]
    assert sum(leads["one", "two"].shares.values()) == pytest.approx(1)
    assert leads["one", "three"].acceptable[1] > leads["one", "three"].acceptable[0]  # type: ignore[index]
    assert question.level == "nominal" and not question.systems


def test_agreement_is_that_of_the_statistics_room(tmp_path: Path) -> None:
    made = study(tmp_path, names=("one", "two"))
    given = simulate(made, {"one": 2.5, "two": 3.5}, raters=5, careless=1)
    question = study_results(made, given, judges=False).questions[0]
    usable = [one for one in given if one.usable]
    raters = sorted({one.rater for one in usable})
    units = sorted({one.unit.id for one in usable})
    table = [[math.nan] * len(units) for _ in raters]
    for one in usable:
        table[raters.index(one.rater)][units.index(one.unit.id)] = float(one.values[question.key])  # type: ignore[arg-type]
    assert question.alpha.value == pytest.approx(krippendorff.alpha(table, "ordinal"))
    assert question.alpha.low < question.alpha.value < question.alpha.high  # type: ignore[operator]
    pairs = np.array(table)
    own = [x for column in pairs.T for x in column]
    rest = [math.floor(np.delete(column, at).mean() + 0.5) for column in pairs.T for at in range(len(column))]
    assert question.ceiling.kappa == pytest.approx(kappa.cohen(own, rest, "quadratic"))
    assert question.ceiling.ratings == len(own)


def test_a_severe_rater_is_named_with_the_size_of_the_severity(tmp_path: Path) -> None:
    made = study(tmp_path, names=("one", "two"))
    given = simulate(made, {"one": 3.5, "two": 4.0}, raters=10, noise=0.3)
    key = next(iter(given[0].values))
    strict = given[0].rater
    harsh = [
        msgspec.structs.replace(g, values={**g.values, key: max(1, int(g.values[key]) - 2)}) if g.rater == strict else g  # type: ignore[arg-type]
        for g in given
    ]
    before, after = (study_results(made, rows, judges=False).questions[0].severities for rows in (given, harsh))
    shift = {row.rater: row.value for row in after}[strict] - {row.rater: row.value for row in before}[strict]
    assert shift < -1.2 and min(after, key=lambda row: row.value).rater == strict


def test_close_systems_say_how_many_votes_would_decide(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "ab", names=("one", "two"))
    given = simulate(made, {"one": 3.0, "two": 3.35}, raters=6, each=8, seed=2)
    (gap,) = study_results(made, given, judges=False).questions[0].gaps
    assert gap.decision.verdict in ("votes", "scripts", "close") and gap.p > 0.05  # type: ignore[operator]


def test_a_result_that_is_not_significant_is_not_called_a_lead(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "ab", names=("one", "two"))
    given = simulate(made, {"one": 3.0, "two": 3.0}, raters=1, each=8, seed=2)
    found = study_results(made, given, judges=False)
    (gap,) = found.questions[0].gaps
    assert gap.p > 0.05 and gap.conclusion.startswith("no significant difference (p = ")  # type: ignore[operator]
    assert gap.caution == "one person rated: the interval does not hold for other people"
    said = " ".join(sentences(found))
    assert gap.conclusion in said and gap.caution in said and "too close, or" not in said


def test_a_significant_difference_of_few_people_says_that_others_may_differ(tmp_path: Path) -> None:
    made = study(tmp_path, names=("one", "two"))
    (few,), (many,) = (
        study_results(made, simulate(made, {"one": 1.5, "two": 4.5}, raters=n), judges=False).questions[0].gaps
        for n in (4, 6)
    )
    assert few.conclusion.startswith("significant (p ") and many.conclusion.startswith("significant (p ")
    assert few.caution == "only 4 people rated: the interval may not hold for other people" and not many.caution


def test_too_few_scripts_are_not_called_too_close(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "ab", names=("one", "two"))
    some = simulate(made, {"one": 3.0, "two": 3.1}, raters=6)
    scripts = sorted({one.unit.group for one in some})[:3]
    key = next(iter(some[0].values))
    split = [
        msgspec.structs.replace(one, values={key: "AB"[int(one.rater[1:4]) % 2]}, swap=False)
        for one in some
        if one.unit.group in scripts
    ]
    (gap,) = study_results(made, split, judges=False).questions[0].gaps
    assert gap.decision.verdict == "few" and "6 are needed" in gap.conclusion and "too close" not in gap.conclusion


def test_repeated_screens_measure_how_often_people_repeat_themselves(tmp_path: Path) -> None:
    made = study(tmp_path, names=("one", "two"))
    given = simulate(made, {"one": 3.0, "two": 3.0}, raters=2, each=4)
    key = next(iter(given[0].values))
    same, other = given[0], given[1]
    changed = {**other.values, key: 1 if other.values[key] != 1 else 5}
    more: list[Given] = [
        msgspec.structs.replace(same, kind="repeat"), msgspec.structs.replace(other, kind="repeat", values=changed),
    ]  # fmt: skip
    question = study_results(made, [*given, *more], judges=False).questions[0]
    assert question.repeated == 0.5 and question.answers == len(given)


def test_repeats_of_answers_that_the_design_derives_are_compared_too(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "transcribe", names=("one",))
    first, second = units_of(made)[:2]
    right = {unit.id: unit.replies[0].texts["reply"] for unit in (first, second)}
    given = [
        Given(rater="ann", unit=unit, values={"typed": typed, "understood": "all"}, kind=kind)
        for unit, kind, typed in (
            (first, "real", right[first.id]), (first, "repeat", "nothing like it"), (second, "real", right[second.id]),
            (second, "repeat", right[second.id]),
        )
    ]  # fmt: skip
    rows = {row.key: row for row in study_results(made, given, judges=False).questions}
    assert (rows["wer_people"].repeated, rows["understood"].repeated) == (0.5, 1.0)


def test_cannot_tell_is_missing_in_agreement_too(tmp_path: Path) -> None:
    made = study(tmp_path, "--design", "ab", names=("one", "two"))
    given = simulate(made, {"one": 2.5, "two": 3.2}, raters=6)
    key = next(iter(given[0].values))
    unsure = [msgspec.structs.replace(one, rater=f"{one.rater}!", values={key: "cannot_tell"}) for one in given]
    (before,), (after,) = (study_results(made, rows, judges=False).questions for rows in (given, [*given, *unsure]))
    assert (after.alpha, after.percent, after.ceiling) == (before.alpha, before.percent, before.ceiling)
    assert (after.answers, after.raters) == (before.answers, before.raters) == (len(given), 6)


def test_without_answers_there_is_nothing_to_say(tmp_path: Path) -> None:
    found = study_results(study(tmp_path), [], judges=False)
    assert found.questions == [] and found.sessions == 0
