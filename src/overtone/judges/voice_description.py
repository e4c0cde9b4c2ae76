"""A sound in words and numbers, for a judge that cannot hear: what is measured of the delivery, and nothing guessed."""

from __future__ import annotations

from pathlib import Path

from overtone.audio import Measures, measure, read

VERSION = 1
NAME = f"description.{VERSION}"


def describe(path: Path) -> str:
    """The measured delivery of a recording as a few lines of text. AudioError where it cannot be read."""
    samples, rate = read(path)
    return in_words(measure(samples, rate))


def in_words(found: Measures) -> str:
    """The same of measures taken before. Ordinary adult speech is the yardstick of every word."""
    if not found.active:
        return "No speech can be measured in it."
    lines = [f"Length: {found.seconds:.1f} s."]
    if found.f0_hz is None:
        lines.append("Pitch: no voiced sound (whispered, or not speech).")
    else:
        lines.append(f"Pitch: {_band(found.f0_hz, (90, 150, 200, 280), _HIGH)}, median {found.f0_hz:.0f} Hz.")
    if found.f0_sd_st is not None:
        word = _band(found.f0_sd_st, (1.0, 2.0, 3.5, 5.0), _LIVELY)
        lines.append(f"Melody: {word}, standard deviation {found.f0_sd_st:.1f} semitones.")
    if found.rate_hz is not None:
        lines.append(
            f"Pace: {_band(found.rate_hz, (2.5, 3.5, 5.0, 6.0), _FAST)}, {found.rate_hz:.1f} syllables a second."
        )
    spoken = found.pause_seconds + found.active * found.seconds
    share = 100 * found.pause_seconds / spoken if spoken else 0.0
    lines.append(f"Pauses: {found.pauses} longer than a fifth of a second, {share:.0f} % of the time.")
    if found.snr_db is not None:
        level = found.noise_floor_dbfs + found.snr_db
        lines.append(f"Level of the speech: {_band(level, (-36, -28, -18, -12), _LOUD)}, {level:.0f} dBFS.")
    if found.modulation is not None:
        lines.append(f"Stress: {_band(found.modulation, (0.4, 0.6, 0.8, 1.0), _STRESSED)}, {found.modulation:.2f}.")
    return "\n".join(lines)


_HIGH = ("very low", "low", "middling", "high", "very high")
_LIVELY = ("flat, almost monotone", "calm", "moderately lively", "lively", "very lively")
_FAST = ("very slow", "slow", "ordinary", "fast", "very fast")
_LOUD = ("very soft", "soft", "ordinary", "loud", "very loud")
_STRESSED = ("even", "rather even", "ordinary", "marked", "strongly marked")


def _band(value: float, edges: tuple[float, ...], words: tuple[str, ...]) -> str:
    return words[sum(value >= edge for edge in edges)]
