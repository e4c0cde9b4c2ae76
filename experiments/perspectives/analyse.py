"""Read the study's results, also partial ones, and print each outcome per arm and the contrasts with the treatment.

    python -m experiments.perspectives.analyse --data DIR [--results DIR] [--treatment both]

All contrasts are paired by item and by seed. The variance of an estimate has two parts: that of the items, clustered by
document, dialogue or script (from influence values), and that of the seeds, a random effect. The degrees of freedom
follow Satterthwaite. On the split `document` each seed has a fold of its own, so the spread over the folds has both.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overtone.stats.beta import student_cdf
from overtone.stats.cluster import student_quantile
from overtone.stats.multiplicity import holm

from . import store
from .design import DIMENSIONS, PERSPECTIVES, PROMPTS, Array, Data, Job, Study

MOST_SEEDS = 100


@dataclass(frozen=True)
class Cell:
    """One arm's statistic on one group of items (a genre, a fold) and seed, with the items' influence on it."""

    value: float
    influence: Array  # (n,), sums to zero
    clusters: list[str]


@dataclass(frozen=True)
class Outcome:
    """A named statistic: how it is read from a result, and on which jobs."""

    name: str
    split: str
    grouped: bool  # the part held out is a group with items of its own
    cell: Callable[[dict[str, Array], Job], Cell]
    arms: Callable[[str], bool] = lambda arm: True
    margin: float = 0.0
    tuned: bool = False


@dataclass(frozen=True)
class Estimate:
    """A mean over groups and seeds with its standard error."""

    value: float
    error: float
    df: float
    seeds: int
    seed_variance: float  # the part of error² that more seeds would lower
    cells: int

    def interval(self, level: float) -> tuple[float, float]:
        width = student_quantile((1 + level) / 2, max(1, int(self.df))) * self.error
        return self.value - width, self.value + width

    @property
    def p(self) -> float:
        return 2 * student_cdf(-abs(self.value / self.error), self.df) if self.error > 0 else math.nan


# ── statistics ────────────────────────────────────────────────────────────────────────────────────────────────────────
def pearson(x: Array, y: Array) -> tuple[float, Array]:
    """Return r and each item's influence on it."""
    zx, zy = ((v - v.mean()) / (v.std() or 1.0) for v in (np.asarray(x, float), np.asarray(y, float)))
    r = float((zx * zy).mean())
    return r, zx * zy - r * (zx**2 + zy**2) / 2


def estimate(cells: dict[tuple[str, int], Cell]) -> Estimate:
    """Average cells, (group, seed) → cell, over the seeds of each group and then over the groups."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for (group, _), cell in sorted(cells.items()):
        groups[group].append(cell)
    count = len(groups)
    means = [float(np.mean([cell.value for cell in members])) for members in groups.values()]
    value = float(np.mean(means))
    fewest = min(len(members) for members in groups.values())
    seeds = len({seed for _, seed in cells})
    if fewest == 1 and count > 1:
        error = float(np.std(means, ddof=1)) / math.sqrt(count)
        return Estimate(value, error, count - 1, seeds, error**2, len(cells))
    parts: list[tuple[float, float]] = []  # variance, degrees of freedom
    of_seeds = 0.0
    for members in groups.values():
        parts.append(item_variance(members))
        if len(members) > 1:
            variance = float(np.var([cell.value for cell in members], ddof=1)) / len(members)
            parts.append((variance, len(members) - 1))
            of_seeds += variance / count**2
    total = sum(variance for variance, _ in parts)
    spent = sum(variance**2 / df for variance, df in parts)
    df = total**2 / spent if spent else math.inf
    return Estimate(value, math.sqrt(total) / count, min(df, 1e6), seeds, of_seeds, len(cells))


def item_variance(members: Sequence[Cell]) -> tuple[float, float]:
    """Return the clustered variance of the mean over seeds that the choice of items causes, and its freedom."""
    influence = np.mean([cell.influence for cell in members], axis=0)
    _, at = np.unique(members[0].clusters, return_inverse=True)
    sums = np.bincount(at, weights=influence) / len(influence)
    many = len(sums)
    return (float((sums**2).sum()) * many / (many - 1), many - 1) if many > 1 else (0.0, 1.0)


def difference(a: dict[tuple[str, int], Cell], b: dict[tuple[str, int], Cell]) -> dict[tuple[str, int], Cell]:
    """Return a − b on the cells that both have."""
    return {
        at: Cell(a[at].value - b[at].value, a[at].influence - b[at].influence, a[at].clusters)
        for at in a.keys() & b.keys()
    }


def verdict(e: Estimate, p: float, margin: float, tests: dict[str, Any]) -> str:
    """Say what an estimate decides: improves, worsens, equivalent within the margin, or undecided."""
    if e.seeds < 2:
        return "undecided with one seed"
    if p < tests["alpha"]:
        return "improves" if e.value > 0 else "worsens"
    low, high = e.interval(tests["equivalence"])
    if margin and -margin < low and high < margin:
        return f"equivalent within ±{margin:g}"
    return f"undecided with {e.seeds} seeds; {_more_seeds(e, margin)}"


def _more_seeds(e: Estimate, margin: float) -> str:
    items = max(0.0, e.error**2 - e.seed_variance)
    for n in range(e.seeds + 1, MOST_SEEDS + 1):
        error = math.sqrt(items + e.seed_variance * e.seeds / n)
        if abs(e.value) + 1.7 * error < margin or abs(e.value) > 2.5 * error:
            return f"about {n - e.seeds} more would decide, if the estimate stays"
    return "more seeds alone would not decide"


# ── outcomes ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Reader:
    """Turns a job's stored predictions into cells."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.clusters = np.array(data.bank.clusters)

    def emobank(self, dimension: str, what: str) -> Callable[[dict[str, Array], Job], Cell]:
        """`what` is r (the mean over perspectives), reader, writer, combined or gap."""
        d = DIMENSIONS.index(dimension)

        def cell(arrays: dict[str, Array], job: Job) -> Cell:
            _, rows = self.data.bank.rows(job)
            truth = np.stack([self.data.bank.means[who][rows, d] for who in PERSPECTIVES], 1)
            rated = arrays["emobank"][:, :, d]
            rated = rated if len(rated) == len(rows) else rated[rows]  # the base model rated all rows
            if what == "gap":
                pairs = [(rated[:, 0] - rated[:, 1], truth[:, 0] - truth[:, 1])]
            elif what == "combined":
                pairs = [(rated.mean(1), truth.mean(1))]
            else:
                chosen = [i for i, who in enumerate(PERSPECTIVES) if what in ("r", who)]
                pairs = [(rated[:, i], truth[:, i]) for i in chosen]
            found = [pearson(*pair) for pair in pairs]
            influence = np.mean([influence for _, influence in found], axis=0)
            return Cell(float(np.mean([r for r, _ in found])), influence, self.clusters[rows].tolist())

        return cell

    def choice(
        self, name: str, condition: str, scoring: str, level: int = 0
    ) -> Callable[[dict[str, Array], Job], Cell]:
        """`scoring` is one of `design.SCORINGS`; level 0 means all questions."""
        questions = self.data.questions["dream" if name == "tuned" else name]
        keep = [i for i, about in enumerate(questions.about) if not level or about["level"] == level]
        gold = np.array(questions.gold)

        def cell(arrays: dict[str, Array], job: Job) -> Cell:
            right = (questions.chosen(arrays, name, condition, scoring) == gold)[keep].astype(float)
            return Cell(float(right.mean()), right - right.mean(), [str(questions.about[i]["cluster"]) for i in keep])

        return cell


def perplexity(arrays: dict[str, Array], job: Job) -> Cell:
    values = arrays["perplexity"].astype(float)
    return Cell(float(values.mean()), values - values.mean(), [str(i) for i in range(len(values))])


def catalogue(data: Data, tests: dict[str, Any]) -> Iterator[Outcome]:
    """Yield all outcomes, the primary ones first."""
    reader = Reader(data)
    r, of_open, of_dream = tests["margin_r"], tests["margin_open"], tests["margin_dream"]
    for split in ("genre", "document", "official"):
        for d in DIMENSIONS:
            yield Outcome(f"{split} {d}", split, split != "official", reader.emobank(d, "r"), margin=r)
            for what in ("reader", "writer", "combined"):
                yield Outcome(f"{split} {d} {what}", split, split != "official", reader.emobank(d, what), margin=r)
            if d != "A":  # the gap of arousal has no reliability
                yield Outcome(f"{split} {d} gap", split, split != "official", reader.emobank(d, "gap"), two_prompts)
    for split in ("document", "official"):
        of = "" if split == "document" else " official"
        for condition in ("told", "words", "heard"):
            yield Outcome(
                f"open {condition}{of}", split, False, reader.choice("open", condition, "less", 2), margin=of_open
            )
            for scoring in ("sum", "mean"):
                cell = reader.choice("open", condition, scoring, 2)
                yield Outcome(f"open {condition} {scoring}{of}", split, False, cell, margin=of_open)
            cell = reader.choice("open", condition, "less", 1)
            yield Outcome(f"open level 1 {condition}{of}", split, False, cell, margin=of_open)
        for scoring in ("sum", "mean", "less"):
            cell = reader.choice("dream", "words", scoring)
            yield Outcome(f"dream {scoring}{of}", split, False, cell, margin=of_dream)
        yield Outcome(f"nats per token{of}", split, False, perplexity)
    yield Outcome("dream tuned", "document", False, reader.choice("tuned", "words", "sum"), margin=of_dream, tuned=True)


def two_prompts(arm: str) -> bool:
    return len(set(PROMPTS[arm])) == 2


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def cells(results: dict[Job, dict[str, Array]], outcome: Outcome) -> dict[str, dict[tuple[str, int], Cell]]:
    """Return arm → (group, seed) → cell. The base model is read where its items are those of the outcome."""
    out: dict[str, dict[tuple[str, int], Cell]] = defaultdict(dict)
    for job, arrays in results.items():
        if not outcome.arms(job.arm) or job.tuned != outcome.tuned:
            continue
        if job.arm == "base" and not job.tuned:
            for at, one in _base(results, outcome, arrays):
                out["base"][at] = one
        elif job.split == outcome.split:
            out[job.arm][job.part if outcome.grouped else "", job.seed] = outcome.cell(arrays, job)
    return out


def _base(
    results: dict[Job, dict[str, Array]], outcome: Outcome, arrays: dict[str, Array]
) -> Iterator[tuple[tuple[str, int], Cell]]:
    """Give the base model, which ran once, a cell for every cell of the other arms."""
    for job in results:
        if job.split == outcome.split and job.arm != "base" and not job.tuned:
            yield (job.part if outcome.grouped else "", job.seed), outcome.cell(arrays, job)


def table(results: dict[Job, dict[str, Array]], outcome: Outcome, treatment: str, tests: dict[str, Any]) -> list[str]:
    """Return an outcome's lines: one per arm, with the treatment's difference to it."""
    found = cells(results, outcome)
    if treatment not in found:
        return []
    lines = [f"\n{outcome.name}", f"  {'arm':9} {'value':>7}  95 %               cells  {treatment} − arm"]
    for arm, own in sorted(found.items(), key=lambda entry: (entry[0] != treatment, entry[0])):
        e = estimate(own)
        low, high = e.interval(0.95)
        line = f"  {arm:9} {e.value:7.4f}  [{low:.4f}, {high:.4f}]  {e.cells:4d}"
        if arm != treatment and (both := difference(found[treatment], own)):
            d = estimate(both)
            low, high = d.interval(0.95)
            line += f"   {d.value:+.4f} [{low:+.4f}, {high:+.4f}] p {d.p:.3f}"
            line += f", {verdict(d, d.p, outcome.margin, tests)}" if arm != "base" else ""
        lines.append(line)
    return lines


def primary(results: dict[Job, dict[str, Array]], outcomes: dict[str, Outcome], study: Study) -> list[str]:
    """Return the primary family's lines, Holm-corrected over those that have data."""
    tests = study.settings["tests"]
    rows = []
    for wanted in study.settings["primary"]:
        outcome = outcomes[wanted["outcome"]]
        found = cells(results, outcome)
        both = difference(found[wanted["treatment"]], found[wanted["control"]])
        if both:
            rows.append((f"{wanted['outcome']}: {wanted['treatment']} − {wanted['control']}", outcome, estimate(both)))
    corrected = holm([e.p for _, _, e in rows]) if rows else []
    lines = [f"primary family ({len(rows)} of {len(study.settings['primary'])} tests have data)"]
    for (name, outcome, e), p in zip(rows, corrected, strict=True):
        low, high = e.interval(0.95)
        said = verdict(e, float(p), outcome.margin, tests)
        lines.append(f"  {name}: {e.value:+.4f} [{low:+.4f}, {high:+.4f}], Holm p {p:.3f}, {e.cells} cells: {said}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the study's outcomes.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz")
    parser.add_argument("--results", type=Path, default=store.RESULTS, help="folder (default: this study's)")
    parser.add_argument("--treatment", default="both", help="arm that the others are compared with (default: both)")
    parser.add_argument("--small", action="store_true", help="results of run.py --small")
    args = parser.parse_args()
    study, data = Study.read(), Data.read(args.data)
    if args.small:
        from .run import smaller  # needs torch

        study, data = smaller(study, data)
    results = {job: result.arrays for job, result in store.read(args.results, study, data).items()}
    outcomes = {outcome.name: outcome for outcome in catalogue(data, study.settings["tests"])}
    planned = sum(map(len, study.jobs(sorted(set(data.bank.genres)))))
    print(f"{len(results)} of {planned} jobs, study.toml {study.sha256[:12]}")
    print("\n".join(primary(results, outcomes, study)))
    for outcome in outcomes.values():
        if lines := table(results, outcome, args.treatment, study.settings["tests"]):
            print("\n".join(lines))


if __name__ == "__main__":
    main()
