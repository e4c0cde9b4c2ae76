"""Rooms: sound dies in the time that the kind states, low tones last, and length and level stay."""

from __future__ import annotations

import time

import numpy as np
import pytest

from overtone.build.room import ROOMS, Room, respond, response
from overtone.errors import UsageError

RATE = 24_000
KINDS = [kind for kind, room in ROOMS.items() if room]


def _decay(h: np.ndarray, hertz: float) -> float:
    """Seconds for 60 dB in the octave round `hertz`, by Schroeder's backward integral, fitted from -5 to -25 dB."""
    late = h.copy()
    late[: int(0.003 * RATE)] = 0  # the voice itself is no reverberation
    size = 1 << (2 * late.size).bit_length()
    f = np.maximum(np.fft.rfftfreq(size, 1 / RATE), 1.0)
    octave = np.exp(-0.5 * (np.log2(f / hertz) / 0.5) ** 2)
    band = np.fft.irfft(np.fft.rfft(late, size) * octave, size)[: late.size]
    left = np.cumsum(band[::-1] ** 2)[::-1]
    db = 10 * np.log10(left / left[0] + 1e-12)
    a, b = int(np.argmax(db < -5)), int(np.argmax(db < -25))
    return float(-60 / np.polyfit(np.arange(a, b) / RATE, db[a:b], 1)[0])


def _room(kind: str) -> Room:
    room = ROOMS[kind]
    assert room is not None
    return room


@pytest.mark.parametrize("kind", KINDS)
def test_sound_dies_in_the_time_the_room_states(kind: str) -> None:
    room = _room(kind)
    found = [_decay(response(room, RATE, np.random.default_rng(k)), 707) for k in range(5)]
    assert np.median(found) == pytest.approx(room.seconds, rel=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_low_tones_live_longer_than_high_ones(kind: str) -> None:
    room = _room(kind)
    responses = [response(room, RATE, np.random.default_rng(k)) for k in range(5)]
    low, high = (float(np.median([_decay(h, hertz) for h in responses])) for hertz in (250, 2828))
    assert low > 1.1 * high


@pytest.mark.parametrize("kind", list(ROOMS))
def test_a_room_keeps_length_and_level_and_repeats_itself(kind: str) -> None:
    voice = np.random.default_rng(1).standard_normal(2 * RATE) * np.repeat([0.1, 0.0, 0.05, 0.0], RATE // 2)
    first, again = (respond(voice, RATE, np.random.default_rng(2), kind) for _ in range(2))
    assert first.shape == voice.shape and np.array_equal(first, again)
    assert np.mean(first**2) == pytest.approx(np.mean(voice**2))
    other = respond(voice, RATE, np.random.default_rng(3), kind)
    assert np.array_equal(first, other) == (kind == "booth")


def test_a_booth_gives_nothing_back_and_a_hall_fills_the_pauses() -> None:
    voice = np.random.default_rng(1).standard_normal(2 * RATE) * np.repeat([0.1, 0.0], RATE)
    assert np.array_equal(respond(voice, RATE, np.random.default_rng(2), "booth"), voice)
    pause = {
        kind: float(np.mean(respond(voice, RATE, np.random.default_rng(2), kind)[int(1.15 * RATE) :] ** 2))
        for kind in KINDS
    }
    assert pause["hall"] > 5 * pause["small"] > 5 * pause["car"]
    assert pause["hall"] > 5 * pause["street"] > 0


def test_the_voice_comes_first_and_is_not_put_off() -> None:
    for kind in KINDS:
        h = response(_room(kind), RATE, np.random.default_rng(4))
        assert int(np.argmax(np.abs(h))) == 0


def test_silence_stays_silence_and_an_unknown_room_is_refused() -> None:
    rng = np.random.default_rng(0)
    assert not respond(np.zeros(100), RATE, rng, "hall").any()
    with pytest.raises(UsageError, match="did you mean 'hall'"):
        respond(np.ones(100), RATE, rng, "hal")


def test_a_room_costs_little() -> None:
    voice = np.random.default_rng(1).standard_normal(5 * RATE)
    began = time.process_time()
    for k in range(4):
        respond(voice, RATE, np.random.default_rng(k), "hall")
    assert 20 / (time.process_time() - began) > 25
