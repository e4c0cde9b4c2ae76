"""Does a reply follow the voice: squares worked out by hand, and models that do not listen."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone.metrics import Answered
from overtone.metrics.style import load
from overtone.results.load import open_run
from overtone.results.style_following import STYLES, Square, StyleRow, assignments, sensitivities, style_rows
from overtone.schema import Item, Key, Score
from tests.results.small import Maker, item

REFERENCES = (
    {
        "target": "You sound so down. I am really sorry; do you want to talk about what happened?",
        "alternative": "You sound thrilled! Congratulations, that is wonderful, we have to celebrate.",
        "neutral": "Good to know the results are in. What do they say?",
    },
    {
        "target": "That cough does not sound good at all. Please rest and drink something warm.",
        "alternative": "It is loud where you are, are you on a bus? I will keep it short then.",
        "neutral": "The next train leaves at ten past four from platform two.",
    },
    {
        "target": "Take a breath, there is no need to hurry; we have all the time in the world.",
        "alternative": "You sound half asleep. Go to bed, the rest can wait until tomorrow.",
        "neutral": "The meeting has been moved to four o’clock in the large room.",
    },
)
GENERIC = "I see. Thank you for telling me. Is there anything else I can help you with?"
LONG = " ".join(
    [GENERIC, "Let me think about this carefully with you, step by step, and look at all sides of it."] * 12
)
LISTING = "You may be sad or happy or tired or ill or in a hurry or on a bus; whatever it is, I hear it in your voice."


def sensitivity(square: Square) -> float:
    return float(sensitivities(square[None])[0])


def assigned(square: Square) -> float:
    return float(assignments(square[None])[0])


def test_sensitivity_is_the_diagonals_lead_after_double_centring() -> None:
    assert sensitivity(np.eye(3)) == pytest.approx(1.0) and sensitivity(np.eye(2)) == pytest.approx(1.0)
    rng = np.random.default_rng(3)
    square = rng.random((3, 3))
    moved = square + rng.random((3, 1)) + rng.random((1, 3))
    assert sensitivity(moved) == pytest.approx(sensitivity(square)), "what rows or columns share does not count"
    assert sensitivity(square[::-1]) != pytest.approx(sensitivity(square))


def test_assignment_is_one_zero_or_the_share_of_a_tie() -> None:
    assert assigned(np.eye(3)) == 1.0 and assigned(np.eye(3)[[1, 0, 2]]) == 0.0
    assert assigned(np.ones((3, 3))) == pytest.approx(1 / 6) and assigned(np.ones((2, 2))) == 0.5
    two_alike = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    assert assigned(two_alike) == 0.5, "the last two replies cannot be distinguished"
    assert assigned(two_alike[[1, 0, 2]]) == 0.0


def test_replies_shuffled_among_the_styles_are_at_zero_and_chance_on_the_mean() -> None:
    square = np.random.default_rng(5).random((3, 3))
    found = [square[list(order)] for order in itertools.permutations(range(3))]
    assert np.mean([sensitivity(s) for s in found]) == pytest.approx(0.0)
    assert np.mean([assigned(s) for s in found]) == pytest.approx(1 / 6)


def _conversation(script: str, style: str, references: dict[str, str], **more: Any) -> Item:
    return item(
        f"{script}/{style}", "converse", level=3, script=script, case=f"synthesis/{script}/{style}", style=style,
        cue="" if style == "neutral" else "sad", references=(references[style],), **more,
    )  # fmt: skip


def _scored(one: Item, reply: str, references: dict[str, str]) -> Score:
    return load().score([Answered(Key(one.id, "c"), one, reply, siblings=references)])[0][0]


def _known(own: float, other: float, style: str) -> Score:
    return Score(
        "style_margin", "style_margin|v1", own - other, "", {f"sim_{s}": own if s == style else other for s in STYLES}
    )


def _rows(folder: Path) -> list[StyleRow]:
    return style_rows(open_run(folder, light=True).answers)


def test_a_script_that_lacks_a_reply_or_a_reference_is_left_out_and_counted(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for style in STYLES:
        make.answered(_conversation("whole", style, REFERENCES[0]), "x", _known(0.8, 0.2, style))
    for style in STYLES[:2]:
        make.answered(_conversation("failed", style, REFERENCES[0]), "x", _known(0.8, 0.2, style))
    make.failed(_conversation("failed", "neutral", REFERENCES[0]))
    for style in STYLES:
        lame = Score("style_margin", "style_margin|v1", 0.1, "", {"sim_target": 0.5, "sim_neutral": 0.4})
        make.answered(_conversation("unreferenced", style, REFERENCES[0]), "x", lame)
    for style in STYLES[:2]:
        make.answered(_conversation("two", style, REFERENCES[0]), "x", _known(0.5, 0.5, style))
    make.answered(_conversation("one", "target", REFERENCES[0]), "x", _known(0.5, 0.5, "target"))
    three, two = _rows(make.done())
    assert (three.styles, three.squares, three.left_out) == (3, 1, 2) and three.chance == pytest.approx(1 / 6)
    assert three.sensitivity.value == pytest.approx(0.6) and three.assignment.value == 1.0
    assert (three.assignment.scored, three.assignment.asked) == (1, 3)
    assert three.assignment.worst == pytest.approx(1 / 3)
    assert (two.styles, two.squares, two.assignment.value, two.sensitivity.value) == (2, 1, 0.5, 0.0)


def test_scripts_with_a_cue_that_is_not_validated_stand_apart(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for script, status in (("sure", "validated"), ("unsure", "unvalidated")):
        for style in STYLES:
            given = status if style == "target" else "validated" if style == "alternative" else ""
            one = _conversation(script, style, REFERENCES[0], status=given)
            make.answered(one, "x", _known(0.8, 0.2, style))
    assert [(r.basis, r.squares) for r in _rows(make.done())] == [("validated", 1), ("unvalidated", 1)]


def test_a_run_without_these_scores_has_no_such_table(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(_conversation("s", "target", REFERENCES[0]), "x", Score("semsim", "semsim|v1", 0.5))
    assert _rows(make.done()) == []


@pytest.mark.local
@pytest.mark.parametrize(
    "reply", ["Sure.", GENERIC, LONG, LISTING, ""], ids=["same", "generic", "long", "listing", "empty"]
)
def test_a_model_that_ignores_the_voice_scores_zero_and_chance(tmp_path: Path, reply: str) -> None:
    make = Maker(tmp_path)
    for number, references in enumerate(REFERENCES):
        for style in STYLES:
            one = _conversation(f"s{number}", style, references)
            make.answered(one, reply, _scored(one, reply, references))
    (row,) = _rows(make.done())
    assert row.sensitivity.value == pytest.approx(0.0, abs=1e-6) and row.assignment.value == pytest.approx(1 / 6)


@pytest.mark.local
def test_a_model_that_follows_the_voice_scores_above_both(tmp_path: Path) -> None:
    heard = (
        (
            "I am sorry, you sound sad. What is wrong?",
            "Congratulations! You sound so happy!",
            "What do the results say?",
        ),
        ("You are coughing; stay in bed and have some tea.", "So much noise on that bus!", "At ten past four."),
        ("No rush, take your time.", "You sound tired, get some sleep.", "The meeting is at four."),
    )
    make = Maker(tmp_path)
    for number, (references, replies) in enumerate(zip(REFERENCES, heard, strict=True)):
        for style, reply in zip(STYLES, replies, strict=True):
            one = _conversation(f"s{number}", style, references)
            make.answered(one, reply, _scored(one, reply, references))
    (row,) = _rows(make.done())
    assert row.sensitivity.value is not None and row.sensitivity.value > 0.2 and row.assignment.value == 1.0


@pytest.mark.local
def test_the_margin_is_own_less_mean_of_the_others_and_says_why_there_is_none() -> None:
    references = REFERENCES[0]
    one = _conversation("s", "target", references)
    score = _scored(one, references["target"], references)
    sims = [score.detail[f"sim_{s}"] for s in STYLES]
    assert sims[0] == pytest.approx(1.0, abs=1e-6) and all(isinstance(s, float) for s in sims)
    assert score.value == pytest.approx(1.0 - (sims[1] + sims[2]) / 2, abs=1e-6)  # type: ignore[operator]
    assert _scored(one, "x", {"target": "y"}).reason == "no reference of another style of the script"
    assert _scored(one, "x", {"neutral": "y"}).reason == "no reference for the reply's own style"
    assert _scored(one, "", references).value == 0.0
    assert not load().applies(msgspec.structs.replace(one, part="control"))
    assert not load().applies(msgspec.structs.replace(one, turns=one.turns * 2))
