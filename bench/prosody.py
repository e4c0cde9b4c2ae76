"""How far the metric of the delivery sees acted emotion, on RAVDESS: `python -m bench.prosody DIR [--write]`.

DIR holds labels.csv (file, actor, gender, emotion, intensity, text) and its recordings. The measure was chosen on the
actors with odd numbers, who are men; what is reported is of those with even ones, who are women. Shares are of pairs
that an actor spoke with the same words, ties half; intervals by drawing actors anew. `--write` puts the tables into
docs/reference/metrics/prosody.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from overtone.audio import read
from overtone.metrics.prosody import FLAT, Delivery, delivery, differences, similarities
from overtone.stats.bootstrap import clustered

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics" / "prosody.md"
BEGIN, END = "<!-- measured by bench/prosody.py -->", "<!-- end -->"
Clip = tuple[dict[str, str], Delivery]
Pair = tuple[Clip, Clip]  # the second should be the higher
MEASURES: dict[str, Callable[[Delivery], float]] = {
    "expressiveness": lambda d: d.expressiveness or 0.0,
    "pitch spread alone (semitones)": lambda d: d.f0_sd_st or 0.0,
    "pitch speed alone": lambda d: d.f0_speed_st or 0.0,
    "level alone": lambda d: d.modulation or 0.0,
    "rhythm alone": lambda d: d.rhythm or 0.0,
}


def clips(folder: Path) -> list[Clip]:
    with (folder / "labels.csv").open(newline="") as file:
        return [(row, delivery(*read(folder / row["file"]))) for row in csv.DictReader(file)]


def pairs(found: Sequence[Clip]) -> tuple[list[Pair], list[Pair]]:
    """(normal, strong) of one emotion, and (neutral, another emotion), of one actor with one sentence."""
    at = {(r["actor"], r["text"], r["emotion"], r["intensity"]): (r, d) for r, d in found}
    strength, emotion = [], []
    for (actor, text, name, intensity), clip in at.items():
        if intensity == "strong":
            strength.append((at[actor, text, name, "normal"], clip))
        if name != "neutral":
            emotion.append((at[actor, text, "neutral", "normal"], clip))
    return strength, emotion


def even(pair: Pair) -> bool:
    return int(pair[0][0]["actor"]) % 2 == 0


def share(some: Iterable[Pair], measure: Callable[[Delivery], float]) -> str:
    """In how many of the pairs the second is the higher, in percent, with its interval."""
    rows = [(0.5 + 0.5 * float(np.sign(measure(b[1]) - measure(a[1]))), a[0]["actor"]) for a, b in some]
    values = np.array([value for value, _ in rows])
    found = clustered(lambda at: float(values[at].mean()), [actor for _, actor in rows], seed=1)
    return f"{100 * found.value:.0f} ({100 * found.low:.0f}–{100 * found.high:.0f})"


def fit(a: Delivery, b: Delivery) -> float:
    return float(np.mean(list(similarities(differences(a, b)).values())))


def fits(found: Sequence[Clip], other_sex: bool) -> tuple[float, float, float]:
    """Mean fit to the same emotion and to another, and how often the same fits better, in percent.

    Of one actor's two sentences, or of a man and a woman with the same sentence.
    """
    same, other, right = [], [], []
    for row, one in found:
        near: dict[bool, list[float]] = {True: [], False: []}
        for with_row, two in found:
            if other_sex:
                belongs = with_row["gender"] != row["gender"] and with_row["text"] == row["text"]
            else:
                belongs = with_row["actor"] == row["actor"] and with_row["text"] != row["text"]
            if belongs and with_row["intensity"] == row["intensity"]:
                near[with_row["emotion"] == row["emotion"]].append(fit(one, two))
        if near[True] and near[False]:
            same.append(np.mean(near[True]))
            other.append(np.mean(near[False]))
            right += [0.5 + 0.5 * float(np.sign(np.mean(near[True]) - x)) for x in near[False]]
    return float(np.mean(same)), float(np.mean(other)), 100 * float(np.mean(right))


def report(found: Sequence[Clip]) -> str:
    strength, emotion = pairs(found)
    halves = [[p for p in some if even(p) is half] for some in (strength, emotion) for half in (False, True)]
    lines = [
        "Percent of pairs ranked right (50 is chance), with a 95 % interval by actor:",
        "",
        "| measure | strong above normal: chosen on | reported on | emotion above neutral: chosen on | reported on |",
        "|---|---|---|---|---|",
        *(f"| {name} | {' | '.join(share(half, m) for half in halves)} |" for name, m in MEASURES.items()),
        "",
        "Expressiveness by emotion, on the actors reported on:",
        "",
        "| emotion | strong above normal | above neutral |",
        "|---|---|---|",
    ]
    for name in sorted({b[0]["emotion"] for _, b in strength}):
        cells = [
            share([p for p in half if p[1][0]["emotion"] == name], MEASURES["expressiveness"]) for half in halves[1::2]
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    values = np.array([d.expressiveness or 0.0 for _, d in found])
    quarters = np.percentile(values, (5, 50, 95))
    flat = int((values < FLAT).sum())
    own, cross = fits(found, other_sex=False), fits(found, other_sex=True)
    lines += [
        "",
        f"The middle 90 % of all {len(found)} recordings have an expressiveness from {quarters[0]:.2f} to "
        f"{quarters[2]:.2f}, with a median of {quarters[1]:.2f}. Flat (below {FLAT:g}): {flat}.",
        "",
        f"`prosody_fit` of an actor's other sentence is {own[0]:.2f} in the same emotion and {own[1]:.2f} in another "
        f"(ranked right in {own[2]:.0f} % of pairs). For a man and a woman with the same sentence it is {cross[0]:.2f} "
        f"and {cross[1]:.2f} ({cross[2]:.0f} %).",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/reference/metrics/prosody.md")
    args = parser.parse_args()
    text = report(clips(args.folder))
    print(text)
    if args.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
