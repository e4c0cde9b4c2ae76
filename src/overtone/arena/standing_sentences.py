"""The standings in plain sentences: what was found, with its interval, or what is missing for a conclusion."""

from __future__ import annotations

from overtone.arena.standings import Standing, Standings
from overtone.results.measures import Estimate
from overtone.results.significance import by_interval, excludes, p_value, significant
from overtone.stats.correlation import kendall_p
from overtone.stats.minimums import SAME_ORDER, VOTES, shortfall


def sentences(found: Standings) -> list[str]:
    """What was found, one plain sentence each."""
    said = []
    for standing in found.electorates:
        name = {"people": "People", "judges": "Judges"}.get(standing.name, standing.name)
        if standing.problem:
            said.append(f"{name}: no ratings: {standing.problem}.")
            continue
        if standing.scripts < VOTES.least:
            said.append(shortfall(VOTES, [(f"{name}, which run is best", standing.scripts)]))
            continue
        best, *rest = standing.places
        top = [place.run for place in standing.places if place.places and place.places[0] == 1]
        if len(top) == 1 and best.rating is not None:
            said.append(
                f"{name}: {best.run} is rated above all {len(rest)} others "
                f"({_points(best.rating)}; it wins {_share(best.won)} of its comparisons)."
            )
        else:
            said.append(f"{name}: {standing.votes} votes do not show which of {_named(top)} is best.")
        said += _leanings(name, standing)
    for a in found.agreements:
        who = f"{a.first.capitalize()} and {a.second}"
        if a.tau.value is None:
            said.append(f"{who}: not enough data to compare their rankings: {a.tau.note}.")
            continue
        if a.runs < SAME_ORDER.least:
            said.append(shortfall(SAME_ORDER, [(f"whether {a.first} and {a.second} rank runs alike", a.runs)]))
            continue
        p = kendall_p(a.tau.value, a.runs)
        tail = "no significant agreement or disagreement of their rankings"
        if significant(p) and a.tau.low is not None and a.tau.low > 0:
            tail = "they rank the runs alike"
        elif significant(p) and a.tau.high is not None and a.tau.high < 0:
            tail = "they rank the runs in opposite order"
        ends = "" if a.tau.low is None or a.tau.high is None else f" [{_signed(a.tau.low)} to {_signed(a.tau.high)}]"
        tau = f"Kendall's τ {_signed(a.tau.value)}{ends}"
        said.append(f"{who}: {tau} over {a.runs} runs, {p_value(p)} for unrelated rankings; {tail}.")
    return said


def _leanings(name: str, standing: Standing) -> list[str]:
    words = {"side": "the reply shown first", "words": "the longer reply", "seconds": "the reply that takes longer"}
    other = {"side": "the one shown second", "words": "the shorter", "seconds": "the one that takes less time"}
    said = []
    for key, effect in standing.effects.items():
        if effect.value is None or not excludes(effect):
            continue
        liked = words[key] if effect.value > 0 else other[key]
        said.append(f"{name}: votes lean towards {liked}, the runs held equal{by_interval(effect, 'this effect')}.")
    return said


def _points(e: Estimate) -> str:
    ends = "" if e.low is None or e.high is None else f" [{e.low:.0f} to {e.high:.0f}]"
    return f"{e.value:.0f} points{ends}"


def _share(e: Estimate) -> str:
    return "–" if e.value is None else f"{100 * e.value:.0f} %"


def _signed(x: float) -> str:
    return f"{x:.2f}".replace("-", "−")


def _named(runs: list[str]) -> str:
    return ", ".join(runs) if len(runs) <= 6 else f"{', '.join(runs[:5])} and {len(runs) - 5} more"
