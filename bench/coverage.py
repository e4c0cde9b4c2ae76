"""How often the 95 % intervals of means corrected by labels hold the truth, by simulation; the table in calibration.md.

`python -m bench.coverage` prints it, `--write` puts it into the page, `--replicates N` makes it quicker. Human scores
from 1 to 5 are cut from a normal variable shared in part within a cluster; the truth is known exactly. Fails where
coverage with 200 labelled clusters or more is below 94 %.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from overtone.stats import ppi
from overtone.stats.cluster import student_quantile

Array = npt.NDArray[np.float32]

CUTS = (-1.2, -0.5, 0.3, 1.1)
TRUTH = 1 + sum(1 - NormalDist().cdf(cut) for cut in CUTS)
LABELLED = (20, 50, 100, 200, 400)
REQUIRED, FROM = 0.94, 200
PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "calibration.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


@dataclass(frozen=True)
class Setting:
    """One population: what the judge is like, how alike rows of a cluster are, how large clusters are."""

    judge: str
    alike: float  # correlation of rows of the same cluster
    most: int = 3  # rows in a cluster: 1 to this, all equally likely
    rows: int = 2000
    partly: bool = False  # label only the first row of each labelled cluster


@dataclass
class Found:
    hits: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    human_widths: list[float] = field(default_factory=list)


JUDGES = {
    "perfect": "gives the human score",
    "rare slips": "2 % of its scores are one too low",
    "rare blunders": "2 % of its scores are 1, regardless of the reply",
    "biased": "close, but far too generous",
    "noisy": "correlated 0.6 before rounding",
    "moody": "makes the same error on all rows of a cluster",
    "nearly constant": "gives 5 to 95 %",
    "useless": "unrelated to the human score",
    "contrary": "scores better replies lower",
}
SETTINGS = [
    *(Setting(judge, alike) for judge in JUDGES for alike in (0.0, 0.5)),
    Setting("biased", 0.2, most=1),
    Setting("moody", 0.5, partly=True),
    Setting("rare slips", 0.0, rows=16_000),
    Setting("rare blunders", 0.0, rows=16_000),
]


def scores(latent: Array) -> Array:
    """1 to 5."""
    found = np.ones(latent.shape, dtype=np.float32)
    for cut in CUTS:
        found += latent > cut
    return found


def draw(rng: np.random.Generator, setting: Setting, replicates: int, clusters: int) -> tuple[Array, Array, Array]:
    """Human scores, judge's scores and which places of a cluster are rows: (replicates, clusters, places)."""

    def normal(places: int = setting.most) -> Array:
        return rng.standard_normal((replicates, clusters, places), dtype=np.float32)

    latent = math.sqrt(setting.alike) * normal(1) + math.sqrt(1 - setting.alike) * normal()
    human = scores(latent)
    there = np.arange(setting.most) < rng.integers(1, setting.most + 1, (replicates, clusters, 1), dtype=np.int8)
    slips = rng.random(human.shape, dtype=np.float32) < 0.02 if setting.judge.startswith("rare") else np.empty(0)
    match setting.judge:
        case "perfect":
            judge = human
        case "rare slips":
            judge = np.where(slips, np.maximum(human - 1, 1), human)
        case "rare blunders":
            judge = np.where(slips, np.float32(1), human)
        case "biased":
            judge = scores(latent + 0.8 + 0.3 * normal())
        case "noisy":
            judge = scores(0.6 * latent + 0.8 * normal())
        case "moody":
            judge = scores(0.8 * latent + 0.6 * normal(1))
        case "nearly constant":
            judge = np.where(latent > -1.645, np.float32(5), np.float32(4))
        case "useless":
            judge = scores(normal())
        case "contrary":
            judge = scores(-latent)
        case other:
            raise ValueError(f"no judge is called {other!r}")
    return human, judge, there.astype(np.float32)


def totals(human: Array, judge: Array, there: Array, labelled: int, partly: bool) -> ppi.Totals:
    known = there.copy()
    known[:, labelled:] = 0
    if partly:
        known[:, :, 1:] = 0

    def per_cluster(x: Array) -> npt.NDArray[np.float64]:
        return np.asarray(x.sum(-1), dtype=np.float64)

    return ppi.Totals(
        per_cluster(there),
        per_cluster(judge * there),
        per_cluster(known),
        per_cluster(judge * known),
        per_cluster(human * known),
    )


def measure(setting: Setting, replicates: int, seed: int = 0, labelled: tuple[int, ...] = LABELLED) -> dict[int, Found]:
    """For each number of labelled clusters: how often the truth was held, and how wide the intervals were."""
    clusters = round(setting.rows * 2 / (setting.most + 1))
    block = max(1, 1_000_000 // (clusters * setting.most))
    rng = np.random.default_rng(seed)
    found = {count: Found() for count in labelled}
    for start in range(0, replicates, block):
        human, judge, there = draw(rng, setting, min(block, replicates - start), clusters)
        for count, at in found.items():
            sums = totals(human, judge, there, count, setting.partly)
            value, error, _ = ppi.solve(sums, step=1.0)
            half = student_quantile(0.975, count - 1) * error
            at.hits.extend((np.abs(value - TRUTH) <= half).tolist())
            at.widths.extend((2 * half).tolist())
            at.human_widths.extend(human_width(sums, count).tolist())
    return found


def human_width(sums: ppi.Totals, count: int) -> npt.NDArray[np.float64]:
    """The width of the interval of the labels alone, as `cluster.mean` gives it."""
    rows = sums.labelled.sum(-1, keepdims=True)
    pull = (sums.human - sums.labelled * sums.human.sum(-1, keepdims=True) / rows) / rows
    error = np.sqrt(count / (count - 1) * (pull**2).sum(-1))
    return np.asarray(2 * student_quantile(0.975, count - 1) * error)


def name(setting: Setting) -> str:
    more = [f"correlation {setting.alike:g}"]
    if setting.most == 1:
        more.append("one row each")
    if setting.rows != 2000:
        more.append(f"{setting.rows:,} rows")
    if setting.partly:
        more.append("one row labelled per cluster")
    return f"{setting.judge}; {', '.join(more)}"


def table(replicates: int) -> tuple[str, list[str]]:
    """The Markdown table, and what fell short of the requirement."""
    lines = [
        "| judge | " + " | ".join(str(count) for count in LABELLED) + " |",
        "|---|" + "---|" * len(LABELLED),
    ]
    short = []
    for setting in SETTINGS:
        start = time.perf_counter()
        found = measure(setting, replicates)
        cells = []
        for count, at in found.items():
            covered = float(np.mean(at.hits))
            ratio = float(np.mean(at.widths)) / float(np.mean(at.human_widths))
            cells.append(f"{100 * covered:.1f} % (×{ratio:.2f})")
            if count >= FROM and covered < REQUIRED:
                short.append(f"{name(setting)}: {100 * covered:.2f} % with {count} labelled clusters")
        lines.append(f"| {name(setting)} | " + " | ".join(cells) + " |")
        print(f"{name(setting)}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    return "\n".join(lines), short


def legend() -> str:
    """What the judges of the table are like, as Markdown."""
    return "The judges:\n" + "\n".join(f"- *{judge}*: {what}" for judge, what in JUDGES.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help="put the table into docs/how-to/calibration.md")
    args = parser.parse_args()
    text, short = table(args.replicates)
    print(text)
    if args.write:
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{legend()}\n{END}{after}")
    if short:
        sys.exit("coverage below 94 %:\n" + "\n".join(short))


if __name__ == "__main__":
    main()
