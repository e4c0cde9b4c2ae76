"""The standings in plain sentences: what was found, with its interval; "cannot be told" where it cannot."""

from __future__ import annotations

from overtone.analysis.measures import Estimate
from overtone.arena.standings import Standing, Standings


def sentences(found: Standings) -> list[str]:
    """What was found, one plain sentence each."""
    said = []
    for standing in found.electorates:
        name = {"people": "People", "judges": "Judges"}.get(standing.name, standing.name)
        if standing.problem:
            said.append(f"{name}: no ratings: {standing.problem}.")
            continue
        best, *rest = standing.places
        top = [place.run for place in standing.places if place.places and place.places[0] == 1]
        if len(top) == 1 and best.rating is not None:
            said.append(
                f"{name}: {best.run} is rated above all {len(rest)} others "
                f"({_points(best.rating)}; it wins {_share(best.won)} of its comparisons)."
            )
        else:
            said.append(f"{name}: which of {_named(top)} is best cannot be told from {standing.votes} votes.")
        said += _leanings(name, standing)
    for a in found.agreements:
        if a.tau.value is None:
            said.append(f"Whether {a.first} and {a.second} rank alike cannot be told: {a.tau.note}.")
            continue
        tail = "whether they rank alike cannot be told"
        if a.tau.low is not None and a.tau.low > 0:
            tail = "they rank alike more than chance would"
        elif a.tau.high is not None and a.tau.high < 0:
            tail = "they rank in opposite order more than chance would"
        ends = "" if a.tau.low is None or a.tau.high is None else f" [{_signed(a.tau.low)} to {_signed(a.tau.high)}]"
        tau = f"Kendall's τ {_signed(a.tau.value)}{ends}"
        said.append(f"{a.first.capitalize()} and {a.second}: {tau} over {a.runs} runs; {tail}.")
    return said


def _leanings(name: str, standing: Standing) -> list[str]:
    words = {"side": "the reply shown first", "words": "the longer reply", "seconds": "the reply that takes longer"}
    other = {"side": "the one shown second", "words": "the shorter", "seconds": "the one that takes less time"}
    said = []
    for key, effect in standing.effects.items():
        if effect.value is None or effect.low is None or effect.high is None or effect.low <= 0 <= effect.high:
            continue
        liked = words[key] if effect.value > 0 else other[key]
        said.append(f"{name}: votes lean towards {liked}, the runs held equal.")
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
