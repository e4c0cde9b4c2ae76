"""The measured delivery of a recording in words and numbers, for a judge that cannot hear. Nothing is guessed."""

from __future__ import annotations

from pathlib import Path

from overtone.audio import Measures, measure, read

VERSION = 1
NAME = f"description.{VERSION}"


def describe(path: Path) -> str:
    """Describe the delivery of a recording in a few lines of text. Raises AudioError if it cannot be read."""
    samples, rate = read(path)
    return in_words(measure(samples, rate))


def in_words(m: Measures) -> str:
    """Describe measures in words. The words are relative to ordinary adult speech."""
    if not m.active:
        return "No speech can be measured in it."
    lines = [f"Length: {m.seconds:.1f} s."]
    if m.f0_hz is None:
        lines.append("Pitch: no voiced sound (whispered, or not speech).")
    else:
        lines.append(f"Pitch: {_band(m.f0_hz, (90, 150, 200, 280), _HIGH)}, median {m.f0_hz:.0f} Hz.")
    if m.f0_sd_st is not None:
        word = _band(m.f0_sd_st, (1.0, 2.0, 3.5, 5.0), _LIVELY)
        lines.append(f"Melody: {word}, standard deviation {m.f0_sd_st:.1f} semitones.")
    if m.rate_hz is not None:
        lines.append(f"Pace: {_band(m.rate_hz, (2.5, 3.5, 5.0, 6.0), _FAST)}, {m.rate_hz:.1f} syllables a second.")
    spoken = m.pause_seconds + m.active * m.seconds
    share = 100 * m.pause_seconds / spoken if spoken else 0.0
    lines.append(f"Pauses: {m.pauses} longer than a fifth of a second, {share:.0f} % of the time.")
    if m.snr_db is not None:
        level = m.noise_floor_dbfs + m.snr_db
        lines.append(f"Level of the speech: {_band(level, (-36, -28, -18, -12), _LOUD)}, {level:.0f} dBFS.")
    if m.modulation is not None:
        lines.append(f"Stress: {_band(m.modulation, (0.4, 0.6, 0.8, 1.0), _STRESSED)}, {m.modulation:.2f}.")
    return "\n".join(lines)


_HIGH = ("very low", "low", "middling", "high", "very high")
_LIVELY = ("flat, almost monotone", "calm", "moderately lively", "lively", "very lively")
_FAST = ("very slow", "slow", "ordinary", "fast", "very fast")
_LOUD = ("very soft", "soft", "ordinary", "loud", "very loud")
_STRESSED = ("even", "rather even", "ordinary", "marked", "strongly marked")


def _band(value: float, edges: tuple[float, ...], words: tuple[str, ...]) -> str:
    return words[sum(value >= edge for edge in edges)]
