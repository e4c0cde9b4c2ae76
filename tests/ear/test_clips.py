"""The clips that an ear is fitted to, and what they say to its heads."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.corpora import Reading, Recording
from overtone.ear.clips import MOST, chosen, labels, without_small_classes
from overtone.errors import DataError, UsageError


def reading(*recordings: Recording) -> Reading:
    return Reading("table", Path("corpus"), list(recordings), [])


def said(name: str, speaker: str, **known: object) -> Recording:
    return Recording(corpus="table", name=name, speaker=speaker, **known)  # type: ignore[arg-type]


def test_a_label_that_a_corpus_lacks_is_missing() -> None:
    assert labels(said("a", "x", emotion="happy")) == {"emotion": "happy", "event": "speech"}
    assert labels(said("a", "x", words="Good morning.")) == {"event": "speech"}
    assert labels(said("a", "x", event="cough", sex="male", age_group="adult")) == {
        "event": "cough",
        "sex": "male",
        "age": "adult",
    }


def test_calm_counts_as_neutral_and_boredom_says_nothing() -> None:
    assert labels(said("a", "x", emotion="calm"))["emotion"] == "neutral"
    assert "emotion" not in labels(said("a", "x", emotion="bored"))


def test_a_sound_that_nobody_makes_is_not_used_and_a_childs_sex_is_not_either() -> None:
    assert labels(said("a", "x", event="rain")) == {}
    assert labels(said("a", "x", words="No.", sex="female", age_group="child")) == {"event": "speech", "age": "child"}


def test_a_speaker_with_many_clips_gives_some_of_each_class() -> None:
    many = [said(f"{name}{n}", "x", emotion=name) for name in ("happy", "sad") for n in range(MOST["emotion"] + 20)]
    kept = [clip for clip in chosen([reading(*many)]) if "emotion" in clip.labels]
    assert len(kept) == 2 * MOST["emotion"]
    assert [clip.recording.name for clip in kept] == [
        clip.recording.name for clip in chosen([reading(*reversed(many))]) if "emotion" in clip.labels
    ]


def test_a_class_of_one_speaker_is_left_out_with_the_reason() -> None:
    rows = [said(f"{who}{name}", who, emotion=name) for who in "xyz" for name in ("happy", "sad")]
    clips, reasons = without_small_classes(chosen([reading(*rows, said("f", "x", emotion="fear"))]))
    assert {clip.labels.get("emotion") for clip in clips} == {"happy", "sad"}
    assert "only one speaker (table x)" in reasons["emotion"]["fear"]


def test_one_speaker_alone_is_an_error_that_says_what_cannot_be_tested() -> None:
    rows = [said(name, "x", emotion=name) for name in ("happy", "sad")]
    with pytest.raises(DataError, match=r"emotion happy: only one speaker \(table x\).*more speakers"):
        without_small_classes(chosen([reading(*rows)]))


def test_a_corpus_without_usable_labels_is_an_error() -> None:
    with pytest.raises(DataError, match="no recording of the corpora has an emotion"):
        chosen([reading(said("a", "x", event="rain"))])


def test_two_tables_with_the_same_names_stay_apart() -> None:
    rows = [said(name, "x", emotion=name) for name in ("happy", "sad")]
    two = [Reading("table", Path(folder), rows, []) for folder in ("one", "two")]
    clips, _ = without_small_classes(chosen(two))
    assert {clip.speaker for clip in clips} == {"table one x", "table two x"} and len(clips) == 4


def test_a_corpus_given_twice_is_refused() -> None:
    rows = [said(name, "x", emotion=name) for name in ("happy", "sad")]
    with pytest.raises(UsageError, match="give each once"):
        chosen([reading(*rows), reading(*rows)])
