"""Sanity ladders of the voice metrics: added noise must lower them, a harmless change of the file must not.

    python -m bench.ladders LIBRISPEECH_FOLDER [--nisqa nisqa.tar] [--nisqa-tts nisqa_tts.tar]
        [--utmos-source DIR --utmos-weights FILE] [--clips 12] [--write]

The folder holds LibriSpeech's files (test-other here: one clip per speaker). The same number
of clips is synthesised by the embedded voices. Each clip is scored as it is, with white noise 20 dB and 0 dB weaker, at
other sample rates, at other levels, and with a second of near-silence at its end. `--write` puts the tables into
docs/reference/metrics/ladders.md. `tests/metrics/test_ladders.py` asserts what the tables claim.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from overtone import corpora
from overtone.audio import decode, encode_wav, mix, read, resample
from overtone.embedded import emotion, espeak_voice, recogniser
from overtone.metrics import distillmos, dnsmos, nisqa, utmos
from overtone.metrics._quality import Quality
from overtone.metrics.emoalign import matches
from overtone.metrics.normalise import units
from overtone.metrics.prosody import delivery, differences, similarities
from overtone.metrics.wer import align

Sound = tuple[npt.NDArray[np.float32], int]
Values = dict[str, float | None]  # score → value of one sound; None where the metric gives none
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics" / "ladders.md"
BEGIN, END = "<!-- measured by bench/ladders.py: begin -->\n", "<!-- end -->"
PEAK = 0.25  # all clips start at −12 dBFS, so that +6 dB does not clip
NOISE_FLOOR = 1e-4  # of the appended second: −80 dBFS, like a quiet recording
LADDER = ("clean", "noise 20 dB", "noise 0 dB")
VOICES = ("en-us+m2", "en-us+f1", "en-us+m4", "en-us+linda", "en-us+m5", "en-us+steph")
SENTENCES = (
    "The library closes an hour early on Wednesdays, so bring the books back before five.",
    "My brother moved his desk closer to the door because the window was cold.",
    "There is a spare key under the flower pot, next to the garden gate.",
    "They will deliver the washing machine on Friday morning, or on Monday.",
)
LOWER_IS_BETTER = ("consistency_wer",)
# Scores of one sound are compared with the clean one; these are comparisons with it already, so they start at the best.
AGAINST_CLEAN = ("prosody_fit", "emoalign_reference")


@dataclass(frozen=True)
class Clip:
    """A recording with its words."""

    name: str
    sound: Sound
    words: str


# ── clips and changes ─────────────────────────────────────────────────────────────────────────────────────────────────
def synthetic(count: int) -> list[Clip]:
    """Return sentences by the embedded voices."""
    out = []
    for i in range(count):
        words, voice = SENTENCES[i % len(SENTENCES)], VOICES[i % len(VOICES)]
        out.append(Clip(f"{voice}/{i}", levelled(espeak_voice.speak(words, voice=voice, rate_wpm=165)), words))
    return out


def people(folder: Path, count: int) -> list[Clip]:
    """Return one clip per speaker of LibriSpeech's files."""
    by_speaker = {one.speaker: one for one in corpora.read("librispeech", folder).recordings}
    chosen = [by_speaker[speaker] for speaker in sorted(by_speaker)][:count]
    if len(chosen) < count:
        raise SystemExit(f"{folder} has {len(chosen)} speakers; give --clips {len(chosen)} or fewer")
    return [Clip(one.name, levelled(read(one.path)), one.words) for one in chosen]


def levelled(sound: Sound) -> Sound:
    samples, rate = sound
    return (samples * np.float32(PEAK / np.abs(samples).max())).astype(np.float32), rate


def noisy(sound: Sound, snr_db: float) -> Sound:
    samples, rate = sound
    noise = np.random.default_rng(len(samples)).normal(0, 1, len(samples))
    return mix(samples, noise, rate, snr_db), rate


def at_rate(sound: Sound, rate: int) -> Sound:
    return resample(*sound, rate), rate


def louder(sound: Sound, db: float) -> Sound:
    return (sound[0] * np.float32(10 ** (db / 20))).astype(np.float32), sound[1]


def longer(sound: Sound) -> Sound:
    samples, rate = sound
    tail = np.random.default_rng(7).normal(0, NOISE_FLOOR, rate)
    return np.concatenate((samples, tail)).astype(np.float32), rate


def as_file(sound: Sound) -> Sound:
    """Return a sound as a reply stores it: 16-bit WAV, read back."""
    return decode(encode_wav(*sound))


CHANGES: dict[str, Callable[[Sound], Sound]] = {
    "clean": as_file,
    "noise 20 dB": lambda sound: noisy(sound, 20.0),
    "noise 0 dB": lambda sound: noisy(sound, 0.0),
    "rate 24 kHz": lambda sound: at_rate(sound, 24_000),
    "rate 48 kHz": lambda sound: at_rate(sound, 48_000),
    "level −12 dB": lambda sound: louder(sound, -12.0),
    "level +6 dB": lambda sound: louder(sound, 6.0),
    "1 s silence": longer,
}
HARMLESS = tuple(name for name in CHANGES if name not in LADDER)


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────────────
Rater = Callable[[Sequence[Clip], Sequence[Sound]], list[Values]]  # changed sounds beside their clips


def rated(predictor: Quality) -> Rater:
    """Return a rater that asks a predictor of quality."""

    def rate(clips: Sequence[Clip], sounds: Sequence[Sound]) -> list[Values]:
        heard = predictor.hear(sounds)
        if reasons := [values for values in heard if isinstance(values, str)]:
            raise SystemExit(f"{predictor.name}: {reasons[0]}")
        return [dict(values) for values in heard]  # type: ignore[arg-type]

    return rate


def prosody(clips: Sequence[Clip], sounds: Sequence[Sound]) -> list[Values]:
    """Return the expressiveness, and the fit with the unchanged clip."""
    out: list[Values] = []
    for clip, sound in zip(clips, sounds, strict=True):
        own, clean = delivery(*sound), delivery(*clip.sound)
        fits = similarities(differences(own, clean)) if own.speech else {"": 0.0}
        out.append({"expressiveness": own.expressiveness, "prosody_fit": sum(fits.values()) / len(fits)})
    return out


def emoalign(clips: Sequence[Clip], sounds: Sequence[Sound]) -> list[Values]:
    """Return 1 if the predicted emotion is that of the unchanged clip. Clips of unknown emotion are left out."""
    out: list[Values] = []
    for clip, sound in zip(clips, sounds, strict=True):
        wanted = emotion.predict(*clip.sound).label
        same = float(matches(emotion.predict(*sound).label, wanted))
        out.append({"emoalign_reference": same if wanted != emotion.UNKNOWN else None})
    return out


def consistency(clips: Sequence[Clip], sounds: Sequence[Sound]) -> list[Values]:
    """Return the word error rate of the recogniser."""
    return [
        {"consistency_wer": align(units(clip.words, "en"), units(recogniser.transcribe(*sound), "en")).rate}
        for clip, sound in zip(clips, sounds, strict=True)
    ]


Table = dict[str, dict[str, npt.NDArray[np.float64]]]  # score → change → value of each clip, NaN where there is none


def measure(clips: Sequence[Clip], raters: Sequence[Rater], changes: Sequence[str] = tuple(CHANGES)) -> Table:
    """Score every clip under every change."""
    out: Table = {}
    for change in changes:
        sounds = [CHANGES[change](clip.sound) for clip in clips]
        for rater in raters:
            rows = rater(clips, sounds)
            for score in rows[0]:
                values = [row[score] for row in rows]
                out.setdefault(score, {})[change] = np.array([np.nan if v is None else v for v in values], float)
    return out


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def in_order(score: str, by_change: Mapping[str, npt.NDArray[np.float64]]) -> float:
    """Return the share of clips whose clean, 20 dB and 0 dB values are in the right order; equal neighbours count."""
    rungs = np.stack([by_change[change] for change in LADDER])
    steps = np.diff(rungs, axis=0) * (-1 if score in LOWER_IS_BETTER else 1)
    kept = ~np.isnan(rungs).any(0)
    return float((steps[:, kept] <= 0).all(0).mean())


def ladder_row(score: str, by_change: Mapping[str, npt.NDArray[np.float64]]) -> str:
    means = [f"{np.nanmean(by_change[change]):.2f}" for change in LADDER]
    return f"| `{score}` | {' | '.join(means)} | {100 * in_order(score, by_change):.0f} % |"


def harmless_row(score: str, by_change: Mapping[str, npt.NDArray[np.float64]]) -> str:
    """Return the mean and the largest absolute difference from the clean clip, for each harmless change."""
    cells = []
    for change in HARMLESS:
        apart = by_change[change] - by_change["clean"]
        cells.append(f"{np.nanmean(apart):+.2f} (≤ {np.nanmax(np.abs(apart)):.2f})")
    return f"| `{score}` | {' | '.join(cells)} |"


def tables(title: str, found: Table) -> str:
    noise = [ladder_row(score, of) for score, of in found.items() if score != "expressiveness"]
    same = [harmless_row(score, of) for score, of in found.items()]
    return "\n".join([
        f"**{title}**: mean values, and clips whose three values are in the right order",
        "", f"| score | {' | '.join(LADDER)} | in order |", "|---|---|---|---|---|", *noise,
        "", f"**{title}**: mean difference from the clean clip (largest of a single clip)",
        "", f"| score | {' | '.join(HARMLESS)} |", f"|{'---|' * (len(HARMLESS) + 1)}", *same,
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="LibriSpeech's files")
    for name in ("nisqa", "nisqa-tts", "utmos-source", "utmos-weights"):
        parser.add_argument(f"--{name}", default="", help="your copy of the weights or code (default: left out)")
    parser.add_argument("--clips", type=int, default=12, help="clips of each kind (default: 12)")
    parser.add_argument("--write", action="store_true", help="put the tables into the documentation")
    args = parser.parse_args()
    predictors = [dnsmos.load(), distillmos.load()]
    predictors += [nisqa.load(weights=weights) for weights in (args.nisqa, args.nisqa_tts) if weights]
    if args.utmos_source:
        predictors.append(utmos.load(source=args.utmos_source, weights=args.utmos_weights))
    raters: list[Rater] = [*(rated(p) for p in predictors), prosody, emoalign, consistency]
    kinds = {"People": people(args.folder, args.clips), "Synthetic voices": synthetic(args.clips)}
    made = "\n\n".join(tables(title, measure(clips, raters)) for title, clips in kinds.items())
    for predictor in predictors:
        predictor.close()
    print(made)
    if args.write:
        text = PAGE.read_text("utf-8")
        head, tail = text.index(BEGIN) + len(BEGIN), text.index(END)
        PAGE.write_text(f"{text[:head]}{made}\n{text[tail:]}", "utf-8")


if __name__ == "__main__":
    main()
