"""Electorates: people, judges and, if there are several, each single judge.

Votes are added up only within an electorate. Every number in the standings has a key; `behind` maps the key to cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from overtone.arena.pairing import Pair
from overtone.arena.vote_store import StudyVote, Vote, counted
from overtone.stats.votes import Votes


class Electorate(Struct, frozen=True):
    """Votes that may be added up, and the pairs that were voted on."""

    key: str
    name: str
    votes: tuple[Vote, ...]
    pairs: dict[str, Pair]

    @property
    def studied(self) -> bool:
        """Whether all votes are from a study, to which drawing pairs adds nothing."""
        return bool(self.votes) and all(isinstance(vote, StudyVote) for vote in self.votes)

    @property
    def cast(self) -> Votes:
        return counted(self.votes)

    @property
    def scripts(self) -> list[str]:
        return [self.pairs[v.pair].group for v in self.votes]


def electorates(votes: Sequence[Vote], pairs: Mapping[str, Pair]) -> list[Electorate]:
    """Return the electorates with votes: people, all judges together, and, if there are several, each judge."""
    people = [vote for vote in votes if vote.pair in pairs and vote.kind == "person"]
    judged = [vote for vote in votes if vote.pair in pairs and vote.kind == "judge"]
    groups = [("people", "people", people), ("judges", "judges", judged)]
    names = list(dict.fromkeys(vote.rater for vote in judged))
    if len(names) > 1:
        groups += [(f"judge/{name}", name, [v for v in judged if v.rater == name]) for name in names]
    elif names:
        groups[1] = ("judges", f"judge {names[0]}", judged)
    return [
        Electorate(key, name, tuple(cast), {v.pair: pairs[v.pair] for v in cast}) for key, name, cast in groups if cast
    ]


def behind(votes: Sequence[Vote], pairs: Mapping[str, Pair], key: str) -> list[str]:
    """Return the cases from which the number with this key was computed; [] for an unknown key."""
    for one in electorates(votes, pairs):
        if key != one.key and not key.startswith(f"{one.key}/"):
            continue
        kind, _, name = key.removeprefix(one.key).removeprefix("/").partition("/")
        if kind == "run":
            chosen = [v for v in one.votes if name in (v.a, v.b)]
        elif kind == "rater":
            chosen = [v for v in one.votes if v.rater == name]
        else:
            chosen = list(one.votes) if not kind or kind == "effect" else []
        return list(dict.fromkeys(one.pairs[v.pair].case for v in chosen))
    kind, _, other = key.partition("/")
    if kind == "agreement":
        sides = [e for e in electorates(votes, pairs) if e.key in ("people", other)]
        shared = set.intersection(*(set(e.pairs) for e in sides)) if len(sides) == 2 else set()
        return list(dict.fromkeys(pairs[name].case for name in sorted(shared)))
    return []
