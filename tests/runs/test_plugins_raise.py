"""Plug-in code that raises: the item fails with the reason, the run keeps what it has, and stops after several."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.cli import main
from overtone.metrics._guarded import IN_A_ROW
from overtone.runs.asker import STREAKS
from overtone.runs.store import Store

MODEL = '''"""A model that raises on some requests."""
from overtone.schema import Reply
ROOM = "models"

class Model:
    slots = 1
    def __init__(self, spec):
        self.spec, self.asked = spec, 0
    async def open(self): {open}
    async def close(self): {close}
    def describe(self): return {{"kind": "raising"}}
    async def ask(self, request):
        self.asked += 1
        {ask}
        return Reply("A. yes")

def load(spec): return Model(spec)
'''
METRIC = '''"""A metric that raises on some replies."""
from overtone.schema import Score
ROOM = "metrics"

class Metric:
    name, version = "raising-metric", 3
    asked = 0
    def applies(self, item): {applies}
    def score(self, answered): return [[self.one(a)] for a in answered]
    def one(self, a):
        {one}
        return Score("m", "m|v3|x", 1.0)

def load(): return Metric()
'''


def model(tmp_path: Path, ask: str = "pass", open: str = "pass", close: str = "pass") -> None:
    path = tmp_path / "raising.py"
    path.write_text(MODEL.format(ask=ask, open=open, close=close))
    registry.load_plugin(path)


def metric(tmp_path: Path, one: str = "pass", applies: str = "return True") -> None:
    path = tmp_path / "raising_metric.py"
    path.write_text(METRIC.format(one=one, applies=applies))
    registry.load_plugin(path)


def run(data: Path, out: Path, spec: str = "raising:x") -> int:
    return main(["run", "echomind", "--data", str(data), "--model", spec, "--out", str(out)])


def test_an_exception_in_a_model_is_that_items_failure(small: Path, tmp_path: Path) -> None:
    model(tmp_path, ask="if self.asked % 4 == 0: raise KeyError('no such voice')")
    assert run(small, tmp_path / "run") == 3
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 0, "answered": 14, "failed": 4}
        for failure in store.failures():
            assert failure.reason == "exception"
            assert failure.detail.startswith("KeyError: 'no such voice' (raising.py, line ")
        assert store.scored_metrics(), "the others are scored"


@pytest.mark.parametrize("ask", ["return 'a text'", "return Reply(None)", "return Reply('x', audio='no bytes')"])
def test_a_reply_that_is_none_is_a_failure_of_the_model(
    small: Path, tmp_path: Path, ask: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model(tmp_path, ask=ask)
    assert run(small, tmp_path / "run") == 2
    assert "the first request failed" in capsys.readouterr().err


def test_a_model_that_always_raises_stops_at_once_and_later_after_several(small: Path, tmp_path: Path) -> None:
    model(tmp_path, ask="raise RuntimeError('always')")
    assert run(small, tmp_path / "always") == 2
    with Store.read(tmp_path / "always") as store:
        assert store.counts() == {"pending": 16, "answered": 0, "failed": 2}
    model(tmp_path, ask="if self.asked > 3: raise RuntimeError('later')")
    assert run(small, tmp_path / "later") == 3
    with Store.read(tmp_path / "later") as store:
        assert store.counts() == {"pending": 15 - STREAKS["exception"], "answered": 3, "failed": STREAKS["exception"]}


@pytest.mark.parametrize(("where", "says"), [("open", "cannot be opened"), ("close", "")])
def test_a_model_that_raises_elsewhere_is_an_error_that_says_where(
    small: Path, tmp_path: Path, where: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model(tmp_path, **{where: "raise OSError('no device')"})
    assert run(small, tmp_path / "run") == (2 if says else 0), "a close() that fails loses no run"
    assert says in capsys.readouterr().err


def test_an_exception_in_a_metric_leaves_that_reply_unscored(small: Path, tmp_path: Path) -> None:
    model(tmp_path)
    metric(tmp_path, one="if 'id_1' in a.item.id: raise ZeroDivisionError('no words')")
    assert run(small, tmp_path / "run") == 0
    with Store.read(tmp_path / "run") as store:
        found = [score for _, score in store.scores() if score.metric == "m"]
    assert len(found) == 18
    unscored = [score for score in found if score.value is None]
    assert 0 < len(unscored) < 18
    for score in unscored:
        assert score.reason.startswith("the metric raised ZeroDivisionError: no words (raising_metric.py, line ")
        assert score.signature == "m|v3|x", "a value that comes later takes its place"


@pytest.mark.parametrize("one", ["raise ValueError('never')", "return Score('m', 's', float('inf'))", "return 3"])
def test_a_metric_that_fails_on_every_reply_is_given_up_and_the_others_stay(
    small: Path, tmp_path: Path, one: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model(tmp_path)
    metric(tmp_path, one=one)
    assert run(small, tmp_path / "run") == 0
    with Store.read(tmp_path / "run") as store:
        names = [score.metric for _, score in store.scores()]
        warnings = [detail for _, kind, detail in store.events() if kind == "warning"]
    assert names.count("raising-metric") == IN_A_ROW
    assert {"accuracy", "wer"} <= set(names)
    assert any("raising-metric was given up after 5 replies in a row" in line for line in warnings)


def test_a_metric_that_cannot_say_what_it_is_for_is_left_out(small: Path, tmp_path: Path) -> None:
    model(tmp_path)
    metric(tmp_path, applies="raise AttributeError('item.voice')")
    assert run(small, tmp_path / "run") == 0
    with Store.read(tmp_path / "run") as store:
        assert "accuracy" in store.scored_metrics()
        lines = [detail for _, kind, detail in store.events() if kind == "warning"]
        assert any("raising-metric was left out: it raised AttributeError: item.voice" in line for line in lines)
