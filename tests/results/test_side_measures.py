"""What is kept apart from the headline, counted by hand on a small built set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from overtone.benchmarks import Selection
from overtone.benchmarks.open import load
from overtone.results.load import open_run
from overtone.results.summary import ConditionSummary, summarise_reading
from overtone.schema import Item, Reply, Score
from tests.benchmarks.built import STATUS, write_built
from tests.results.small import Maker


class Told:
    """A run on the small set in which every question is answered as a test says, and rightly where it says nothing."""

    def __init__(self, folder: Path, status: dict[str, str] | None = STATUS) -> None:
        self.maker = Maker(folder / "run")
        found = load(write_built(folder / "set", status)).items(Selection())
        self.items = {i.id.removeprefix("open/synthesis/"): i for i in found}

    def summary(self, light: bool = True, **answers: str | None) -> ConditionSummary:
        """`answers`: part of an item's id, with _ for /, → the letter chosen, "" for a reply that cannot be read."""
        for name, one in self.items.items():
            if one.task != "choose":
                continue
            letter = next((v for k, v in answers.items() if name.replace("/", "_").startswith(k)), one.gold)
            if letter is None:
                self.maker.failed(one)
            else:
                self.maker.choice(one, letter or None, "parsed" if letter else "unparsable")
        return self.read(light)

    def read(self, light: bool = True) -> ConditionSummary:
        (found,) = summarise_reading(open_run(self.maker.done(), light=light)).conditions
        return found


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_the_headline_is_over_core_items_whose_cue_is_not_unvalidated(told: Told) -> None:
    found = told.summary(understanding_s2="B", reasoning_s2_target="C")
    voice, reasoning = found.measures["voice_accuracy"], found.measures["reasoning_accuracy"]
    assert (voice.value, voice.asked) == (1.0, 2), "the wrong answer on rain is not in it"
    assert (reasoning.value, reasoning.asked) == (1.0, 5), "s1: three clips, s3: two; no control, no fixed, no conflict"
    assert found.unvalidated["voice_accuracy"].value == 0 and found.unvalidated["reasoning_accuracy"].value == 0.5
    assert found.validated_cues == ("male", "happy", "sad") and found.unvalidated_cues == ("wind", "rain")
    assert "3 validated cues of 5 that were asked about" in found.basis
    assert replace(found, validated_cues=("male",), unvalidated_cues=()).basis == "The cue is validated."
    assert found.voice is not None and found.voice.questions.asked == 2
    rain = next(row for row in found.cues if row.key == "rain")
    assert rain.measures["voice_accuracy"].value == 0, "the map of cues shows all of them"


def test_where_nothing_is_validated_the_headline_is_empty_and_says_so(tmp_path: Path) -> None:
    found = Told(tmp_path, dict.fromkeys(("sad", "happy", "rain", "wind", "male", "female"), "unvalidated")).summary()
    assert found.measures == {} and found.voice is None and found.unvalidated["voice_accuracy"].asked == 3
    assert found.basis.startswith("No headline") and found.tasks, "what there is stays visible"


def test_where_nothing_is_marked_all_cues_count_and_nothing_is_said(tmp_path: Path) -> None:
    found = Told(tmp_path, None).summary()
    assert found.measures["voice_accuracy"].asked == 3 and found.unvalidated == {} and found.basis == ""


def test_hits_and_false_alarms_go_by_whether_any_cue_is_named(told: Told) -> None:
    # s1 (validated): the wrong cue is named on the cued clip, one is imagined on the neutral clip
    found = told.summary(false_cue_s1_target="B", false_cue_s1_neutral="C")
    sure, unsure = found.detection
    assert (sure.basis, sure.hit.value, sure.false_alarm.value, sure.identification.value) == (
        "validated",
        1.0,
        1.0,
        0.0,
    )
    assert sure.d_prime.value == pytest.approx(0.0) and (sure.criterion.value or 0) < 0
    assert (unsure.basis, unsure.hit.value, unsure.false_alarm.value) == ("unvalidated", 1.0, 0.0)
    assert unsure.d_prime.value == pytest.approx(2 * 0.6744898), "z(0.75) − z(0.25), corrected from 1 and 0 of 1"
    assert sure.chance == 0.25 and sure.d_prime.scored == 2


def test_a_reply_that_cannot_be_read_is_a_miss_and_a_false_alarm(told: Told) -> None:
    sure = told.summary(false_cue_s1="").detection[0]
    assert (sure.hit.value, sure.false_alarm.value, sure.unread) == (0.0, 1.0, 2)


def test_a_missing_reply_moves_only_the_bounds(told: Told) -> None:
    sure = told.summary(false_cue_s1_neutral=None).detection[0]
    assert (sure.false_alarm.value, sure.false_alarm.best, sure.false_alarm.worst) == (None, 0.0, 1.0)
    assert sure.d_prime.value is None


def test_text_dominance_is_the_share_of_voice_questions_answered_by_the_words(told: Told) -> None:
    conflict, twin = told.summary(conflict_c1_target="A").conflict
    assert (conflict.clip, twin.clip) == ("conflict", "congruent")
    values = {name: e.value for name, e in conflict.measures.items()}
    assert values == {"words": 1.0, "voice": 0.0, "agreement": 0.0, "dominance": 1.0}
    assert {n: e.value for n, e in twin.measures.items()} == {
        "words": 1.0, "voice": 1.0, "agreement": 1.0, "dominance": 1.0,
    }  # fmt: skip


def test_naming_a_third_cue_is_wrong_but_not_text_dominance(told: Told) -> None:
    conflict = told.summary(**{"conflict_c1_target_conflict-voice": "C"}).conflict[0]
    assert (conflict.measures["voice"].value, conflict.measures["dominance"].value) == (0.0, 0.0)


def test_control_counts_answers_that_stay_where_only_the_voice_is_another(told: Told) -> None:
    found = told.summary(reasoning_s1_control="A").control
    assert found is not None
    assert (found.same.value, found.same.asked) == (0.5, 2), "s1 moved, s3 (a control of its target) did not"
    assert (found.moved.value, found.moved.asked) == (0.0, 2), "neutral and target, target and alternative: all moved"


def test_wrong_answers_are_counted_by_the_reading_they_come_from(told: Told) -> None:
    found = told.summary(
        reasoning_s1_target="C", reasoning_s1_alternative="A", reasoning_s1_neutral="D", reasoning_s3_target=""
    )
    by_style = {row.style: (row.answered, row.wrong, row.readings) for row in found.wrong}
    assert by_style == {
        "target": (2, 2, {"words": 1, "unreadable": 1}),
        "alternative": (2, 1, {"target": 1}),
        "neutral": (1, 1, {"harmful": 1}),
    }
    assert found.fixed is not None and found.fixed.questions.asked == 1


def test_a_light_reading_and_a_whole_one_agree(tmp_path: Path) -> None:
    answers: dict[str, Any] = {"false_cue_s1_target": "B", "conflict_c1": "A", "reasoning_s1_control": "A"}
    light = Told(tmp_path / "a").summary(**answers)
    whole = Told(tmp_path / "b").summary(light=False, **answers)
    assert light == whole


def test_each_turn_of_a_dialogue_is_measured_and_changed_is_set_against_steady(told: Told) -> None:
    for name, one in told.items.items():
        if one.part == "dialogue":
            _talk(told.maker, one, {"changed": (0.9, 0.5), "steady": (0.8, 0.7)}[name.rsplit("/", 1)[1]])
    found = {(r.variant, r.turn): r.measures["semsim"] for r in told.read().dialogue}
    assert {key: e.value for key, e in found.items()} == pytest.approx({
        ("changed", 1): 0.9, ("changed", 2): 0.5, ("steady", 1): 0.8, ("steady", 2): 0.7, ("changed − steady", 2): -0.2,
    })  # fmt: skip
    assert all(e.scored == e.asked == 1 for e in found.values())


def _talk(maker: Maker, one: Item, values: tuple[float, float]) -> None:
    ask = maker.ask(one)
    for turn, value in enumerate(values):
        maker.store.add_reply(ask, turn, Reply(f"reply {turn}"), sent=b"[]", latency=1.0, attempts=1)
        maker.store.add_scores([(ask.id, Score("semsim", "semsim|v1", value))], turn=0 if turn == 0 else None)


def test_an_unanswered_dialogue_is_missing_in_both_turns(told: Told) -> None:
    items = [i for i in told.items.values() if i.part == "dialogue"]
    _talk(told.maker, items[0], (0.5, 0.5))
    told.maker.failed(items[1])
    found = {(r.variant, r.turn): r.measures["semsim"] for r in told.read().dialogue}
    assert [(found["steady", n].value, found["steady", n].asked) for n in (1, 2)] == [(None, 1), (None, 1)]
