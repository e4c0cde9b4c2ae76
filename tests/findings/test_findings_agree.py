"""A finding's sentences never contradict the table beside them: simulated runs whose effects are near the boundary."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone.display.table_data import PartTable
from overtone.findings.analysis import compute_findings
from overtone.findings.finding import FindingResult
from overtone.findings.finding_tables import tables_of
from overtone.results import significance
from overtone.results.load import Answer, Reading, open_run
from overtone.results.measures import Estimate
from overtone.schema import Option, Score
from tests.results.small import Maker, item

SCRIPTS, ROUNDS = 24, 40
TALKS = ("enhance/audio", "oracle/audio", "oracle-false/audio", "enhance/transcript")
OPTIONS = tuple(Option(x, "", r) for x, r in zip("ABCD", ("target", "alternative", "words", "harmful"), strict=True))
ACCURACY = Score("accuracy", "accuracy|v1", 1.0, detail={"status": "parsed", "answer": "A"})
C4 = Score("cspeechrel@j", "cspeechrel@j|v1", 1.0)
TESTED = re.compile(r"which is (not )?statistically significant \(p (?:= )?(.+?), two-sided.*?over ([\d,]+) tests?\)")
DIFFERENCES = {  # of a table: the head of what is tested → the head of its p-value
    "sensitivity": {"Difference ↑ · points": "p, Holm"},
    "text-only": {"Difference": "p, Holm"},
    "source": {"Difference": "p, Holm"},
    "upper": {"Gain ↑": "p of the gain, Holm", "Right minus wrong ↑": "p of right minus wrong, Holm"},
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    """One run that every finding can be made of; its scores are drawn anew for each round."""
    run = Maker(tmp_path_factory.mktemp("agree") / "run")
    run.store.set_meta({"benchmark": "toy", "model": "m"})
    for group in (f"{voice}/s{n}" for n in range(SCRIPTS) for voice in ("synthesis", "human")):
        voice = group.partition("/")[0]
        for style, gold in (("target", "A"), ("alternative", "B")):
            own = {"group": group, "case": f"{group}/{style}", "style": style, "source": voice}
            for level, category in ((1, "emotion"), (2, "empathy")):
                name = f"{group}/{style}/{level}"
                asked = item(name, "choose", level=level, category=category, gold=gold, **own)  # type: ignore[arg-type]
                asked = msgspec.structs.replace(asked, options=OPTIONS)
                for given in ("audio", "transcript") if voice == "synthesis" else ("audio",):
                    run.answered(asked, "A", ACCURACY, condition=f"task/{given}")
            talk = item(f"{group}/{style}/talk", "converse", level=3, category="conversation", **own)  # type: ignore[arg-type]
            for condition in TALKS if voice == "synthesis" else TALKS[:1]:
                run.answered(talk, "well", C4, condition=condition)
    return open_run(run.done(), light=True)


def draw(planned: Reading, seed: int) -> Reading:
    """Scores with effects so small that about half of the tests find them."""
    rng = np.random.default_rng(seed)
    heard, human, told, right = rng.uniform(0.0, 0.35, size=4)
    lift = {"oracle/audio": told + right, "oracle-false/audio": told, "enhance/transcript": -heard}
    for answer in planned.answers:
        if answer.item.task == "choose":
            loss = heard * answer.condition.endswith("transcript") + human * (answer.item.source == "human")
            correct = rng.random() < 0.6 - loss
            others = [x for x in "ABCD" if x != answer.item.gold]
            letter = answer.item.gold if correct else str(rng.choice(others))
            detail = {"status": "parsed", "answer": letter}
            _score(answer, msgspec.structs.replace(ACCURACY, value=float(correct), detail=detail))
        else:
            mean = 3.0 + 2 * lift.get(answer.condition, 0.0) - human * (answer.item.source == "human")
            value = float(np.clip(np.round(rng.normal(mean, 1.0)), 1, 5))
            _score(answer, msgspec.structs.replace(C4, value=value))
    return planned


def _score(answer: Answer, score: Score) -> None:
    answer.scores = {score.metric: score}  # equal answers of a light reading share their scores


def column(table: PartTable, head: str) -> dict[str, tuple[str, Estimate | None]]:
    """Key → what stands in this column, as text and as a number."""
    place = table.heads.index(head)
    return {line.cells[place].key: (line.cells[place].text, line.cells[place].estimate) for line in table.lines}


def compared(finding: FindingResult[Any]) -> list[tuple[str, str, str, Estimate, int]]:
    """(verdict, p in the sentence, p in the table, difference in the table, tests in the sentence) of each test."""
    found = []
    overall = [table for table in tables_of(finding, "all") if set(DIFFERENCES[finding.name]) <= set(table.heads)]
    for sentence in finding.sentences:
        key = finding.prefix + sentence.key
        verdicts = [(bool(m[1]), m[2], int(m[3])) for m in TESTED.finditer(sentence.text)]
        heads = [
            (table, head, p_head)
            for table in overall
            for head, p_head in DIFFERENCES[finding.name].items()
            if key in column(table, head)
        ]
        if verdicts:
            assert len(verdicts) == len(heads), sentence.text
        for (negated, p, tests), (table, head, p_head) in zip(verdicts, heads, strict=False):
            difference = column(table, head)[key][1]
            assert difference is not None
            found.append(("no" if negated else "yes", p, column(table, p_head)[key][0], difference, tests))
    return found


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_sentence_calls_significant_what_the_table_beside_it_shows(planned: Reading, name: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(ROUNDS):
        (finding,) = compute_findings([draw(planned, seed)], [name])
        tests = compared(finding)
        assert tests
        for verdict, written, shown, difference, count in tests:
            assert written == shown, "one p-value, in the sentence and in the table"
            p = 0.0 if shown == "< 0.001" else float(shown)
            assert (p <= significance.LEVEL) == (verdict == "yes")
            assert count == len(tests), "every test of the family is spoken of"
            excluded = significance.excludes(difference)
            assert excluded or verdict == "no", "a significant difference has an interval without 0"
            seen[f"{verdict}, interval {'excludes' if excluded else 'includes'} 0"] += 1
    assert seen["yes, interval excludes 0"] and seen["no, interval includes 0"], "both sides of the boundary"
    assert seen["no, interval excludes 0"], "the interval alone would have contradicted the table"


@pytest.mark.parametrize("name", ["funnel", "levels"])
def test_where_a_table_has_no_p_values_no_sentence_speaks_of_significance(planned: Reading, name: str) -> None:
    for seed in range(5):
        (finding,) = compute_findings([draw(planned, seed)], [name])
        heads = {head for table in tables_of(finding, "all") for head in table.heads}
        assert not any("Holm" in head for head in heads)
        assert finding.sentences and not any("significant" in s.text for s in finding.sentences)


def test_the_family_is_the_overall_rows_together_and_a_breakdown_by_measure(planned: Reading) -> None:
    (finding,) = compute_findings([draw(planned, 1)], ["text-only"])
    rows = finding.data.rows  # type: ignore[union-attr]
    assert {(r.by, r.tests) for r in rows if r.by in ("overall", "style")} == {("overall", 3), ("style", 2)}  # type: ignore[union-attr]


def test_a_table_with_p_values_states_the_rule(planned: Reading) -> None:
    for name, heads in DIFFERENCES.items():
        (finding,) = compute_findings([draw(planned, 1)], [name])
        table = next(t for t in tables_of(finding) if set(heads.values()) <= set(t.heads))
        assert "Holm’s method" in table.hint and "at most 0.05" in table.hint
