"""Replies, failures, latency and cost as requirements."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.results.checking import behind, check
from overtone.results.comparison import behind as compare_behind
from overtone.results.comparison import compare
from overtone.results.requirements import parse_margin, parse_requirement
from overtone.results.timings import percentile
from overtone.schema import Reply, Usage
from tests.results.pairs import ZERO, answers, asked, opened, talked
from tests.results.small import Maker

NONE = Usage()
PRICES = 'date = "2026-01-01"\n[openai."m"]\ntext_in = 2.0\ntext_out = 10.0\n'


def timed(folder: Path, seconds: list[float], *, failed: int = 0, usage: Usage = NONE, spec: str = "") -> Path:
    maker = Maker(folder)
    for number, latency in enumerate(seconds):
        one = asked(number) if number % 2 else talked(number)
        ask = maker.ask(one, "task/audio" if number % 2 else ZERO)
        maker.store.add_reply(ask, 0, Reply("well", usage=usage), sent=b"[]", latency=latency, attempts=1)
    for number in range(failed):
        maker.failed(asked(1000 + number))
    if spec:
        maker.store.set_meta({"model": "openai:m", "settings": f'[[model]]\nspec = "{spec}"\n'})
    return maker.done()


def states(folder: Path, *required: str) -> list[str]:
    (run,) = opened(folder)
    return [row.state for row in check(run, [parse_requirement(text) for text in required], most_missing=1.0).rows[:-1]]


def test_answered_and_failures_are_shares_of_all_asks(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "a")
    for number in range(7):
        maker.choice(asked(number, part="control" if number > 5 else ""), "A")
    maker.failed(asked(8))
    maker.failed(asked(9, part="false-cue"))
    maker.pending(asked(10))
    folder = maker.done()
    (run,) = opened(folder)
    texts = [parse_requirement(text) for text in ("answered >= 70%", "failures <= 30%")]
    answered, failures = check(run, texts).rows[:2]
    assert (answered.value.value, answered.value.asked) == (0.7, 10)
    assert failures.value.value == pytest.approx(2 / 9)
    assert states(folder, "answered >= 71%", "failures <= 20%", "failures <= 25%", "failures <= 30%") == [
        "fails",  # an ask that is still open has no reply
        "undecided",  # 2 of 10 so far; the open one may fail or be answered
        "undecided",
        "holds",
    ]


def test_answered_can_be_compared_and_latency_and_cost_cannot(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", [True] * 12), answers(tmp_path / "b", [True] * 6 + [None] * 6))
    row = check(run, [], [parse_margin("answered:10%")], base).rows[0]
    assert (row.state, row.value.value) == ("fails", -0.5)
    assert compare(base, run, ["answered"]).tables[0].rows[0].by.value == -0.5
    assert not compare(base, run, ["answered"]).flips[0].right_or_wrong
    with pytest.raises(UsageError, match="Check it in each run instead: overtone check RUN"):
        check(run, [], [parse_margin("latency_p95:1")], base)
    with pytest.raises(UsageError, match="Check it in each run instead: overtone check RUN"):
        compare(base, run, ["cost_usd"])


@pytest.mark.parametrize("name", ["answered", "failures"])
def test_a_margin_and_a_comparison_count_every_ask_as_a_threshold_does(tmp_path: Path, name: str) -> None:
    made = []
    for folder, good in (("a", 12), ("b", 6)):
        maker = Maker(tmp_path / folder)
        for number in range(12):
            maker.choice(asked(number, status="validated"), "A")
        for number in range(12):
            one = asked(100 + number, part="control" if number % 2 else "", status="unvalidated")
            maker.choice(one, "A") if number < good else maker.failed(one)
        maker.store.set_meta({"benchmark": "toy"})
        made.append(maker.done())
    base, run = opened(*made)
    by = 0.25 if name == "failures" else -0.25
    threshold, margin = check(run, [parse_requirement(f"{name} > 1%")], [parse_margin(f"{name}:1%")], base).rows[:2]
    (row,) = compare(base, run, [name]).tables[0].rows
    assert (margin.value.value, row.by.value) == (by, by)
    assert threshold.value.asked == margin.value.asked == row.by.asked == 24
    assert len(behind(run, margin.key, base)) == len(compare_behind(base, run, row.key)) == 24


def test_retries_are_the_share_of_asks_that_needed_more_than_one_request(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "a")
    for number in range(8):
        ask = maker.ask(asked(number, part="control" if number < 2 else ""))
        maker.store.add_reply(ask, 0, Reply("A"), sent=b"[]", latency=1.0, attempts=2 if number < 3 else 1)
    maker.failed(asked(8))  # after three attempts
    maker.pending(asked(9))
    folder = maker.done()
    (run,) = opened(folder)
    row = check(run, [parse_requirement("retries <= 10%")]).rows[0]
    assert (row.required, row.state, row.value.value, row.value.asked) == ("retries <= 10 %", "fails", 4 / 9, 10)
    assert states(folder, "retries <= 50%", "retries <= 39%", "retries <= 45%") == ["holds", "fails", "undecided"]
    assert states(folder, "failures <= 20%") == ["holds"]  # retries do not show in the failures
    with pytest.raises(UsageError, match="retries <= 5%"):
        compare(run, run, ["retries"])


def test_latency_counts_the_replies_to_questions_too(tmp_path: Path) -> None:
    folder = timed(tmp_path / "a", [1.0, 2.0] * 20)
    (run,) = opened(folder)
    rows = check(run, [parse_requirement("latency_p50 <= 1.5s")]).rows[:-1]
    assert {row.condition: (row.value.value, row.state) for row in rows} == {
        ZERO: (1.0, "holds"),
        "task/audio": (2.0, "fails"),
    }
    assert rows[0].text.startswith("latency_p50 is 1.00 s (successful requests only, without waiting")
    assert "all of its 95 % interval, 1.00 s to 1.00 s" in rows[0].text
    assert states(folder, "latency_p95 <= 2000ms") == ["holds", "holds"]


def test_missing_replies_could_have_taken_any_time(tmp_path: Path) -> None:
    folder = timed(tmp_path / "a", [1.0] * 40, failed=4)  # 4 of 24 under task/audio: more than the slowest 5 %
    assert states(folder, "latency_p95 <= 2", "latency_p50 <= 2") == ["holds", "undecided", "holds", "holds"]


def test_a_percentile_lies_within_its_bounds_and_between_the_ends_of_its_interval() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        found = percentile(np.sort(rng.exponential(size=200)).tolist(), 0.95, 3)
        assert found.best is not None and found.value is not None and found.worst is not None
        assert found.best <= found.value <= found.worst
        inside += found.low is not None and found.high is not None and found.low <= -math.log(0.05) <= found.high
    assert inside >= 0.92 * 400
    assert percentile([], 0.5, 2).value is None
    assert percentile([1.0] * 10, 0.95, 1).worst == math.inf


def test_the_cost_is_that_of_all_replies_at_the_price_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    monkeypatch.setenv("OVERTONE_PRICES", str(tmp_path / "prices.toml"))
    usage = Usage(input_tokens=1000, output_tokens=100)  # 0.3 cents a reply
    folder = timed(tmp_path / "a", [1.0] * 10, usage=usage, spec="openai:m")
    (run,) = opened(folder)
    row = check(run, [parse_requirement("cost_usd <= 0.03")]).rows[0]
    assert row.value.value == pytest.approx(0.03)
    assert (row.condition, row.required) == ("", "cost_usd <= $0.03")
    assert states(folder, "cost_usd <= 0.0299") == ["fails"]
    partial = timed(tmp_path / "b", [1.0] * 10, failed=3, usage=usage, spec="openai:m")
    assert states(partial, "cost_usd <= 0.035", "cost_usd <= 0.04") == ["undecided", "holds"]


def test_a_cost_that_is_not_known_is_undecided_and_says_why(tmp_path: Path) -> None:
    folders = {
        "own server": timed(tmp_path / "a", [1.0], spec="openai:gpt-audio?base_url=http://127.0.0.1:1/v1"),
        "no tokens": timed(tmp_path / "b", [1.0], spec="openai:gpt-audio"),
        "a stranger's": timed(tmp_path / "c", [1.0]),
    }
    why = {"own server": "OVERTONE_PRICES", "no tokens": "reported no token counts", "a stranger's": "is unknown"}
    for name, folder in folders.items():
        (run,) = opened(folder)
        row = check(run, [parse_requirement("cost_usd <= 1")]).rows[0]
        assert row.state == "undecided", name
        assert why[name] in row.text
    assert states(timed(tmp_path / "d", [1.0], spec="cascade"), "cost_usd <= 0") == ["holds"]
