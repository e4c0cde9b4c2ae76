"""Who prefers which of two stored replies to the same clip: people and judges by their votes, scores by their margin.

A voter has one opinion on a pair. A judge's counts only where it saw both orders and said the same; a score's where the
two replies differ by a least margin, else it is a tie.
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
from overtone.judges.judge_run import replies
from overtone.paths import inside
from overtone.results.headline_condition import ALL
from overtone.results.judge_scores import read_dimensions
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Store
from overtone.schema import Condition, Item
from overtone.scores import ScoreInfo
from overtone.spec import suggest

Who = tuple[str, int]  # a run's name, and the repeat
Place = tuple[str, str]  # an item, and the condition it was asked under
Meeting = tuple[Place, Who, Who]  # two replies, the first by name first


class Said(Struct, frozen=True):
    """A stored reply that may be preferred, with its scores: metric → value and signature."""

    item: Item
    run: str
    model: str
    repeat: int
    text: str
    audio: Path | None
    audio_name: str  # the SHA-256 of its bytes
    notes: tuple[str, ...]
    clip: Path | None
    clip_sha256: str
    scores: dict[str, tuple[float, str]]

    @property
    def who(self) -> Who:
        return self.run, self.repeat

    def noted(self, mark: str) -> str:
        """What a note of the model's says, by how it begins."""
        return next((note.removeprefix(mark) for note in self.notes if note.startswith(mark)), "")


class Opinion(Struct, frozen=True):
    """What one voter says of a meeting: `first`, `second` or `tie`. `margin` is known of scores."""

    name: str
    kind: Literal["person", "judge", "score"]
    prefers: Literal["first", "second", "tie"]
    margin: float | None = None
    by: str = ""  # the rubric, or the score's signature


Opinions = dict[Meeting, list[Opinion]]


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_replies(
    folders: Sequence[Path], condition: str | None, left: Counter[str], source: str = ALL
) -> dict[Place, dict[Who, Said]]:
    """The replies of runs by what they answer, to the clips of one source or of all. `left` counts what takes no part:
    all but the last of dialogues, parts that a benchmark keeps to measure with, what was asked without the clip or with
    its cue told, and clips of other sources. Raises UsageError where no run has a clip of the source."""
    sources: set[str] = set()
    found: dict[Place, dict[Who, Said]] = {}
    names: set[str] = set()
    for folder in folders:
        with Store.read(folder) as store:
            meta = store.meta()
            name = meta.get("label") or folder.resolve().name
            if name in names:
                raise UsageError(f"two runs are called {name!r}; give one of the folders another name")
            names.add(name)
            scores: dict[int, dict[str, tuple[float, str]]] = {}
            for ask, score in store.scores():
                if score.value is not None:
                    scores.setdefault(ask, {})[score.metric] = (score.value, score.signature)
            stored = {(r.ask, r.key.turn): r for r in store.replies(light=True)}
            shas = {path: row[0] for path, row in store.clips().items()}
            for reply in replies(store):
                told = stored[reply.ask, reply.key.turn]
                if why := _unfit(reply.item, reply.key.condition, condition):
                    left[why] += 1
                    continue
                sources.add(reply.item.source)
                if source != ALL and reply.item.source not in ("", source):
                    left["replies to clips of another source"] += 1
                elif told.refused or not reply.text.strip():
                    left["replies without words, or refused"] += 1
                else:
                    clip = reply.item.turns[-1].clip
                    root = meta.get("root")
                    held = inside(Path(root), clip.path) if clip and root else None
                    sha = (clip.sha256 or shas.get(clip.path, "")) if clip else ""
                    sound = store.audio_path(reply.audio) if reply.audio else None
                    one = Said(
                        reply.item, name, meta.get("model", ""), reply.key.repeat, reply.text.strip(), sound,
                        reply.audio, told.notes, held, sha, scores.get(reply.ask, {}),
                    )  # fmt: skip
                    found.setdefault((reply.key.item, reply.key.condition), {})[one.who] = one
    if source not in (ALL, *sources):
        raise unknown_source(source, sources - {""})
    return found


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
        return f"replies under {name}, which is no condition"
    told = how.input != "audio" or how.oracle != "none"
    return "replies to something else than the clip alone" if told else ""


# ── votes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def of_votes(votes: Iterable[Vote], places: Mapping[str, Place], left: Counter[str]) -> Opinions:
    """The opinions behind votes; `places` says what each pair is about. `left` counts judges' verdicts that were given
    in one order only, and such that turned with the order."""
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
    found: Opinions = {}
    for (meeting, rater, kind), those in cast.items():
        said = [prefers for _, prefers in those] if kind == "person" else _consistent(those, left)
        if said:
            often = Counter(said).most_common(2)
            even = len(often) == 2 and often[0][1] == often[1][1]
            one = Opinion(rater, kind, "tie" if even else often[0][0], by=those[0][0].rubric)  # type: ignore[arg-type]
            found.setdefault(meeting, []).append(one)
    return found


def _consistent(cast: Sequence[tuple[Vote, str]], left: Counter[str]) -> list[str]:
    """What a judge said in both orders alike, of each time it was asked."""
    by_repeat: dict[tuple[str, int], dict[str, str]] = {}
    for vote, prefers in cast:
        by_repeat.setdefault((vote.rubric, vote.repeat), {})[vote.a] = prefers
    said = []
    for orders in by_repeat.values():
        if len(orders) < 2:
            left["judges' verdicts in one order only"] += 1
        elif len(set(orders.values())) > 1:
            left["judges' verdicts that turned with the order"] += 1
        else:
            said += list(set(orders.values()))
    return said


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────
class By(Struct, frozen=True):
    """A score that prefers: which, the least difference that counts, whether less is better, and whether it is that of
    a judge who has not shown that it can be trusted."""

    metric: str
    margin: float
    lower: bool = False
    unvalidated: bool = False


def read_by(names: Sequence[str], margins: Mapping[str, float], folders: Sequence[Path]) -> list[By]:
    """What `--by` names. `margins` has the least margin by metric, "" for all others. Raises UsageError."""
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
    found = []
    for name in names:
        if name not in known:
            raise UsageError(
                f"no reply of these runs has the score {name!r}{suggest(name, known)}; scored are: "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        key, judged, label = name.partition("@")
        better, usual, doubtful = "higher", None, False
        if judged:
            told = [read_dimensions(meta, [name])[key] for meta in metas]
            described = next((d for d in told if d.low is not None and d.high is not None), None)
            if described is not None:  # a step of its scale; of yes and no, more yes than no
                better, usual = described.better, 0.5 if described.share else 1.0
            doubtful = any(d.unvalidated.get(label, True) for d in told)
        elif name in declared:
            better = declared[name].better
        if better == "neither":
            raise UsageError(f"{name} says what a reply is like, not which is better; choose another score for --by")
        margin = margins.get(name, margins.get("", usual))
        if margin is None:
            raise UsageError(f"say how much of {name} is a difference: --margin {name}=X, in its own units")
        if margin <= 0:
            raise UsageError("--margin must be above 0")
        found.append(By(name, margin, better == "lower", doubtful))
    return found


def of_scores(candidates: Mapping[Place, Mapping[Who, Said]], by: Sequence[By], left: Counter[str]) -> Opinions:
    """The opinions behind scores on every two replies to the same item under the same condition."""
    found: Opinions = {}
    for place, said in candidates.items():
        for first, second in combinations(sorted(said), 2):
            for one in by:
                pair = [said[who].scores.get(one.metric) for who in (first, second)]
                if pair[0] is None or pair[1] is None:
                    left[f"pairs without the score {one.metric}"] += 1
                elif not same_signature(pair[0][1], pair[1][1]):
                    left[f"pairs whose {one.metric} was measured in two ways"] += 1
                else:
                    margin = (pair[0][0] - pair[1][0]) * (-1 if one.lower else 1)
                    prefers = "tie" if abs(margin) < one.margin - 1e-9 else "first" if margin > 0 else "second"
                    opinion = Opinion(one.metric, "score", prefers, margin, pair[0][1])  # type: ignore[arg-type]
                    found.setdefault((place, first, second), []).append(opinion)
    return found
