"""How fast the studio saves answers and sends sounds to 200 people at once, on this machine.

The server is another process on the same cores; everybody gives an answer every 5 s, and each new screen's clips are
fetched. Prints percentiles for SQLite and, if it is installed, PostgreSQL.

People arrive within the first seconds and rate as soon as they are in, so that saves compete with new sessions.

    python -m bench.studio [--people 200] [--every 5] [--seconds 60] [--arrive 20] [--clip-seconds 4]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from overtone.audio import encode_wav
from overtone.cli import main as overtone
from overtone.runs.store import Store
from overtone.schema import Reply
from overtone.studio import study
from overtone.studio.store import Store as StudyStore
from tests.arena.helpers import items
from tests.postgres_server import Server as Postgres
from tests.postgres_server import available

TARGET_MS = 100.0  # the 95th percentile of saving an answer
SCRIPTS = 400


class Times:
    """Seconds that requests took, by kind."""

    def __init__(self) -> None:
        self.saves: list[float] = []
        self.screens: list[float] = []
        self.first_bytes: list[float] = []
        self.clips: list[float] = []
        self.entering: list[float] = []  # from the last set-up page to the first byte of the first clip
        self.failures: dict[str, int] = {}

    def fail(self, what: str) -> None:
        self.failures[what] = self.failures.get(what, 0) + 1


def make_runs(folder: Path, seconds: float, scripts: int) -> list[Path]:
    """Two runs that answered every item with noise of some seconds, as speech has about its size."""
    made = []
    for name in ("one", "two"):
        with Store.create(folder / name) as store:
            store.set_meta({"benchmark": "toy", "model": name})
            store.plan([(item, ["enhance/audio"]) for item in items(scripts)], 1)
            store.commit()
            for number, ask in enumerate(store.open_asks(0, 100_000)):
                noise = np.random.default_rng(number).normal(0, 0.05, round(seconds * 24_000)).astype(np.float32)
                reply = Reply(f"reply {number}", encode_wav(noise, 24_000))
                store.add_reply(ask, 0, reply, sent=b"[]", latency=1.0, attempts=1)
            store.commit()
        made.append(folder / name)
    return made


def make_study(folder: Path, runs: list[Path], url: str, people: int) -> Path:
    """A study in which everybody rates twelve replies on four scales."""
    path = folder / "study.toml"
    flags = ("--raters", str(people), "--session", "12", "--votes", "3")
    assert overtone(["studio", "new", str(path), "--from", *map(str, runs), *flags]) == 0
    text = path.read_text().replace('url = "sqlite:study.db"', f'url = "{url}"')
    path.write_text(text.replace("headphones = true", "headphones = false"))
    return path


@contextmanager
def server(path: Path) -> Iterator[str]:
    """The server in its own process; gives its URL."""
    command = [sys.executable, "-m", "overtone", "studio", "serve", str(path), "--port", "0"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        print(f"listening after {time.perf_counter() - began:.2f} s")
        try:
            yield line.partition(" is open at ")[2].split()[0]
        finally:
            ticks = Path(f"/proc/{process.pid}/stat").read_text().split()
            used = (int(ticks[13]) + int(ticks[14])) / os.sysconf("SC_CLK_TCK")
            print(f"the server used {used:.1f} s of CPU")
            process.terminate()


class Person:
    """One listener: a token, the current screen, and what is answered there."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str, times: Times) -> None:
        self.session, self.url, self.times = session, url, times
        self.headers = {"Authorization": f"Bearer {token}"}
        self.state: dict[str, Any] = {}
        self.open: list[tuple[str, int]] = []

    async def ask(self, path: str, body: Any = None) -> Any:
        method = "GET" if body is None else "POST"
        more = {} if body is None else {"json": body}
        async with self.session.request(method, self.url + path, headers=self.headers, **more) as answer:
            if answer.status != 200:
                self.times.fail(f"{path.split('?')[0]}: {answer.status}")
                raise aiohttp.ClientError(await answer.text())
            return await answer.json()

    async def enter(self) -> None:
        while True:
            try:
                self.state = await self.ask("api/state")
                break
            except aiohttp.ClientError:  # the study is being prepared
                await asyncio.sleep(0.2)
        self.times.failures.pop("api/state: 503", None)
        sha = self.state["study"]["texts"]["consent_sha"]
        await self.ask("api/consent", {"consent_sha": sha, "agree": True})
        began = time.perf_counter()
        await self.show(await self.ask("api/setup", {"device": {"a": 1}, "level": 0.5}))
        self.times.entering.append(time.perf_counter() - began)

    async def show(self, state: dict[str, Any]) -> None:
        """Show the next screen and fetch its clips."""
        if state["step"] == "break":
            state = await self.ask("api/break", {})
        self.state, screen = state, state["screen"]
        if screen is None:
            return
        self.open = [
            (field["key"], field.get("low", next(iter(field.get("options", {})), 0)))
            for stage in screen["stages"]
            for field in stage["fields"]
        ]
        for sound in (*screen["context"]["sounds"], *screen["sounds"]):
            began = time.perf_counter()
            async with self.session.get(self.url + sound["url"], headers=self.headers) as answer:
                await answer.content.readany()
                self.times.first_bytes.append(time.perf_counter() - began)
                await answer.read()
                self.times.clips.append(time.perf_counter() - began)
                if answer.status != 200:
                    self.times.fail(f"sound: {answer.status}")

    async def answer(self) -> bool:
        """Give the next answer of the screen; False if the session is over."""
        screen = self.state["screen"]
        if screen is None:
            return False
        key, value = self.open.pop(0)
        done = not self.open
        plays = dict.fromkeys(screen["must_play"], 1)
        body = {"slot": screen["slot"], "client_key": secrets.token_hex(8), "plays": plays, "ms": 4000}
        began = time.perf_counter()
        answered = await self.ask("api/answer", {**body, "values": {key: value}, "done": done})
        (self.times.screens if done else self.times.saves).append(time.perf_counter() - began)
        if done:
            await self.show(answered)
        return True

    async def rate(self, arrive: float, every: float, until: float) -> None:
        """Arrive at a random moment, then give an answer every so many seconds."""
        await asyncio.sleep(random.random() * arrive)
        await self.enter()
        next_at = time.perf_counter() + random.random() * every
        while next_at < until:
            await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
            if not await self.answer():
                return
            next_at += every


async def load(url: str, tokens: list[str], args: argparse.Namespace) -> Times:
    """Let everybody rate for some time."""
    times = Times()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        people = [Person(session, url, token, times) for token in tokens]
        until = time.perf_counter() + args.arrive + args.seconds
        await asyncio.gather(*(person.rate(args.arrive, args.every, until) for person in people))
    return times


def percentiles(seconds: list[float]) -> str:
    """The median, 95th and 99th percentile in milliseconds."""
    if len(seconds) < 2:
        return "too few"
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return f"p50 {cuts[49] * 1e3:6.1f}  p95 {cuts[94] * 1e3:6.1f}  p99 {cuts[98] * 1e3:6.1f} ms  (n = {len(seconds)})"


def measure(name: str, folder: Path, runs: list[Path], url: str, args: argparse.Namespace) -> bool:
    """Measure one database; whether the target is met."""
    folder.mkdir()
    print(f"\n── {name}")
    path = make_study(folder, runs, url, args.people)
    with StudyStore.open(study.read(path)) as store:
        tokens = [one.token for one in store.people.invite(args.people)]
    with server(path) as at:
        times = asyncio.run(load(at, tokens, args))
    print(f"begin a session:     {percentiles(times.entering)}")
    print(f"save an answer:      {percentiles(times.saves)}")
    print(f"finish a screen:     {percentiles(times.screens)}")
    print(f"a clip's first bytes {percentiles(times.first_bytes)}")
    print(f"a whole clip         {percentiles(times.clips)}")
    print(f"failures: {times.failures or 'none'}")
    worst = statistics.quantiles([*times.saves, *times.screens], n=20)[-1] * 1e3
    print(f"95 % of all answers are saved within {worst:.1f} ms; the target is {TARGET_MS:g} ms")
    return worst < TARGET_MS and not times.failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two answers of a person")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--arrive", type=float, default=20.0, help="seconds within which everybody arrives")
    parser.add_argument("--clip-seconds", type=float, default=4.0)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = make_runs(Path(name), args.clip_seconds, max(20, SCRIPTS * args.people // 200))
        met = []
        if args.only != "postgresql":
            met.append(measure("SQLite, synchronous=FULL", Path(name) / "a", runs, "sqlite:study.db", args))
        if args.only != "sqlite":
            if not available():
                print("PostgreSQL is not installed; run 'apt install postgresql'")
                return 1
            postgres = Postgres()
            try:
                met.append(measure("PostgreSQL, its defaults", Path(name) / "b", runs, postgres.url, args))
            finally:
                postgres.close()
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
