"""Measure the accuracy of the embedded emotion predictor on real actors: RAVDESS, which it was not trained on.

    python -m bench.emotion DIR [--write]

DIR is RAVDESS's folder with a labels.csv (file, actor, emotion, intensity). The odd actors, the men, helped to set the
recipes of the deliveries that the predictor was trained on, and to choose its size. The even ones, the women, are the
test set. Calm counts as neutral. `--write` puts the table into docs/explanation/emotion-predictor.md.
"""

from __future__ import annotations

import argparse
import csv
import re
from pathlib import Path

import numpy as np

from overtone import audio
from overtone.embedded import emotion
from overtone.stats import bootstrap, cluster

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "emotion-predictor.md"
OURS = {
    "neutral": "neutral", "calm": "neutral", "happy": "happy", "sad": "sad", "angry": "angry", "fear": "fearful",
    "disgust": "disgusted", "surprise": "surprised",
}  # fmt: skip
DRAWS = 2000


def heard(folder: Path) -> list[tuple[str, int, str, str, str]]:
    """Per clip: true emotion, actor, the likeliest of the six that are not neutral, the likeliest of all, and
    the label given, which may be unknown."""
    out = []
    with (folder / "labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found = emotion.predict(*audio.read(folder / row["file"]))
            best = max(found.probabilities, key=found.probabilities.__getitem__, default=emotion.UNKNOWN)
            six = {name: p for name, p in found.probabilities.items() if name != "neutral"}
            felt = max(six, key=six.__getitem__, default=emotion.UNKNOWN)
            out.append((OURS[row["emotion"]], int(row["actor"]), felt, best, found.label))
    return out


def table(rows: list[tuple[str, int, str, str, str]]) -> str:
    truth, best, given = (np.array([row[k] for row in rows]) for k in (0, 3, 4))
    actors = [row[1] for row in rows]
    codes = np.array([emotion.LABELS.index(t) for t in truth])

    def uar(right: np.ndarray, at: np.ndarray) -> float:
        hits = np.bincount(codes[at], weights=right[at], minlength=len(emotion.LABELS))
        return float(np.mean(hits / np.maximum(np.bincount(codes[at], minlength=len(emotion.LABELS)), 1)))

    lines = [
        "| emotion | clips | recall | " + " | ".join(f"heard {n}" for n in emotion.LABELS) + " | labelled unknown |"
    ]
    lines.append("|---" * (4 + len(emotion.LABELS)) + "|")
    for label in emotion.LABELS:
        mine = truth == label
        found = cluster.proportion(
            (best[mine] == label).astype(float), [a for a, m in zip(actors, mine, strict=True) if m]
        )
        counts = " | ".join(str(int((best[mine] == other).sum())) for other in emotion.LABELS)
        unknown = np.mean(given[mine] == emotion.UNKNOWN)
        lines.append(f"| {label} | {mine.sum()} | {_cell(found)} | {counts} | {unknown:.2f} |")
    whole = [
        bootstrap.clustered(lambda at, r=right: uar(r, at), actors, seed=1, draws=DRAWS)
        for right in ((best == truth).astype(float), (given == truth).astype(float))
    ]
    unknown = cluster.proportion((given == emotion.UNKNOWN).astype(float), actors)
    some = [(row[0] == row[2], row[1]) for row in rows if row[0] != "neutral"]
    six = cluster.proportion([float(hit) for hit, _ in some], [actor for _, actor in some])
    lines.append("")
    lines.append(
        f"Mean recall (UAR): {_cell(whole[0])}, chance {1 / len(emotion.LABELS):.2f}. Counting unknown as wrong: "
        f"{_cell(whole[1])}; labelled unknown {_cell(unknown)}. {len(rows)} clips, {len(set(actors))} actors. "
        f"Choosing among the six emotions on non-neutral clips: {_cell(six)}, chance 0.17."
    )
    return "\n".join(lines)


def _cell(found: cluster.Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="put the table into the model's page")
    args = parser.parse_args()
    rows = heard(args.folder)
    parts = {
        "Even-numbered actors (held out)": [row for row in rows if row[1] % 2 == 0],
        "Odd-numbered actors (used to set recipes and make choices)": [row for row in rows if row[1] % 2],
    }
    text = "\n\n".join(f"**{name}**\n\n{table(some)}" for name, some in parts.items())
    print(f"{emotion.identity()}\n\n{text}")
    if args.write:
        marks = r"(?<=<!-- bench.emotion -->\n)[\s\S]*(?=<!-- end -->)"
        PAGE.write_text(re.sub(marks, lambda _: f"{text}\n", PAGE.read_text("utf-8"), count=1), "utf-8")


if __name__ == "__main__":
    main()
