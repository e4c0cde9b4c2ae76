"""The acoustics of a room: early reflections from its walls, then a tail that decays at the room's own rate.

The first echoes come from image sources of a box. The tail is noise in six octave bands, each with its own decay time,
because rooms absorb high frequencies faster than low ones. The room does not change a sound's length or level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overtone.build.tract import Rng, Sound, level
from overtone.errors import UsageError
from overtone.spec import suggest

_SPEED = 343.0  # of sound, m/s
_BANDS = (125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0)  # Hz, middles of the octaves


@dataclass(frozen=True)
class Room:
    """One kind of place. `seconds` is the time in which sound at 500 and 1000 Hz falls by 60 dB."""

    seconds: float
    size: tuple[float, float, float]  # metres; each room drawn is a little larger or smaller
    wall: float  # share of the pressure that a wall reflects
    away: float  # metres from mouth to microphone
    tail_db: float  # energy of the tail against that of the voice itself
    slope: float  # how much longer low tones last: decay time ∝ frequency^-slope


ROOMS: dict[str, Room | None] = {
    "booth": None,  # no reflections
    "small": Room(0.35, (3.2, 2.6, 2.4), 0.75, 0.6, -7.0, 0.10),
    "hall": Room(1.8, (22.0, 15.0, 8.0), 0.85, 2.5, -3.0, 0.18),
    "street": Room(0.8, (18.0, 60.0, 30.0), 0.55, 0.8, -16.0, 0.25),  # walls far apart, the sky open
    "car": Room(0.09, (1.9, 1.4, 1.2), 0.6, 0.5, -9.0, 0.30),
}


def check(kind: str) -> None:
    """Raise UsageError if there is no such kind of room."""
    if kind not in ROOMS:
        raise UsageError(f"no room {kind!r}{suggest(kind, ROOMS)}; known: {', '.join(ROOMS)}")


def respond(x: Sound, rate: int, rng: Rng, kind: str) -> Sound:
    """Return `x` as heard in a room of that kind, with the same length and level."""
    check(kind)
    room = ROOMS[kind]
    if room is None or not np.any(x):
        return np.array(x, np.float64)
    h = response(room, rate, rng)
    size = 1 << int(x.size + h.size - 1).bit_length()
    wet = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(h, size), size)[: x.size]
    return np.asarray(wet * (level(np.asarray(x, np.float64)) / level(wet)))


def response(room: Room, rate: int, rng: Rng) -> Sound:
    """Return the impulse response of the room: the impulse at time 0, its first echoes, the tail."""
    echoes = _echoes(room, rate, rng)
    tail = _tail(room, rate, rng)
    out = np.zeros(max(echoes.size, tail.size))
    out[: echoes.size] = echoes
    out[: tail.size] += tail
    return out


def _echoes(room: Room, rate: int, rng: Rng) -> Sound:
    """Return the voice and its images in the walls, up to two bounces per direction, after Allen and Berkley (1979)."""
    size = np.array(room.size) * rng.uniform(0.9, 1.1, 3)
    mouth = size * rng.uniform(0.3, 0.7, 3)
    way = rng.standard_normal(3)
    ear = np.clip(mouth + room.away * way / np.linalg.norm(way), 0.1, size - 0.1)
    orders = np.arange(-2, 3)
    places = [np.where(orders % 2 == 0, orders * s + m, (orders + 1) * s - m) for s, m in zip(size, mouth, strict=True)]
    gaps = [(p - e) ** 2 for p, e in zip(places, ear, strict=True)]
    far = np.sqrt(gaps[0][:, None, None] + gaps[1][None, :, None] + gaps[2][None, None, :]).ravel()
    bounces = (np.abs(orders)[:, None, None] + np.abs(orders)[None, :, None] + np.abs(orders)[None, None, :]).ravel()
    direct = far[bounces == 0][0]
    late = (far - direct) / _SPEED
    loud = direct / far * room.wall**bounces
    # An echo stronger than the room's decay allows would prolong it: walls absorb more than the pressure shows.
    loud = np.where(bounces == 0, 1.0, np.minimum(loud, 10 ** (-3 * late / room.seconds)))
    at = np.rint(late * rate).astype(np.int64)
    keep = (bounces <= 3) & (late < 0.5 * room.seconds)
    out = np.zeros(int(at[keep].max()) + 1)
    signs = np.where(bounces == 0, 1.0, rng.choice([-1.0, 1.0], bounces.size))
    np.add.at(out, at[keep], (loud * signs)[keep])
    out[0] = 1.0
    return out


def _tail(room: Room, rate: int, rng: Rng) -> Sound:
    """Return noise in octave bands, each with its own decay; `tail_db` is its energy relative to the voice."""
    n = int(1.3 * room.seconds * rate * (1000 / _BANDS[0]) ** room.slope)
    n = max(n, int(0.05 * rate))
    size = 1 << (n - 1).bit_length()
    hertz = np.fft.rfftfreq(size, 1 / rate)
    octave = np.log2(np.maximum(hertz, 20.0) / _BANDS[0])
    t = np.arange(n) / rate
    out = np.zeros(n)
    for k, middle in enumerate(_BANDS):
        share = np.clip(1 - np.abs(octave - k), 0, 1)
        if k == 0:
            share = np.where(octave < 0, 1.0, share)
        if k == len(_BANDS) - 1:
            share = np.where(octave > k, 1.0, share)
        spectrum = rng.standard_normal(2 * hertz.size).view(np.complex128) * np.sqrt(share)
        seconds = room.seconds * (707.0 / middle) ** room.slope
        out += np.fft.irfft(spectrum, size)[:n] * 10 ** (-3 * t / seconds)
    out *= np.minimum(t / 0.004, 1.0)  # it builds up while the first echoes arrive
    return np.asarray(out * 10 ** (room.tail_db / 20) / np.sqrt(np.sum(out * out)))
