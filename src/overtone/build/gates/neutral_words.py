"""Neutral words: neither a single word nor the subject of a script may reveal its cue."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.build.gates import Finding
from overtone.build.gates._lexicon import tells
from overtone.build.gates._reader_view import WITHOUT, Embed, Matrix, embedder, vectors
from overtone.build.gates._solvers import FOLDS, folds
from overtone.build.script import Script
from overtone.cues import BY_SLUG, CUES, DIMENSIONS
from overtone.stats.cluster import proportion

NEAR = 0.05  # how much closer a script may be to its own cue's description than to any other (cosine)
_RIDGE = 1.0


class Predicted(Struct, frozen=True):
    """The accuracy with which a trained reader predicts cues from the text.

    The reader is trained on other scripts. `chance` is the accuracy of a reader that does not see the text.
    """

    what: str
    n: int
    accuracy: float
    low: float
    high: float
    chance: float
    note: str = ""


def check(scripts: Sequence[Script], embed: Embed | None = None) -> list[Finding]:
    """Return a finding for each script whose words reveal its cue.

    Words reveal a cue if one of them is in the lexicon or the taxonomy, or if they are much closer in meaning to one
    cue's description than to any other. If the embedder is missing, one finding on the whole set reports it.
    """
    findings = [finding for script in scripts for finding in _telling(script)]
    embed = embed or embedder()
    if embed is None:
        return [*findings, Finding("words", "set", f"the embedding check was not made: {WITHOUT}")]
    return findings + _near(scripts, embed)


def _telling(script: Script) -> list[Finding]:
    """Find words that name one of the script's two cues. A conflict script states its `says` cue on purpose."""
    findings = []
    for slug in dict.fromkeys((script.cue, script.alternative)):
        if slug == script.says:
            continue
        hits = [m[0] for m in tells()[slug].finditer(script.words)] if slug in tells() else []
        hits += [m[0] for m in re.finditer(BY_SLUG[slug].pattern, script.words, re.I)]
        if hits:
            shown = ", ".join(repr(h) for h in dict.fromkeys(h.lower() for h in hits))
            findings.append(Finding("words", script.id, f"{shown} would tell a reader of {BY_SLUG[slug].phrase}"))
    return findings


def _near(scripts: Sequence[Script], embed: Embed) -> list[Finding]:
    plain = [s for s in scripts if not s.says]
    if not plain:
        return []
    cosine = likeness([s.words for s in plain], embed)
    slugs = [c.slug for c in CUES]
    findings = []
    for script, row in zip(plain, cosine, strict=True):
        for slug in dict.fromkeys((script.cue, script.alternative)):
            if slug not in slugs:
                continue
            rest = [row[i] for i, other in enumerate(slugs) if other not in (script.cue, script.alternative)]
            margin = float(row[slugs.index(slug)] - max(rest))
            if margin > NEAR:
                reason = f"the words are nearer to {BY_SLUG[slug].phrase} than to any other cue"
                findings.append(Finding("words", script.id, reason, margin, NEAR))
    return findings


def likeness(texts: Sequence[str], embed: Embed) -> Matrix:
    """Return the cosine similarity of each text to each cue's description, minus the cue's mean: (texts, cues)."""
    described = np.asarray(embed([f"{c.phrase}. {c.option}" for c in CUES]), dtype=np.float64)
    read = np.asarray(embed(list(texts)), dtype=np.float64)
    cosine = read @ described.T
    return np.asarray(cosine - cosine.mean(0))


def predictability(scripts: Sequence[Script], seed: int, embed: Embed | None = None) -> list[Predicted]:
    """Measure how well the text predicts the cue, out of fold. The rows predict the cue among all cues, the cue within
    its dimension, the dimension, and (most important) which of a script's two cues is the target."""
    plain = [s for s in scripts if not s.says]
    embed = embed or embedder()
    note = "" if embed else WITHOUT
    if len(plain) < FOLDS:
        raise ValueError(f"{len(plain)} scripts cannot be split into {FOLDS} folds")
    x = vectors([s.words for s in plain], embed)
    fold = folds([s.id for s in plain], seed)
    slugs = sorted({s.cue for s in plain} | {s.alternative for s in plain})
    place = {slug: i for i, slug in enumerate(slugs)}
    goal = np.zeros((len(plain), len(slugs)))
    goal[np.arange(len(plain)), [place[s.cue] for s in plain]] = 1
    targets = sorted({s.cue for s in plain})
    by_ridge = _out_of_fold(x, goal, fold)
    by_centre = _centres(x, [s.cue for s in plain], slugs, fold)
    side = _sides(x, plain, place, fold)
    rows = []
    for name, scores in (("ridge", by_ridge), ("nearest centre", by_centre)):
        kept = np.full(len(slugs), -np.inf)
        kept[[place[t] for t in targets]] = 0
        guess = [slugs[int(i)] for i in np.argmax(scores + kept, axis=1)]
        rows.append(_row(f"the target among {len(targets)} cues, {name}", plain, guess, 1 / len(targets), note))
        for dimension in DIMENSIONS:
            inside = [t for t in targets if BY_SLUG[t].dimension == dimension]
            mine = [i for i, s in enumerate(plain) if s.cue in inside]
            if len(inside) < 2:
                continue
            columns = [place[t] for t in inside]
            guess = [inside[int(np.argmax(scores[i, columns]))] for i in mine]
            what = f"the target among {len(inside)} {dimension} cues, {name}"
            rows.append(_row(what, [plain[i] for i in mine], guess, 1 / len(inside), note))
    pair = [s.cue if v > 0 else s.alternative for s, v in zip(plain, side, strict=True)]
    rows.append(_row("the target of the script's own two cues, ridge", plain, pair, 0.5, note))
    return rows


def _row(what: str, scripts: Sequence[Script], guess: Sequence[str], chance: float, note: str) -> Predicted:
    right = [float(g == s.cue) for g, s in zip(guess, scripts, strict=True)]
    rate = proportion(right, [s.id for s in scripts])
    return Predicted(what, len(scripts), rate.value, rate.low, rate.high, chance, note)


def _out_of_fold(x: Matrix, y: Matrix, fold: NDArray[np.intp]) -> Matrix:
    """Predict each row of `y` by a ridge regression fitted without the row's fold, in dual form as scripts are few."""
    x = x - x.mean(0)
    gram = x @ x.T
    out = np.zeros_like(y)
    for f in range(FOLDS):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        mean = y[train].mean(0)
        inner = gram[np.ix_(train, train)] + _RIDGE * np.eye(len(train))
        out[test] = mean + gram[np.ix_(test, train)] @ np.linalg.solve(inner, y[train] - mean)
    return out


def _centres(x: Matrix, labels: Sequence[str], slugs: Sequence[str], fold: NDArray[np.intp]) -> Matrix:
    x = x - x.mean(0)
    out = np.full((len(x), len(slugs)), -np.inf)
    known = np.array(labels)
    for f in range(FOLDS):
        test = fold == f
        for j, slug in enumerate(slugs):
            mine = x[(known == slug) & ~test]
            if len(mine):
                centre = mine.mean(0)
                out[test, j] = x[test] @ centre / max(1e-9, float(np.linalg.norm(centre)))
    return out


def _sides(x: Matrix, scripts: Sequence[Script], place: dict[str, int], fold: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return a score for each script: above 0 if its words point to its target cue rather than to its alternative.

    The ridge is fitted to words × cue, so that it can learn which words go with which cue, and not only how often a cue
    is a target.
    """
    goal = np.zeros((len(scripts), len(place)))
    for i, s in enumerate(scripts):
        goal[i, place[s.cue]], goal[i, place[s.alternative]] = 1, -1
    scores = _out_of_fold(x, goal, fold)
    return np.array([row[place[s.cue]] - row[place[s.alternative]] for s, row in zip(scripts, scores, strict=True)])
