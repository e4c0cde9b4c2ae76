"""Download a benchmark's official release, from a dataset hub or a repository, over plain HTTP: resumable and verified.

What is published where, and on what terms, a benchmark's own file says (`SUITE.release`).
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from overtone import registry
from overtone.benchmarks._hosts import HOSTS, Host, Remote, as_size, is_whole
from overtone.errors import DataError, UsageError
from overtone.paths import inside, shown
from overtone.suite import Release, Suite

_AT_ONCE = 8
_POINTER = b"version https://git-lfs.github.com/spec/"  # what git keeps in place of a file that lies elsewhere


class Fetched(Struct, frozen=True):
    """What a fetch did."""

    files: int
    bytes: int
    new_files: int
    new_bytes: int


def release_of(name: str) -> Release:
    """Where a benchmark is published. UsageError, with those that are, for one that is unknown or is not."""
    suite = getattr(registry.find("benchmarks", name), "SUITE", None)
    if isinstance(suite, Suite) and suite.release is not None:
        return suite.release
    known = [other for other in registry.listing("benchmarks") if _has_release(other)]
    where = f" ({suite.facts.data})" if isinstance(suite, Suite) else ""
    raise UsageError(f"no release of {name!r} can be fetched{where}; there is one of: {', '.join(known)}")


def _has_release(name: str) -> bool:
    suite = getattr(registry.find("benchmarks", name), "SUITE", None)
    return isinstance(suite, Suite) and suite.release is not None


def parts_of(release: Release) -> Iterator[Release]:
    """A release and the further places it lies in."""
    yield release
    for other in release.also:
        yield from parts_of(other)


def terms_of(release: Release) -> str:
    """What one agrees to, a line for each place."""
    return "\n".join(f"{part.repo}: {part.licence}" for part in parts_of(release))


async def fetch(
    name: str,
    out: Path,
    *,
    revision: str = "",
    say: Callable[[str], None] = print,
    progress: Callable[[int, int], None] | None = None,
    pause: float = 0.5,
) -> Fetched:
    """Bring the release of benchmark `name` into `out`; what is already there and whole is not downloaded again.

    `revision` is a branch, a tag or a commit of the release's first place; "" is the newest.

    The hosts are the hub's and GitHub's own, or those that `HF_ENDPOINT`, `GITHUB_ENDPOINT` and `GITHUB_RAW_ENDPOINT`
    name; a token is taken from `HF_TOKEN` or `GITHUB_TOKEN` alone and goes to its host only. `say` gets the terms and
    sizes before anything is downloaded, `progress` bytes done and bytes to do. Raises DataError, with what to do, when
    a host cannot be reached, refuses, names a path outside `out`, or sends wrong bytes.
    """
    release = release_of(name)
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)
    connector = aiohttp.TCPConnector(limit=_AT_ONCE)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        # All paths are checked before the first file is written; one that is listed twice is one file, the first.
        wanted: dict[Path, tuple[Host, Remote]] = {}
        for part in parts_of(release):
            host = HOSTS[part.host](session, part.repo, revision if part is release else "", pause)
            files = [file for file in await host.list_files() if _is_wanted(file.path, part)]
            if not files:
                raise DataError(f"{part.repo} at {host.revision} has no such files; check --revision")
            for file in files:
                wanted.setdefault(inside(out, file.path), (host, file))
            size = as_size(sum(file.size for file in files))
            say(f"{part.repo}: {len(files)} files, {size}. Licence: {part.licence}.")
        return await _fetch_all(wanted, out, say, progress)


def _is_wanted(path: str, release: Release) -> bool:
    wanted = release.folders
    return not wanted or any(path == folder or path.startswith(f"{folder}/") for folder in wanted)


async def _fetch_all(
    files: dict[Path, tuple[Host, Remote]],
    out: Path,
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None,
) -> Fetched:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{shown(str(out))}: cannot be made: {error.strerror}; choose another --out") from None
    total = sum(file.size for _, file in files.values())
    wanted = {path: found for path, found in files.items() if not await asyncio.to_thread(is_whole, path, found[1])}
    to_do = sum(file.size for _, file in wanted.values())
    if not wanted:
        say(f"All files are already in {shown(str(out))} and whole; nothing to download.")
        return Fetched(len(files), total, 0, 0)
    free = shutil.disk_usage(out).free
    if free < to_do:
        raise DataError(
            f"{shown(str(out))}: {as_size(to_do)} are needed, {as_size(free)} are free; choose another --out"
        )
    say(f"Downloading {len(wanted)} files, {as_size(to_do)}, into {shown(str(out))}; stop and start again at will.")
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        if progress:
            progress(done, to_do)

    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(path: Path, host: Host, file: Remote) -> None:
        async with gate:
            await host.download(file, path, count)

    try:
        async with asyncio.TaskGroup() as group:
            for path, (host, file) in wanted.items():
                group.create_task(one(path, host, file))
    except BaseExceptionGroup as errors:  # several downloads may have failed; the first says enough
        first = _first(errors)
        if isinstance(first, OSError):
            raise DataError(f"{shown(str(out))}: cannot write: {first}; free space or choose another --out") from None
        raise first from None
    pointers = [path for path in wanted if _is_pointer(path)]
    if pointers:
        named = shown(pointers[0].name)
        say(f"{len(pointers)} files only point to Git LFS ({named}, …): get those with 'git lfs pull' in a clone.")
    return Fetched(len(files), total, len(wanted), to_do)


def _is_pointer(path: Path) -> bool:
    if path.stat().st_size > 1000:
        return False
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
