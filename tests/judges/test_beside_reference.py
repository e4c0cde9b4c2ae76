"""Judges that rate a reply beside its reference, or judge answers to questions; and those that a benchmark names."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from overtone.errors import UsageError
from overtone.judges import rubric
from overtone.judges.judge_run import check_suits, judge_run, with_own_rubrics
from overtone.judges.judgement import Outcome
from overtone.judges.policy import STANDARD, parse_judge
from overtone.results.judge_scores import read_dimensions
from overtone.results.load import open_run
from overtone.runs.store import Store
from overtone.schema import Score
from overtone.suite import Facts, Suite
from tests.judges.helpers import QUICK
from tests.judges.server import JudgeServer
from tests.results.small import Maker, item
from tests.servers import Asked


def judged(folder: Path, spec: str) -> dict[str, dict[str, Score]]:
    """Item → metric → score, after one judge has gone over the run."""

    async def work() -> dict[str, Outcome]:
        with Store.create(folder) as store:
            return await judge_run(store, [parse_judge(spec)], retries=QUICK)

    asyncio.run(work())
    return {answer.item.id: answer.scores for answer in open_run(folder).answers}


def rates(asked: Asked) -> dict[str, int]:
    """A judge that likes long answers, and the first of two by one more."""
    a, b = (re.search(rf"<reply_{side}>\n(.*)\n</reply_{side}>", asked.text) for side in "ab")
    assert a and b
    return {"air_a": min(10, len(a[1].split()) + 1), "air_b": min(10, len(b[1].split()))}


def test_a_reply_and_its_reference_are_rated_in_both_orders_and_averaged(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    long = item("long", "converse", level=3, references=("two words",), context="Who speaks?")
    made.answered(long, "four words are here", condition="zero/audio")
    made.store.close()
    with JudgeServer(verdict=rates) as server:
        found = judged(tmp_path / "run", server.spec("rubrics=air-bench&least=2"))["long"]
        assert server.count == 2
        assert all("Who speaks?" in asked.text for asked in server.asked)
    # 4 + 1 and 4 words, once first and once second; 2 and 2 + 1 likewise.
    assert found["air_a@scripted"].value == pytest.approx(4.5)
    assert found["air_b@scripted"].value == pytest.approx(2.5)
    assert found["air_a@scripted"].detail["values"] == "5,4"
    assert "|swap:yes" in found["air_a@scripted"].signature
    labels = read_dimensions(open_run(tmp_path / "run").meta, found)
    assert labels["air_a"].label == "Answer A, the reply" and labels["air_b"].label == "Answer B, the reference"


def test_with_least_two_a_reply_rated_in_one_order_only_is_unscored(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(item("r", "converse", level=3, references=("a b",)), "one two three", condition="zero/audio")
    made.store.close()
    with JudgeServer(verdict=rates) as server:
        server.behave("good", "half", "half")
        found = judged(tmp_path / "run", server.spec("rubrics=air-bench&least=2"))["r"]["air_a@scripted"]
    assert found.value is None and "not on the menu" in found.reason


def test_a_reply_without_a_reference_is_unscored_with_the_reason_and_costs_nothing(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(item("r", "converse", level=3), "one two", condition="zero/audio")
    made.store.close()
    with JudgeServer(verdict=rates) as server:
        found = judged(tmp_path / "run", server.spec("rubrics=air-bench"))["r"]["air_a@scripted"]
        assert server.count == 0
    assert found.value is None and "no reference" in found.reason


def test_a_rubric_for_questions_judges_questions_and_leaves_conversations_alone(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.answered(item("q", "choose"), "It must be option A.")
    made.answered(item("c", "converse", level=3), "Hello.", condition="zero/audio")
    made.store.close()
    with JudgeServer(verdict=lambda asked: {"sakura_correct": "correct"}) as server:
        found = judged(tmp_path / "run", server.spec("rubrics=sakura"))
        assert server.count == 1
        text = server.asked[0].text
    assert found["q"]["sakura_correct@scripted"].value == 1.0
    assert "sakura_correct@scripted" not in found["c"]
    assert "which?" in text and "A. option A\nB. option B" in text and "It must be option A." in text
    assert re.search(r"<answer>\nA\. option A\n</answer>", text)


def test_a_rubric_that_compares_two_models_is_still_refused_for_a_run() -> None:
    check_suits(rubric.load("air-bench"))
    with pytest.raises(UsageError, match="compares two replies"):
        check_suits(rubric.load("pair"))


def test_a_benchmarks_own_rubrics_are_asked_where_the_user_names_none() -> None:
    suite = Suite(Facts("Toy", "", "", "", "", "one", "", "", "", ""), rubrics=("sakura",))
    plain, named = parse_judge("openai:any"), parse_judge("openai:any?rubrics=ves")
    assert with_own_rubrics(plain, suite).rubrics == ("sakura",)
    assert with_own_rubrics(named, suite).rubrics == ("ves",)
    assert with_own_rubrics(plain, None).rubrics == STANDARD
