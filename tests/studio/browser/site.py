"""Studies of every design over short sounds, and the real server: in a thread, or as a process to be killed."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from overtone.cli import main
from overtone.server_guard import Guard, bound
from overtone.studio import replies, study
from overtone.studio.server import app
from overtone.studio.server.open_study import Studio
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.arena.helpers import items, make_run

NAMES = ("zebra-voice", "quokka-voice")  # which no rater may read
KINDS = ("real", "repeat", "anchor", "trap", "gold", "training")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'&${7*7}"
FLAGS = {
    "acr": ("--rubric", "echomind", "--rubric", "uro-performance"),
    "mushra": ("--reference", "clip"),
    "label": (),
}


def template(folder: Path, design: str, *, said: tuple[str, ...] = (), longer: float = 1) -> Path:
    """Write a study with two runs of short replies. `said`: what the replies say."""
    more: dict[str, Any] = {"scripts": 7, "spoken": True, "root": folder / "clips", "longer": longer}
    runs = []
    for run, name in enumerate(NAMES):
        words = {
            one.id: said[(number + run) % len(said)] if said else f"A reply to {one.id} {HOSTILE}"
            for number, one in enumerate(items(7))
        }
        runs.append(make_run(folder / name, run + 1.0, words=words, **more))
    for run in runs if design == "mushra" else ():
        for reply in replies.read(run).replies:
            assert reply.clip is not None
            shutil.copy(reply.sound.path, reply.clip.path)  # a codec's reply is as long as its clip
    path = folder / "study.toml"
    flags = ["--design", design, "--session", "3", "--title", "Voices that answer", *FLAGS.get(design, ())]
    assert main(["studio", "new", str(path), "--from", *map(str, runs), *flags]) == 0
    return path


def changed(path: Path, changes: dict[str, str]) -> Study:
    """Set keys of a study file, e.g. {"traps": "0"}."""
    text = path.read_text()
    for key, value in changes.items():
        pattern = rf'^{key} = ("""(?s:.*?)"""|.*)$'
        text, found = re.subn(pattern, lambda _, new=f"{key} = {value}": new, text, flags=re.M)  # type: ignore[misc]
        assert found == 1, key
    path.write_text(text)
    return study.read(path)


class Site:
    """A served study. `url` ends with a slash."""

    def __init__(self, url: str, store: Store) -> None:
        self.url, self.store = url, store

    def invite(self) -> str:
        """Return the link of a new person."""
        return f"{self.url}#{self.store.people.invite(1)[0].token}"

    def answers(self) -> dict[tuple[str, str], object]:
        """Return the newest answers of finished screens by slot and question."""
        found = self.store.answers.all(KINDS)
        return {(one.slot, key): value for one in found for key, value in one.values.items()}


@contextmanager
def served(of: Study, url: str = "", names: Sequence[str] = ()) -> Iterator[Site]:
    """The server in a thread of this process. `names` are hosts by which it may be called, besides its address."""
    store = Store.open(of, url)
    loop, started, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    async def run() -> None:
        studio = Studio(of, store)
        guard = Guard(["127.0.0.1", *names], command="overtone studio serve")
        async with app.serving(studio, bound("127.0.0.1", 0), guard) as at:
            await app.prepare(studio)
            address.append(at)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    assert started.wait(30)
    try:
        yield Site(address[0], store)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


class Process:
    """`overtone studio serve` as a process, which can be killed and started again at the same address."""

    def __init__(self, of: Study) -> None:
        self.study = of
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.site: Site
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "overtone", "studio", "serve", str(self.study.path), "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        url = line.partition(" is open at ")[2].split()[0]
        self.port = int(url.rstrip("/").rpartition(":")[2])
        if not hasattr(self, "site"):
            self.site = Site(url, Store.open(self.study))

    def kill(self) -> None:
        """End it at once, with SIGKILL."""
        assert self.process
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def killable(of: Study) -> Iterator[Process]:
    """The server as a process of its own."""
    process = Process(of)
    try:
        yield process
    finally:
        process.kill()
