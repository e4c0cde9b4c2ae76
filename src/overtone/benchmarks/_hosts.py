"""Where releases are published: a dataset hub, and repositories on GitHub. Lists their files and brings one at a time,
going on from where an earlier attempt ended and keeping nothing whose digest is wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import shown
from overtone.safety import check_key_route, read_key
from overtone.spec import check_url

if TYPE_CHECKING:
    import aiohttp

_T = TypeVar("_T")
_ATTEMPTS = 5
_MAX_PAGE = 64_000_000
_MAX_PAGES = 2_000
_CHUNK = 1 << 18


class Remote(Struct, frozen=True):
    """One file of a release: its path there, its size, and the digest that its bytes must have."""

    path: str
    size: int
    digest: str
    large: bool = False  # digest is a SHA-256 of the bytes; otherwise git's SHA-1 of a blob


class _Again(Exception):
    """An attempt failed in a way that another may not."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Host:
    """What all hosts have in common. `endpoint` lists; a file's own address is the host's to tell."""

    token_name = ""  # the environment variable of a token, which goes to `endpoint` and nowhere else
    endpoint_name = ""  # and of another address of the host
    newest = ""  # the revision where none is named

    def __init__(self, session: aiohttp.ClientSession, repo: str, revision: str, pause: float) -> None:
        self.session, self.repo, self.pause = session, repo, pause
        self.endpoint = self.address(self.endpoint_name, self.home)
        self.revision = quote(revision or self.newest, safe="")
        token = read_key(self.token_name)
        if token:
            check_key_route(self.endpoint, self.token_name)
        # On a redirect to another host aiohttp drops this header by itself.
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def home(self) -> str:
        raise NotImplementedError

    async def list_files(self) -> list[Remote]:
        """Every file of the revision."""
        raise NotImplementedError

    def url(self, file: Remote) -> str:
        """Where the file's bytes are."""
        raise NotImplementedError

    def address(self, name: str, home: str) -> str:
        """The host's own address, or the one the environment names instead."""
        found = os.environ.get(name, "").rstrip("/") or home
        check_url(found, name)
        return found

    async def page(self, url: Any) -> tuple[bytes, Any]:
        """The body of one page of a list and, where there is one, the address of the next."""

        async def attempt() -> tuple[bytes, Any]:
            async with self._get(url, {}) as answer:
                self.check(answer, self.repo)
                body = await answer.content.read(_MAX_PAGE)
                while chunk := await answer.content.read(_MAX_PAGE):
                    body += chunk
                    if len(body) > _MAX_PAGE:
                        raise DataError(f"{self.endpoint}: the file list is larger than {as_size(_MAX_PAGE)}; not read")
                return body, answer.links.get("next", {}).get("url")

        return await self._persist(attempt, self.repo)

    def wrong_list(self, error: object) -> DataError:
        return DataError(f"{self.endpoint}: not a file list ({error}); check {self.endpoint_name}")

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
            if not await asyncio.to_thread(is_whole, part, file):
                part.unlink()
                raise _Again("the bytes do not have the digest the host names")
            part.replace(target)

        await self._persist(attempt, file.path)
        tell(file.size)

    async def _receive(self, file: Remote, part: Path, have: int, tell: Callable[[int], None]) -> None:
        from yarl import URL

        # identity: a compressed body would count other bytes than the file has
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        async with self._get(URL(self.url(file), encoded=True), headers) as answer:
            if answer.status == 416:
                part.unlink()
                raise _Again("the host refused to go on from a part")
            self.check(answer, file.path)
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
        from yarl import URL

        url = URL(url) if isinstance(url, str) else url
        own = self.headers if url.origin() == URL(self.endpoint).origin() else {}
        return self.session.get(url, headers=own | headers, proxy=_proxy(str(url.origin())))

    def check(self, answer: aiohttp.ClientResponse, what: str) -> None:
        if answer.status in (200, 206):
            return
        if answer.status in (401, 403):
            raise DataError(
                f"{shown(what)}: {self.endpoint} answers {answer.status}; set {self.token_name} to a token that may"
            )
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
            f"--data DIR, or set {self.endpoint_name} to a mirror you can reach"
        )


# ── the dataset hub ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Lfs(Struct):
    oid: str
    size: int


class _Entry(Struct):
    type: str
    path: str
    size: int = 0
    oid: str = ""
    lfs: _Lfs | None = None


class Hub(Host):
    """The two calls of the hub's HTTP interface that a download needs."""

    token_name, endpoint_name = "HF_TOKEN", "HF_ENDPOINT"
    home, newest = "https://huggingface.co", "main"

    async def list_files(self) -> list[Remote]:
        from yarl import URL

        home = URL(self.endpoint)
        url: Any = URL(f"{self.endpoint}/api/datasets/{self.repo}/tree/{self.revision}?recursive=true", encoded=True)
        files: list[Remote] = []
        for _ in range(_MAX_PAGES):
            body, url = await self.page(url)
            try:
                entries = msgspec.json.decode(body, type=list[_Entry])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise self.wrong_list(error) from None
            for entry in entries:
                if entry.type == "file":
                    big = entry.lfs
                    size, digest = (big.size, big.oid.removeprefix("sha256:")) if big else (entry.size, entry.oid)
                    files.append(self.remote(entry.path, size, digest, big is not None))
            if url is None:
                break
            if url.origin() != home.origin():
                raise DataError(f"{self.endpoint}: the file list goes on at another host, {url.host}; not followed")
        return files

    def url(self, file: Remote) -> str:
        return f"{self.endpoint}/datasets/{self.repo}/resolve/{self.revision}/{quote(file.path)}"

    def remote(self, path: str, size: int, digest: str, large: bool) -> Remote:
        return _checked(Remote(path, size, digest, large), self.endpoint_name)


# ── repositories ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Leaf(Struct):
    path: str
    type: str
    sha: str
    mode: str = ""
    size: int = 0


class _Tree(Struct):
    tree: list[_Leaf]
    truncated: bool = False


class GitHub(Host):
    """A repository's files: listed by its interface, and brought from where it serves them raw. The token goes to the
    first of the two only: what is public needs none, and the second is another host."""

    token_name, endpoint_name = "GITHUB_TOKEN", "GITHUB_ENDPOINT"
    home, newest = "https://api.github.com", "HEAD"
    raw_name, raw_home = "GITHUB_RAW_ENDPOINT", "https://raw.githubusercontent.com"

    def __init__(self, session: aiohttp.ClientSession, repo: str, revision: str, pause: float) -> None:
        super().__init__(session, repo, revision, pause)
        self.raw = self.address(self.raw_name, self.raw_home)
        self._asked = 0

    async def list_files(self) -> list[Remote]:
        return await self._below(self.revision, "")

    async def _below(self, tree: str, prefix: str) -> list[Remote]:
        """The files of a tree. One that is too large for one answer is listed folder by folder."""
        found = await self._tree(tree, "?recursive=1")
        if not found.truncated:
            return [self._file(leaf, prefix) for leaf in found.tree if _is_file(leaf)]
        found = await self._tree(tree, "")
        if found.truncated:
            raise DataError(f"{self.repo}: {shown(prefix) or 'its root'} holds more files than {self.endpoint} lists")
        files = []
        for leaf in found.tree:
            if _is_file(leaf):
                files.append(self._file(leaf, prefix))
            elif leaf.type == "tree":
                files += await self._below(_sha(leaf), f"{prefix}{leaf.path}/")
        return files

    async def _tree(self, tree: str, query: str) -> _Tree:
        from yarl import URL

        self._asked += 1
        if self._asked > _MAX_PAGES:
            raise DataError(f"{self.repo}: its file list does not end; not followed")
        url = URL(f"{self.endpoint}/repos/{self.repo}/git/trees/{tree}{query}", encoded=True)
        body, _ = await self.page(url)
        try:
            return msgspec.json.decode(body, type=_Tree)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.wrong_list(error) from None

    def _file(self, leaf: _Leaf, prefix: str) -> Remote:
        return _checked(Remote(prefix + leaf.path, leaf.size, leaf.sha), self.endpoint_name)

    def url(self, file: Remote) -> str:
        return f"{self.raw}/{self.repo}/{self.revision}/{quote(file.path)}"

    def check(self, answer: aiohttp.ClientResponse, what: str) -> None:
        if answer.status in (403, 429) and answer.headers.get("X-RateLimit-Remaining") == "0":
            raise DataError(
                f"{shown(what)}: {self.endpoint} lets nobody ask more often than this without a token; "
                f"set {self.token_name}, or wait an hour"
            )
        super().check(answer, what)


def _is_file(leaf: _Leaf) -> bool:
    return leaf.type == "blob" and leaf.mode != "120000"  # which is a link


def _sha(leaf: _Leaf) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", leaf.sha):
        raise DataError(f"{shown(leaf.path)}: the file list gives no usable digest; check GITHUB_ENDPOINT")
    return leaf.sha


HOSTS: dict[str, type[Host]] = {"hub": Hub, "github": GitHub}

# ── what all need ───────────────────────────────────────────────────────────────────────────────────────────────────


def _checked(file: Remote, variable: str) -> Remote:
    if file.size < 0 or not re.fullmatch(r"[0-9a-f]{64}" if file.large else r"[0-9a-f]{40}", file.digest):
        raise DataError(f"{shown(file.path)}: the file list gives no usable size and digest; check {variable}")
    return file


def is_whole(path: Path, file: Remote) -> bool:
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


def as_size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
