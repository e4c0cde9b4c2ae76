"""Who votes: people and judges are electorates of their own, and each judge is one where there are several.

Votes are added up within an electorate only. Every number of the standings has a key, and `behind` gives its cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from overtone.arena.pairing import Pair
from overtone.arena.vote_store import Vote
from overtone.stats.votes import Votes, votes


class Electorate(Struct, frozen=True):
    """Votes that may be added up, with what each is about."""

    key: str
    name: str
    votes: tuple[Vote, ...]
    pairs: dict[str, Pair]

    @property
    def cast(self) -> Votes:
        return votes([v.a for v in self.votes], [v.b for v in self.votes], [v.winner for v in self.votes])

    @property
    def scripts(self) -> list[str]:
        return [self.pairs[v.pair].group for v in self.votes]


def electorates(found: Sequence[Vote], pairs: Mapping[str, Pair]) -> list[Electorate]:
    """People, all judges, and every judge alone where there are several."""
    known = [vote for vote in found if vote.pair in pairs]
    people = [vote for vote in known if vote.kind == "person"]
    judged = [vote for vote in known if vote.kind == "judge"]
    groups = [("people", "people", people), ("judges", "judges", judged)]
    names = list(dict.fromkeys(vote.rater for vote in judged))
    if len(names) > 1:
        groups += [(f"judge/{name}", name, [v for v in judged if v.rater == name]) for name in names]
    elif names:
        groups[1] = ("judges", f"judge {names[0]}", judged)
    return [
        Electorate(key, name, tuple(held), {v.pair: pairs[v.pair] for v in held}) for key, name, held in groups if held
    ]


def behind(found: Sequence[Vote], pairs: Mapping[str, Pair], key: str) -> list[str]:
    """The cases under a number of the standings, by its key; empty where the key is none."""
    parts = key.split("/")
    for one in electorates(found, pairs):
        if key != one.key and not key.startswith(f"{one.key}/"):
            continue
        kind, _, name = key.removeprefix(one.key).removeprefix("/").partition("/")
        if kind == "run":
            held = [v for v in one.votes if name in (v.a, v.b)]
        elif kind == "rater":
            held = [v for v in one.votes if v.rater == name]
        else:
            held = list(one.votes) if not kind or kind == "effect" else []
        return list(dict.fromkeys(one.pairs[v.pair].case for v in held))
    if parts[0] == "agreement":
        sides = [e for e in electorates(found, pairs) if e.key in ("people", "/".join(parts[1:]))]
        shared = set.intersection(*(set(e.pairs) for e in sides)) if len(sides) == 2 else set()
        return list(dict.fromkeys(pairs[name].case for name in sorted(shared)))
    return []
