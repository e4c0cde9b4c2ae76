"""What the realness measurement's parts share: a row of features, the files of a labelled folder, the classifier."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overtone.embedded import hearing
from overtone.stats import cluster
from overtone.stats.cluster import Interval

Row = tuple[str, str, list[float]]  # class, cluster (speaker, recording, voice), features
File = tuple[Path, str, str]  # sound, class, cluster
FOLDS = 6
SHRINK = 0.15  # of the pooled covariance towards its diagonal; fixed once, never tuned on sounds of ours
HEAD = "| family | class | chance | real → real | real → ours | ours → real |\n|---|---|---|---|---|---|"


def measured(samples: np.ndarray, rate: int) -> list[float]:
    """The ear's measures, at one peak level: how loud a recording was says nothing."""
    peak = float(np.abs(samples).max()) or 1.0
    return hearing.features((samples / peak * 0.5).astype(np.float32), rate).tolist()


def listed(folder: Path, label: Callable[[dict[str, str]], str], who: str) -> list[File]:
    """The files of a folder with a labels.csv whose label is not empty."""
    with (folder / "labels.csv").open(newline="") as file:
        rows = [(folder / row["file"], label(row), row[who]) for row in csv.DictReader(file)]
    return [row for row in rows if row[1]]


@dataclass(frozen=True)
class Table:
    """Rows as arrays: their classes, their clusters, and their features, standardised over these rows."""

    labels: np.ndarray
    who: np.ndarray
    z: np.ndarray

    def some(self, keep: np.ndarray) -> Table:
        return Table(self.labels[keep], self.who[keep], self.z[keep])


def standard(rows: list[Row]) -> Table:
    """Each measure against these rows' own mean and spread: what a microphone or an engine does to all is taken out."""
    labels, who, x = _columns(rows)
    return Table(labels, who, _bounded((x - np.nanmean(x, 0)) / _spread(x)))


def changes(rows: list[Row], like: list[Row]) -> Table:
    """Rows that are differences from the speaker's neutral clip, in units of `like`'s spread; 0 stays 0."""
    labels, who, x = _columns(rows)
    return Table(labels, who, _bounded(x / _spread(_columns(like)[2])))


def _columns(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows])


def _spread(x: np.ndarray) -> np.ndarray:
    spread = np.nanstd(x, 0)
    return np.where(spread > 1e-9, spread, 1.0)


def _bounded(z: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(z), -4, 4)


def told(train: Table, test: np.ndarray, shrink: float = SHRINK) -> np.ndarray:
    """What a linear discriminant fitted to `train` says of `test`: equal priors, one pooled covariance."""
    classes = sorted(set(train.labels.tolist()))
    means = np.stack([train.z[train.labels == c].mean(0) for c in classes])
    within = train.z - means[[classes.index(c) for c in train.labels]]
    pooled = within.T @ within / max(len(train.z) - len(classes), 1)
    pooled = (1 - shrink) * pooled + shrink * np.diag(np.diag(pooled)) + 1e-3 * np.eye(len(pooled))
    weights = np.linalg.solve(pooled, means.T).T
    scores = test @ weights.T - 0.5 * (weights * means).sum(1)
    return np.array(classes)[scores.argmax(1)]


def left_out(rows: Table, folds: int = FOLDS, shrink: float = SHRINK) -> np.ndarray:
    """What is said of each row by a classifier that has not heard its cluster."""
    out = np.empty_like(rows.labels)
    groups = {name: i % folds for i, name in enumerate(sorted(set(rows.who.tolist())))}
    fold = np.array([groups[name] for name in rows.who.tolist()])
    for k in range(folds):
        if (fold == k).any():
            out[fold == k] = told(rows.some(fold != k), rows.z[fold == k], shrink)
    return out


@dataclass(frozen=True)
class Found:
    """One class of one family: its recall in the three directions."""

    family: str
    slug: str
    chance: float
    real_real: Interval
    real_ours: Interval
    ours_real: Interval

    def line(self) -> str:
        cells = (self.cell(i) for i in (self.real_real, self.real_ours, self.ours_real))
        return f"| {self.family} | {self.slug} | {self.chance:.2f} | " + " | ".join(cells) + " |"

    def cell(self, i: Interval) -> str:
        return f"{i.value:.2f} [{i.low:.2f}, {i.high:.2f}] n {i.rows}{' *' if i.low > self.chance else ''}"


def compared(
    family: str, real: list[Row], ours: list[Row], *, relative: bool = False, shrink: float = SHRINK
) -> list[Found]:
    """Every class that both sides have, and all together. `relative` rows are differences from a neutral clip."""
    if relative:
        a, b, a_for_b = changes(real, real), changes(ours, real), changes(real, ours)
        guesses = (
            (a, left_out(a, shrink=shrink)),
            (b, told(a, b.z, shrink)),
            (a, told(changes(ours, ours), a_for_b.z, shrink)),
        )
    else:
        a, b = standard(real), standard(ours)
        guesses = ((a, left_out(a, shrink=shrink)), (b, told(a, b.z, shrink)), (a, told(b, a.z, shrink)))
    classes = sorted(set(a.labels.tolist()) & set(b.labels.tolist()))
    out = []
    for slug in (*classes, "all"):
        cells = []
        for table, guess in guesses:
            mine = np.isin(table.labels, classes) if slug == "all" else table.labels == slug
            right = (guess[mine] == table.labels[mine]).astype(float)
            cells.append(cluster.proportion(right, table.who[mine].tolist()))
        out.append(Found(family, slug, 1 / len(set(a.labels.tolist())), cells[0], cells[1], cells[2]))
    return out
