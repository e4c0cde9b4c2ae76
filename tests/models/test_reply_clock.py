"""The playback clock: what a person hears when, given when the parts of a sound arrived."""

from __future__ import annotations

import time

import numpy as np
import pytest

from overtone.models import Piece
from overtone.models.reply_clock import Arrival, ReplyClock, first_audible, measured, play

RATE = 24_000


def pcm(seconds: float, level: float = 0.3) -> bytes:
    wave = level * np.sin(2 * np.pi * 220 * np.arange(round(seconds * RATE)) / RATE)
    return (wave * 32767).astype("<i2").tobytes()


def test_parts_that_come_early_are_played_without_a_gap() -> None:
    played = play([Arrival(1.0, 0.5), Arrival(1.1, 0.5), Arrival(1.2, 0.5)])
    assert [part.at for part in played.parts] == [1.0, 1.5, 2.0]
    assert played.stalled == 0.0


def test_a_late_part_stalls_the_playback_and_moves_what_follows() -> None:
    played = play([Arrival(1.0, 0.1), Arrival(1.5, 0.2), Arrival(1.6, 0.2)])
    assert [part.at for part in played.parts] == pytest.approx([1.0, 1.5, 1.7])
    assert played.stalled == pytest.approx(0.4)
    assert played.heard_at(0.05) == pytest.approx(1.05)
    assert played.heard_at(0.15) == pytest.approx(1.55)
    assert played.heard_at(9.0) == pytest.approx(1.9)  # the end


@pytest.mark.parametrize("silence", [0.0, 0.1, 0.73])
def test_the_first_audible_sample_comes_after_leading_silence(silence: float) -> None:
    sound = pcm(silence, 0.0) + pcm(0.5)
    assert first_audible([sound[:999], sound[999:]], RATE) == pytest.approx(silence, abs=0.011)


def test_background_noise_before_the_voice_is_not_audible_speech() -> None:
    noise = np.random.default_rng(1).normal(0, 30, round(0.4 * RATE)).astype("<i2").tobytes()
    assert first_audible([noise, pcm(0.6)], RATE) == pytest.approx(0.4, abs=0.03)
    assert first_audible([pcm(0.5, 0.0)], RATE) is None
    assert first_audible([noise, pcm(0.6), b"\0"], RATE) == pytest.approx(0.4, abs=0.03)  # half a sample too many


def test_all_timings_of_a_reply_follow_from_its_arrivals() -> None:
    sound = pcm(0.2, 0.0) + pcm(0.8)
    parts = [sound[: RATE // 2], sound[RATE // 2 :]]  # 0.25 s and 0.75 s
    arrivals = [Arrival(10.5, 0.25), Arrival(11.0, 0.75)]
    found = measured("turn", 10.0, 10.4, arrivals, parts, RATE, 11.5, spoke_until=9.8, turn_over=9.95)
    assert found is not None and found.origin == "turn"
    assert (found.first_text, found.first_audio, found.done) == (0.4, 0.5, 1.5)
    assert found.voice_to_voice == pytest.approx(10.7 - 9.8, abs=0.011)  # silence at its beginning is not a voice
    assert (found.vad_wait, found.stalled, found.real_time_factor) == (0.15, 0.25, 1.5)


def test_a_reply_without_sound_has_no_timings_of_sound() -> None:
    found = measured("request", 1.0, 1.25, [], [], 0, 2.0, spoke_until=1.0)
    assert found is not None and (found.first_text, found.done) == (0.25, 1.0)
    assert found.first_audio is found.voice_to_voice is found.stalled is found.real_time_factor is None


def test_a_clock_counts_from_its_start_and_ignores_thoughts() -> None:
    clock = ReplyClock()
    clock.piece(Piece(thought="The voice is calm."))
    assert clock.timings(clock.began + 1, None) is None  # nothing that a user gets has arrived
    time.sleep(0.05)
    clock.piece(Piece("Yes."))
    clock.piece(Piece(pcm=pcm(0.1), rate=RATE))
    found = clock.timings(clock.began + 2, clock.began)
    assert found is not None and found.first_text is not None and found.first_audio is not None
    assert 0.05 <= found.first_text <= found.first_audio < 1.5
    assert found.done == 2.0 and found.voice_to_voice == pytest.approx(found.first_audio, abs=0.02)
