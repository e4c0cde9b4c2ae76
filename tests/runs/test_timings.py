"""Timings of streamed replies, from a server with known delays to tables, checks, exports, a figure and a replay."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.data import make
from overtone import figures
from overtone.cli import main
from overtone.display.drawing import Words
from overtone.errors import ModelFailure, StoreError, UsageError
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.models import OnPiece, Piece
from overtone.models import python as python_models
from overtone.results.load import open_run
from overtone.results.timings import timing_rows
from overtone.runs.asker import Asker, Policy
from overtone.runs.export_rows import TIMINGS
from overtone.runs.store import Store
from overtone.schema import Key, Message, Reply, Request, Timings
from tests.runs.helpers import run
from tests.runs.old_store import as_version_5
from tests.servers import OpenAIServer

FIRST, PACE = 0.2, 0.05  # seconds before the first chunk and between two chunks of the server


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(latency=FIRST) as running:
        running.pace = PACE
        yield running


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose replies streamed. Tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("streamed")
    data = make(folder / "data", scripts=3, questions=6, seconds=0.2)
    with OpenAIServer(latency=FIRST) as server:
        server.pace = PACE
        outcome = run(data, server.base_url, folder / "run", keys={"stream": "yes"}, levels="3", limit=4)
    assert outcome.answered >= 4 and not outcome.failed
    return folder / "run"


@pytest.fixture
def copied(streamed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(streamed, tmp_path / "run"))


def timings_of(folder: Path) -> list[Timings]:
    with Store.read(folder) as store:
        return [timings for _, timings in store.timings()]


def test_a_run_stores_when_the_parts_of_each_streamed_reply_came(streamed: Path) -> None:
    found = timings_of(streamed)
    with Store.read(streamed) as store:
        replies = list(store.replies())
    assert len(found) == len(replies) and all(reply.timings in found for reply in replies)
    for reply, timings in zip(replies, found, strict=True):
        assert timings.origin == "request"
        assert timings.first_text is not None and timings.first_audio is not None and timings.done is not None
        words = len(reply.text.split())
        assert FIRST + 2 * PACE <= timings.first_text < timings.first_audio <= timings.done <= reply.latency
        assert timings.first_audio >= FIRST + (2 + words) * PACE  # the server sends all words first
        assert 0.5 * words * PACE < timings.first_audio - timings.first_text < words * PACE + 1.0
        assert timings.voice_to_voice == pytest.approx(timings.first_audio, abs=0.02)  # its tone begins at once
        assert timings.real_time_factor == pytest.approx(timings.done / 0.3, rel=0.01)
        assert timings.vad_wait is None and timings.stalled is not None


def test_a_request_that_does_not_stream_has_no_timings(server: OpenAIServer, small: Path, tmp_path: Path) -> None:
    run(small, server.base_url, tmp_path / "a", levels="3", limit=2)
    server.always = "no_stream"
    run(small, server.base_url, tmp_path / "b", keys={"stream": "yes"}, levels="3", limit=2)
    assert timings_of(tmp_path / "a") == timings_of(tmp_path / "b") == []
    with pytest.raises(NothingToDraw, match="stream=yes"):
        figures.draw("timings", FigureSource([open_run(tmp_path / "a")]))


def test_streaming_can_be_turned_on_when_a_run_is_resumed(server: OpenAIServer, small: Path, tmp_path: Path) -> None:
    run(small, server.base_url, tmp_path / "a", levels="3", limit=2)
    outcome = run(small, server.base_url, tmp_path / "a", keys={"stream": "yes"}, levels="3", limit=4)
    assert outcome.answered == len(timings_of(tmp_path / "a")) > 0


def test_a_wrong_value_of_stream_names_the_right_ones(server: OpenAIServer, small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stream must be no or yes, not 'true'"):
        run(small, server.base_url, tmp_path / "a", keys={"stream": "true"})


def test_a_replayed_run_has_the_same_timings(streamed: Path, small: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    command = ["run", "echomind", "--data", str(small), "--model", f"replay:{streamed}", "--out", str(again)]
    assert main([*command, "--levels", "3", "--limit", "4"]) == 0
    assert timings_of(again) == timings_of(streamed)


def test_an_export_has_a_column_for_each_timing(streamed: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    assert main(["export", str(streamed), "-o", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(row["timing_origin"] == "request" and row["vad_wait"] is None for row in rows)
    for row, timings in zip(rows, timings_of(streamed), strict=True):
        assert {name: row[name] for name in TIMINGS} == {name: getattr(timings, name) for name in TIMINGS}


def test_a_check_requires_a_percentile_of_a_timing(
    streamed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["check", str(streamed), "--require"]
    assert main([*command, "first_audio_p50 <= 9s", "--require", "real_time_factor_p95 > 1"]) == 0
    assert "first_audio_p50 is" in capsys.readouterr().out
    assert main([*command, "first_text_p95 <= 50ms"]) == 1  # the server waits for longer than that
    assert main([*command, "vad_wait_p95 <= 1s"]) != 0
    assert "no reply of the run has this timing; realtime: models measure it with turn=vad" in capsys.readouterr().out
    assert main([*command, "first_sound_p95 <= 1s"]) == 2
    assert "no measure is called 'first_sound_p95'" in capsys.readouterr().err


def test_the_table_names_each_timing_with_its_origin(streamed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "timings", str(streamed), "--format", "csv"]) == 0
    out = capsys.readouterr().out
    assert "First sound,request sent" in out and "Voice to voice,last voiced sample" in out
    (row,) = [r for r in timing_rows(open_run(streamed)) if r.name == "first_audio"]
    middle = row.percentiles[0].value
    assert middle is not None and f"{middle:.3f}"[:4] in out


def test_the_figure_shows_the_median_of_each_timing(streamed: Path) -> None:
    drawing = figures.draw("timings", FigureSource([open_run(streamed)], ["mine"]))
    texts = [mark.text for mark in drawing.marks if isinstance(mark, Words)]
    rows = timing_rows(open_run(streamed))
    assert {row.label for row in rows} <= set(texts)
    assert {"First text", "First sound", "Voice to voice", "Whole reply", "Real-time factor"} <= set(texts)
    (first,) = [row for row in rows if row.name == "first_text"]
    assert any(text.startswith(f"{first.percentiles[0].value:.2f} (") for text in texts)


def test_a_missing_reply_could_have_come_at_any_time(server: OpenAIServer, small: Path, tmp_path: Path) -> None:
    server.every = (4, "400")
    flags: dict[str, Any] = {"keys": {"stream": "yes"}, "levels": "3", "limit": 8}
    run(small, server.base_url, tmp_path / "run", **flags)
    (row,) = [r for r in timing_rows(open_run(tmp_path / "run")) if r.name == "done"]
    slow = row.percentiles[1]
    assert slow.missing == 2 and slow.worst == float("inf")


def test_a_store_of_version_5_is_read_without_timings(copied: Path) -> None:
    as_version_5(copied)
    assert timings_of(copied) == [] and timing_rows(open_run(copied)) == []
    with Store.read(copied) as store:
        assert all(reply.timings is None for reply in store.replies())
    Store.create(copied).close()
    assert (copied / "run.db.v5.bak").is_file()


def test_a_damaged_timing_is_an_error_that_names_the_folder(copied: Path) -> None:
    store = Store.create(copied)
    store.db.execute("""UPDATE timings SET body = '{"done": "soon"}'""")
    store.close()
    with pytest.raises(StoreError, match="contains data that Overtone did not write"):
        timings_of(copied)
    assert main(["verify", str(copied)]) != 0


# ── models in Python ────────────────────────────────────────────────────────────────────────────────────────────────


class Streams:
    """A model of the user's own that streams."""

    def __init__(self, timings: Timings | None = None) -> None:
        self.timings = timings

    def ask(self, request: Request) -> Reply:
        raise AssertionError("a model that streams is streamed")

    async def stream(self, request: Request, on_piece: OnPiece) -> Reply:
        await asyncio.sleep(0.1)
        on_piece(Piece("Yes"))
        await asyncio.sleep(0.1)
        return Reply("Yes.", timings=self.timings)


def asked(model: Any) -> Reply:
    spec = python_models.add("mine", model)
    asker = Asker(python_models.load(spec), policy=Policy(attempts=1))
    request = Request(Key("i", "c"), (Message("user", ("Are you there?",)),))
    return asyncio.run(asker.attempt(request))[0]


def test_a_python_object_that_streams_gets_timings() -> None:
    timings = asked(Streams()).timings
    assert timings is not None and timings.first_text is not None and timings.done is not None
    assert 0.1 <= timings.first_text <= timings.done - 0.09
    assert timings.voice_to_voice is None  # the request has no sound


def test_a_model_may_measure_its_timings_itself() -> None:
    own = Timings("turn", first_audio=0.25, vad_wait=0.1)
    assert asked(Streams(own)).timings == own


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "soon", -1e9])
def test_timings_that_are_no_seconds_are_a_failure_of_the_model(wrong: Any) -> None:
    with pytest.raises(ModelFailure, match="the reply's timings are not seconds"):
        asked(Streams(Timings(done=wrong)))
