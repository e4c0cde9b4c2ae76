"""Answers that move with the voice, and answers that should stay, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.findings.analysis import cases_behind
from overtone.findings.sensitivity.compute import (
    Counterfactual,
    SensitivityRow,
    SpecificityRow,
    counterfactual,
    sentences,
)
from overtone.results.load import Reading, open_run
from overtone.schema import Option, Reply, Score
from tests.report.fake_run import make_run
from tests.results.small import Maker, item
from tests.results.test_side_measures import Told

READINGS = ("target", "alternative", "words", "harmful")
RIGHT = {"target": "A", "alternative": "B", "neutral": "C", "control": "C"}


class Script:
    """Adds one reasoning question about clips of a script, each answered with a letter, "" unread, None missing."""

    def __init__(self, folder: Path, readings: tuple[str, ...] = READINGS) -> None:
        self.maker = Maker(folder)
        self.options = tuple(Option(letter, "", p) for letter, p in zip("ABCD", readings, strict=True))

    def ask(self, script: str, category: str = "empathy", level: int = 2, **letters: str | None) -> None:
        for style, answers in letters.items():
            part = "control" if style == "control" else ""
            cue = "" if style in ("neutral", "control") else "sad"
            one = item(
                f"{script}/{category}/{style}", "choose", level=level, category=category, script=script, style=style,
                case=f"synthesis/{script}/{style}", part=part, cue=cue, options=4, gold=RIGHT[style],
            )  # fmt: skip
            one = type(one)(**{f: getattr(one, f) for f in one.__struct_fields__} | {"options": self.options})
            given = [None] if answers is None else list(answers or [""])
            self.maker.store.plan([(one, ["task/audio"])], len(given))
            for ask, letter in zip(self.maker.store.open_asks(0, 10_000)[-len(given) :], given, strict=True):
                if letter is None:
                    self.maker.store.add_failure(ask, 0, "timeout", "", 1)
                    continue
                read = letter.strip("-")
                detail: dict[str, float | int | str | None] = {
                    "status": "parsed" if read else "unparsable",
                    "answer": read or None,
                }
                self.maker.store.add_reply(ask, 0, Reply("x"), sent=b"[]", latency=1.0, attempts=1)
                right = float(read == one.gold)
                self.maker.store.add_scores([(ask.id, Score("accuracy", "accuracy|v1", right, detail=detail))])

    def read(self, light: bool = True) -> Reading:
        return open_run(self.maker.done(), light=light)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "run")


def moved(found: Counterfactual, where: str = "overall") -> SensitivityRow:
    key = f"sensitivity/task/audio/reasoning/{where}/sensitivity"
    return next(row for row in found.sensitivity if row.key == key)


def still(found: Counterfactual, nothing: str) -> SpecificityRow:
    key = f"sensitivity/task/audio/reasoning/overall/specificity/{nothing}"
    return next(row for row in found.specificity if row.key == key)


def test_a_pair_is_right_swapped_changed_or_stuck(script: Script) -> None:
    script.ask("s1", target="A", alternative="B")  # right on both
    script.ask("s2", target="B", alternative="A")  # the wrong way round
    script.ask("s3", target="A", alternative="D")  # changed, to a wrong one
    script.ask("s4", target="C", alternative="C")  # stuck
    script.ask("s5", target="A", alternative="-")  # cannot be read
    script.ask("s6", target="A", alternative=None)  # never came
    reading = script.read()
    row = moved(counterfactual(reading))
    assert (row.changed.value, row.sensitivity.value, row.swapped.value) == pytest.approx((3 / 5, 1 / 5, 1 / 5))
    assert (row.sensitivity.scored, row.sensitivity.asked, row.direction.value) == (5, 6, 0.0)
    assert row.chance == 1 / 16 and row.p == 1.0
    assert "synthesis/s6/target" not in cases_behind([reading], row.key) and len(cases_behind([reading], row.key)) == 10


def test_three_deliveries_make_three_pairs_and_each_kind_has_its_row(script: Script) -> None:
    script.ask("s1", target="A", alternative="B", neutral="A")
    script.ask("s2", target="A", alternative="C", neutral="C")
    found = counterfactual(script.read())
    assert moved(found).sensitivity.scored == 6
    by_pair = {row.name: row.sensitivity.value for row in found.sensitivity if row.by == "pair"}
    assert by_pair == {"target-alternative": 0.5, "target-neutral": 0.5, "alternative-neutral": 0.0}
    assert moved(found, "dimension/paralinguistic").sensitivity == moved(found).sensitivity


def test_the_control_rendering_and_repeats_measure_what_nothing_changed_does(script: Script) -> None:
    script.ask("s1", target="AA", neutral="CC", control="CC")  # steady: changes with the voice only
    script.ask("s2", target="AB", neutral="CC", control="AC")  # target wavers, so does the control
    found = counterfactual(script.read())
    rendering, repeat = still(found, "rendering"), still(found, "repeat")
    assert (rendering.stays.value, rendering.stays.scored) == (0.75, 4)
    assert rendering.excess.value == pytest.approx(1.0 - 0.25), "neutral against target always differs"
    assert (repeat.stays.value, repeat.stays.scored) == (0.75, 2), "s1: both clips stay; s2: one of two"
    assert repeat.excess.value == pytest.approx(((1 - 0) + (1 - 0.5)) / 2)
    assert rendering.excess.low is None and "too few" in rendering.excess.note


def test_two_replies_that_cannot_be_read_have_neither_changed_nor_stayed(script: Script) -> None:
    script.ask("s1", target="-", neutral="-", control="-")
    found = counterfactual(script.read())
    assert moved(found).changed.value == 0.0 and still(found, "rendering").stays.value == 0.0
    assert still(found, "rendering").excess.value == 0.0


def test_questions_that_do_not_say_what_their_options_stand_for_are_counted_not_compared(tmp_path: Path) -> None:
    made = Script(tmp_path / "run", ("", "", "", ""))
    made.ask("s1", target="AA", alternative="BB")
    found = counterfactual(made.read())
    assert found.sensitivity == [] and "1 questions do not say" in found.notes[0]
    assert still(found, "repeat").stays.value == 1.0, "one clip asked again needs no readings"
    assert still(found, "repeat").excess.value is None


def test_a_kind_of_question_asked_twice_about_a_clip_is_left_out_and_counted(script: Script) -> None:
    script.ask("s1", target="A", alternative="B")
    script.maker.choice(item("again", "choose", level=2, category="empathy", gold="A"), "A")
    found = counterfactual(script.read())
    assert found.sensitivity == [] and "asked twice" in found.notes[0]


Answerer = Callable[[np.random.Generator, str], str]


@pytest.mark.parametrize(
    ("answers", "listens"),
    [
        (lambda rng, style: RIGHT[style] if rng.random() < 0.6 else "ABCD"[rng.integers(4)], True),
        (lambda rng, style: "ABCD"[rng.integers(4)], False),
        (lambda rng, style: "A" if rng.random() < 0.8 else "B", False),
        (lambda rng, style: "C", False),
    ],
    ids=["listens", "guesses", "has a habit", "reads the words"],
)
def test_only_a_listener_has_a_direction(tmp_path: Path, answers: Answerer, listens: bool) -> None:
    rng = np.random.default_rng(4)
    made = Script(tmp_path / "run")
    for number in range(50):
        told: dict[str, Any] = {s: answers(rng, s) for s in RIGHT}
        made.ask(f"s{number}", **told)
    found = counterfactual(made.read())
    row = moved(found)
    assert row.direction.low is not None and row.p is not None and row.adjusted is not None
    assert (row.direction.low > 0) == listens == (row.p < 0.01) and row.adjusted >= row.p
    (text,) = (s.text for s in sentences(found) if s.key == row.key)
    assert ("not statistically significant" in text) != listens
    excess = still(found, "rendering").excess
    assert excess.low is not None and (excess.low > 0) == listens


def test_nothing_asked_on_two_clips_gives_nothing(script: Script) -> None:
    script.ask("s1", target="A")
    found = counterfactual(script.read())
    assert found.sensitivity == [] and found.specificity == [] and sentences(found) == []


def test_one_script_has_a_value_and_no_interval(script: Script) -> None:
    script.ask("s1", target="A", alternative="B")
    row = moved(counterfactual(script.read()))
    assert row.direction.value == 1.0 and row.direction.low is None and row.sensitivity.low is None


def test_cues_not_validated_and_false_cues_stand_as_in_the_summary(tmp_path: Path) -> None:
    told = Told(tmp_path)
    summary = told.summary(false_cue_s1_target="B")
    reading = open_run(told.maker.store.folder, light=True)
    found = counterfactual(reading)
    assert [row.detection for row in found.false_cues] == summary.detection
    assert cases_behind([reading], "sensitivity/task/audio/false-cue") == [
        f"synthesis/s1/{s}" for s in ("target", "neutral")
    ]
    assert "sensitivity/task/audio/unvalidated/false-cue" in [row.key for row in found.false_cues]
    rows = {row.key: row.sensitivity for row in found.sensitivity if row.by == "overall"}
    assert rows["sensitivity/task/audio/reasoning/overall/sensitivity"].asked == 4, "s1: three pairs, s3: one"
    assert rows["sensitivity/task/audio/unvalidated/reasoning/overall/sensitivity"].asked == 1
    assert summary.control is not None
    assert still(found, "rendering").stays == summary.control.same


def test_a_light_reading_is_enough_and_every_row_leads_to_its_cases(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", scripts=30, repeats=2, voice=True)
    light = open_run(folder, light=True)
    found = counterfactual(light)
    assert found == counterfactual(open_run(folder))
    keys = [row.key for row in found.sensitivity] + [row.key for row in found.specificity]
    keys += [row.key for row in found.replies]
    assert len(keys) == len(set(keys)) and all(cases_behind([light], key) for key in keys) and found.replies
    with pytest.raises(UsageError, match="hold theirs"):
        cases_behind([light], "sensitivity/nothing")
