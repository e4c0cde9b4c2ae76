"""The start of `overtone studio serve`: one server per study, errors before links, the address of later links."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.cli.studio import serve_study
from overtone.errors import StoreError
from overtone.studio.serving_lock import lock_file, serving_alone
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.server.conftest import NAMES, MakeStudy
from tests.studio.server.helpers import served
from tests.studio.server.test_commands import ask, program


def serve(study: Study, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """The exit code, output and errors of a server that does not start."""
    capsys.readouterr()
    code = main(["studio", "serve", str(study.path), "--port", "0"])
    return code, *capsys.readouterr()


def test_a_second_server_of_a_study_is_refused_and_the_first_owner_keeps_the_link(
    quick: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    with program(quick.path) as server:
        code, printed, told = serve(quick, capsys)
        assert code != 0 and not printed
        assert f"(pid {server.process.pid}) at {server.url}; stop that server first" in told
        owner = re.search(r"/owner#(\S+)", "".join(server.printed))
        assert owner is not None
        assert asyncio.run(ask(server.url, owner[1], "api/owner/status"))["title"] == quick.title
        server.end(signal.SIGKILL)
    with serving_alone(quick):  # a killed server does not leave the study locked
        pass


def test_the_lock_names_its_holder_and_is_free_afterwards(quick: Study) -> None:
    with serving_alone(quick) as note_address:
        with pytest.raises(StoreError, match=rf"\(pid {os.getpid()}\); stop"), serving_alone(quick):
            pass
        note_address("http://127.0.0.1:1/")
        with pytest.raises(StoreError, match=r"\) at http://127\.0\.0\.1:1/; stop"), serving_alone(quick):
            pass
    assert lock_file(quick).read_text() == ""
    with serving_alone(quick):
        pass


def test_a_lost_sound_is_an_error_before_any_link(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    next((quick.path.parent / NAMES[0] / "audio").rglob("*.*")).unlink()
    code, printed, told = serve(quick, capsys)
    assert code != 0 and "has lost its sound" in told
    assert "http" not in printed and "owner#" not in printed
    with Store.open(quick) as store:
        assert store.state() == "new" and not store.address()


def test_a_run_that_is_not_in_its_place_is_an_error_first_and_a_warning_later(
    quick: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start() -> None:
        async with served(quick):
            pass

    asyncio.run(start())
    with Store.open(quick) as store:
        serve_study.warn_of_lost_sources(quick, store)
        assert capsys.readouterr().err == ""
        shutil.move(tmp_path / NAMES[1], tmp_path / "moved")
        serve_study.warn_of_lost_sources(quick, store)
    told = capsys.readouterr().err
    assert f"the run {NAMES[1]} is not at {tmp_path / NAMES[1]}" in told and told.count("warning") == 1
    assert "sync' will fail" in told and "correct path = " in told


def test_a_slow_start_says_what_it_does(quick: Study, capsys: pytest.CaptureFixture[str]) -> None:
    async def start() -> None:
        async with served(quick) as server:
            serve_study.tell_reading(server.studio)
            assert capsys.readouterr().err == ""
            server.studio.prepared.clear()
            serve_study.tell_reading(server.studio)

    asyncio.run(start())
    assert capsys.readouterr().err == "reading the runs …\n"


def test_links_lead_to_the_address_at_which_the_study_was_served_last(
    quick: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    def invite(*flags: str) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["studio", "invite", str(quick.path), *flags]) == 0
        return capsys.readouterr()

    printed, told = invite("--people", "1")
    assert "  http://127.0.0.1:8080/#" in printed and "never served" in told
    with program(quick.path) as server:
        url = server.url
        assert "--base-url" not in "".join(server.printed)
    printed, told = invite("--people", "1", "--csv")
    assert f",{url}#" in printed and f"The links lead to {url.rstrip('/')} (the study was last served there)" in told
    assert f"{url}join\n" in invite("--public")[0]
    printed, told = invite("--people", "1", "--base-url", "https://study.example.org")
    assert "  https://study.example.org/#" in printed and told == ""


def test_the_address_of_a_proxy_is_that_of_later_links() -> None:
    args = argparse.Namespace(allow_host=["localhost", "study.example.org"])
    assert serve_study.public_address(args, "http://127.0.0.1:8080/") == "https://study.example.org/"
    args.allow_host = []
    assert serve_study.public_address(args, "http://127.0.0.1:8080/") == "http://127.0.0.1:8080/"


def test_an_owner_with_an_earlier_link_is_told_to_use_the_last_one(make_study: MakeStudy) -> None:
    async def look() -> None:
        async with served(make_study("acr")) as server:
            earlier = server.owner
            server.studio.store.people.own()
            status, _, data = await server.raw("GET", "api/owner/status", earlier)
            assert status == 401 and b"from an earlier start; use the one that the terminal printed last" in data
            status, _, data = await server.raw("GET", "api/state", earlier)
            assert status == 401 and b"ask the organiser" in data

    asyncio.run(look())
