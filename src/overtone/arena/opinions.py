"""Opinions on two stored replies to the same clip. The voters are people and judges (by their votes) and scores.

A voter has one opinion on a pair. A judge's opinion counts only if its verdict is the same in both orders. A score
prefers the better reply if the two values differ by a minimum margin; otherwise its opinion is a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from msgspec import Struct

from overtone.arena.contestants import unknown_source
from overtone.arena.vote_store import Vote
from overtone.errors import UsageError
from overtone.judges.judge_run import answered
from overtone.paths import inside
from overtone.results.headline_condition import ALL
from overtone.results.judge_scores import read_dimensions
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Ask, Store
from overtone.schema import Condition, Item
from overtone.scores import ScoreInfo
from overtone.spec import suggest

Who = tuple[str, int]  # a run's name, and the repeat
Place = tuple[str, str]  # an item, and the condition it was asked under
Meeting = tuple[Place, Who, Who]  # two replies, sorted by name


class Candidate(Struct, frozen=True):
    """A run's reply that may be preferred. `scores` maps a metric to (value, signature)."""

    ask: Ask
    run: str
    model: str
    audio: Path | None
    clip: Path | None
    clip_sha256: str
    scores: dict[str, tuple[float, str]]

    @property
    def who(self) -> Who:
        return self.run, self.ask.repeat

    @property
    def text(self) -> str:
        return self.ask.reply.text.strip()

    def noted(self, mark: str) -> str:
        """Return the model's first note that begins with `mark`, without the mark; "" if no note does."""
        return next((note.removeprefix(mark) for note in self.ask.reply.notes if note.startswith(mark)), "")


class Opinion(Struct, frozen=True):
    """One voter's opinion on two replies to the same clip. Only the opinion of a score has a `margin`."""

    name: str
    kind: Literal["person", "judge", "score"]
    prefers: Literal["first", "second", "tie"]
    margin: float | None = None
    by: str = ""  # the rubric, or the score's signature


Opinions = dict[Meeting, list[Opinion]]


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_replies(
    folders: Sequence[Path], condition: str | None, left: Counter[str], source: str = ALL
) -> dict[Place, dict[Who, Candidate]]:
    """Return (item, condition) → (run, repeat) → reply, for clips of one source or of all sources.

    `left` counts the replies that are left out, by reason: dialogues, parts of a benchmark that are kept for measuring,
    inputs without the clip or with its cue in words, and clips of other sources. Raises UsageError if no run has a clip
    of the source.
    """
    sources: set[str] = set()
    candidates: dict[Place, dict[Who, Candidate]] = {}
    names: set[str] = set()
    for folder in folders:
        with Store.read(folder) as store:
            meta = store.meta()
            name = meta.get("label") or folder.resolve().name
            if name in names:
                raise UsageError(f"two runs are called {name!r}; give one of the folders another name")
            names.add(name)
            scores: dict[int, dict[str, tuple[float, str]]] = {}
            for ask_id, score in store.scores():
                if score.value is not None:
                    scores.setdefault(ask_id, {})[score.metric] = (score.value, score.signature)
            shas = {path: row[0] for path, row in store.clips().items()}
            for ask in answered(store):
                item, reply = ask.item, ask.reply
                if why := _unfit(item, ask.condition, condition):
                    left[why] += 1
                    continue
                sources.add(item.source)
                if source != ALL and item.source not in ("", source):
                    left["replies to clips of another source"] += 1
                elif reply.refused or not reply.text.strip():
                    left["replies without words, or refused"] += 1
                else:
                    clip = item.turns[-1].clip
                    root = meta.get("root")
                    path = inside(Path(root), clip.path) if clip and root else None
                    sha = (clip.sha256 or shas.get(clip.path, "")) if clip else ""
                    sound = store.audio_path(reply.audio) if reply.audio else None
                    one = Candidate(ask, name, meta.get("model", ""), sound, path, sha, scores.get(ask.id, {}))
                    candidates.setdefault((item.id, ask.condition), {})[one.who] = one
    if source not in (ALL, *sources):
        raise unknown_source(source, sources - {""})
    return candidates


def _unfit(item: Item, name: str, wanted: str | None) -> str:
    if item.part:
        return "replies in parts of the benchmark that are kept to measure with"
    if len(item.turns) > 1:
        return "replies in dialogues, where each model had a conversation of its own"
    if wanted is not None:
        return "" if name == wanted else "replies under another condition"
    try:
        how = Condition.parse(name)
    except ValueError:
        return f"replies under {name}, which is not a condition"
    clip_alone = how.input == "audio" and how.oracle == "none"
    return "" if clip_alone else "replies to something else than the clip alone"


# ── votes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def of_votes(votes: Iterable[Vote], places: Mapping[str, Place], left: Counter[str]) -> Opinions:
    """Convert votes to opinions. `places` maps a pair's id to its item and condition.

    Votes that give no opinion are counted in `left`, e.g. a judge's verdict that changed with the order.
    """
    cast: dict[tuple[Meeting, str, str], list[tuple[Vote, str]]] = {}
    for vote in votes:
        place = places.get(vote.pair)
        if place is None:
            left["votes on replies that are not here, or have changed since"] += 1
            continue
        a, b = (vote.a, 0), (vote.b, 0)
        winner = {"A": a, "B": b}.get(vote.winner)
        first, second = sorted((a, b))
        prefers = "tie" if winner is None else "first" if winner == first else "second"
        cast.setdefault(((place, first, second), vote.rater, vote.kind), []).append((vote, prefers))
    opinions: Opinions = {}
    for (meeting, rater, kind), own in cast.items():
        preferred = [prefers for _, prefers in own] if kind == "person" else _consistent(own, left)
        if preferred:
            often = Counter(preferred).most_common(2)
            even = len(often) == 2 and often[0][1] == often[1][1]
            one = Opinion(rater, kind, "tie" if even else often[0][0], by=own[0][0].rubric)  # type: ignore[arg-type]
            opinions.setdefault(meeting, []).append(one)
    return opinions


def _consistent(cast: Sequence[tuple[Vote, str]], left: Counter[str]) -> list[str]:
    """Return a judge's verdicts, one per repeat. A repeat whose verdict differs between the two orders of the pair is
    left out and counted in `left`."""
    by_repeat: dict[tuple[str, int], dict[str, str]] = {}
    for vote, prefers in cast:
        by_repeat.setdefault((vote.rubric, vote.repeat), {})[vote.a] = prefers
    verdicts = []
    for orders in by_repeat.values():
        if len(orders) < 2:
            left["judges' verdicts in one order only"] += 1
        elif len(set(orders.values())) > 1:
            left["judges' verdicts that turned with the order"] += 1
        else:
            verdicts += list(set(orders.values()))
    return verdicts


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────
class By(Struct, frozen=True):
    """A score that is used as a voter: it prefers the reply with the better value."""

    metric: str
    margin: float  # minimum difference that counts
    lower: bool = False  # lower is better
    unvalidated: bool = False  # it is the score of a judge that is not validated


def read_by(names: Sequence[str], margins: Mapping[str, float], folders: Sequence[Path]) -> list[By]:
    """Return the scores that `--by` names. `margins` maps a metric to its minimum margin; the key "" is the default.

    Raises UsageError for a score that is unknown or has no margin.
    """
    known: set[str] = set()
    metas = []
    declared: dict[str, ScoreInfo] = {}
    for folder in folders:
        with Store.read(folder) as store:
            known.update(store.scored_metrics())
            metas.append(store.meta())
            declared = {**store.declared(), **declared}
    for name in sorted(set(margins) - {"", *names}):
        raise UsageError(f"--margin {name}=…: no --by names that score{suggest(name, names)}")
    voters = []
    for name in names:
        if name not in known:
            raise UsageError(
                f"no reply of these runs has the score {name!r}{suggest(name, known)}; scored are: "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        key, judged, label = name.partition("@")
        better, usual, doubtful = "higher", None, False
        if judged:
            dimensions = [read_dimensions(meta, [name])[key] for meta in metas]
            described = next((d for d in dimensions if d.low is not None and d.high is not None), None)
            if described is not None:  # one step of its scale, or half for yes and no
                better, usual = described.better, 0.5 if described.share else 1.0
            doubtful = any(d.unvalidated.get(label, True) for d in dimensions)
        elif name in declared:
            better = declared[name].better
        if better == "neither":
            raise UsageError(f"neither direction of {name} is better; choose another score for --by")
        margin = margins.get(name, margins.get("", usual))
        if margin is None:
            raise UsageError(f"{name} needs a minimum difference: --margin {name}=X, in its own units")
        if margin <= 0:
            raise UsageError("--margin must be above 0")
        voters.append(By(name, margin, better == "lower", doubtful))
    return voters


def of_scores(candidates: Mapping[Place, Mapping[Who, Candidate]], by: Sequence[By], left: Counter[str]) -> Opinions:
    """Return the opinions of scores on every two replies to the same item under the same condition."""
    opinions: Opinions = {}
    for place, replies_here in candidates.items():
        for first, second in combinations(sorted(replies_here), 2):
            for one in by:
                pair = [replies_here[who].scores.get(one.metric) for who in (first, second)]
                if pair[0] is None or pair[1] is None:
                    left[f"pairs without the score {one.metric}"] += 1
                elif not same_signature(pair[0][1], pair[1][1]):
                    left[f"pairs whose {one.metric} was measured in two ways"] += 1
                else:
                    margin = (pair[0][0] - pair[1][0]) * (-1 if one.lower else 1)
                    prefers = "tie" if abs(margin) < one.margin - 1e-9 else "first" if margin > 0 else "second"
                    opinion = Opinion(one.metric, "score", prefers, margin, pair[0][1])  # type: ignore[arg-type]
                    opinions.setdefault((place, first, second), []).append(opinion)
    return opinions
