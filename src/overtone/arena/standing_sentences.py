"""Sentences about the standings. Each sentence has a result with its interval, or says which data is still missing."""

from __future__ import annotations

from msgspec.structs import replace

from overtone.arena.standings import Standing, Standings
from overtone.results.measures import Estimate
from overtone.results.significance import by_interval, excludes, p_value, significant
from overtone.stats.correlation import kendall_p
from overtone.stats.minimums import SAME_ORDER, STUDY_SUPPLY, VOTES, shortfall
from overtone.text import number, percent


def sentences(found: Standings) -> list[str]:
    """Return the results of the standings, one sentence each."""
    lines = []
    for standing in found.electorates:
        name = {"people": "People", "judges": "Judges"}.get(standing.name, standing.name)
        if standing.problem:
            lines.append(f"{name}: no ratings: {standing.problem}.")
            continue
        if standing.scripts < VOTES.least:
            lines.append(
                shortfall(
                    replace(VOTES, supply=STUDY_SUPPLY) if standing.studied else VOTES,
                    [(f"{name}, which run is best", standing.scripts)],
                )
            )
            continue
        best, *rest = standing.places
        top = [place.run for place in standing.places if place.places and place.places[0] == 1]
        if len(top) == 1 and best.rating is not None:
            lines.append(
                f"{name}: {best.run} is rated above all {len(rest)} others "
                f"({_points(best.rating)}; it wins {percent(best.won.value)} of its comparisons)."
            )
        else:
            lines.append(f"{name}: {standing.votes} votes do not show which of {_named(top)} is best.")
        lines += _leanings(name, standing)
    for a in found.agreements:
        who = f"{a.first.capitalize()} and {a.second}"
        if a.tau.value is None:
            lines.append(f"{who}: not enough data to compare their rankings: {a.tau.note}.")
            continue
        if a.runs < SAME_ORDER.least:
            lines.append(shortfall(SAME_ORDER, [(f"whether {a.first} and {a.second} rank runs alike", a.runs)]))
            continue
        p = kendall_p(a.tau.value, a.runs)
        tail = "no significant agreement or disagreement of their rankings"
        if significant(p) and a.tau.low is not None and a.tau.low > 0:
            tail = "they rank the runs alike"
        elif significant(p) and a.tau.high is not None and a.tau.high < 0:
            tail = "they rank the runs in opposite order"
        ends = "" if a.tau.low is None or a.tau.high is None else f" [{number(a.tau.low)} to {number(a.tau.high)}]"
        tau = f"Kendall's τ {number(a.tau.value)}{ends}"
        lines.append(f"{who}: {tau} over {a.runs} runs, {p_value(p)} for unrelated rankings; {tail}.")
    return lines


def _leanings(name: str, standing: Standing) -> list[str]:
    words = {"side": "the reply shown first", "words": "the longer reply", "seconds": "the reply that takes longer"}
    other = {"side": "the one shown second", "words": "the shorter", "seconds": "the one that takes less time"}
    lines = []
    for key, effect in standing.effects.items():
        if effect.value is None or not excludes(effect):
            continue
        preferred = words[key] if effect.value > 0 else other[key]
        rule = by_interval(effect, "this effect")
        lines.append(f"{name}: votes favour {preferred}, with the runs' ratings held fixed{rule}.")
    return lines


def _points(e: Estimate) -> str:
    ends = "" if e.low is None or e.high is None else f" [{e.low:.0f} to {e.high:.0f}]"
    return f"{e.value:.0f} points{ends}"


def _named(runs: list[str]) -> str:
    return ", ".join(runs) if len(runs) <= 6 else f"{', '.join(runs[:5])} and {len(runs) - 5} more"
