"""A tiny folder in RAVDESS's layout, and judges behind a server that hear it perfectly, not at all, or half."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from overtone.audio import load_sound
from tests.judges.server import Verdict, keys_asked
from tests.servers import Asked, tone

EMOTIONS = ("neutral", "angry", "happy", "sad")


def recordings(folder: Path, actors: int = 10) -> Path:
    """Every emotion but neutral in two intensities, two sentences, `actors` actors: each a tone of its own."""
    rows = ["file,actor,gender,emotion,intensity,text"]
    number = 0
    for actor in range(1, actors + 1):
        (folder / f"actor_{actor:02d}").mkdir(parents=True)
        for emotion in EMOTIONS:
            for intensity in ("normal", "strong")[: 1 if emotion == "neutral" else 2]:
                for text in ("Kids are talking.", "Dogs are sitting."):
                    name = f"actor_{actor:02d}/{emotion}-{intensity}-{text[:4]}.wav"
                    (folder / name).write_bytes(tone(number, 0.25 + 0.001 * (number // 400), 16_000))
                    rows.append(f"{name},{actor},male,{emotion},{intensity},{text}")
                    number += 1
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return folder


def ears(folder: Path) -> Callable[[Asked], Verdict]:
    """A judge that knows every recording by its bytes and is always right."""
    known = {}
    for line in (folder / "labels.csv").read_text().splitlines()[1:]:
        name, _, _, emotion, intensity, _ = line.split(",")
        known[load_sound(folder / name).sha256] = (emotion, intensity)

    def verdict(asked: Asked) -> Verdict:
        (key,) = keys_asked(asked.text)
        first = known[asked.sounds[0]]
        if key == "hears_intensity":
            return {key: "A" if first[1] == "strong" else "B"}
        wanted = asked.text.partition("<cue>")[2].partition("</cue>")[0].strip()
        return {key: "A" if first[0] == wanted else "B"}

    return verdict


def always(answer: str) -> Callable[[Asked], Verdict]:
    return lambda asked: dict.fromkeys(keys_asked(asked.text), answer)
