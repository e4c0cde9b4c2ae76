"""Standings by hand: ratings, ties, win rates, Elo, lengths, sides, agreement; and errors instead of wrong ratings."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from overtone.arena.electorates import behind
from overtone.arena.pairing import Pair
from overtone.arena.standing_sentences import sentences
from overtone.arena.standings import Standings, standings
from overtone.arena.vote_store import Kind, Vote
from overtone.stats.rank import POINTS

Row = tuple[str, str, str]  # a, b, winner


def arena(
    rows: list[Row], kind: Kind = "person", rater: str = "ann", **lengths: tuple[int, int]
) -> tuple[list[Vote], dict[str, Pair]]:
    """Every vote on a pair and a script of its own."""
    pairs = {
        f"p{n}": Pair(f"p{n}", f"i{n}|c", f"case{n}", f"s{n}", "sad", a, b, **lengths)  # type: ignore[arg-type]
        for n, (a, b, _) in enumerate(rows)
    }
    return [Vote(f"p{n}", a, b, winner, rater, kind) for n, (a, b, winner) in enumerate(rows)], pairs


def rank(*sides: tuple[list[Vote], dict[str, Pair]], **options: object) -> Standings:
    votes = [vote for found, _ in sides for vote in found]
    pairs = {name: pair for _, held in sides for name, pair in held.items()}
    return standings(votes, pairs, **options)  # type: ignore[arg-type]


TWO = [("x", "y", "A")] * 3 + [("y", "x", "B")] + [("x", "y", "B")] + [("x", "y", "tie")] * 2


def test_two_runs_have_the_ratings_ties_and_win_rates_that_a_pencil_gives() -> None:
    (found,) = rank(arena(TWO)).electorates
    x, y = found.places
    assert (x.run, x.place, y.run, y.place) == ("x", 1, "y", 2)
    assert x.rating and y.rating and x.rating.value and y.rating.value
    assert x.rating.value - y.rating.value == pytest.approx(POINTS * math.log(4))  # 4 wins against 1, ties aside
    assert x.rating.value + y.rating.value == pytest.approx(2000)
    assert (x.won.value, y.won.value) == (pytest.approx(4 / 7), pytest.approx(1 / 7))
    assert x.tied.value == y.tied.value == pytest.approx(2 / 7)
    assert x.halved.value == pytest.approx(5 / 7)
    assert (found.votes, found.pairs, found.scripts, x.comparisons) == (7, 7, 7, 7)
    assert x.elo > 1000 > y.elo and x.elo + y.elo == pytest.approx(2000)


def test_win_rates_add_up_as_the_papers_do() -> None:
    """Three runs that meet equally often: the rates add up to 1.5 times the share of votes that are no ties."""
    rng = np.random.default_rng(0)
    rows = [
        (a, b, ("A", "B", "tie")[int(rng.integers(3))])
        for _ in range(40)
        for a, b in (("x", "y"), ("y", "z"), ("x", "z"))
    ]
    (found,) = rank(arena(rows)).electorates
    ties = sum(winner == "tie" for *_, winner in rows) / len(rows)
    assert sum(p.won.value or 0 for p in found.places) == pytest.approx(1.5 * (1 - ties))


def test_intervals_go_by_script_not_by_vote() -> None:
    votes, pairs = arena(TWO * 4)
    (apart,) = rank((votes, pairs)).electorates
    together = {name: msgspec.structs.replace(pair, group=f"s{int(name[1:]) % 7}") for name, pair in pairs.items()}
    (one,) = rank((votes, together)).electorates
    first, second = apart.places[0].rating, one.places[0].rating
    assert first and second and first.value == pytest.approx(second.value)
    assert first.low and first.high and second.low and second.high
    assert second.high - second.low > 1.5 * (first.high - first.low), "four copies of a script are one script"
    assert one.scripts == 7 and "inaccurate" in one.notes[-1]


def test_people_and_judges_are_ranked_apart_and_compared() -> None:
    rng = np.random.default_rng(1)
    runs = {"v": 3.0, "w": 2.0, "x": 1.0, "y": 0.0, "z": -1.0}

    def cast(sign: float) -> list[Row]:
        names = list(runs)
        rows = []
        for n in range(400):
            a, b = names[n % 5], names[(n + 1 + n // 5 % 4) % 5]
            chance = 1 / (1 + math.exp(-sign * (runs[a] - runs[b])))
            rows.append((a, b, "A" if rng.random() < chance else "B"))
        return rows

    alike = rank(arena(cast(1)), arena(cast(1), "judge", "robot"))
    assert [s.key for s in alike.electorates] == ["people", "judges"]
    (agreement,) = alike.agreements
    assert agreement.tau.value == pytest.approx(1.0) and agreement.tau.low is not None and agreement.tau.low > 0
    assert agreement.same.value is not None and agreement.same.value > 0.5
    against = rank(arena(cast(1)), arena(cast(-1), "judge", "robot"))
    assert against.agreements[0].tau.value == pytest.approx(-1.0) and (against.agreements[0].tau.high or 0) < 0
    assert any("τ −1.00" in text and "opposite" in text for text in sentences(against))
    assert any("v is rated above all 4 others" in text for text in sentences(alike))
    assert any("p = 0.017 for unrelated rankings; they rank the runs alike" in text for text in sentences(alike))


def test_three_runs_are_too_few_to_say_that_rankings_agree() -> None:
    rows: list[Row] = [("x", "y", "A"), ("y", "z", "A"), ("x", "z", "A"), ("z", "x", "A")] * 10
    found = rank(arena(rows), arena(rows, "judge", "robot"))
    assert found.agreements[0].tau.value == 1.0
    (text,) = (text for text in sentences(found) if "rank runs alike" in text)
    assert text.startswith("Not enough data") and "(3 of 5)" in text and "overtone arena" in text


def test_a_few_scripts_do_not_make_a_best_run() -> None:
    found = rank(arena(TWO))
    assert found.electorates[0].scripts < 10 and not found.electorates[0].problem
    assert sentences(found)[0].startswith("Not enough data for a sentence on: People, which run is best (7 of 10)")


def test_several_judges_are_one_electorate_and_each_its_own() -> None:
    found = rank(arena(TWO, "judge", "one"), arena(TWO[::-1], "judge", "two"))
    assert [s.key for s in found.electorates] == ["judges", "judge/one", "judge/two"]
    assert found.electorates[0].votes == 14 and not found.agreements
    assert [h.rater for h in found.electorates[0].habits] == ["one", "two"]


def test_a_side_that_wins_whoever_stands_there_is_found_and_taken_out() -> None:
    rng = np.random.default_rng(2)
    rows = []
    for n in range(400):
        a, b = ("x", "y") if n % 2 else ("y", "x")
        rows.append((a, b, "A" if rng.random() < 0.7 else "B"))
    (found,) = rank(arena(rows)).electorates
    side = found.effects["side"]
    assert side.low and side.low > 0 and side.value == pytest.approx(math.log(0.7 / 0.3), abs=0.4)
    told = next(text for text in sentences(rank(arena(rows))) if "favour the reply shown first" in text)
    assert told.endswith("; the 95 % interval of this effect excludes 0.")


def test_a_liking_for_length_is_found_and_the_level_field_takes_it_out() -> None:
    rng = np.random.default_rng(3)
    votes, pairs = [], {}
    for n in range(600):
        long = bool(rng.random() < 0.8)  # x is the longer one most of the time
        words = (30, 10) if long else (10, 30)
        chance = 1 / (1 + math.exp(-0.08 * (words[0] - words[1])))
        a, b, w = ("x", "y", words) if n % 2 else ("y", "x", words[::-1])
        won = "x" if rng.random() < chance else "y"
        pairs[f"p{n}"] = Pair(f"p{n}", f"i{n}|c", f"case{n}", f"s{n}", "sad", a, b, words=w)
        votes.append(Vote(f"p{n}", a, b, "A" if a == won else "B", "ann", "person"))
    (found,) = standings(votes, pairs).electorates
    assert found.effects["words"].value == pytest.approx(0.08, abs=0.02)
    x = next(p for p in found.places if p.run == "x")
    assert x.rating and x.level_field and x.rating.low and x.level_field.low and x.level_field.high
    assert x.rating.low > 1000, "by its length it wins"
    assert x.level_field.low < 1000 < x.level_field.high, "at equal length it does not"
    assert "seconds" not in found.effects


def test_groups_that_never_met_get_no_ratings_but_advice_and_win_rates() -> None:
    rows = [("w", "x", "A"), ("w", "x", "B"), ("y", "z", "A"), ("y", "z", "B")]
    votes, pairs = arena(rows)
    pairs["waiting"] = Pair("waiting", "i9|c", "case9", "s9", "sad", "x", "y")
    found = standings(votes, pairs)
    (one,) = found.electorates
    assert "no vote compares these groups" in one.problem and "without a vote of theirs: 1" in one.problem
    assert all(p.rating is None and p.won.value == 0.5 for p in one.places)
    assert sentences(found)[0].startswith("People: no ratings: no vote compares")


def test_a_run_that_never_loses_gets_no_rating_unless_a_prior_is_given() -> None:
    rows = [("x", "y", "A")] * 5
    (one,) = rank(arena(rows)).electorates
    assert "x does not lose or tie once" in one.problem and "--prior 0.5" in one.problem
    assert "draw more pairs with --pairs" in one.problem
    (tamed,) = rank(arena(rows), prior=0.5).electorates
    assert tamed.places[0].run == "x" and tamed.places[0].rating and not tamed.problem
    assert "depend on the prior" in tamed.notes[0]
    assert not any("prior" in note for note in rank(arena(TWO), prior=0.5).electorates[0].notes)
    both = rank(arena(rows), arena(TWO, "judge", "robot"))
    assert both.agreements[0].tau.value is None and "has no ratings" in both.agreements[0].tau.note


def test_votes_in_perfect_order_get_advice_that_the_command_understands() -> None:
    (one,) = rank(arena([("x", "y", "A"), ("x", "y", "tie")])).electorates
    assert one.problem and "ties='half'" not in one.problem and "--prior 0.5" in one.problem


def test_who_stood_on_which_side_and_who_was_named_first_does_not_matter_to_the_ratings() -> None:
    rng = np.random.default_rng(5)
    names = ["w", "x", "y", "z"]
    rows = []
    for _ in range(200):
        a, b = rng.choice(names, 2, replace=False)
        rows.append((str(a), str(b), ("A", "B", "tie")[int(rng.integers(3))]))
    other = [(b, a, {"A": "B", "B": "A", "tie": "tie"}[w]) for a, b, w in rows]
    for first, second in zip(
        rank(arena(rows)).electorates[0].places, rank(arena(other)).electorates[0].places, strict=True
    ):
        assert first.run == second.run and first.rating and second.rating
        assert first.rating.value == pytest.approx(second.rating.value)
        assert first.rating.low == pytest.approx(second.rating.low) and first.won == second.won


def test_every_number_leads_to_the_cases_under_it() -> None:
    votes, pairs = arena([*TWO, ("y", "z", "A"), ("y", "z", "B")])
    votes[0] = msgspec.structs.replace(votes[0], rater="bob")
    found = standings(votes, pairs)
    keys = [p.key for s in found.electorates for p in s.places]
    assert len(set(keys)) == len(keys) == 3
    assert behind(votes, pairs, "people/run/z") == ["case7", "case8"]
    assert behind(votes, pairs, "people/rater/bob") == ["case0"]
    assert len(behind(votes, pairs, "people")) == 9
    assert behind(votes, pairs, "people/run/nobody") == [] == behind(votes, pairs, "nothing")


def test_no_votes_are_no_standings_and_a_run_without_votes_is_named() -> None:
    assert standings([], {}).electorates == ()
    assert "no vote is about z" in rank(arena(TWO), runs=("x", "y", "z")).notes[0]


def test_the_same_votes_give_the_same_standings_to_the_last_digit() -> None:
    first = rank(arena(TWO), arena(TWO, "judge", "robot"))
    assert msgspec.json.encode(first) == msgspec.json.encode(rank(arena(TWO), arena(TWO, "judge", "robot")))
    assert first.signature.startswith("arena|v2|")
