"""Groups of variants before a judge: whole, shuffled by their names, with a control, each verdict on every reply."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from overtone import registry
from overtone.cli import main
from overtone.errors import UsageError
from overtone.judges import reply_audio, rubric
from overtone.judges.groups import exchanged, shuffled
from overtone.judges.judge_run import beside, judge_run
from overtone.judges.judgement import Outcome
from overtone.judges.policy import parse_judge
from overtone.results.judge_scores import read_dimensions
from overtone.results.load import Answer, open_run
from overtone.runs.store import Ask, Store
from overtone.schema import Clip, Item, Reply, Turn
from tests.judges.helpers import QUICK
from tests.judges.server import JudgeServer, Verdict
from tests.servers import Asked, tone

RUBRIC = "aeq-discrimination"


def item(group: str, variant: int) -> Item:
    name = f"{group}_{variant}"
    turn = Turn(Clip("a.wav"), "Could you give him some money?")
    return Item(f"aeq/{name}", "aeq", 3, "converse", "context", name, group, "", (turn,), context=f"Situation {name}.")


def planned(folder: Path, groups: dict[str, int], conditions: list[str]) -> None:
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "aeq"})
        store.plan([(item(g, n), conditions) for g, size in groups.items() for n in range(1, size + 1)], 1)
        store.commit()


def answer(folder: Path, reply: Callable[[Ask], Reply | None]) -> None:
    with Store.create(folder) as store:
        for ask in store.open_asks(0, 1000):
            if (said := reply(ask)) is not None:
                store.add_reply(ask, 0, said, sent=b"[]", latency=0.1, attempts=1)
        store.commit()


def told(ask: Ask) -> Reply:
    return Reply(f"Reply to {ask.item.case} under {ask.condition}.")


def fits(asked: Asked) -> Verdict:
    """6 where every reply is under its own situation, 1 where none is."""
    own = re.findall(r"Situation (\S+)\.\n</context", asked.text)
    said = re.findall(r"Reply to (\S+) under", asked.text)
    assert len(own) == len(said) > 1
    return {"discrimination": 6 if own == said else 1 if all(a != b for a, b in zip(own, said, strict=True)) else 3}


def judge(folder: Path, server: JudgeServer, options: str = "") -> Outcome:
    with Store.create(folder) as store:
        spec = parse_judge(server.spec(f"rubrics={RUBRIC}&label=j{options}"))
        return asyncio.run(judge_run(store, [spec], retries=QUICK))["j"]


def values(folder: Path, name: str = "discrimination") -> dict[tuple[str, str], float | None]:
    return {(a.item.case, a.condition): a.scores[f"{name}@j"].value for a in open_run(folder).answers if a.scores}


def only(answers: list[Answer], case: str) -> Answer:
    (found,) = [a for a in answers if a.item.case == case]
    return found


def test_all_replies_of_a_group_are_seen_together_and_each_holds_the_verdict(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 3, "h": 2}, ["zero/audio", "zero/alone"])
    answer(tmp_path / "run", told)
    with JudgeServer(verdict=fits) as server:
        outcome = judge(tmp_path / "run", server)
        assert (outcome.answered, server.count) == (8, 8), "two groups, two conditions, and the control of each"
        shown = [asked.text for asked in server.asked]
    assert all(len(set(re.findall(r"under (\S+)\.", text))) == 1 for text in shown), "conditions are not mixed"
    assert set(values(tmp_path / "run").values()) == {6.0} and len(values(tmp_path / "run")) == 10
    assert set(values(tmp_path / "run", "discrimination_shuffled").values()) == {1.0}
    assert "shuffled" not in "".join(shown), "the judge is not told which is the control"
    reading = open_run(tmp_path / "run")
    score = next(a for a in reading.answers if a.item.group == "g").scores["discrimination@j"]
    assert score.detail["variants"] == 3 and sorted(str(score.detail["order"]).split(",")) == ["1", "2", "3"]
    about = read_dimensions(reading.meta, reading.signatures)
    assert about["discrimination"].high == 6 and about["discrimination_shuffled"].better == "neither"


def test_a_judge_that_does_not_look_is_seen_in_the_control(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 3}, ["zero/audio"])
    answer(tmp_path / "run", told)
    with JudgeServer(verdict=lambda asked: {"discrimination": 5}) as server:
        judge(tmp_path / "run", server)
    assert set(values(tmp_path / "run").values()) == set(values(tmp_path / "run", "discrimination_shuffled").values())


def test_the_same_command_again_asks_nothing_and_the_verdicts_stay(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 3}, ["zero/audio"])
    answer(tmp_path / "run", told)
    with JudgeServer(verdict=fits) as server:
        judge(tmp_path / "run", server)
        again = judge(tmp_path / "run", server)
        assert (server.count, again.cached, again.requests) == (2, 2, 0)


def test_a_group_with_a_reply_missing_is_unscored_until_it_comes(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 3, "h": 2, "single": 1}, ["zero/audio"])
    answer(tmp_path / "run", lambda ask: None if ask.item.case == "g_2" else told(ask))
    with JudgeServer(verdict=fits) as server:
        judge(tmp_path / "run", server)
        answers = open_run(tmp_path / "run").answers
        for name in ("discrimination@j", "discrimination_shuffled@j"):
            score = only(answers, "g_1").scores[name]
            assert (score.value, score.reason) == (None, "2 of the 3 variants of the group have a reply")
            assert "nothing to tell apart" in only(answers, "single_1").scores[name].reason
        assert values(tmp_path / "run")["h_1", "zero/audio"] == 6.0
        answer(tmp_path / "run", told)
        judge(tmp_path / "run", server)
        assert {v for (case, _), v in values(tmp_path / "run").items() if case.startswith("g")} == {6.0}
        assert server.count == 4


def test_beside_a_run_a_group_is_judged_when_its_last_reply_is_there(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 3, "h": 2}, ["zero/audio"])

    async def go(server: JudgeServer) -> list[int]:
        seen = []
        spec = parse_judge(server.spec(f"rubrics={RUBRIC}&label=j&connections=2"))
        with Store.create(tmp_path / "run") as store:
            async with beside(store, [spec]) as bench:
                for ask in store.open_asks(0, 100):
                    if ask.item.case == "h_2":
                        continue  # never comes
                    store.add_reply(ask, 0, told(ask), sent=b"[]", latency=0.1, attempts=1)
                    store.commit()
                    bench.answered(ask)
                    for _ in range(100):
                        await asyncio.sleep(0.01)
                        if ask.item.case == "g_3" and server.count == 2:
                            break
                        if ask.item.case != "g_3":
                            break
                    seen.append(server.count)
        return seen

    with JudgeServer(verdict=fits) as server:
        assert asyncio.run(go(server)) == [0, 0, 2, 2]
    assert values(tmp_path / "run") == {
        ("g_1", "zero/audio"): 6.0, ("g_2", "zero/audio"): 6.0, ("g_3", "zero/audio"): 6.0, ("h_1", "zero/audio"): None,
    }  # fmt: skip


def test_an_unreadable_verdict_is_a_reason_on_every_reply(tmp_path: Path) -> None:
    planned(tmp_path / "run", {"g": 2}, ["zero/audio"])
    answer(tmp_path / "run", told)
    with JudgeServer(verdict=fits) as server:
        server.always = "half"
        judge(tmp_path / "run", server)
    found = [a.scores["discrimination@j"] for a in open_run(tmp_path / "run").answers]
    assert [s.value for s in found] == [None, None] and len({s.reason for s in found}) == 1
    assert "discrimination" in found[0].reason and found[0].detail["unread"] == 1


def test_a_reply_with_speech_alone_is_judged_by_what_is_heard_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_audio, "transcript", lambda path: "Reply to g_2 under zero/audio.")
    planned(tmp_path / "run", {"g": 2}, ["zero/audio"])
    sound = Reply("", audio=tone(1, 0.3, 16_000))
    answer(tmp_path / "run", lambda ask: sound if ask.item.case == "g_2" else told(ask))
    with JudgeServer(verdict=fits) as server:
        judge(tmp_path / "run", server)
    scores = [a.scores["discrimination@j"] for a in open_run(tmp_path / "run").answers]
    assert [s.value for s in scores] == [6.0, 6.0]
    assert all(s.signature.endswith("text:transcript") for s in scores)


def test_orders_depend_on_names_alone_and_exchanges_leave_nobody_in_place() -> None:
    names = [f"item {n}" for n in range(4)]
    orders = {tuple(shuffled(f"group {n}", names)) for n in range(60)}
    assert len(orders) > 15 and all(sorted(order) == [0, 1, 2, 3] for order in orders)
    turned = [2, 0, 3, 1]
    assert [names[p] for p in shuffled("g", names)] == [
        [names[t] for t in turned][p] for p in shuffled("g", [names[t] for t in turned])
    ]
    for count in (2, 3, 4, 7):
        for n in range(40):
            found = exchanged(f"group {n}", count)
            assert sorted(found) == list(range(count)) and all(a != b for a, b in enumerate(found))
    assert len({tuple(exchanged(f"group {n}", 4)) for n in range(40)}) == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('shows = ["context", "words", "cue", "reply"]', 'shows = ["context"]'), "shows must have reply"),
        (("hears = []", 'hears = ["reply"]'), "hears and wordless must be missing"),
        (('subject = "group"', 'subject = "reply"'), 'needs subject = "group"'),
    ],
)
def test_a_rubric_that_a_group_cannot_be_judged_by_is_an_error(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    text = registry.find_rubric(RUBRIC).read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "mine.toml").write_text(text.replace(*change))
    with pytest.raises(UsageError, match=says):
        rubric.load(str(tmp_path / "mine.toml"))


def test_parts_that_a_benchmark_keeps_apart_are_judged_apart(tmp_path: Path) -> None:
    core = [item("g", n) for n in (1, 2)]
    other = [msgspec.structs.replace(item("g", n), part="control") for n in (3, 4)]
    with Store.create(tmp_path / "run") as store:
        store.set_meta({"benchmark": "aeq"})
        store.plan([(one, ["zero/audio"]) for one in (*core, *other)], 1)
        store.commit()
    answer(tmp_path / "run", told)
    with JudgeServer(verdict=fits) as server:
        judge(tmp_path / "run", server)
        assert server.count == 4 and all("_3>" not in asked.text for asked in server.asked)


def test_a_label_file_holds_no_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "l.csv").write_text("id,context,words,cue,reply,discrimination\n1,c,w,q,r,3\n")
    with JudgeServer() as server:
        words = ["judge", "validate", server.spec(), "--labels", str(tmp_path / "l.csv"), "--rubric", RUBRIC]
        assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "judges groups of replies in a run" in capsys.readouterr().err
