"""Preference pairs from stored runs: two replies to the same clip, one of which enough voters prefer.

Pairs that are left out are counted by reason. Training and held-out pairs are split by script: all clips of a script
are in the same part, and so are all scripts with the same words. Clips of all sources take part unless the user chooses
one source, because both replies of a pair answer the same clip. Every pair names its source.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.arena import ballots, contestants
from overtone.arena.opinions import (
    Candidate,
    Opinion,
    Opinions,
    Place,
    Who,
    of_scores,
    of_votes,
    read_by,
    read_replies,
)
from overtone.arena.pairing import chance
from overtone.arena.rounds import current
from overtone.arena.vote_store import FILE, Table, Vote
from overtone.errors import DataError, StoreError, UsageError
from overtone.judges import rubric as rubrics
from overtone.paths import shown, write_whole
from overtone.results.headline_condition import ALL
from overtone.runs.export_rows import json_line
from overtone.schema import EMOTION, THOUGHT, TOKENS, Item

VOTERS, AGREEMENT, PER_ITEM = 2, 2 / 3, 1
TRAIN, HELD_OUT = "train", "held-out"


class Side(Struct, frozen=True, omit_defaults=True):
    """One of the two replies. `thought`, `emotion` and `speech_tokens` are empty if the model did not report them."""

    run: str
    model: str
    text: str
    repeat: int = 0
    thought: str = ""
    audio: str = ""
    audio_sha256: str = ""
    speech_tokens: tuple[int, ...] = ()
    emotion: str = ""


class Voter(Struct, frozen=True, omit_defaults=True):
    """One voter's preference. The `margin` of a score is how much better the chosen reply is, in the score's units."""

    name: str
    kind: str  # person, judge, score
    prefers: Literal["chosen", "rejected", "tie"]
    margin: float | None = None
    by: str = ""


class Preference(Struct, frozen=True, omit_defaults=True):
    """A preference pair: one line of the exported file."""

    id: str
    part: str  # train, held-out
    benchmark: str
    item: str
    case: str
    group: str  # the script
    cue: str
    condition: str
    clip: str  # path
    clip_sha256: str
    words: str  # spoken in the clip
    chosen: Side
    rejected: Side
    voters: tuple[Voter, ...]
    votes: dict[str, int]  # chosen, rejected, tie
    agreement: float  # share of voters that prefer the chosen reply
    margin: float  # (chosen − rejected) ÷ voters
    context: str = ""
    source: str = ""  # speaker of the clip: an engine, a person


class Wanted(Struct, frozen=True):
    """The user's settings for preference pairs."""

    by: tuple[str, ...] = ()
    margins: Mapping[str, float] = {}
    votes: tuple[Path, ...] = ()
    arena: Path | None = None
    rubric: str = "pair"
    kinds: tuple[str, ...] = ("person", "judge", "score")
    voters: int = VOTERS
    agreement: float = AGREEMENT
    per_item: int = PER_ITEM
    hold_out: float = 0.0
    condition: str | None = None
    seed: int = 0
    source: str = ALL


class Found(Struct, frozen=True):
    """The preference pairs, and counts of the pairs, replies, votes and scores that were left out."""

    pairs: list[Preference]
    considered: int
    dropped: dict[str, int]  # pairs by reason
    left: dict[str, int]  # replies, votes and scores by reason
    notes: tuple[str, ...] = ()


def find(runs: Sequence[Path], wanted: Wanted) -> Found:
    """Find the preference pairs of these runs. Raises UsageError for settings that contradict each other."""
    _check(runs, wanted)
    left: Counter[str] = Counter()
    replies = read_replies(runs, wanted.condition, left, wanted.source)
    opinions: Opinions = {}
    notes: tuple[str, ...] = ()
    if wanted.by:
        by = read_by(wanted.by, wanted.margins, runs)
        opinions = of_scores(replies, by, left)
        notes = tuple(f"{one.metric}: the judge has not been validated for this" for one in by if one.unvalidated)
    if wanted.arena or wanted.votes:
        voted, more = _voted(runs, wanted, left)
        notes += more
        for meeting, more_opinions in voted.items():
            opinions.setdefault(meeting, []).extend(more_opinions)
    dropped: Counter[str] = Counter()
    agreed: dict[Place, list[tuple[tuple[float, ...], str, Who, Who, list[Opinion]]]] = {}
    considered = 0
    for (place, first, second), given in opinions.items():
        candidates = replies.get(place, {})
        if first not in candidates or second not in candidates:
            left["votes on replies that take no part"] += len(given)
            continue
        considered += 1
        counted = [one for one in given if one.kind in wanted.kinds]
        why, prefers = _agreed(counted, candidates[first], candidates[second], wanted)
        if why:
            dropped[why] += 1
            continue
        chosen, rejected = (first, second) if prefers == "first" else (second, first)
        count: Counter[str] = Counter(one.prefers for one in counted)
        lead = (count[prefers] - count["second" if prefers == "first" else "first"]) / len(counted)
        strength = (lead, float(len(counted)), sum(abs(one.margin) for one in counted if one.margin is not None))
        agreed.setdefault(place, []).append((strength, prefers, chosen, rejected, counted))
    scripts = {reply.ask.item.group: reply.ask.item for by_who in replies.values() for reply in by_who.values()}
    parts = split(scripts, {replies[place][ranked[0][2]].ask.item.group for place, ranked in agreed.items()}, wanted)
    pairs = []
    for place, ranked in agreed.items():
        ranked.sort(key=lambda one: tuple(-x for x in one[0]))  # equal ones stay in the order of the runs' names
        if len(ranked) > wanted.per_item:
            dropped[f"more than {wanted.per_item} of one item: the clearest stay"] += len(ranked) - wanted.per_item
        for _, prefers, chosen, rejected, counted in ranked[: wanted.per_item]:
            pairs.append(_pair(place, replies[place][chosen], replies[place][rejected], prefers, counted, parts))
    return Found(pairs, considered, dict(dropped), dict(left), notes)


def split(scripts: Mapping[str, Item], used: Collection[str], wanted: Wanted) -> dict[str, str]:
    """Return script → "train" or "held-out".

    A hash of the script's name decides, so the split is the same in every export with the same seed. Scripts with the
    same words are all in the part of the first of them. If there are two or more `used` scripts, at least one of them
    is held out.
    """
    home: dict[str, str] = {}
    by_text: dict[str, str] = {}

    def root(name: str) -> str:
        while home.setdefault(name, name) != name:
            name = home[name]
        return name

    for group, item in sorted(scripts.items()):
        script = group.removeprefix(f"{item.source}/")
        words = " ".join("".join(c if c.isalnum() else " " for c in item.turns[-1].words.casefold()).split())
        for key in filter(None, (f"script {script}", words and f"words {words}")):
            one, other = sorted((root(by_text.setdefault(key, group)), root(group)))
            home[other] = one
    chances = {root(group): chance(wanted.seed, root(group)) for group in scripts}
    held = {name for name, number in chances.items() if number < wanted.hold_out}
    used_roots = sorted({root(group) for group in used}, key=lambda name: chances[name])
    if wanted.hold_out and len(used_roots) > 1 and not held & set(used_roots):
        held.add(used_roots[0])
    return {group: HELD_OUT if root(group) in held else TRAIN for group in scripts}


def _agreed(counted: Sequence[Opinion], first: Candidate, second: Candidate, wanted: Wanted) -> tuple[str, Any]:
    """Return whether enough voters agree on a pair: ("", "first") or ("", "second") for the preferred reply, or
    (reason, "") if the pair is left out."""
    same_words = " ".join(first.text.split()) == " ".join(second.text.split())
    if same_words and first.ask.reply.audio == second.ask.reply.audio:
        return "both replies are the same", ""
    if len(counted) < wanted.voters:
        return f"fewer than {wanted.voters} voters", ""
    count: Counter[str] = Counter(one.prefers for one in counted)
    if count["first"] == count["second"]:
        return "a tie", ""
    prefers = "first" if count["first"] > count["second"] else "second"
    if count[prefers] / len(counted) < wanted.agreement - 1e-9:
        return f"fewer than {wanted.agreement:.2f} of the voters agree", ""
    return "", prefers


def _pair(
    place: Place,
    chosen: Candidate,
    rejected: Candidate,
    prefers: str,
    counted: Iterable[Opinion],
    parts: Mapping[str, str],
) -> Preference:
    item, (name, condition) = chosen.ask.item, place
    voters = []
    for one in counted:
        side: Any = "tie" if one.prefers == "tie" else "chosen" if one.prefers == prefers else "rejected"
        margin = None if one.margin is None else round(one.margin if prefers == "first" else -one.margin, 6)
        voters.append(Voter(one.name, one.kind, side, margin, one.by))
    votes = {side: sum(v.prefers == side for v in voters) for side in ("chosen", "rejected", "tie")}
    sides = [f"{s.run}\0{s.ask.repeat}\0{s.text}\0{s.ask.reply.audio}" for s in (chosen, rejected)]
    digest = hashlib.sha256("\0".join([name, condition, *sides]).encode()).hexdigest()[:16]
    return Preference(
        digest, parts[item.group], item.benchmark, name, item.case, item.group, item.cue, condition,
        str(chosen.clip) if chosen.clip else "", chosen.clip_sha256, item.turns[-1].words, _side(chosen),
        _side(rejected), tuple(voters), votes, round(votes["chosen"] / len(voters), 4),
        round((votes["chosen"] - votes["rejected"]) / len(voters), 4), item.context, item.source,
    )  # fmt: skip


def _side(said: Candidate) -> Side:
    codes = said.noted(TOKENS).split()
    if not all(code.isdecimal() and len(code) < 9 for code in codes):  # the run may come from elsewhere
        codes = []
    return Side(
        said.run, said.model, said.text, said.ask.repeat, said.noted(THOUGHT), str(said.audio) if said.audio else "",
        said.ask.reply.audio, tuple(map(int, codes)), said.noted(EMOTION),
    )  # fmt: skip


def _check(runs: Sequence[Path], wanted: Wanted) -> None:
    if not (wanted.by or wanted.arena or wanted.votes):
        raise UsageError(
            "name the voters: --arena DIR or --votes FILE (people's and judges' votes), or --by METRIC (a score)"
        )
    if (wanted.arena or wanted.votes) and len(runs) < 2:
        raise UsageError("votes compare runs: name at least two; use --by to compare the repeats of one run")
    if wanted.voters < 1:
        raise UsageError("--voters must be at least 1")
    if not 0.5 < wanted.agreement <= 1:
        raise UsageError("--agreement must be above 0.5 and at most 1")
    if not 0 <= wanted.hold_out < 1:
        raise UsageError("--hold-out must be at least 0 and below 1")
    if wanted.per_item < 1:
        raise UsageError("--per-item must be at least 1")


def _voted(runs: Sequence[Path], wanted: Wanted, left: Counter[str]) -> tuple[Opinions, tuple[str, ...]]:
    """Return the opinions from the votes of an arena and of vote files, and the field's notes. Nothing is stored."""
    one = rubrics.load(wanted.rubric)
    contestants.check_suits(one)
    field = contestants.read(runs, spoken=bool(one.hears), source=wanted.source)
    pairs, votes = {}, []
    if wanted.arena:
        if not (wanted.arena / FILE).is_file():
            raise StoreError(
                f"{shown(str(wanted.arena))} is not an arena: it has no {FILE}; create one with 'overtone arena'"
            )
        with Table(wanted.arena) as table:
            pairs = {pair.id: pair for pair in current(field, table)}
            votes = table.votes()
    for path in wanted.votes:
        file = ballots.read(path, field, pairs)
        pairs |= {pair.id: pair for pair in file.pairs}
        votes = [vote for vote in votes if vote.origin != str(path.resolve())]  # the arena may have imported it
        before = {(v.pair, v.rater) for v in votes if v.kind == "person"}
        for vote in file.votes:
            if vote.kind == "person" and (vote.pair, vote.rater) in before:
                raise DataError(
                    f"{shown(str(path))}, {vote.place}: {shown(vote.rater)!r} has voted on this pair before, in "
                    "another file; keep one of the two votes"
                )
        votes += file.votes
    same_rubric: list[Vote] = []
    for vote in votes:
        if vote.kind == "judge" and vote.rubric not in ("", one.identity):
            left["judges' votes by another rubric"] += 1
        else:
            same_rubric.append(vote)
    places = {name: _place(pair.key) for name, pair in pairs.items()}
    return of_votes(same_rubric, places, left), field.notes


def _place(key: str) -> Place:
    item, _, condition = key.rpartition("|")
    return item, condition


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def held_out_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.held-out{out.suffix}")


def about_path(out: Path) -> Path:
    return out.with_name(f"{out.stem}.about.json")


def write(found: Found, runs: Sequence[Path], wanted: Wanted, out: Path) -> list[Path]:
    """Write the training pairs, the held-out pairs, and a summary of what was left out and why. Return the files.

    Raises DataError if no training pair is left, StoreError if a file cannot be written.
    """
    if not any(pair.part == TRAIN for pair in found.pairs):
        most = ", ".join(f"{why} ({count})" for why, count in Counter(found.dropped).most_common(3))
        raise DataError(
            f"none of {found.considered} pairs is left{f': {most}' if most else ''}; lower --voters or --agreement, "
            "add voters, or hold out less"
        )
    files = {out: [pair for pair in found.pairs if pair.part == TRAIN]}
    held = [pair for pair in found.pairs if pair.part == HELD_OUT]
    if held or wanted.hold_out:
        files[held_out_path(out)] = held
    about = {
        "runs": [str(run) for run in runs],
        "settings": {**msgspec.to_builtins(wanted, enc_hook=str), "margins": dict(wanted.margins)},
        "considered": found.considered,
        "dropped": found.dropped,
        "left_out": found.left,
        "notes": list(found.notes),
        "voters": sorted({(v.kind, v.name) for pair in found.pairs for v in pair.voters}),
        "pairs": {path.name: len(pairs) for path, pairs in files.items()},
        "sources": dict(sorted(Counter(pair.source for pair in found.pairs if pair.source).items())),
        "scripts": {
            part: sorted({pair.group for pair in found.pairs if pair.part == part}) for part in (TRAIN, HELD_OUT)
        },
    }
    try:
        for path, pairs in files.items():
            write_whole(path, b"".join(json_line(pair) for pair in pairs))
        write_whole(about_path(out), msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from None
    return [*files, about_path(out)]
