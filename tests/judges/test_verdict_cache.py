"""Verdicts are paid once: a second sitting asks nothing, and a judge killed at any moment loses nothing it has."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from overtone.errors import StoreError
from overtone.judges.verdict_cache import Verdicts
from overtone.schema import Reply, Usage
from tests.judges.helpers import reply, sit, sounds
from tests.judges.server import JudgeServer

PROGRAM = """
import sys
from pathlib import Path
from overtone.judges import rubric
from overtone.judges.panel import judge_all
from overtone.judges.policy import parse_judge
from tests.judges.helpers import reply
_, spec, cache, count = sys.argv
judge_all(parse_judge(spec), rubric.load("implicit"), [reply(n) for n in range(int(count))], Path(cache))
"""


def rows(path: Path) -> dict[tuple[str, str], str]:
    """The verdicts in a file; none where its writer was killed before it made the table."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'verdicts'").fetchone():
            return {}
        return {(s, r): t for s, r, t in db.execute("SELECT subject, request, text FROM verdicts")}


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    subjects = [reply(n) for n in range(5)]
    with JudgeServer() as server:
        first, outcome = sit(server.spec("repeats=2"), "echomind", subjects, tmp_path / "v.db")
        assert (server.count, outcome.requests, outcome.cached) == (10, 10, 0)
        second, outcome = sit(server.spec("repeats=2"), "echomind", subjects, tmp_path / "v.db")
        assert (server.count, outcome.requests, outcome.cached) == (10, 0, 10)
        assert second == first
        sit(server.spec("repeats=3"), "echomind", subjects, tmp_path / "v.db")
        assert server.count == 15, "a third repeat costs a third"


def test_nobody_needs_to_listen_when_all_verdicts_are_there(tmp_path: Path) -> None:
    with JudgeServer() as server:
        first, _ = sit(server.spec(), "implicit", [reply(1)], tmp_path / "v.db")
        spec = server.spec()
    second, outcome = sit(spec, "implicit", [reply(1)], tmp_path / "v.db")
    assert second == first
    assert (outcome.requests, outcome.failed) == (0, 0)


@pytest.mark.parametrize(
    ("options", "name", "changed"),
    [
        ("", "implicit", {"reply": "Another reply."}),
        ("", "implicit", {"cue": "a hoarse voice"}),
        ("", "implicit", {"words": "I am only starting."}),
        ("", "echomind", {}),
        ("temperature=0.3", "implicit", {}),
        ("max_tokens=99", "implicit", {}),
        ("seed=5", "implicit", {}),
    ],
)
def test_whatever_the_answer_depends_on_makes_another_question(
    tmp_path: Path, options: str, name: str, changed: dict[str, str]
) -> None:
    with JudgeServer() as server:
        sit(server.spec(), "implicit", [reply(1)], tmp_path / "v.db")
        sit(server.spec(options), name, [reply(1, **changed)], tmp_path / "v.db")
        assert server.count == 2


@pytest.mark.parametrize("options", ["connections=3", "least=1", "timeout=55", "label=other", "rubrics=implicit"])
def test_whatever_it_does_not_depend_on_does_not(tmp_path: Path, options: str) -> None:
    with JudgeServer() as server:
        sit(server.spec(), "implicit", [reply(1)], tmp_path / "v.db")
        sit(server.spec(options), "implicit", [reply(1)], tmp_path / "v.db")
        assert server.count == 1


def test_another_model_and_another_sound_are_other_questions(tmp_path: Path) -> None:
    one = reply(1)
    one.sounds.update(sounds(tmp_path / "s", "reply"))
    other = reply(1)
    other.sounds["reply"] = sounds(tmp_path / "t", "clip", "reply")["reply"]
    with JudgeServer() as server:
        sit(server.spec(), "ves", [one], tmp_path / "v.db")
        sit(server.spec(), "ves", [other], tmp_path / "v.db")
        sit(server.spec(name="another"), "ves", [one], tmp_path / "v.db")
        assert server.count == 3


def test_two_replies_with_the_same_words_are_each_judged(tmp_path: Path) -> None:
    with JudgeServer() as server:
        sit(server.spec(), "implicit", [reply(1, reply="Yes."), reply(2, reply="Yes.")], tmp_path / "v.db")
        assert server.count == 2


def test_a_judge_that_dies_keeps_what_it_said_and_goes_on_later(tmp_path: Path) -> None:
    subjects = [reply(n) for n in range(8)]
    with JudgeServer() as server:
        server.dies_after = 5
        found, outcome = sit(server.spec(), "implicit", subjects, tmp_path / "v.db")
        port = server.port
    assert [bool(judgement.draws[0].values) for judgement in found] == [True] * 5 + [False] * 3
    assert all(judgement.draws[0].problem for judgement in found[5:])
    before = rows(tmp_path / "v.db")
    assert len(before) == 5
    with JudgeServer(port=port) as server:
        again, outcome = sit(server.spec(), "implicit", subjects, tmp_path / "v.db")
        assert (server.count, outcome.cached) == (3, 5)
    assert again[:5] == found[:5]
    assert before.items() <= rows(tmp_path / "v.db").items()


@pytest.mark.timeout(120)
def test_killed_at_any_moment_nothing_that_was_kept_is_asked_again(tmp_path: Path) -> None:
    rng, cache, total, connections = random.Random(4), tmp_path / "v.db", 300, 4
    with JudgeServer(latency=0.02) as server:
        spec = server.spec(f"connections={connections}")
        command = [sys.executable, "-c", PROGRAM, spec, str(cache), str(total)]
        seen: dict[tuple[str, str], str] = {}
        kills, longest = 0, 0.9
        while kills < 4 or not seen:  # a busy machine may not have come to asking before
            child = subprocess.Popen(command, start_new_session=True)
            time.sleep(rng.uniform(0.5, longest))
            assert child.poll() is None, "it ended before it could be killed: make it longer"
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            kills += 1
            now = rows(cache) if cache.exists() and cache.stat().st_size else {}
            assert seen.items() <= now.items(), "a verdict was lost or changed"
            longest += 0.4 if len(now) == len(seen) else 0.0
            seen = now
        assert 0 < len(seen) < total
        asked = server.count
        subprocess.run(command, check=True)
        assert server.count - asked == total - len(seen)
        assert server.count <= total + kills * connections, "only what was on its way when it was killed"
    assert len(rows(cache)) == total
    with sqlite3.connect(cache) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_stored_verdict_is_found_by_its_subject_and_request(tmp_path: Path) -> None:
    with Verdicts(tmp_path / "v.db") as verdicts:
        for number in range(3):
            verdicts.put("s", str(number), "j", "r", Reply("{}", usage=Usage(100, 7, 40)), 1)
        assert verdicts.get("s", "1") == "{}"
        assert verdicts.get("s", "9") is None


def test_a_file_that_is_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "v.db").write_bytes(b"my thesis, chapter one" * 400)
    with pytest.raises(StoreError):
        Verdicts(tmp_path / "v.db")
    assert (tmp_path / "v.db").read_bytes().startswith(b"my thesis")
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE verdicts (mine TEXT)")
    with pytest.raises(StoreError, match="no file of verdicts"):
        Verdicts(tmp_path / "other.db")
