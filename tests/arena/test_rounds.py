"""Judges in the arena: both orders, paid once, rounds that know the votes so far, kills and changed replies."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from overtone.arena import contestants
from overtone.arena.rounds import current, play
from overtone.arena.vote_store import Table
from overtone.errors import DataError, StoreError, UsageError
from overtone.judges import rubric
from overtone.judges.policy import parse_judge
from overtone.runs.store import Store
from overtone.schema import Reply
from tests.arena.helpers import by_worth, item, make_run, runs, voiced
from tests.judges.server import JudgeServer

PAIR = rubric.load("pair")
WORTHS = {"bad": 1.0, "fair": 2.0, "good": 3.0}


def test_only_core_cases_that_every_run_answered_take_part(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", 1, scripts=3, others=(item(8, "target", "sad", part="dialogue"),))
    two = make_run(tmp_path / "two", 2, scripts=3, leave_out=("toy/s0/target",))
    found = contestants.read([one, two])
    assert found.players == ("one", "two")
    keys = [f"toy/s{n}/{style}|enhance/audio" for n in range(3) for style in ("target", "neutral")]
    assert [case.key for case in found.cases] == keys[1:]
    assert "5 of up to 6 cases" in found.notes[0]


def test_cues_that_are_not_validated_are_left_out_where_there_are_others(tmp_path: Path) -> None:
    doubtful = item(7, "target", "sad", status="unvalidated")
    both = [make_run(tmp_path / name, 1, scripts=2, others=(doubtful,)) for name in "xy"]
    found = contestants.read(both)
    assert len(found.cases) == 4 and "1 case of cues that are not validated is left out" in found.notes[0]
    alone = [make_run(tmp_path / name, 1, scripts=0, others=(doubtful,)) for name in "pq"]
    assert "no cue is validated" in contestants.read(alone).notes[0] and len(contestants.read(alone).cases) == 1


def test_clips_of_several_sources_are_not_pooled_unless_asked_for(tmp_path: Path) -> None:
    others = tuple(voiced(n, source) for n in range(3) for source in ("synthesis", "human"))
    both = [make_run(tmp_path / name, 1, scripts=0, others=others) for name in "xy"]

    def sources(wanted: str = "") -> set[str]:
        return {case.case.partition("/")[0] for case in contestants.read(both, source=wanted).cases}

    assert sources() == {"synthesis"} and sources("human") == {"human"}
    assert sources("all") == {"synthesis", "human"}
    assert contestants.read(both).notes == (
        "over the clips of synthesis, 3 of 6 shared cases; --source chooses those of human, or all",
    )
    assert contestants.read(both, source="all").notes == ("over the clips of all sources together: human, synthesis",)
    with pytest.raises(UsageError, match=r"--source humans: .*'human'.*they have human, synthesis"):
        contestants.read(both, source="humans")


def test_runs_that_share_only_human_clips_meet_on_those(tmp_path: Path) -> None:
    human = tuple(voiced(n, "human") for n in range(2))
    one = make_run(tmp_path / "one", 1, scripts=0, others=(*human, voiced(0, "synthesis")))
    two = make_run(tmp_path / "two", 2, scripts=0, others=human)
    assert {case.group for case in contestants.read([one, two]).cases} == {"human/s0", "human/s1"}


def test_runs_that_cannot_meet_are_refused(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", 1, scripts=2)
    with pytest.raises(UsageError, match="at least two runs"):
        contestants.read([one])
    with pytest.raises(UsageError, match="two runs are called 'one'"):
        contestants.read([one, make_run(tmp_path / "b" / "one", 1, scripts=2)])
    other = make_run(tmp_path / "other", 1, scripts=0, others=(item(50, "target", "sad"),))
    with pytest.raises(DataError, match=r"one 4, other 1 answered"):
        contestants.read([one, other])
    with pytest.raises(DataError, match="--rubric pair"):
        contestants.read([one, make_run(tmp_path / "two", 1, scripts=2)], spoken=True)


def test_rubrics_that_do_not_compare_are_refused() -> None:
    contestants.check_suits(PAIR)
    contestants.check_suits(rubric.load("pair-voice"))
    with pytest.raises(UsageError, match="judges single replies"):
        contestants.check_suits(rubric.load("echomind"))


def test_a_judge_votes_in_both_orders_and_is_paid_once(tmp_path: Path) -> None:
    here = contestants.read(runs(tmp_path, WORTHS))
    with JudgeServer(verdict=by_worth) as server, Table(tmp_path / "arena") as table:
        judge = parse_judge(server.spec())
        outcome = play(here, table, [judge], PAIR, 12)["scripted"]
        assert (outcome.asked, outcome.answered, server.paid) == (24, 24, 24)
        cast = table.votes()
        assert len(cast) == 24 and len({v.pair for v in cast}) == 12
        for pair in table.pairs():
            first, second = [v for v in cast if v.pair == pair.id]
            assert (first.a, first.b) == (second.b, second.a) == (pair.a, pair.b)
            assert {first.winner, second.winner} == {"A", "B"}, "the same reply, on the other side"
            best = max((pair.a, pair.b), key=lambda name: WORTHS[name])
            assert {"A": first.a, "B": first.b}[first.winner] == {"A": second.a, "B": second.b}[second.winner] == best
        again = play(here, table, [judge], PAIR, 12)["scripted"]
        assert (again.cached, again.requests, server.paid) == (24, 0, 24)
        assert table.votes() == cast


def test_more_pairs_later_are_those_that_all_at_once_had_been(tmp_path: Path) -> None:
    here = contestants.read(runs(tmp_path, WORTHS, scripts=20))
    with JudgeServer(verdict=by_worth) as server:
        judge = parse_judge(server.spec())
        with Table(tmp_path / "steps") as steps, Table(tmp_path / "once") as once:
            for count in (10, 75, 110):
                play(here, steps, [judge], PAIR, count)
            play(here, once, [judge], PAIR, 110)
            assert steps.pairs() == once.pairs()
            assert len(steps.pairs()) == 110
            before = steps.pairs()
            play(here, steps, [], PAIR, 5)
            assert steps.pairs() == before, "asking for fewer takes nothing away"


def test_a_judge_that_stops_ends_the_drawing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    here = contestants.read(runs(tmp_path, WORTHS, scripts=20))
    with JudgeServer(verdict=by_worth) as server, Table(tmp_path / "arena") as table:
        stopped = play(here, table, [parse_judge(server.spec("budget_requests=6&connections=1"))], PAIR, 80)["scripted"]
        assert stopped.stopped == "budget"
        assert len(table.pairs()) == 60, "the first round; the second would not know its votes"
        play(here, table, [parse_judge(server.spec("connections=1"))], PAIR, 80)
        assert len(table.pairs()) == 80 and len(table.votes()) == 160 and server.paid == 160


def test_a_changed_reply_is_another_pair_and_old_votes_on_it_do_not_count(tmp_path: Path) -> None:
    folders = runs(tmp_path, {"x": 1, "y": 2}, scripts=2)
    here = contestants.read(folders)
    with Table(tmp_path / "arena") as table:
        play(here, table, [], PAIR, 4)
        assert len(current(here, table)) == 4
        other = make_run(tmp_path / "new" / "y", 2, scripts=2, words={"toy/s0/target": "Something else."})
        changed = contestants.read([folders[0], other])
        assert [p.key for p in table.pairs() if p not in current(changed, table)] == ["toy/s0/target|enhance/audio"]


def test_spoken_replies_are_compared_by_ear(tmp_path: Path) -> None:
    options = {"scripts": 2, "spoken": True, "root": tmp_path / "clips"}
    here = contestants.read(runs(tmp_path, {"x": 1, "y": 2}, **options), spoken=True)
    with JudgeServer(verdict=lambda asked: {"voice_preference": "A"}) as server, Table(tmp_path / "arena") as table:
        play(here, table, [parse_judge(server.spec())], rubric.load("pair-voice"), 2)
        assert {len(asked.sounds) for asked in server.asked} == {3}
        assert all(pair.seconds[0] for pair in table.pairs())
        assert {vote.winner for vote in table.votes()} == {"A"}


def test_a_table_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "arena.db").write_text("no database")
    with pytest.raises(StoreError):
        Table(tmp_path)


def test_a_killed_arena_has_lost_no_vote_that_was_paid(tmp_path: Path) -> None:
    folders = runs(tmp_path, WORTHS)
    with JudgeServer(verdict=by_worth) as server:
        code = f"""
            import os
            from pathlib import Path
            from overtone.arena import contestants, rounds
            from overtone.arena.vote_store import Table
            from overtone.judges import rubric
            from overtone.judges.policy import parse_judge
            here = contestants.read([Path(p) for p in {[str(f) for f in folders]!r}])
            seen = []
            def killed(label, more):
                seen.append(label)
                if len(seen) == 5:
                    os.kill(os.getpid(), 9)
            with Table(Path({str(tmp_path / "arena")!r})) as table:
                judge = parse_judge({server.spec("connections=1")!r})
                rounds.play(here, table, [judge], rubric.load("pair"), 12, on_judged=killed)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
        )
        assert done.returncode == -9, done.stderr
        paid = server.paid
        assert paid == 10
        here = contestants.read(folders)
        with Table(tmp_path / "arena") as table:
            assert len(table.votes()) == 10
            play(here, table, [parse_judge(server.spec("connections=1"))], PAIR, 12)
            assert len(table.votes()) == 24 and server.paid == 24


def test_a_verdict_that_cannot_be_read_is_no_vote_and_is_asked_for_again_only_by_policy(tmp_path: Path) -> None:
    here = contestants.read(runs(tmp_path, {"x": 1, "y": 2}, scripts=2))
    with JudgeServer(verdict=by_worth) as server, Table(tmp_path / "arena") as table:
        server.behave("off_menu", "words")
        outcome = play(here, table, [parse_judge(server.spec("again=0&connections=1"))], PAIR, 4)["scripted"]
        assert (outcome.unread, outcome.answered, len(table.votes())) == (2, 6, 6)
        assert len({vote.pair for vote in table.votes()}) == 3


def test_a_judge_is_opened_once_for_all_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from overtone.models import openai

    load, opened = openai.load, []
    monkeypatch.setattr(openai, "load", lambda spec: opened.append(spec) or load(spec))
    here = contestants.read(runs(tmp_path, WORTHS, scripts=20))
    with JudgeServer(verdict=by_worth) as server, Table(tmp_path / "arena") as table:
        play(here, table, [parse_judge(server.spec())], PAIR, 75)
        assert len(table.votes()) == 150 and len(opened) == 1


def test_dialogues_take_no_part_since_each_run_has_had_its_own(tmp_path: Path) -> None:
    one = item(5, "target", "sad")
    dialogue = msgspec.structs.replace(one, turns=one.turns * 2)
    both = []
    for name in "xy":
        folder = make_run(tmp_path / name, 1, scripts=1)
        with Store.create(folder) as store:
            store.plan([(dialogue, ["enhance/audio"])], 1)
            (ask,) = store.open_asks(0, 10)
            for turn in range(2):
                store.add_reply(ask, turn, Reply("Yes."), sent=b"[]", latency=1.0, attempts=1)
            store.commit()
        both.append(folder)
    assert [case.group for case in contestants.read(both).cases] == ["synthesis/s0", "synthesis/s0"]


def test_a_judge_that_cannot_be_read_does_not_end_the_voting_of_the_others(tmp_path: Path) -> None:
    found = contestants.read(runs(tmp_path, WORTHS, scripts=20))
    with Table(tmp_path / "arena") as table, JudgeServer(verdict=by_worth) as server, JudgeServer() as mute:
        mute.always = "words"
        judges = [parse_judge(server.spec()), parse_judge(mute.spec("again=0&connections=1", name="mute"))]
        outcomes = play(found, table, judges, PAIR, 80)
    assert outcomes["scripted"].answered == 160, "both orders of all pairs, also of those after the first round"
    assert outcomes["mute"].stopped == "unreadable" and mute.count == 20
