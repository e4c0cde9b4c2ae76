"""What the audits need to know of the units: how long a reply is, which family made it, which differ by voice alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from overtone.judge_trust.labels import Labels, Unit
from overtone.languages import text_length

Array = npt.NDArray[np.float64]
VOICE_TEXTS = {"cue", "note"}  # what is said of the voice; every other text is words
FAMILIES = {"chatgpt": "gpt", "davinci": "gpt", "o": "gpt", "gemma": "gemini", "palm": "gemini", "bard": "gemini",
            "qwq": "qwen", "mixtral": "mistral", "vicuna": "llama", "alpaca": "llama", "smollm": "smollm"}  # fmt: skip


def family(name: str) -> str:
    """The family of a model by its name: the letters its last part begins with; near kin share one (see FAMILIES).

    `openai/gpt-4o-mini` is gpt, `Qwen/Qwen2.5-Omni-7B` qwen, `o3-mini` gpt, `meta-llama/Llama-3` llama; "" has none.
    """
    last = name.rstrip("/").rpartition("/")[2].lower()
    found = re.match(r"[a-z]+", last)
    return FAMILIES.get(found[0], found[0]) if found else ""


def lengths(labels: Labels, units: Sequence[str]) -> Array | None:
    """How many words each reply has; of a chat, the bot's. None where a unit has no text."""
    found = []
    for name in units:
        text = _reply(labels.units[name])
        if text is None:
            return None
        found.append(float(text_length(text)))
    return np.array(found)


def _reply(unit: Unit) -> str | None:
    text = unit.texts.get("reply")
    if text is None or not text.startswith("Person:"):
        return text
    return "\n".join(line.removeprefix("Bot:") for line in text.splitlines() if line.startswith("Bot:"))


def pair_lengths(labels: Labels, units: Sequence[str]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None:
    """How many words A and B have; None where a unit lacks one of the texts."""
    texts = [labels.units[name].texts for name in units]
    if not all("reply_a" in t and "reply_b" in t for t in texts):
        return None
    a, b = (np.array([text_length(t[key]) for t in texts], dtype=np.intp) for key in ("reply_a", "reply_b"))
    return a, b


def same_words(labels: Labels, units: Sequence[str]) -> list[tuple[int, int]]:
    """The places of every two units with the same words and another voice: another cue, or another sound."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place, name in enumerate(units):
        texts = labels.units[name].texts
        words = tuple(sorted((key, text) for key, text in texts.items() if key not in VOICE_TEXTS))
        if words:
            alike.setdefault(words, []).append(place)
    found = []
    for places in alike.values():
        for i, j in itertools.combinations(places, 2):
            one, other = labels.units[units[i]], labels.units[units[j]]
            if one.texts.get("cue") != other.texts.get("cue") or one.sounds != other.sounds:
                found.append((i, j))
    return found
