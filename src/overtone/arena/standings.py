"""Standings of the runs: ratings with intervals by script, Elo, win rates and raters' habits.

People and judges are separate electorates, whose votes are never added up. Each electorate ranks the runs, then the two
rankings are compared. If the votes cannot rank all runs, there are no ratings, and `problem` says which votes to
collect. Win rates need fewer votes and are always given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from overtone.arena.electorate_agreement import DRAWS, WEAK, Agreement, agreement
from overtone.arena.electorates import Electorate, electorates
from overtone.arena.pairing import Pair
from overtone.arena.vote_store import StudyVote, Vote
from overtone.results.measures import Estimate, from_interval
from overtone.stats import cluster
from overtone.stats.elo import elo
from overtone.stats.minimums import PEOPLE, STUDY_SUPPLY
from overtone.stats.rank import POINTS, Ranking, bradley_terry
from overtone.stats.rater_habits import Effect, Rater, rater_effects
from overtone.stats.votes import TIE, Votes, check
from overtone.stats.winrate import share, win_rates

FEW = 20  # scripts below which intervals are inaccurate
START = 1000.0  # points of an average run
SIGNATURE = (
    "arena|v2|ratings:bradley-terry|ties:davidson|scale:400|start:1000|interval:sandwich by script, and by rater for "
    f"{PEOPLE.least} people or more, 95 %"
    f"|elo:k4,400,1000|winrate:wins/comparisons|tau:kendall-b,bootstrap by script,{DRAWS},prior {WEAK:g}"
)


class Place(Struct, frozen=True):
    """One run's results in one electorate. The average rating is 1000; a lead of 400 points means odds of 10 to 1.

    `places` are the best and the worst place that the rating's interval allows. `level_field` is the rating if side and
    lengths are held fixed. `elo` depends on the order of the votes. `won` is the run's wins ÷ its comparisons, as in
    the paper; `halved` counts a tie as half a win. Intervals of people respect raters, if there are enough.
    """

    key: str
    run: str
    place: int | None
    places: tuple[int, int] | None
    rating: Estimate | None
    level_field: Estimate | None
    elo: float
    won: Estimate
    halved: Estimate
    tied: Estimate
    comparisons: int
    acceptable: Estimate | None = None  # share of answers that chose the run, or found both good; of studies only


class Habit(Struct, frozen=True):
    """A rater compared with the average rater of the electorate. Each habit is (value, standard error).

    Sharpness is how closely the votes follow the ratings (average: 1). Side and ties are differences in log-odds
    (average: 0).
    """

    key: str
    rater: str
    votes: int
    sharpness: tuple[float, float] | None
    side: tuple[float, float] | None
    ties: tuple[float, float] | None


class Standing(Struct, frozen=True):
    """One electorate: people, judges, or one judge of several."""

    key: str
    name: str
    votes: int
    pairs: int
    scripts: int
    raters: int
    places: tuple[Place, ...]
    effects: dict[str, Estimate]  # side, words, seconds: change in log-odds of A, per unit
    habits: tuple[Habit, ...]
    problem: str = ""  # why ratings are missing, and what to collect
    notes: tuple[str, ...] = ()
    studied: bool = False  # all votes are from a study


class Standings(Struct, frozen=True):
    """All results of the arena."""

    signature: str
    runs: tuple[str, ...]
    electorates: tuple[Standing, ...]
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...] = ()


def standings(
    votes: Sequence[Vote],
    pairs: Mapping[str, Pair],
    *,
    runs: Sequence[str] = (),
    prior: float = 0.0,
    seed: int = 0,
    notes: Sequence[str] = (),
) -> Standings:
    """Rank every electorate and compare people with judges. `prior`: pseudo-votes per run (see `bradley_terry`)."""
    voters = electorates(votes, pairs)
    ranked = [(one, *_standing(one, prior, pairs)) for one in voters]
    named = tuple(runs) or tuple(dict.fromkeys(name for one in voters for v in one.votes for name in (v.a, v.b)))
    all_notes = [*notes]
    for one in voters:
        absent = [name for name in runs if name not in one.cast.players]
        if absent:
            more = "answers of the study" if one.studied else "more pairs"
            all_notes.append(f"{one.name}: no vote is about {', '.join(absent[:8])}; {more} are needed to rank them")
    people = next((entry for entry in ranked if entry[0].key == "people"), None)
    judged = [entry for entry in ranked if entry[0].key != "people"]
    compared = []
    if people is not None:
        compared = [agreement(people[0], one, people[2], other, prior, seed) for one, _, other in judged]
    signature = f"{SIGNATURE}|prior:{prior:g}|seed:{seed}"
    return Standings(signature, named, tuple(standing for _, standing, _ in ranked), tuple(compared), tuple(all_notes))


# ── one electorate ──────────────────────────────────────────────────────────────────────────────────────────────────


def _standing(one: Electorate, prior: float, pairs: Mapping[str, Pair]) -> tuple[Standing, Ranking | None]:
    cast, scripts = one.cast, one.scripts
    notes: list[str] = []
    problem = ""
    ranking: Ranking | None = None
    try:
        ranking = bradley_terry(cast, clusters=scripts, raters=_raters(one), prior=prior)
    except ValueError as error:
        problem = _advice(str(error), one, pairs)
    if ranking and prior:
        notes += _leans_on_prior(cast)
    level, left_out = _level(one, cast, scripts, prior) if ranking else (None, [])
    notes += left_out
    count = len(set(scripts))
    least = max(FEW, len(cast.players) + 1)
    if ranking and count < least:
        notes.append(f"{count} scripts; with fewer than {least} for {len(cast.players)} runs, intervals are inaccurate")
    raters = [v.rater for v in one.votes]
    habits = rater_effects(cast, ranking, raters) if ranking else ()
    standing = Standing(
        one.key,
        one.name,
        len(cast),
        len(one.pairs),
        count,
        len(set(raters)),
        tuple(_places(one, cast, scripts, ranking, level)),
        {name: _estimate(effect, len(cast)) for name, effect in level.covariates.items()} if level else {},
        tuple(_habit(one.key, habit) for habit in habits),
        problem,
        tuple(notes),
        one.studied,
    )
    return standing, ranking


def _places(
    one: Electorate, cast: Votes, scripts: Sequence[str], ranking: Ranking | None, level: Ranking | None
) -> list[Place]:
    people = _raters(one)
    won, halved = (win_rates(cast, clusters=scripts, raters=people, ties=ties) for ties in ("against", "half"))
    rated = elo(cast)
    places = []
    for at, player in enumerate(cast.players):
        rows = np.flatnonzero((cast.a == at) | (cast.b == at))
        own = rows.tolist()
        groups, voters = [scripts[row] for row in own], [people[row] for row in own] if people else None
        tied = share((cast.outcome[rows] == TIE).astype(np.float64), groups, voters)
        place = ranking.of(player) if ranking else None
        fair = level.of(player) if level else None
        places.append(
            Place(
                f"{one.key}/run/{player}",
                str(player),
                place.place if place else None,
                place.places if place else None,
                _estimate(place.rating, rows.size, points=True) if place else None,
                _estimate(fair.rating, rows.size, points=True) if fair else None,
                rated[player],
                _estimate(won[player], rows.size),
                _estimate(halved[player], rows.size),
                _estimate(tied, rows.size),
                int(rows.size),
                _acceptable(one, str(player)),
            )
        )
    return sorted(places, key=lambda p: (p.place or 0, -(p.won.value or 0.0), p.run))


def _raters(one: Electorate) -> list[str] | None:
    """Return the rater of each vote, if intervals can respect raters: people, and enough of them."""
    raters = [vote.rater for vote in one.votes]
    return raters if one.key == "people" and len(set(raters)) >= PEOPLE.least else None


def _acceptable(one: Electorate, run: str) -> Estimate | None:
    """Return the share of a study's answers that chose the run, or found both replies good."""
    votes = [v for v in one.votes if isinstance(v, StudyVote) and not v.graded and run in (v.a, v.b)]
    if not votes:
        return None
    values = np.array([float(_chose(v, run)) for v in votes])
    several = _raters(one) is not None
    found = share(values, [one.pairs[v.pair].group for v in votes], [v.rater for v in votes] if several else None)
    return _estimate(found, len(votes))


def _chose(vote: StudyVote, run: str) -> bool:
    return vote.answer == "both_good" or vote.winner == ("A" if vote.a == run else "B")


def _level(one: Electorate, cast: Votes, scripts: Sequence[str], prior: float) -> tuple[Ranking | None, list[str]]:
    """Return the ranking with side and lengths held fixed, and a note for each of these that cannot be held fixed."""
    notes = []
    columns: dict[str, list[float]] = {}
    for name in ("words", "seconds"):
        values = [_difference(one.pairs[v.pair], v, name) for v in one.votes]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            if known:
                notes.append(
                    f"the length in {name} is known for {len(known)} of {len(values)} votes, so it is not held fixed"
                )
        elif any(known):
            columns[name] = known
    try:
        raters = _raters(one)
        return bradley_terry(cast, clusters=scripts, raters=raters, prior=prior, covariates=columns, side=True), notes
    except ValueError as error:
        return None, [*notes, f"side and length cannot be held fixed: {_flags(str(error))}"]


def _difference(pair: Pair, vote: Vote, name: str) -> float | None:
    """Return the length of the reply on the rater's side A minus the length of the reply on side B."""
    first, second = getattr(pair, name)
    if first is None or second is None:
        return None
    return float(first - second) * (1 if vote.a == pair.a else -1)


def _leans_on_prior(cast: Votes) -> list[str]:
    """Return a note if the votes alone cannot rank all runs, so that the ratings depend on the prior."""
    try:
        check(cast, davidson=True)
    except ValueError as error:
        return [f"these ratings depend on the prior; without it: {_flags(str(error))}"]
    return []


def _advice(text: str, one: Electorate, pairs: Mapping[str, Pair]) -> str:
    """Return the problem's text with the number of pairs on which the electorate has not voted yet."""
    waiting = [p for name, p in pairs.items() if name not in one.pairs]
    text = _flags(text)
    if one.studied:
        return f"{text} (the votes are from a study: {STUDY_SUPPLY})"
    if waiting:
        return f"{text} (pairs of this arena without a vote of theirs: {len(waiting)})"
    return f"{text} (every pair has a vote of theirs; draw more pairs with --pairs)"


def _flags(text: str) -> str:
    """Return an error message of `stats` whose advice names flags of the command instead of Python arguments."""
    return text.replace("count ties as halves (ties='half')", "collect more votes").replace("a prior", "--prior 0.5")


def _habit(key: str, rater: Rater) -> Habit:
    def both(effect: Effect) -> tuple[float, float] | None:
        return None if math.isnan(effect.value) else (effect.value, effect.error)

    name = str(rater.rater)
    return Habit(f"{key}/rater/{name}", name, rater.votes, both(rater.sharpness), both(rater.side), both(rater.ties))


def _estimate(x: cluster.Interval, asked: int, *, points: bool = False) -> Estimate:
    if points:
        value, low, high = (START + POINTS * y for y in (x.value, x.low, x.high))
        x = cluster.Interval(value, POINTS * x.error, low, high, x.rows, x.clusters)
    return from_interval(x, x.low, x.high, asked)
