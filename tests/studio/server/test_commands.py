"""`overtone studio serve`, `invite`, `status`, `close` and `demo` as programs: what they print, refuse and leave."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from overtone.cli import main
from overtone.cli.studio import serve_study
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.helpers import spoken_runs
from tests.studio.server.conftest import MakeStudy
from tests.studio.server.helpers import sensible, served

NOTICES = [
    (f'{name} = ""', f'{name} = "here"') for name in ("controller", "contact", "approval", "retention", "debriefing")
]


class Program:
    """A running server, with what it printed before it was ready."""

    def __init__(self, process: subprocess.Popen[str], printed: list[str], seconds: float) -> None:
        self.process, self.printed, self.seconds = process, printed, seconds

    @property
    def url(self) -> str:
        found = re.search(r" is open at (\S+)", "".join(self.printed))
        assert found is not None, self.printed
        return found[1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit code and what was printed until the end."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=20)
        return self.process.returncode, "".join(self.printed) + out


@contextlib.contextmanager
def program(study: Path, *flags: str, port: int = 0, cwd: Path | None = None) -> Iterator[Program]:
    """A server in its own process."""
    command = [sys.executable, "-m", "overtone", "studio", "serve", str(study), "--port", str(port), *flags]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd)
    assert process.stdout is not None
    printed: list[str] = []
    try:
        while "is open at" not in (line := process.stdout.readline()):
            assert line, printed
            printed.append(line)
        seconds = time.perf_counter() - began
        printed.append(line)
        while "how it goes" not in printed[-1]:
            printed.append(process.stdout.readline())
            assert printed[-1], printed
        yield Program(process, printed, seconds)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


async def ask(url: str, token: str, path: str, body: Any = None) -> Any:
    """The answer of a server in another process; waits until it is prepared."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session:
        for _ in range(100):
            async with session.request("POST" if body is not None else "GET", url + path, headers=headers,
                                       **({"json": body} if body is not None else {})) as answer:  # fmt: skip
                if answer.status != 503:
                    assert answer.status == 200, await answer.text()
                    return await answer.json()
            await asyncio.sleep(0.05)
    raise AssertionError("the server was never prepared")


async def to_rating(url: str, token: str) -> Any:
    state = await ask(url, token, "api/state")
    sha = state["study"]["texts"]["consent_sha"]
    await ask(url, token, "api/consent", {"consent_sha": sha, "agree": True})
    return await ask(url, token, "api/setup", {"device": {"a": 1}, "level": 0.5})


def invited(study: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The token of a new link."""
    capsys.readouterr()
    assert main(["studio", "invite", str(study), "--people", "1"]) == 0
    found = re.search(r"/#(\S+)", capsys.readouterr().out)
    assert found is not None
    return found[1]


def test_a_server_listens_at_once_and_ends_cleanly(quick: Study) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with program(quick.path) as server:
            assert server.seconds < 5  # on a busy machine; on an idle one 0.5 s
            assert re.search(r"your page: +http://127\.0\.0\.1:\d+/owner#\S{20,}\n", "".join(server.printed))
            assert "invite people:  overtone studio invite" in "".join(server.printed)
            assert "this link ends when the server stops; keep one with --token-file" in "".join(server.printed)
            code, printed = server.end(number)
            assert code == 0 and "is stored" in printed and "Traceback" not in printed


def test_a_killed_server_resumes_in_the_middle_of_an_answer(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    token = invited(quick.path, capsys)

    async def answer(server: Program, screen: Any, key: str, values: Any, done: bool) -> Any:
        plays = dict.fromkeys(screen["must_play"], 1)
        body = {"slot": screen["slot"], "client_key": key, "values": values, "plays": plays, "done": done}
        return await ask(server.url, token, "api/answer", body)

    saved: dict[str, int] = {}
    screen: Any = None
    key = ""
    for number in range(3):
        with program(quick.path) as server:
            state = asyncio.run(to_rating(server.url, token) if number == 0 else ask(server.url, token, "api/state"))
            screen = state["screen"]
            assert screen["answers"] == saved
            if key:  # the page repeats what it was not sure about
                asyncio.run(answer(server, screen, key, saved, False))
            saved, key = {**saved, **dict([list(sensible(screen).items())[number]])}, secrets.token_hex(8)
            assert asyncio.run(answer(server, screen, key, saved, False)) == {"saved": True}
            code, _ = server.end(signal.SIGKILL)
            assert code == -signal.SIGKILL
    with program(quick.path) as server:
        state = asyncio.run(answer(server, screen, secrets.token_hex(8), sensible(screen), True))
        assert state["progress"]["done"] == 1
    with Store.open(quick) as store:
        assert [one.field for one in store.answers.history() if one.slot == screen["slot"]].count("cctxfit") == 4


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["studio", *words]) == 2
    return capsys.readouterr().err


def test_beyond_this_machine_a_token_and_all_notices_are_needed(
    make_study: MakeStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERTONE_TOKEN", raising=False)
    study = make_study("acr")
    everywhere = ("serve", str(study.path), "--host", "0.0.0.0", "--port", "0")
    assert "--token-file" in refused(capsys, *everywhere)
    token = tmp_path / "token.txt"
    token.write_text("short\n")
    assert "does not contain a valid token" in refused(capsys, *everywhere, "--token-file", str(token))
    token.write_text(secrets.token_hex(16))
    told = refused(capsys, *everywhere, "--token-file", str(token))
    assert "controller, contact, approval, retention, debriefing" in told and "[people]" in told
    assert not (tmp_path / "study.db").exists()


def test_beyond_this_machine_the_owner_is_told_about_tls(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study("acr", *NOTICES)
    token = tmp_path / "token.txt"
    token.write_text(secrets.token_hex(16))
    with program(study.path, "--host", "0.0.0.0", "--token-file", str(token)) as server:
        printed = "".join(server.printed)
        assert "TLS" in printed and "nginx or Caddy" in printed
        assert token.read_text() not in printed and "/owner#TOKEN" in printed and "link ends" not in printed
        status = asyncio.run(ask(server.url, token.read_text(), "api/owner/status"))
        assert status["title"] == study.title


def test_links_are_printed_once_and_stored_as_hashes(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    base = ("--base-url", "https://study.example.org/")
    assert main(["studio", "invite", str(quick.path), "--people", "3", "--csv", *base]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "label,link" and len(lines) == 3
    labels, links = zip(*(line.split(",") for line in lines), strict=True)
    assert all(re.fullmatch(r"https://study\.example\.org/#\S{20,}", link) for link in links)
    tokens = [link.partition("#")[2] for link in links]
    stored = b"".join(path.read_bytes() for path in quick.path.parent.glob("study.db*"))
    assert not any(token.encode() in stored for token in tokens)
    with Store.open(quick) as store:
        assert [person.label for token in tokens if (person := store.people.find(token))] == list(labels)
    assert main(["studio", "invite", str(quick.path), "--revoke", labels[0]]) == 0
    with Store.open(quick) as store:
        assert store.people.find(tokens[0]) is None and store.people.find(tokens[1]) is not None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "say what to make"),
        (["--prolific"], "say what to make"),
        (["--people", "2", "--prolific"], "belong to --public"),
        (["--public", "--prolific", "--mturk"], "choose one"),
        (["--people", "-1"], "--people must be"),
        (["--people", "1", "--base-url", "study.example.org"], "must begin with https://"),
    ],
)
def test_invitations_that_make_no_sense_are_refused(
    quick: Study, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert message in refused(capsys, "invite", str(quick.path), *flags)
    assert not (quick.path.parent / "study.db").exists()


def test_public_links_name_the_platforms_parameters(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, path in (
        ([], "/join\n"), (["--prolific"], "/join?PROLIFIC_PID={{%PROLIFIC_PID%}}"), (["--mturk"], "/mturk\n"),
    ):  # fmt: skip
        capsys.readouterr()
        assert main(["studio", "invite", str(quick.path), "--public", *flags]) == 0
        assert path in capsys.readouterr().out


def test_status_and_close_report_what_people_did(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("status", "sync", "close", "export"):
        told = refused(capsys, command, str(quick.path))
        assert "does not exist" in told and f"overtone studio serve {quick.path}'" in told

    async def session() -> None:
        async with served(quick) as server:
            server.rater()  # who never comes
            rater = server.rater()
            await rater.finish()

    asyncio.run(session())
    capsys.readouterr()
    assert main(["studio", "status", str(quick.path)]) == 0
    printed = capsys.readouterr().out
    assert "answers: 3" in printed and "1 finished" in printed and "s per screen" in printed and "1 session" in printed
    assert main(["studio", "status", str(quick.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["state"] for row in found["people"]] == ["invited", "finished"] and found["people"][1]["done"] == 3
    assert main(["studio", "close", str(quick.path)]) == 0
    printed = capsys.readouterr().out
    assert "closed with 3 answers" in printed and "payment ids are erased" in printed
    assert main(["studio", "status", str(quick.path)]) == 0
    assert ": closed" in capsys.readouterr().out


def test_the_demo_names_the_command_that_makes_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "overtone demo --quick" in refused(capsys, "demo")


def test_the_demo_opens_a_study_over_its_runs(tmp_path: Path) -> None:
    (tmp_path / "demo-quick").mkdir()
    spoken_runs(tmp_path / "demo-quick", "acoustic", "deaf", scripts=7)
    command = [sys.executable, "-m", "overtone", "studio", "demo", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    assert process.stdout is not None
    try:
        printed = ""
        while " is open at " not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        url = printed.rpartition(" is open at ")[2].split()[0]

        async def take_part() -> str:
            token = (await ask(url, "", "api/join", {"params": {}}))["token"]
            return str((await ask(url, token, "api/state"))["step"])

        assert asyncio.run(take_part()) == "consent"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0 and (tmp_path / "demo-quick/study-ab.toml").exists()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_study_that_records_warns_about_microphones(
    make_study: MakeStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study("acr", *NOTICES)
    args = argparse.Namespace(study=study.path, host="0.0.0.0", allow_host=[])
    serve_study.check_exposure(args, study, "0" * 32)
    assert "microphone" not in capsys.readouterr().err
    serve_study.check_exposure(args, msgspec.structs.replace(study, design="record"), "0" * 32)
    assert "browsers allow a microphone only at https://" in capsys.readouterr().err


def test_a_name_for_a_proxy_needs_a_token_and_notices_too(
    quick: Study, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERTONE_TOKEN", raising=False)
    told = refused(capsys, "serve", str(quick.path), "--port", "0", "--allow-host", "study.example.org")
    assert "people elsewhere can reach study.example.org" in told and "--token-file" in told
    monkeypatch.setenv("OVERTONE_TOKEN", "0" * 32)
    told = refused(capsys, "serve", str(quick.path), "--port", "0", "--allow-host", "study.example.org")
    assert "controller" in told
