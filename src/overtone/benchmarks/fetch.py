"""Download a benchmark's official release from a dataset hub over plain HTTP: resumable, verified, in its folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.paths import inside, shown
from overtone.spec import check_url, suggest

if TYPE_CHECKING:
    import aiohttp

_T = TypeVar("_T")
ENDPOINT = "https://huggingface.co"
_AT_ONCE = 8
_ATTEMPTS = 5
_MAX_PAGE = 64_000_000
_MAX_PAGES = 2_000
_CHUNK = 1 << 18


class Release(Struct, frozen=True):
    """Where a benchmark's own files are published, and on what terms."""

    repo: str
    licence: str


RELEASES = {
    "echomind": Release("hlt-cuhksz/EchoMind", "CC BY-NC-SA 4.0: non-commercial, share alike, name the authors"),
}


class _Lfs(Struct):
    oid: str
    size: int


class _Entry(Struct):
    type: str
    path: str
    size: int = 0
    oid: str = ""
    lfs: _Lfs | None = None


class Remote(Struct, frozen=True):
    """One file of a release: its path there, its size, and the digest that its bytes must have."""

    path: str
    size: int
    digest: str
    large: bool  # digest is a SHA-256 of the bytes; otherwise git's SHA-1 of a blob


class Fetched(Struct, frozen=True):
    """What a fetch did."""

    files: int
    bytes: int
    new_files: int
    new_bytes: int


class _Again(Exception):
    """An attempt failed in a way that another may not."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


async def fetch(
    name: str,
    out: Path,
    *,
    revision: str = "main",
    say: Callable[[str], None] = print,
    progress: Callable[[int, int], None] | None = None,
    pause: float = 0.5,
) -> Fetched:
    """Bring the release of benchmark `name` into `out`; what is already there and whole is not downloaded again.

    The host is `HF_ENDPOINT` or the hub's own; a token is taken from `HF_TOKEN` alone and goes to that host only. `say`
    gets the terms and sizes before anything is downloaded, `progress` bytes done and bytes to do. Raises DataError,
    with what to do, when the host cannot be reached, refuses, names a path outside `out`, or sends wrong bytes.
    """
    if name not in RELEASES:
        raise UsageError(f"no release of {name!r} is known{suggest(name, RELEASES)}; known: {', '.join(RELEASES)}")
    release = RELEASES[name]
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or ENDPOINT
    check_url(endpoint, "HF_ENDPOINT")
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
    connector = aiohttp.TCPConnector(limit=_AT_ONCE)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        hub = _Hub(session, endpoint, release.repo, revision, pause)
        files = await hub.list_files()
        # All paths are checked before the first file is written; a path listed twice is one file.
        wanted = {inside(out, file.path): file for file in files}
        return await _fetch_all(hub, wanted, out, release, say, progress)


async def _fetch_all(
    hub: _Hub,
    files: dict[Path, Remote],
    out: Path,
    release: Release,
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None,
) -> Fetched:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{shown(str(out))}: cannot be made: {error.strerror}; choose another --out") from None
    total = sum(file.size for file in files.values())
    say(f"{release.repo}: {len(files)} files, {_size(total)}. Licence: {release.licence}.")
    wanted = {path: file for path, file in files.items() if not await asyncio.to_thread(_whole, path, file)}
    to_do = sum(file.size for file in wanted.values())
    if not wanted:
        say(f"All files are already in {shown(str(out))} and whole; nothing to download.")
        return Fetched(len(files), total, 0, 0)
    free = shutil.disk_usage(out).free
    if free < to_do:
        raise DataError(f"{shown(str(out))}: {_size(to_do)} are needed, {_size(free)} are free; choose another --out")
    say(f"Downloading {len(wanted)} files, {_size(to_do)}, into {shown(str(out))}; stop and start again at will.")
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        if progress:
            progress(done, to_do)

    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(path: Path, file: Remote) -> None:
        async with gate:
            await hub.download(file, path, count)

    try:
        async with asyncio.TaskGroup() as group:
            for path, file in wanted.items():
                group.create_task(one(path, file))
    except BaseExceptionGroup as errors:  # several downloads may have failed; the first says enough
        first = _first(errors)
        if isinstance(first, OSError):
            raise DataError(f"{shown(str(out))}: cannot write: {first}; free space or choose another --out") from None
        raise first from None
    return Fetched(len(files), total, len(wanted), to_do)


class _Hub:
    """The two calls of the hub's HTTP interface that a download needs."""

    def __init__(self, session: aiohttp.ClientSession, endpoint: str, repo: str, revision: str, pause: float) -> None:
        self.session, self.endpoint, self.repo, self.pause = session, endpoint, repo, pause
        self.revision = quote(revision, safe="")
        token = os.environ.get("HF_TOKEN", "").strip()
        # On a redirect to another host aiohttp drops this header by itself.
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.proxy = _proxy(endpoint)

    async def list_files(self) -> list[Remote]:
        """Every file of the revision, page by page."""
        from yarl import URL

        home = URL(self.endpoint)
        url: Any = URL(f"{self.endpoint}/api/datasets/{self.repo}/tree/{self.revision}?recursive=true", encoded=True)
        files: list[Remote] = []
        for _ in range(_MAX_PAGES):
            page, url = await self._page(url)
            files += page
            if url is None:
                break
            if url.origin() != home.origin():
                raise DataError(f"{self.endpoint}: the file list goes on at another host, {url.host}; not followed")
        if not files:
            raise DataError(f"{self.repo} at {self.revision} has no files; check --revision")
        return files

    async def _page(self, url: Any) -> tuple[list[Remote], Any]:
        async def attempt() -> tuple[list[Remote], Any]:
            async with self._get(url, {}) as answer:
                self._check(answer, self.repo)
                body = await answer.content.read(_MAX_PAGE)
                while chunk := await answer.content.read(_MAX_PAGE):
                    body += chunk
                    if len(body) > _MAX_PAGE:
                        raise DataError(f"{self.endpoint}: the file list is larger than {_size(_MAX_PAGE)}; not read")
                following = answer.links.get("next", {}).get("url")
            try:
                entries = msgspec.json.decode(body, type=list[_Entry])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(f"{self.endpoint}: not a hub's file list ({error}); check HF_ENDPOINT") from None
            return [_remote(e) for e in entries if e.type == "file"], following

        return await self._persist(attempt, self.repo)

    async def download(self, file: Remote, target: Path, count: Callable[[int], None]) -> None:
        """One file by way of `NAME.part`, which a later attempt or a later command goes on from."""
        part = target.with_name(target.name + ".part")
        target.parent.mkdir(parents=True, exist_ok=True)
        counted = 0

        def tell(position: int) -> None:
            nonlocal counted
            count(position - counted)
            counted = position

        async def attempt() -> None:
            have = part.stat().st_size if part.exists() else 0
            if have > file.size:
                part.unlink()
                have = 0
            tell(have)
            if have < file.size or not part.exists():
                await self._receive(file, part, have, tell)
            if not await asyncio.to_thread(_whole, part, file):
                part.unlink()
                raise _Again("the bytes do not have the digest the hub names")
            part.replace(target)

        await self._persist(attempt, file.path)
        tell(file.size)

    async def _receive(self, file: Remote, part: Path, have: int, tell: Callable[[int], None]) -> None:
        from yarl import URL

        url = URL(f"{self.endpoint}/datasets/{self.repo}/resolve/{self.revision}/{quote(file.path)}", encoded=True)
        # identity: a compressed body would count other bytes than the file has
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        async with self._get(url, headers) as answer:
            if answer.status == 416:
                part.unlink()
                raise _Again("the host refused to go on from a part")
            self._check(answer, file.path)
            resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if not (answer.status == 206 and resumed):
                have = 0  # the host sends the whole file
            with part.open("r+b" if have else "wb") as sink:
                sink.seek(have)
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    have += len(chunk)
                    if have > file.size:
                        raise DataError(f"{shown(file.path)}: the host sends more than the {file.size} bytes it listed")
                    sink.write(chunk)
                    tell(have)
        if have < file.size:
            raise _Again(f"the connection ended after {have} of {file.size} bytes")

    def _get(self, url: Any, headers: dict[str, str]) -> Any:
        return self.session.get(url, headers=self.headers | headers, proxy=self.proxy)

    def _check(self, answer: aiohttp.ClientResponse, what: str) -> None:
        if answer.status in (200, 206):
            return
        if answer.status in (401, 403):
            raise DataError(f"{shown(what)}: {self.endpoint} answers {answer.status}; set HF_TOKEN to a token that may")
        if answer.status == 404:
            raise DataError(f"{shown(what)}: {self.endpoint} has no such thing at {self.revision}; check --revision")
        wait = answer.headers.get("Retry-After", "")
        raise _Again(f"{self.endpoint} answers {answer.status}", min(60.0, float(wait)) if wait.isdecimal() else None)

    async def _persist(self, attempt: Callable[[], Awaitable[_T]], what: str) -> _T:
        """`attempt` until it works, a few times, waiting longer each time."""
        import aiohttp

        for number in range(1, _ATTEMPTS + 1):
            try:
                return await attempt()
            except (_Again, aiohttp.ClientError, TimeoutError) as error:
                if isinstance(error, aiohttp.ClientConnectorError) and what == self.repo:
                    raise self._offline(error) from None  # the very first call: there is no network to wait for
                if number == _ATTEMPTS:
                    why = str(error) or type(error).__name__
                    raise DataError(
                        f"{shown(what)}: {_ATTEMPTS} attempts failed, the last because {shown(why)}; "
                        "run the same command again to go on from here"
                    ) from None
                wait = error.wait if isinstance(error, _Again) else None
                await asyncio.sleep(self.pause * 2 ** (number - 1) if wait is None else wait)
        raise AssertionError("unreachable")

    def _offline(self, error: Exception) -> DataError:
        return DataError(
            f"network unreachable: {shown(str(error))}; copy the folder from a machine with network and pass "
            "--data DIR, or set HF_ENDPOINT to a mirror you can reach"
        )


def _remote(entry: _Entry) -> Remote:
    size, digest = (entry.lfs.size, entry.lfs.oid.removeprefix("sha256:")) if entry.lfs else (entry.size, entry.oid)
    if size < 0 or not re.fullmatch(r"[0-9a-f]{64}" if entry.lfs else r"[0-9a-f]{40}", digest):
        raise DataError(f"{shown(entry.path)}: the file list gives no usable size and digest; check HF_ENDPOINT")
    return Remote(entry.path, size, digest, entry.lfs is not None)


def _whole(path: Path, file: Remote) -> bool:
    """Whether the file is there with the right size and digest."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    digest = hashlib.sha256() if file.large else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with path.open("rb") as source:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest() == file.digest


def _proxy(endpoint: str) -> str | None:
    """The environment's proxy for this host. (aiohttp's trust_env would also read a token from netrc.)"""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(endpoint)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
