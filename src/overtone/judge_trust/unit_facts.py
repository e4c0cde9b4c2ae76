"""Facts about labelled units for the audits: length, model family, and pairs that differ only in the voice."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from overtone.judge_trust.labels import Labels, Unit
from overtone.languages import text_length

Array = npt.NDArray[np.float64]
VOICE_TEXTS = {"cue", "note"}  # describe the voice; all other texts are words
FAMILIES = {"chatgpt": "gpt", "davinci": "gpt", "o": "gpt", "gemma": "gemini", "palm": "gemini", "bard": "gemini",
            "qwq": "qwen", "mixtral": "mistral", "vicuna": "llama", "alpaca": "llama", "smollm": "smollm"}  # fmt: skip


def family(name: str) -> str:
    """Return a model's family: the letters at the start of the last part of its name. FAMILIES merges related families.

    `openai/gpt-4o-mini` is gpt, `Qwen/Qwen2.5-Omni-7B` qwen, `o3-mini` gpt, `meta-llama/Llama-3` llama; "" for "".
    """
    last = name.rstrip("/").rpartition("/")[2].lower()
    letters = re.match(r"[a-z]+", last)
    return FAMILIES.get(letters[0], letters[0]) if letters else ""


def lengths(labels: Labels, units: Sequence[str]) -> Array | None:
    """Return the number of words of each reply (in a chat, the bot's words), or None if a unit has no text."""
    texts = [_reply(labels.units[name]) for name in units]
    return None if None in texts else np.array([float(text_length(text)) for text in texts if text is not None])


def _reply(unit: Unit) -> str | None:
    text = unit.texts.get("reply")
    if text is None or not text.startswith("Person:"):
        return text
    return "\n".join(line.removeprefix("Bot:") for line in text.splitlines() if line.startswith("Bot:"))


def pair_lengths(labels: Labels, units: Sequence[str]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None:
    """Return the numbers of words of A and B, or None if a unit lacks one of the texts."""
    texts = [labels.units[name].texts for name in units]
    if not all("reply_a" in t and "reply_b" in t for t in texts):
        return None
    a, b = (np.array([text_length(t[key]) for t in texts], dtype=np.intp) for key in ("reply_a", "reply_b"))
    return a, b


def same_words(labels: Labels, units: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of indices: all pairs of units that have the same words but differ in their cue or sound."""
    by_words: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, name in enumerate(units):
        texts = labels.units[name].texts
        words = tuple(sorted((key, text) for key, text in texts.items() if key not in VOICE_TEXTS))
        if words:
            by_words.setdefault(words, []).append(place)
    pairs = []
    for places in by_words.values():
        for i, j in itertools.combinations(places, 2):
            one, other = labels.units[units[i]], labels.units[units[j]]
            if one.texts.get("cue") != other.texts.get("cue") or one.sounds != other.sounds:
                pairs.append((i, j))
    return pairs
