"""The order of a screen never changes a label: what counts is the reply that was rated, not its place."""

from __future__ import annotations

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.studio import designs
from overtone.studio.designs import mushra
from overtone.studio.fields import Value
from overtone.studio.replies import SpokenReply
from overtone.studio.study import MushraSettings
from tests.studio.designs.helpers import fields_of, labels_of, reply, run_of, study_of, units_of

SLOTS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20)
MIRROR = {"A": "B", "B": "A", "both_good": "both_good", "both_bad": "both_bad", "cannot_tell": "cannot_tell"}


def without_order(rows: list[designs.LabelRow]) -> list[tuple[str, str, dict[str, object]]]:
    return [(row.run, row.kind, {k: v for k, v in row.cells.items() if k != "second_first"}) for row in rows]


@settings(deadline=None)
@given(st.sampled_from(sorted(MIRROR)))
def test_a_vote_is_for_the_reply_and_not_for_its_place(chosen: str) -> None:
    study = study_of("ab", "monday", "friday")
    (unit, *_) = units_of(study, run_of("monday"), run_of("friday"))
    (field, *_) = fields_of(study)
    plain = labels_of(study, unit, {field.key: chosen})
    swapped = labels_of(study, unit, {field.key: MIRROR[chosen]}, swap=True)
    assert without_order(plain) == without_order(swapped)
    assert [row.cells["second_first"] for row in (*plain, *swapped)] == [0] * len(plain) + [1] * len(swapped)


@settings(deadline=None)
@given(st.integers(-3, 3))
def test_a_comparison_has_the_sign_of_the_runs_in_either_order(given: int) -> None:
    study = study_of("cmos", "monday", "friday")
    (unit, *_) = units_of(study, run_of("monday"), run_of("friday"))
    plain = labels_of(study, unit, {"cmos": given})
    assert without_order(plain) == without_order(labels_of(study, unit, {"cmos": -given}, swap=True))
    label, *votes = plain
    assert label.cells["value"] == given and (label.cells["system_a"], label.cells["system_b"]) == ("monday", "friday")
    assert {vote.cells["winner"] for vote in votes} == {"tie" if given == 0 else "B" if given > 0 else "A"}
    assert [vote.run for vote in votes] == ["monday", "friday"]


@settings(deadline=None)
@given(SLOTS, SLOTS, st.booleans(), st.booleans())
def test_a_mushra_rating_belongs_to_the_sound_in_every_order(one: str, other: str, swap: bool, anchor: bool) -> None:
    study = study_of("mushra", "low", "high", mushra=MushraSettings(anchor=anchor))
    (unit, *_) = units_of(study, run_of("low", reference=reply("x").sound), run_of("high"))
    rated = {"low": 20, "high": 80, mushra.REFERENCE: 100, mushra.ANCHOR: 5}

    def answers(slot: str, swap: bool) -> dict[str, Value]:
        screen = mushra.on_screen(unit, study, swap, slot)
        return {key: rated[what.run if isinstance(what, SpokenReply) else what] for key, what in screen.items()}

    def rows(slot: str, swap: bool) -> list[tuple[str, str, str, object]]:
        made = labels_of(study, unit, answers(slot, swap), slot=slot, swap=swap)
        return sorted((row.run, row.cells["dimension"], row.cells["system"], row.cells["value"]) for row in made)

    assert rows(one, swap) == rows(other, not swap)
    assert ("high", "mushra", "high", 80) in rows(one, swap)
    assert ("low", "mushra_reference", "reference", 100) in rows(one, swap)


@settings(deadline=None)
@given(SLOTS, st.integers(3, 12))
def test_the_order_of_many_sounds_is_a_permutation_that_only_the_slot_decides(slot: str, count: int) -> None:
    order = designs.order(count, False, slot)
    assert sorted(order) == list(range(count)) and order == designs.order(count, True, slot)


def test_every_place_is_taken_by_every_sound_about_equally_often() -> None:
    places = [designs.order(4, False, f"slot{number}").index(0) for number in range(2000)]
    assert all(400 < places.count(place) < 600 for place in range(4))


@settings(deadline=None)
@given(st.booleans(), st.sampled_from(["ab", "cmos"]))
def test_the_screen_plays_what_its_label_means(swap: bool, design: str) -> None:
    study = study_of(design, "monday", "friday", play_clip=True)
    (unit, *_) = units_of(study, run_of("monday"), run_of("friday"))
    clip, first, second = designs.played(designs.find(design), unit, study, swap=swap)
    assert clip.context and (first.name, second.name) == ("A", "B")
    runs = ("friday", "monday") if swap else ("monday", "friday")
    assert [one.sound.path for one in (first, second)] == [f"{run}0.wav" for run in runs]
    assert designs.words(designs.find(design), unit, swap=swap)["A"] == f"{runs[0]} replies."
