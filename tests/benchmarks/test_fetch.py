"""Fetching, against real local servers that speak the hub's and GitHub's protocols and misbehave on request."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from overtone import registry
from overtone.benchmarks import _hosts
from overtone.benchmarks._hosts import HOSTS
from overtone.benchmarks.fetch import Fetched, release_of, repositories_of
from overtone.benchmarks.fetch import fetch as blocking_fetch
from overtone.cli import data as command
from overtone.errors import DataError, MissingExtra, UsageError
from overtone.suite import Facts, Release, Suite

REPO = "hlt-cuhksz/EchoMind"


async def fetch(name: str, out: Path, **options: Any) -> Fetched:
    """Fetch in a thread, so that the servers can answer from this one."""
    return await asyncio.to_thread(blocking_fetch, name, out, pause=0, **options)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between two attempts, and no proxy and no token of whoever runs the tests is used."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(_hosts, "_CHUNK", 1 << 16)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HF_TOKEN", "GITHUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


class Hub:
    """A dataset host: what it holds, what it was asked, and how it misbehaves."""

    def __init__(self) -> None:
        self.files = {
            "README.md": b"a card",
            "dataset/audio/a b.wav": bytes(range(256)) * 4000,
            "dataset/audio/ü#1?.wav": b"RIFF" * 1000,
            "dataset/empty.txt": b"",
        }
        self.small = {"README.md", "dataset/empty.txt"}
        self.asked: list[tuple[str, str]] = []  # path, Range
        self.tokens: dict[str, list[str]] = {"hub": [], "cdn": []}
        self.break_at: dict[str, list[int]] = {}  # path -> after how many bytes each next answer breaks off
        self.corrupt: dict[str, int] = {}  # path -> how many answers are wrong
        self.busy = 0
        self.extra: list[dict[str, object]] = []
        self.longer: set[str] = set()
        self.gone: set[str] = set()
        self.slow = 0.0
        self.answer = ""
        self.ranges = True
        self.status = 200
        self.hub: TestServer
        self.cdn: TestServer

    def entries(self) -> list[dict[str, object]]:
        out: list[dict[str, object]] = [{"type": "directory", "path": "dataset", "oid": "0" * 40, "size": 0}]
        for path, body in self.files.items():
            entry: dict[str, object] = {"type": "file", "path": path, "size": len(body)}
            entry["oid"] = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            if path not in self.small:
                entry["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
            out.append(entry)
        return out + self.extra

    async def tree(self, request: web.Request) -> web.StreamResponse:
        self.tokens["hub"].append(request.headers.get("Authorization", ""))
        if self.status != 200:
            return web.Response(status=self.status)
        if self.answer:
            return web.Response(text=self.answer, content_type="application/json")
        assert request.query["recursive"] == "true"
        at = int(request.query.get("cursor", 0))
        entries = self.entries()
        headers = {}
        if at + 2 < len(entries):
            headers["Link"] = f'<{request.url.update_query(cursor=at + 2)}>; rel="next"'
        return web.json_response(entries[at : at + 2], headers=headers)

    async def resolve(self, request: web.Request) -> web.StreamResponse:
        self.tokens["hub"].append(request.headers.get("Authorization", ""))
        path = request.match_info["path"]
        if path in self.small:
            return await self.send(request, path)
        raise web.HTTPFound(self.cdn.make_url("/").join(self.cdn.make_url("/blob").with_query(path=path)))

    async def blob(self, request: web.Request) -> web.StreamResponse:
        self.tokens["cdn"].append(request.headers.get("Authorization", ""))
        return await self.send(request, request.query["path"])

    async def send(self, request: web.Request, path: str) -> web.StreamResponse:
        wanted = request.headers.get("Range", "")
        self.asked.append((path, wanted))
        if self.busy:
            self.busy -= 1
            return web.Response(status=503, headers={"Retry-After": "0"})
        if path in self.gone:
            return web.Response(status=404)
        body = self.files[path] + (b"more" * 100_000 if path in self.longer else b"")
        if self.corrupt.get(path, 0):
            self.corrupt[path] -= 1
            body = b"X" * len(body)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        answer = web.StreamResponse(status=206 if start else 200)
        if start:
            answer.headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        answer.content_length = len(body) - start
        await answer.prepare(request)
        breaks = self.break_at.get(path, [])
        if breaks:
            await answer.write(body[start : start + breaks.pop(0)])
            await asyncio.sleep(0.02)
            assert request.transport is not None
            request.transport.close()
            return answer
        for place in range(start, len(body), 10_000 if self.slow else len(body)):
            await answer.write(body[place : place + 10_000] if self.slow else body[place:])
            await asyncio.sleep(self.slow)
        await answer.write_eof()
        return answer


@pytest_asyncio.fixture
async def hub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hub]:
    one = Hub()
    app, cdn = web.Application(), web.Application()
    app.router.add_get(f"/api/datasets/{REPO}/tree/{{rev}}", one.tree)
    app.router.add_get(f"/datasets/{REPO}/resolve/main/{{path:.+}}", one.resolve)
    cdn.router.add_get("/blob", one.blob)
    async with TestServer(app) as one.hub, TestServer(cdn, host="localhost") as one.cdn:
        monkeypatch.setenv("HF_ENDPOINT", str(one.hub.make_url("/")))
        yield one


def parts(out: Path) -> list[Path]:
    return list(out.rglob("*.part"))


async def test_a_release_arrives_whole_and_a_rerun_downloads_nothing(hub: Hub, tmp_path: Path) -> None:
    said: list[str] = []
    seen: list[tuple[int, int]] = []
    result = await fetch("echomind", tmp_path / "e", say=said.append, progress=lambda d, t: seen.append((d, t)))
    assert {p: (tmp_path / "e" / p).read_bytes() for p in hub.files} == hub.files
    assert (result.files, result.new_files) == (4, 4)
    assert "4 files, 1.0 MB" in said[0] and "non-commercial" in said[0]
    assert seen[-1][0] == seen[-1][1] == result.bytes
    assert not parts(tmp_path)
    hub.asked.clear()
    again = await fetch("echomind", tmp_path / "e", say=said.append)
    assert again.new_files == 0 and hub.asked == []


async def test_a_broken_connection_is_resumed_where_it_broke(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    hub.break_at[path] = [300_000, 200_000]
    await fetch("echomind", tmp_path, say=str)
    assert (tmp_path / path).read_bytes() == hub.files[path]
    starts = [int(r.removeprefix("bytes=").removesuffix("-")) if r else 0 for p, r in hub.asked if p == path]
    assert len(starts) == 3
    assert 0 == starts[0] < starts[1] < starts[2]


async def test_a_later_command_goes_on_from_the_part_an_earlier_one_left(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    hub.break_at[path] = [100_000] + [0] * 100
    with pytest.raises(DataError, match="run the same command again"):
        await fetch("echomind", tmp_path, say=str)
    assert not (tmp_path / path).exists()
    have = (tmp_path / (path + ".part")).stat().st_size
    assert have > 0
    hub.asked.clear()
    hub.break_at.clear()
    await fetch("echomind", tmp_path, say=str)
    assert (path, f"bytes={have}-") in hub.asked
    assert (tmp_path / path).read_bytes() == hub.files[path]


async def test_a_part_of_another_version_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    (tmp_path / "dataset/audio").mkdir(parents=True)
    (tmp_path / (path + ".part")).write_bytes(b"old" * 1000)
    (tmp_path / (path.replace("a b", "ü#1?") + ".part")).write_bytes(b"longer than the file" * 1000)
    await fetch("echomind", tmp_path, say=str)
    assert (tmp_path / path).read_bytes() == hub.files[path]
    assert not parts(tmp_path)


async def test_a_host_without_ranges_sends_the_whole_file_again(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    hub.ranges, hub.break_at[path] = False, [100_000]
    await fetch("echomind", tmp_path, say=str)
    assert (tmp_path / path).read_bytes() == hub.files[path]


async def test_a_host_that_always_starts_again_and_breaks_off_is_given_up(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    hub.ranges, hub.break_at[path] = False, [300_000, 100_000] * 100
    with pytest.raises(DataError, match="5 attempts failed"):
        await fetch("echomind", tmp_path, say=str)


@pytest.mark.parametrize("path", ["README.md", "dataset/audio/a b.wav"])
async def test_wrong_bytes_are_never_kept(hub: Hub, tmp_path: Path, path: str) -> None:
    hub.corrupt[path] = 1
    await fetch("echomind", tmp_path / "once", say=str)
    assert (tmp_path / "once" / path).read_bytes() == hub.files[path]
    hub.corrupt[path] = 99
    with pytest.raises(DataError, match="digest"):
        await fetch("echomind", tmp_path / "always", say=str)
    assert not (tmp_path / "always" / path).exists()


async def test_a_file_damaged_on_disk_is_fetched_again(hub: Hub, tmp_path: Path) -> None:
    await fetch("echomind", tmp_path, say=str)
    (tmp_path / "README.md").write_bytes(b"a CARD")
    assert (await fetch("echomind", tmp_path, say=str)).new_files == 1
    assert (tmp_path / "README.md").read_bytes() == b"a card"


@pytest.mark.parametrize("path", ["../evil.txt", "a/../../evil.txt", "/tmp/evil.txt", "..", ""])
async def test_a_path_outside_the_folder_stops_everything_before_the_first_byte(
    hub: Hub, tmp_path: Path, path: str
) -> None:
    hub.extra = [{"type": "file", "path": path, "size": 4, "oid": hashlib.sha1(b"blob 4\0evil").hexdigest()}]
    with pytest.raises(DataError):
        await fetch("echomind", tmp_path / "out", say=str)
    assert hub.asked == []
    assert list(tmp_path.iterdir()) == []


async def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-token")
    await fetch("echomind", tmp_path, say=str)
    assert set(hub.tokens["hub"]) == {"Bearer secret-token"}
    assert hub.tokens["cdn"] and set(hub.tokens["cdn"]) == {""}


async def test_a_busy_host_is_asked_again(hub: Hub, tmp_path: Path) -> None:
    hub.busy = 3
    assert (await fetch("echomind", tmp_path, say=str)).new_files == 4


@pytest.mark.parametrize(("status", "words"), [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "--revision")])
async def test_a_refusal_says_what_to_do(hub: Hub, tmp_path: Path, status: int, words: str) -> None:
    hub.status = status
    with pytest.raises(DataError, match=words):
        await fetch("echomind", tmp_path, say=str)


async def test_more_bytes_than_were_listed_are_not_written(hub: Hub, tmp_path: Path) -> None:
    path = "dataset/audio/a b.wav"
    hub.longer.add(path)
    with pytest.raises(DataError, match="more than the 1024000 bytes it listed"):
        await fetch("echomind", tmp_path, say=str)
    assert (tmp_path / (path + ".part")).stat().st_size <= len(hub.files[path])


async def test_a_token_in_the_home_folder_is_not_used(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("secret-token")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    await fetch("echomind", tmp_path / "out", say=str)
    assert set(hub.tokens["hub"]) == {""}


@pytest.mark.parametrize("body", ["<html>", "[1]", '{"error": 1}', '[{"type": "file", "path": "a"}]', "[" * 50_000])
async def test_an_answer_that_is_no_file_list_is_an_error(hub: Hub, tmp_path: Path, body: str) -> None:
    hub.answer = body
    with pytest.raises(DataError, match=r"not a file list.*check HF_ENDPOINT"):
        await fetch("echomind", tmp_path, say=str)


async def test_a_size_or_digest_of_the_wrong_kind_is_an_error(hub: Hub, tmp_path: Path) -> None:
    for size, digest in (("4", "0" * 40), (-4, "0" * 40), (4, "../" * 10), (4, None)):
        hub.extra = [{"type": "file", "path": "a", "size": size, "oid": digest}]
        with pytest.raises(DataError, match=r"file list.*check HF_ENDPOINT"):
            await fetch("echomind", tmp_path / "out", say=str)
    assert hub.asked == []


async def test_a_file_that_fails_ends_the_others(hub: Hub, tmp_path: Path) -> None:
    hub.files["gone.txt"] = b"gone"
    hub.small.add("gone.txt")
    hub.gone.add("gone.txt")
    hub.slow = 0.05  # seconds after each 10 kB
    began = time.monotonic()
    with pytest.raises(DataError, match=r"gone\.txt.*check --revision"):
        await fetch("echomind", tmp_path, say=str)
    assert time.monotonic() - began < 4, "the largest alone takes 5 seconds"
    assert not (tmp_path / "dataset/audio/a b.wav").exists()


async def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[fetch\]'"):
        await fetch("echomind", tmp_path, say=str)


async def test_without_network_the_error_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        DataError, match=r"network unreachable.*copy the folder from a machine with network and pass --data"
    ):
        await fetch("echomind", tmp_path, say=str)


# ── GitHub ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sha1(body: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


class Repository:
    """What GitHub's two hosts do for a repository. `most` entries go into one list; the rest is cut off."""

    def __init__(self) -> None:
        self.files = {
            "README.md": b"read me",
            "data/Animal/metadata.json": b"{}",
            "data/Animal/audio/dog 1#.wav": bytes(range(256)) * 2000,
            "code/run.py": b"print()",
        }
        self.most = 1000
        self.extra: list[dict[str, object]] = [
            {"path": "data/link", "mode": "120000", "type": "blob", "sha": "1" * 40, "size": 9},
            {"path": "vendored", "mode": "160000", "type": "commit", "sha": "2" * 40},
        ]
        self.tokens: dict[str, list[str]] = {"api": [], "raw": []}
        self.asked: list[tuple[str, str]] = []
        self.break_at: dict[str, int] = {}
        self.lists = 0
        self.limited = False
        self.wrong = ""  # the path of a file whose bytes are not those listed

    def folder(self, prefix: str) -> list[dict[str, object]]:
        """What lies right in a folder."""
        found: dict[str, dict[str, object]] = {}
        for path, body in self.files.items():
            if path.startswith(prefix):
                name, below, _ = path[len(prefix) :].partition("/")
                sha = hashlib.sha1((prefix + name).encode()).hexdigest() if below else sha1(body)
                found[name] = {"path": name, "mode": "040000" if below else "100644", "sha": sha}
                found[name] |= {"type": "tree"} if below else {"type": "blob", "size": len(body)}
        return list(found.values())

    async def tree(self, request: web.Request) -> web.StreamResponse:
        self.lists += 1
        self.tokens["api"].append(request.headers.get("Authorization", ""))
        if self.limited:
            return web.Response(status=403, headers={"X-RateLimit-Remaining": "0"})
        asked = request.match_info["sha"]
        folders = {"": "HEAD"} | {
            "/".join(path.split("/")[:n]) + "/": "" for path in self.files for n in range(1, path.count("/") + 1)
        }
        prefix = next(
            (f for f in folders if asked in ("HEAD", "v2") or hashlib.sha1(f[:-1].encode()).hexdigest() == asked), None
        )
        if prefix is None:
            return web.Response(status=404)
        entries = self.folder(prefix)
        if "recursive" in request.query:
            entries = [
                {"path": p[len(prefix) :], "mode": "100644", "type": "blob", "sha": sha1(b), "size": len(b)}
                for p, b in self.files.items()
                if p.startswith(prefix)
            ] + self.extra
        cut = entries[: self.most]
        return web.json_response({"sha": asked, "tree": cut, "truncated": len(cut) < len(entries)})

    async def raw(self, request: web.Request) -> web.StreamResponse:
        self.tokens["raw"].append(request.headers.get("Authorization", ""))
        path, wanted = request.match_info["path"], request.headers.get("Range", "")
        self.asked.append((path, wanted))
        body = b"X" * len(self.files[path]) if path == self.wrong else self.files[path]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        answer = web.StreamResponse(status=206 if start else 200)
        if start:
            answer.headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        answer.content_length = len(body) - start
        await answer.prepare(request)
        if path in self.break_at:
            await answer.write(body[start : start + self.break_at.pop(path)])
            await asyncio.sleep(0.02)
            assert request.transport is not None
            request.transport.close()
            return answer
        await answer.write(body[start:])
        await answer.write_eof()
        return answer


FACTS = Facts("Toy", "", "", "", "", "one", "", "a drawer", "", "")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A benchmark whose release is in a repository, but for its code."""
    module = ModuleType("toy_benchmark")
    module.SUITE = Suite(FACTS, Release("me/toy", "MIT: keep the notice", "github", ("data", "README.md")))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_benchmark", module)
    monkeypatch.setitem(registry._plugins["benchmarks"], "toy", module)
    yield module


@pytest_asyncio.fixture
async def github(monkeypatch: pytest.MonkeyPatch, toy: ModuleType) -> AsyncIterator[Repository]:
    one = Repository()
    api, raw = web.Application(), web.Application()
    api.router.add_get("/repos/me/toy/git/trees/{sha}", one.tree)
    raw.router.add_get("/me/toy/{rev}/{path:.+}", one.raw)
    async with TestServer(api) as first, TestServer(raw, host="localhost") as second:
        monkeypatch.setenv("GITHUB_ENDPOINT", str(first.make_url("/")))
        monkeypatch.setenv("GITHUB_RAW_ENDPOINT", str(second.make_url("/")))
        yield one


WANTED = ("README.md", "data/Animal/metadata.json", "data/Animal/audio/dog 1#.wav")


async def test_a_repositorys_wanted_files_arrive_whole_and_a_rerun_downloads_nothing(
    github: Repository, tmp_path: Path
) -> None:
    said: list[str] = []
    result = await fetch("toy", tmp_path, say=said.append)
    assert {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == {
        path: github.files[path] for path in WANTED
    }, "neither its code, nor a link, nor another repository"
    assert (result.files, result.new_files, github.lists) == (3, 3, 1)
    assert "me/toy: 3 files" in said[0] and "MIT" in said[0]
    github.asked.clear()
    assert (await fetch("toy", tmp_path, say=str)).new_files == 0 and github.asked == []


async def test_a_repository_too_large_for_one_list_is_listed_by_folder(github: Repository, tmp_path: Path) -> None:
    github.most = 3
    assert (await fetch("toy", tmp_path, say=str)).files == 3
    assert github.lists > 2 and all((tmp_path / path).read_bytes() == github.files[path] for path in WANTED)


async def test_a_file_of_a_repository_is_resumed_where_it_broke(github: Repository, tmp_path: Path) -> None:
    path = "data/Animal/audio/dog 1#.wav"
    github.break_at[path] = 300_000
    await fetch("toy", tmp_path, say=str)
    assert [bool(wanted) for asked, wanted in github.asked if asked == path] == [False, True]
    assert (tmp_path / path).read_bytes() == github.files[path]


async def test_bytes_without_the_digest_git_names_are_never_kept(github: Repository, tmp_path: Path) -> None:
    github.wrong = "data/Animal/metadata.json"
    with pytest.raises(DataError, match="digest"):
        await fetch("toy", tmp_path, say=str)
    assert not (tmp_path / github.wrong).exists()


async def test_githubs_token_goes_to_its_interface_and_not_to_where_files_are(
    github: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    monkeypatch.setenv("HF_TOKEN", "another-secret")
    await fetch("toy", tmp_path, say=str)
    assert set(github.tokens["api"]) == {"Bearer secret-token"}
    assert github.tokens["raw"] and set(github.tokens["raw"]) == {""}


async def test_a_path_outside_the_folder_is_refused_of_a_repository_too(github: Repository, tmp_path: Path) -> None:
    github.extra = [{"path": "data/../../evil", "mode": "100644", "type": "blob", "sha": "4" * 40, "size": 4}]
    with pytest.raises(DataError, match="leaves its folder"):
        await fetch("toy", tmp_path / "out", say=str)
    assert github.asked == [] and list(tmp_path.iterdir()) == []


async def test_who_asks_github_too_often_is_told_to_set_a_token(github: Repository, tmp_path: Path) -> None:
    github.limited = True
    with pytest.raises(DataError, match="GITHUB_TOKEN"):
        await fetch("toy", tmp_path, say=str)


async def test_pointers_to_git_lfs_are_named(github: Repository, tmp_path: Path) -> None:
    github.files["data/big.wav"] = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    said: list[str] = []
    await fetch("toy", tmp_path, say=said.append)
    assert "1 files only point to Git LFS (big.wav" in said[-1]


async def test_a_release_in_two_places_is_one_folder_and_the_first_has_precedence(
    github: Repository, hub: Hub, toy: ModuleType, tmp_path: Path
) -> None:
    hub.files["README.md"] = b"the hub's"
    second = Release(REPO, "CC BY-NC 4.0")
    toy.SUITE = Suite(FACTS, Release("me/toy", "MIT", "github", ("README.md",), (second,)))  # type: ignore[attr-defined]
    said: list[str] = []
    result = await fetch("toy", tmp_path, revision="v2", say=said.append)
    assert (tmp_path / "README.md").read_bytes() == b"read me"
    assert (tmp_path / "dataset/audio/a b.wav").is_file()
    assert result.files == 4 and "MIT" in said[0] and "CC BY-NC" in said[1]


# ── terms ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def call(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    command.add(parser)
    return command.main(parser.parse_args(["fetch", *argv]))


def test_without_accepting_the_licence_nothing_is_downloaded(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"--accept.*MIT: keep the notice"):
        call("toy", "--out", str(tmp_path / "out"))
    assert "MIT: keep the notice" in capsys.readouterr().out
    with pytest.raises(DataError, match="network unreachable"):
        call("toy", "--out", str(tmp_path / "out"), "--accept")


@pytest.mark.parametrize(("typed", "error"), [("yes", "network unreachable"), ("no", "not accepted"), ("", "not")])
def test_at_a_terminal_one_is_asked(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, error: str
) -> None:
    monkeypatch.setenv("GITHUB_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: typed)
    with pytest.raises((UsageError, DataError), match=error):
        call("toy", "--out", str(tmp_path / "out"))


def test_a_benchmark_without_a_release_says_where_it_comes_from(toy: ModuleType) -> None:
    toy.SUITE = Suite(FACTS)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"a drawer.*there is one of: .*echomind"):
        release_of("toy")


def test_every_built_in_release_has_a_known_host_and_terms() -> None:
    found = {}
    for name in registry.builtins("benchmarks"):
        suite = getattr(registry.find("benchmarks", name), "SUITE", None)
        if isinstance(suite, Suite) and suite.release is not None:
            found[name] = list(repositories_of(suite.release))
    assert {"echomind", "sakura", "mmau", "air-bench"} <= set(found)
    for parts in found.values():
        assert all(part.host in HOSTS and part.licence and part.repo.count("/") == 1 for part in parts)
