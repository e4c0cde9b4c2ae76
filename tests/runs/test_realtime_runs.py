"""Whole runs of realtime models: what is stored, what bad servers cost, and that a recorded session replays exactly."""

from __future__ import annotations

import asyncio
import io
import json
import re
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.cli import main
from overtone.errors import OvertoneError, StoreError
from overtone.runs.asker import Outcome
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import resolve
from overtone.runs.store import Store
from overtone.schema import SessionEvent, Timings
from tests.benchmarks.built import write_built
from tests.realtime_servers import RealtimeServer, Voice
from tests.runs.helpers import QUICK
from tests.runs.old_store import as_version_7

PATIENT = msgspec.structs.replace(QUICK, attempts=9)


@pytest.fixture
def server() -> Iterator[RealtimeServer]:
    with RealtimeServer(Voice(text_after=0.02, sound_after=0.04, step=0.01, parts=3)) as running:
        yield running


def run(data: Path, server: RealtimeServer, out: Path, keys: str = "&pace=fast", **flags: Any) -> Outcome:
    policy = flags.pop("policy", QUICK)
    spec = flags.pop("model", f"realtime:test-model-1?base_url={server.base_url}&timeout=20{keys}")
    given = {"benchmark": "echomind", "data": str(data), "model": [spec], "out": str(out), **flags}
    (found,) = resolve(given, None, {})
    return asyncio.run(execute(found, Hooks(policy=policy)))


def stored(folder: Path) -> list[tuple[str, bytes, Timings | None, tuple[SessionEvent, ...]]]:
    """Each reply's words, both channels, timings and events."""
    found = []
    with Store.read(folder) as store:
        for reply in store.replies():
            session = store.session(reply.ask, reply.key.turn)
            assert session is not None
            found.append((reply.text, store.audio_path(session[0]).read_bytes(), reply.timings, session[1]))
    return found


def asked(server: RealtimeServer) -> int:
    return server.kinds().count("response.create")


def test_a_run_stores_each_turn_with_both_channels_and_replays_exactly(
    server: RealtimeServer, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, again = tmp_path / "run", tmp_path / "again"
    outcome = run(small, server, out, levels="2,3", limit=6)
    assert outcome.failed == 0 and outcome.answered == outcome.requests == asked(server) > 4
    first = stored(out)
    for words, both, timings, events in first:
        with wave.open(io.BytesIO(both)) as file:
            assert file.getnchannels() == 2 and file.getnframes() > 0
        assert words == "I hear you." and timings is not None and timings.origin == "turn"
        assert events[-1].type == "response.done"
    assert main(["verify", str(out)]) == 0, capsys.readouterr()
    assert run(small, server, again, model=f"replay:{out}", levels="2,3", limit=6).failed == 0
    assert stored(again) == first
    assert outcome.requests == asked(server)  # the replay asked nobody


def test_an_export_names_the_file_of_both_channels(server: RealtimeServer, small: Path, tmp_path: Path) -> None:
    run(small, server, tmp_path / "run", levels="3", limit=2)
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "run.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    for row in rows:
        with wave.open(str(tmp_path / row["session_file"])) as file:
            assert file.getnchannels() == 2
        assert row["timing_origin"] == "turn" and row["voice_to_voice"] is not None


def test_the_report_plays_both_voices(server: RealtimeServer, small: Path, tmp_path: Path) -> None:
    run(small, server, tmp_path / "run", levels="3", limit=1)
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html")]) == 0
    with Store.read(tmp_path / "run") as store:
        ((_, name),) = store.sessions().items()
    assert re.search(rf'"bo":\["[^"]*{name}\.wav"\]', (tmp_path / "report.html").read_text())


def test_a_server_that_fails_now_and_then_costs_an_attempt_and_loses_nothing(
    server: RealtimeServer, small: Path, tmp_path: Path
) -> None:
    server.behave("close:1011:it broke", "503", "malformed", "reset", "bad_base64")
    outcome = run(small, server, tmp_path / "run", levels="3", limit=8, max_connections=2, policy=PATIENT)
    assert (outcome.failed, outcome.stopped) == (0, "")
    with Store.read(tmp_path / "run") as store:
        replies = list(store.replies())
    assert len(replies) == len({reply.key for reply in replies}) == outcome.answered
    assert sum(reply.attempts for reply in replies) == outcome.requests == outcome.answered + 5
    assert server.connections == outcome.requests and asked(server) == outcome.requests - 1  # 503 came before


def test_what_always_fails_is_stored_as_a_failure_and_asked_again_by_the_next_run(
    server: RealtimeServer, small: Path, tmp_path: Path
) -> None:
    run(small, server, tmp_path / "run", levels="3", limit=1)
    server.always = "failed"
    outcome = run(small, server, tmp_path / "run", levels="3", limit=4)
    assert outcome.failed == 3 and outcome.answered == 0
    with Store.read(tmp_path / "run") as store:
        assert {(f.reason, f.attempts) for f in store.failures()} == {("server", QUICK.attempts)}
    server.always = None
    assert run(small, server, tmp_path / "run", levels="3", limit=4).answered == 3


def test_a_budget_stops_a_run_cleanly(server: RealtimeServer, small: Path, tmp_path: Path) -> None:
    outcome = run(small, server, tmp_path / "run", levels="3", limit=8, budget_requests=3)
    assert (outcome.stopped, outcome.requests, asked(server)) == ("budget", 3, 3)
    rest = run(small, server, tmp_path / "run", levels="3", limit=8)
    assert rest.answered == 5 and asked(server) == 8


def test_a_wrong_key_stops_the_run_before_it_costs_anything(
    server: RealtimeServer, small: Path, tmp_path: Path
) -> None:
    server.always = "401"
    with pytest.raises(OvertoneError, match="auth: HTTP 401"):
        run(small, server, tmp_path / "run", levels="3", limit=8)
    assert server.connections == 1


def test_another_pace_is_another_run(server: RealtimeServer, small: Path, tmp_path: Path) -> None:
    run(small, server, tmp_path / "run", levels="3", limit=1)
    with pytest.raises(StoreError, match="contains another run"):
        run(small, server, tmp_path / "run", "&pace=realtime", levels="3", limit=1)


def test_sounds_of_sessions_are_kept_when_a_killed_run_is_cleaned_up(
    server: RealtimeServer, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run(small, server, out, levels="3", limit=2)
    before = {path.name for path in (out / "audio").glob("??/*.wav")}
    (out / "audio" / "ab").mkdir(exist_ok=True)
    (out / "audio" / "ab" / f"{'ab' * 32}.wav").write_bytes(b"left over")
    store = Store.create(out)
    store.set_meta({"open": "yes"})  # as after a kill
    store._db.close()
    assert store._lock is not None
    store._lock.close()
    Store.create(out).close()
    assert {path.name for path in (out / "audio").glob("??/*.wav")} == before


def test_a_store_of_version_7_is_read_without_sessions_and_upgraded(
    server: RealtimeServer, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run(small, server, out, levels="3", limit=1)
    as_version_7(out)
    with Store.read(out) as store:
        assert store.sessions() == {} and [reply.text for reply in store.replies()] == ["I hear you."]
    run(small, server, out, levels="3", limit=2)
    assert (out / "run.db.v7.bak").is_file()
    with Store.read(out) as store:
        assert len(store.sessions()) == 1 and len(list(store.replies())) == 2


def test_a_missing_recording_is_damage(
    server: RealtimeServer, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    run(small, server, out, levels="3", limit=1)
    with Store.read(out) as store:
        ((_, name),) = store.sessions().items()
    store.audio_path(name).unlink()
    assert main(["verify", str(out)]) != 0
    assert "1 stored sound of replies is missing" in capsys.readouterr().out


def test_a_dialogue_is_one_session(server: RealtimeServer, tmp_path: Path) -> None:
    data = write_built(tmp_path / "set")
    outcome = run(data, server, tmp_path / "run", benchmark="open", parts="dialogue", prompt="zero")
    assert (outcome.answered, outcome.failed, outcome.requests) == (2, 0, 4)
    assert server.connections == 2
    longest = max(server.voice.asked, key=lambda asked: len(asked.messages))
    roles = [message.role for message in longest.messages if message.role != "system"]
    assert roles == ["user", "assistant", "user"]
    assert len(stored(tmp_path / "run")) == 4


def test_a_dialogue_that_was_interrupted_goes_on_in_a_new_session(server: RealtimeServer, tmp_path: Path) -> None:
    data = write_built(tmp_path / "set")
    flags: dict[str, Any] = {"benchmark": "open", "parts": "dialogue", "prompt": "zero", "limit": 1}
    assert run(data, server, tmp_path / "run", budget_requests=1, **flags).stopped == "budget"
    assert run(data, server, tmp_path / "run", **flags).answered == 1
    assert server.connections == 2 and asked(server) == 2
    assert [message.role for message in server.voice.asked[1].messages][-3:] == ["user", "assistant", "user"]
