"""Votes between pairs of players, and whether they suffice to rank all players: the input of every ranking.

A player is anything that competes. A vote says which of two players was better, or neither. Ratings exist only if the
votes connect all players: no player always wins or always loses, and no two groups never met. Otherwise the likelihood
has no maximum, and an optimiser that stops on the way up prints meaningless ratings. `check` raises an error then, and
names the players.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Labels

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

A, TIE, B = 0, 1, 2  # outcomes as columns of counts


@dataclass(frozen=True)
class Votes:
    """One row per vote, in the order the votes were cast; `a` and `b` are indices into `players`."""

    players: tuple[Hashable, ...]  # in the order of their first use
    a: Codes
    b: Codes
    outcome: Codes  # A, TIE or B

    def __len__(self) -> int:
        return int(self.a.size)


def votes(a: Labels, b: Labels, winner: Sequence[str]) -> Votes:
    """Build votes from the names of both sides and of the winner: "A", "B" or "tie"."""
    if not len(a) == len(b) == len(winner):
        raise ValueError(f"{len(a)} and {len(b)} players but {len(winner)} winners: every vote needs all three")
    unknown = sorted({str(word) for word in winner if word not in ("A", "B", "tie")})
    if unknown:
        raise ValueError(f"unknown winner {', '.join(unknown[:5])}; known: A, B, tie")
    places: dict[Hashable, int] = {}
    codes = np.array(
        [(places.setdefault(x, len(places)), places.setdefault(y, len(places))) for x, y in zip(a, b, strict=True)],
        dtype=np.intp,
    ).reshape(-1, 2)
    players = tuple(places)
    alone = np.flatnonzero(codes[:, 0] == codes[:, 1])
    if alone.size:
        raise ValueError(f"vote {alone[0]} compares {players[codes[alone[0], 0]]} with itself")
    outcomes = np.array([{"A": A, "tie": TIE, "B": B}[word] for word in winner], dtype=np.intp)
    return Votes(players, codes[:, 0], codes[:, 1], outcomes)


def wins(cast: Votes) -> Array:
    """Return a table of wins: how often the row's player beat the column's."""
    size = len(cast.players)
    first = np.where(cast.outcome == A, cast.a, cast.b)[cast.outcome != TIE]
    second = np.where(cast.outcome == A, cast.b, cast.a)[cast.outcome != TIE]
    return _table(first, second, size)


def ties(cast: Votes) -> Array:
    """Return a symmetric table of ties: how often the row's player tied with the column's."""
    at = cast.outcome == TIE
    half = _table(cast.a[at], cast.b[at], len(cast.players))
    return half + half.T


def check(cast: Votes, *, davidson: bool) -> None:
    """Raise ValueError, with the players' names, if maximum likelihood has no finite ratings for these votes.

    Set `davidson` for the model in which a tie is a separate outcome; else a tie is half a win for both.
    """
    if not len(cast):
        raise ValueError("no votes to rank; collect votes first")
    if (cast.outcome == TIE).all() and davidson:
        raise ValueError("every vote is a tie; a ranking needs wins")
    won, tied = wins(cast), ties(cast)
    reach = (won + tied) > 0  # a tie connects both players in both directions
    islands = _groups(_closure(reach | reach.T), cast)
    if len(islands) > 1:
        named = "; ".join(_named(group) for group in islands[:4])
        raise ValueError(
            f"no vote compares these groups with each other: {named}; collect votes between them, or rank each alone"
        )
    closed = _closure(reach)
    groups = _groups(closed & closed.T, cast)
    if len(groups) > 1:
        raise ValueError(_separated(groups, closed, cast))
    if davidson and tied.any() and _ordered(won > 0, tied > 0):
        raise ValueError(
            "the wins and ties are perfectly ordered (no win contradicts a tie), so the ratings and the "
            "frequency of ties are not finite; count ties as halves (ties='half'), or give a prior"
        )


def _separated(groups: list[list[Hashable]], closed: npt.NDArray[np.bool_], cast: Votes) -> str:
    places = {player: at for at, player in enumerate(cast.players)}
    texts = []
    for group in groups:
        at, outside = places[group[0]], [places[p] for other in groups if other is not group for p in other]
        does = "do" if len(group) > 1 else "does"
        if not closed[outside, at].any():
            texts.append((len(group), f"{_named(group)} {does} not lose or tie once against the others"))
        elif not closed[at, outside].any():
            texts.append((len(group), f"{_named(group)} {does} not win or tie once against the others"))
    texts.sort(key=lambda text: text[0])
    reasons = "; ".join(text for _, text in texts[:3])
    return f"{reasons}: ratings have no finite value; collect more votes, leave them out, or give a prior"


def _ordered(won: npt.NDArray[np.bool_], tied: npt.NDArray[np.bool_]) -> bool:
    """Return whether players can be given numbers so that every winner is at least 1 above the loser and the numbers of
    tied players differ by at most 1.

    If so, moving the ratings along these numbers, with more and more ties, never lowers the likelihood. The constraints
    are bounds on differences: they can be met unless a cycle of bounds has a sum below 0 (Bellman and Ford).
    """
    if (won & won.T).any():
        return False
    bound = np.where(won, -1.0, np.where(tied, 1.0, np.inf))  # largest value of loser − winner: (from, to)
    level = np.zeros(len(won))
    for _ in range(len(won) + 1):
        lower = np.minimum(level, (level[:, None] + bound).min(0))
        if (lower == level).all():
            return True
        level = lower
    return False


def _closure(reach: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask (from, to): whether one player reaches the other in any number of steps."""
    closed = reach | np.eye(len(reach), dtype=bool)
    while True:
        further = (closed.astype(np.float32) @ closed.astype(np.float32)) > 0
        if (further == closed).all():
            return np.asarray(closed)
        closed = further


def _groups(together: npt.NDArray[np.bool_], cast: Votes) -> list[list[Hashable]]:
    """Group the players that belong together, smallest group first."""
    groups: dict[int, list[Hashable]] = {}
    for at, player in enumerate(cast.players):
        groups.setdefault(int(together[at].argmax()), []).append(player)
    return sorted(groups.values(), key=len)


def _named(group: list[Hashable]) -> str:
    names = ", ".join(str(player) for player in group[:5])
    return names if len(group) <= 5 else f"{names} and {len(group) - 5} more"


def _table(first: Codes, second: Codes, size: int) -> Array:
    return np.bincount(first * size + second, minlength=size * size).reshape(size, size).astype(np.float64)
