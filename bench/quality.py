"""Whether predictors of speech quality order known degradations, and how fast they are.

    python -m bench.quality P835_FOLDER [--nisqa nisqa.tar] [--nisqa-tts nisqa_tts.tar] [--write]

The folder holds the ITU-T P.835 reference conditions as cN_SPEAKER.wav (microsoft/P.808): c0 is the clean recording, c1
to c5 have a distorted signal, c6 to c9 noise, c10 to c12 both. No table of the conditions comes with the clips. That a
higher number is a lighter degradation is taken from the sound and checked here: within each series the spectrum's
distance from c0 falls from clip to clip. `--write` puts the table into docs/reference/metrics/quality.md.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from overtone.audio import read, resample
from overtone.metrics import distillmos, dnsmos, nisqa
from overtone.metrics._quality import Quality
from overtone.stats.correlation import kendall, spearman

SERIES = {"signal": range(1, 6), "noise": range(6, 10), "both": range(10, 13)}
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics" / "quality.md"
BEGIN, END = "<!-- measured by bench/quality.py: begin -->\n", "<!-- end -->"
Sound = tuple[npt.NDArray[np.float32], int]


def distance(sound: Sound, clean: Sound) -> float:
    """The log-spectral distance from the clean recording in dB, of its loud frames, aligned and at its level."""
    a, b = (resample(x, rate, 16_000) for x, rate in (clean, sound))
    size = 1 << 18
    shift = int(np.argmax(np.abs(np.fft.irfft(np.fft.rfft(a, size).conj() * np.fft.rfft(b, size)))))
    b = np.roll(b, -(shift if shift < size // 2 else shift - size))
    n = min(len(a), len(b))
    frames = [np.lib.stride_tricks.sliding_window_view(x[:n], 512)[::160] * np.hanning(512) for x in (a, b)]
    clean_s, sound_s = (np.abs(np.fft.rfft(f, axis=1)) for f in frames)
    clean_s *= (clean_s * sound_s).sum() / np.square(clean_s).sum()
    loud = clean_s.mean(1) > 0.05 * clean_s.mean(1).max()
    apart = 20 * np.log10(np.maximum(clean_s, 1e-3) / np.maximum(sound_s, 1e-3))
    return float(np.sqrt(np.square(apart[loud]).mean(1)).mean())


def clips(folder: Path) -> dict[tuple[int, str], Sound]:
    named = ((re.fullmatch(r"c(\d+)_(\w+)", p.stem), p) for p in sorted(folder.glob("c*.wav")))
    return {(int(m[1]), m[2]): read(p) for m, p in named if m}


def check(sounds: dict[tuple[int, str], Sound]) -> None:
    """That within each series and speaker the distance from the clean recording falls as the number rises."""
    for name, numbers in SERIES.items():
        for speaker in sorted({s for _, s in sounds}):
            apart = [distance(sounds[n, speaker], sounds[0, speaker]) for n in numbers]
            print(f"{name} {speaker}: distance from c0 in dB {', '.join(f'{d:.1f}' for d in apart)}")
            if apart != sorted(apart, reverse=True):
                raise SystemExit(f"{name} {speaker}: the clips are not in the order taken for granted")


def rows(metric: Quality, sounds: dict[tuple[int, str], Sound]) -> list[str]:
    metric.open()
    metric.hear([next(iter(sounds.values()))])  # the first call warms up
    start = time.perf_counter()
    heard = dict(zip(sounds, metric.hear(list(sounds.values())), strict=True))
    factor = (time.perf_counter() - start) / sum(len(x) / rate for x, rate in sounds.values())
    metric.close()
    out = []
    for name in metric.names:
        cells = []
        for numbers in SERIES.values():
            found = []
            for speaker in sorted({s for _, s in sounds}):
                values = [float(heard[n, speaker][name]) for n in numbers]  # type: ignore[index]
                found.append((kendall(list(numbers), values), spearman(list(numbers), values)))
            cells.append(" / ".join(f"{k:+.2f} {s:+.2f}" for k, s in found))
        out.append(f"| {name} | {' | '.join(cells)} | {factor:.2f} |")
        print(out[-1], flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nisqa", default="")
    parser.add_argument("--nisqa-tts", default="")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    sounds = clips(args.folder)
    check(sounds)
    metrics = [dnsmos.load(), distillmos.load(), *(nisqa.load(weights=w) for w in (args.nisqa, args.nisqa_tts) if w)]
    speakers = " / ".join(sorted({s for _, s in sounds}))
    table = [
        f"| score | signal c1–c5 ({speakers}) | noise c6–c9 | both c10–c12 | time ÷ audio |",
        "|---|---|---|---|---|",
        *(row for metric in metrics for row in rows(metric, sounds)),
    ]
    if args.write:
        text = PAGE.read_text("utf-8")
        head, tail = text.index(BEGIN) + len(BEGIN), text.index(END)
        PAGE.write_text(text[:head] + "\n".join(table) + "\n" + text[tail:], "utf-8")


if __name__ == "__main__":
    main()
