"""People's votes in files: exported blind, filled in, taken in whole or not at all, wrong lines named."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from overtone.arena import ballots, contestants, pair_files
from overtone.arena.contestants import Field
from overtone.arena.rounds import current, play
from overtone.arena.vote_store import Table
from overtone.errors import DataError, StoreError
from overtone.judges import rubric
from tests.arena.helpers import make_run, runs

PAIR = rubric.load("pair")


@pytest.fixture
def here(tmp_path: Path) -> Field:
    return contestants.read(runs(tmp_path, {"modelx": 1, "modely": 2}, scripts=3))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_people_see_no_names_and_their_filled_in_file_comes_back(tmp_path: Path, here: Field) -> None:
    out, key = tmp_path / "for people" / "pairs.csv", tmp_path / "arena" / "key.csv"
    with Table(tmp_path / "arena") as table:
        play(here, table, [], PAIR, 4)
        assert pair_files.blind(here, current(here, table), PAIR, out, key) == 4
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert "modelx" not in out.read_text() and "modely" not in out.read_text()
        who = {row["pair"]: row for row in csv.DictReader(key.open(newline=""))}
        for row in rows:
            assert f"worth {1 if who[row['pair']]['a'] == 'modelx' else 2}" in row["reply_a"]
            row |= {"winner": "a" if "worth 2" in row["reply_a"] else "B", "rater": "ann"}
        rows[3]["winner"] = ""
        pair_files.write(out, rows)
        found = ballots.read(out, here, {pair.id: pair for pair in table.pairs()})
        assert (len(found.votes), found.blank, found.pairs) == (3, 1, [])
        assert {{"A": vote.a, "B": vote.b}[vote.winner] for vote in found.votes} == {"modely"}
        table.import_file("pairs.csv", found.pairs, found.votes)
        table.import_file("pairs.csv", found.pairs, found.votes[:2])
        assert len(table.votes()) == 2, "a file taken in again says what it says now"
        with pytest.raises(StoreError, match=r"other.csv, line 2: 'ann' has voted on this pair before \(pairs.csv"):
            table.import_file("other.csv", [], found.votes)
        assert len(table.votes()) == 2, "and nothing of a refused file is kept"


def test_exported_sounds_have_names_that_tell_nothing(tmp_path: Path) -> None:
    here = contestants.read(runs(tmp_path, {"modelx": 1, "modely": 2}, scripts=1, spoken=True, root=tmp_path / "clips"))
    out = tmp_path / "pairs.jsonl"
    with Table(tmp_path / "arena") as table:
        play(here, table, [], PAIR, 1)
        pair_files.blind(here, table.pairs(), PAIR, out, tmp_path / "key.csv")
    row = json.loads(out.read_text())
    for name in ("user_sound", "a_sound", "b_sound"):
        assert (tmp_path / row[name]).read_bytes()[:4] == b"RIFF" and "model" not in row[name]


def test_text_that_looks_like_a_formula_is_no_formula_in_the_exported_table(tmp_path: Path) -> None:
    hostile = {"toy/s0/target": '=HYPERLINK("http://x","y")', "toy/s0/neutral": "fine"}
    both = [make_run(tmp_path / name, 1, scripts=1, words=hostile) for name in "xy"]
    here = contestants.read(both)
    with Table(tmp_path / "arena") as table:
        play(here, table, [], PAIR, 2)
        pair_files.blind(here, table.pairs(), PAIR, tmp_path / "p.csv", tmp_path / "k.csv")
    with (tmp_path / "p.csv").open(newline="") as file:
        assert {row["reply_a"][:2] for row in csv.DictReader(file)} == {"'=", "fi"}


def test_a_vote_may_name_the_case_and_the_runs_on_either_side(tmp_path: Path, here: Field) -> None:
    path = write(
        tmp_path / "votes.csv",
        "case,a,b,winner,rater\n"
        "synthesis/s0/target,modelx,modely,B,ann\n"
        "synthesis/s0/target,modely,modelx,modely,bob\n"
        "toy/s1/neutral,modely,modelx,tie,ann\n",
    )
    found = ballots.read(path, here, {})
    assert [(v.a, v.winner, v.rater) for v in found.votes] == [
        ("modelx", "B", "ann"),
        ("modely", "A", "bob"),
        ("modely", "tie", "ann"),
    ]
    assert found.votes[0].pair == found.votes[1].pair and len(found.pairs) == 2
    assert not found.pairs[0].drawn and found.pairs[0].words[0]
    with Table(tmp_path / "arena") as table:
        table.import_file("votes.csv", found.pairs, found.votes)
        play(here, table, [], PAIR, 10)
        assert len(table.pairs()) == 6 and sum(pair.drawn for pair in table.pairs()) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs? .*winner"),
        ("case,a,b,rater\nx,y,z,ann\n", "need the columns winner and pair"),
        ("winner\nA\n", "winner and pair"),
        ("pair,winner\nabc,A\n", "line 2: there is no pair 'abc'"),
        ("case,a,b,winner\nsynthesis/s0/target,modelx,modely,C\n", "line 2: the winner is 'C'; write A, B or tie"),
        ("case,a,b,winner\nsynthesis/s0/target,modelx,modelz,A\n", "line 2: no run is called 'modelz'.*modely"),
        ("case,a,b,winner\nsynthesis/s0/target,modelx,modelx,A\n", "line 2: compares 'modelx' with itself"),
        ("case,a,b,winner\nsynthesis/s9/target,modelx,modely,A\n", "line 2: the runs share no answered case"),
        ("case,a,b,winner\n,modelx,modely,A\n", "line 2: has no case"),
        ("case,a,b,winner\nsynthesis/s0/target,modelx,modely\n", "line 2: has 3 fields"),
        ("case,a,b,winner\nsynthesis/s0/target,modelx,modely,\n", "no row has a winner"),
        ("case,a,b,winner,kind\nsynthesis/s0/target,modelx,modely,A,robot\n", "line 2: the kind is 'robot'"),
        ('{"case": "synthesis/s0/target", "a": "modelx", "b"\n', "line 1: is not a JSON object"),
        (
            "case,a,b,winner,rater\n\nsynthesis/s0/target,modelx,modely,A,ann\nsynthesis/s0/target,modelx,modely,B,ann\n",
            "line 4: 'ann' votes on this pair again, after line 3",
        ),
    ],
)
def test_a_wrong_line_is_named_with_what_to_write(tmp_path: Path, here: Field, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        ballots.read(write(tmp_path / "votes.csv", text), here, {})


def test_votes_on_players_that_are_no_runs_are_read_by_their_own_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", "prompt,worker,winner,left,right\n8,58,tie,L,R\n8,83,left,L,R\n9,58,right,R,L\n")
    found = ballots.read(path, None, {})
    assert [(v.a, v.b, v.winner, v.rater) for v in found.votes] == [
        ("L", "R", "tie", "58"),
        ("L", "R", "A", "83"),
        ("R", "L", "B", "58"),
    ]
    assert [pair.group for pair in found.pairs] == ["8", "9"]


def test_exported_votes_can_be_taken_in_elsewhere_with_who_cast_them(tmp_path: Path, here: Field) -> None:
    with Table(tmp_path / "arena") as table:
        play(here, table, [], PAIR, 3)
        pair = table.pairs()[0]
        rows = (
            f"pair,winner,rater,kind,repeat\n{pair.id},A,ann,,\n{pair.id},B,robot,judge,0\n{pair.id},A,robot,judge,1\n"
        )
        found = ballots.read(write(tmp_path / "v.csv", rows), here, {pair.id: pair})
        table.import_file("v.csv", found.pairs, found.votes)
        pairs = {p.id: p for p in table.pairs()}
        assert pair_files.votes(table.votes(), pairs, tmp_path / "out.csv") == 3
    again = ballots.read(tmp_path / "out.csv", None, {})
    assert [(v.rater, v.kind, v.winner, v.a, v.repeat) for v in again.votes] == [
        ("ann", "person", "A", pair.a, 0),
        ("robot", "judge", "B", pair.a, 0),
        ("robot", "judge", "A", pair.a, 1),
    ]
