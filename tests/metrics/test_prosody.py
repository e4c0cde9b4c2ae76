"""Prosody: what the voice is told to do is what is measured, and the fit falls with every difference."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone.embedded.espeak_voice import speak
from overtone.metrics.prosody import HALF, LEAST, REFERENCE, Delivery, differences, load, similarities
from overtone.schema import Score, Turn
from tests.metrics.answers import answered, item
from tests.metrics.speech import Sound, spoken

TEXT = "I am sorry to hear that. Shall we talk about it tomorrow, when you feel better?"


@cache
def say(**how: Any) -> Sound:
    return speak(TEXT, voice="en-us+f3", **how)


def scores(folder: Path, sound: Sound | None, reference: Sound | None = None) -> tuple[Score, Score]:
    ((alive, fit),) = load().score([spoken(folder, TEXT, sound, reference)])
    assert (alive.metric, fit.metric) == ("expressiveness", "prosody_fit") and alive.signature == fit.signature
    return alive, fit


def value(score: Score) -> float:
    assert score.value is not None, score.reason
    return score.value


def number(score: Score, name: str) -> float:
    found = score.detail[name]
    assert isinstance(found, float)
    return found


@pytest.mark.local
def test_a_monotone_is_flat_and_more_range_is_more_expressive(tmp_path: Path) -> None:
    found = [scores(tmp_path, say(range=span))[0] for span in (0, 25, 60, 99)]
    assert value(found[0]) < 0.6 and found[0].detail["flat"] == 1
    assert value(found[-1]) > 1.0 and found[-1].detail["flat"] == 0
    assert [value(s) for s in found] == sorted(value(s) for s in found)


def test_expressiveness_is_one_at_the_reference_and_the_geometric_mean_beside_it() -> None:
    usual = Delivery(2.0, 200.0, 6.0, 2.0, 4.0, 0, 0.0, 0.0, -20.0, **REFERENCE)
    assert usual.expressiveness == pytest.approx(1.0)
    for name in REFERENCE:
        assert msgspec.structs.replace(usual, **{name: 8 * REFERENCE[name]}).expressiveness == pytest.approx(2.0)
        assert msgspec.structs.replace(usual, **{name: 0.0}).expressiveness == pytest.approx(LEAST ** (1 / 3))
        assert msgspec.structs.replace(usual, **{name: None}).expressiveness is None


@pytest.mark.local
def test_a_word_is_too_short_to_be_called_flat(tmp_path: Path) -> None:
    alive, _ = scores(tmp_path, speak("No.", voice="en-us+f3"))
    assert (alive.value, alive.reason) == (None, "too few syllables in the reply's audio")


@pytest.mark.local
def test_the_same_delivery_fits_wholly(tmp_path: Path) -> None:
    _, fit = scores(tmp_path, say(), say())
    assert value(fit) == pytest.approx(1.0) and fit.detail["rate_ratio"] == pytest.approx(1.0)


@pytest.mark.local
def test_each_difference_shows_in_its_own_measure_with_its_sign(tmp_path: Path) -> None:
    samples, rate = say()
    low, fast, flat, paused = (say(pitch=20), say(rate_wpm=300), say(range=0), say(gap=40))
    apart = {
        name: scores(tmp_path, sound, say())[1]
        for name, sound in (("low", low), ("fast", fast), ("flat", flat), ("paused", paused))
    }
    quiet = scores(tmp_path, ((samples / 4).astype(np.float32), rate), say())[1]
    assert number(quiet, "level_db") == pytest.approx(-12.04, abs=0.1)
    assert number(quiet, "fit_level_db") == pytest.approx(0.5, abs=0.01)
    assert number(apart["low"], "pitch_st") < -2.0
    assert number(apart["fast"], "rate_ratio") > 1.2 and number(apart["fast"], "rate_octaves") > 0.25
    assert number(apart["flat"], "movement_st") < -1.0
    assert number(apart["paused"], "pause_share") > 0.1
    assert all(0.0 < value(fit) < 0.97 for fit in apart.values())
    assert value(quiet) == pytest.approx(0.9, abs=0.01), "one part of five is halved"


@pytest.mark.local
def test_a_reply_without_audio_and_one_without_reference_audio_say_so(tmp_path: Path) -> None:
    assert [s.reason for s in scores(tmp_path, None, say())] == ["the reply has no audio"] * 2
    alive, fit = scores(tmp_path, say())
    assert value(alive) > 0.7 and (fit.value, fit.reason) == (None, "no reference audio")
    ((unreachable, _),) = load().score([msgspec.structs.replace(spoken(tmp_path, TEXT, say()), sounds=None)])
    assert unreachable.reason == "the reply's audio cannot be reached"


@pytest.mark.local
def test_silence_fits_nothing_and_has_no_expressiveness(tmp_path: Path) -> None:
    silence = np.zeros(16_000, np.float32), 16_000
    alive, fit = scores(tmp_path, silence, say())
    assert (alive.value, alive.reason) == (None, "no speech in the reply's audio")
    assert (fit.value, fit.detail) == (0.0, {"silent": 1})
    assert scores(tmp_path, say(), silence)[1].reason == "no speech in the reference audio"


@pytest.mark.local
def test_a_broken_or_missing_sound_is_a_reason_that_names_no_folder(tmp_path: Path) -> None:
    reply = spoken(tmp_path, TEXT, say(), say())
    (tmp_path / "reference.wav").write_bytes(b"RIFF")
    _, fit = load().score([reply])[0]
    assert fit.value is None and fit.reason.startswith("the reference audio reference.wav: ")
    (tmp_path / f"{reply.audio_sha}.wav").unlink()
    alive, _ = load().score([reply])[0]
    assert alive.reason.startswith(f"the reply's audio {reply.audio_sha[:12]}: there is no such file")
    assert str(tmp_path) not in alive.reason + fit.reason


def test_a_part_is_halved_at_its_half_and_nothing_where_only_one_has_a_pitch() -> None:
    assert similarities({name: -half for name, half in HALF.items()}) == pytest.approx(dict.fromkeys(HALF, 0.5))
    voiced = Delivery(2.0, 200.0, 6.0, 2.0, 4.0, 0, 0.0, 0.0, -20.0, 0.7)
    whisper = msgspec.structs.replace(voiced, f0_hz=None, f0_range_st=None, f0_sd_st=None)
    assert differences(msgspec.structs.replace(voiced, f0_hz=400.0), voiced)["pitch_st"] == pytest.approx(12.0)
    found = similarities(differences(whisper, voiced))
    assert found == {"pitch_st": 0, "movement_st": 0, "rate_octaves": 1, "pause_share": 1, "level_db": 1}
    assert set(similarities(differences(whisper, whisper))) == {"rate_octaves", "pause_share", "level_db"}


def test_the_reference_audio_is_of_the_same_turn_as_the_reference_text() -> None:
    of = msgspec.structs.replace(
        item("converse", references=("Whole.",)),
        turns=(Turn(None, reference="One."), Turn(None, reference="Two.", reference_audio="two.wav"), Turn(None)),
        reference_audio="whole.wav",
    )
    reply = answered(of, "x")
    at = [msgspec.structs.replace(reply, key=msgspec.structs.replace(reply.key, turn=turn)) for turn in range(4)]
    assert [(a.reference, a.reference_audio) for a in at] == [
        ("One.", ""),
        ("Two.", "two.wav"),
        ("Whole.", "whole.wav"),
        ("Whole.", "whole.wav"),
    ]


def test_it_scores_conversation_only() -> None:
    assert load().applies(item("converse")) and not load().applies(item("choose"))
