"""Download a benchmark's official release from a dataset hub or a repository, with resume and verification.

Each benchmark states in `SUITE.release` where it is published and under which licence.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from msgspec import Struct

from overtone import registry
from overtone.benchmarks._hosts import HOSTS, Host, Remote, as_size, is_whole
from overtone.errors import DataError, UsageError
from overtone.paths import inside, shown
from overtone.suite import Release, Suite

_AT_ONCE = 8
_POINTER = b"version https://git-lfs.github.com/spec/"  # the start of a Git LFS pointer, stored in place of a file


class Fetched(Struct, frozen=True):
    """The size of a release, and how many of its files were downloaded."""

    files: int
    bytes: int
    new_files: int


def release_of(name: str) -> Release:
    """Return a benchmark's release. If it has none, raise UsageError with a list of the benchmarks that have a
    release."""
    suite = _suite(name)
    if suite and suite.release is not None:
        return suite.release
    known = [other for other in registry.listing("benchmarks") if (one := _suite(other)) and one.release]
    source = f" ({suite.facts.data})" if suite else ""
    raise UsageError(f"no release of {name!r} can be fetched{source}; there is one of: {', '.join(known)}")


def _suite(name: str) -> Suite | None:
    suite = getattr(registry.find("benchmarks", name), "SUITE", None)
    return suite if isinstance(suite, Suite) else None


def repositories_of(release: Release) -> Iterator[Release]:
    """Yield a release's first repository, and every further repository with files of the release."""
    yield release
    for other in release.also:
        yield from repositories_of(other)


def terms_of(release: Release) -> str:
    """Return the licence of each repository, one per line."""
    return "\n".join(f"{one.repo}: {one.licence}" for one in repositories_of(release))


def fetch(
    name: str,
    out: Path,
    *,
    revision: str = "",
    say: Callable[[str], None] = print,
    progress: Callable[[int, int], None] | None = None,
    pause: float = 0.5,
) -> Fetched:
    """Download the release of benchmark `name` into `out`. Complete files that exist are skipped.

    `revision` is a branch, a tag or a commit of the release's first repository; "" is the newest.

    The default hosts are the hub and GitHub; `HF_ENDPOINT`, `GITHUB_ENDPOINT` and `GITHUB_RAW_ENDPOINT` name others. A
    token is read from `HF_TOKEN` or `GITHUB_TOKEN` and sent to its host only. `say` gets licences and sizes before
    anything is downloaded; `progress` gets the bytes done and the bytes to do, from several threads in turn. Raises
    MissingExtra without huggingface_hub, and DataError if a host cannot be reached, refuses, names a path outside
    `out`, or sends wrong bytes.
    """
    release = release_of(name)
    # All paths are checked before the first file is written. Of two files with one path, the first is kept.
    wanted: dict[Path, tuple[Host, Remote]] = {}
    for one in repositories_of(release):
        host = HOSTS[one.host](one.repo, revision if one is release else "", pause)
        files = [file for file in host.files() if _is_wanted(file.path, one)]
        if not files:
            raise DataError(f"{one.repo} at {host.revision} has no such files; check --revision")
        for file in files:
            wanted.setdefault(inside(out, file.path), (host, file))
        size = as_size(sum(file.size for file in files))
        say(f"{one.repo}: {len(files)} files, {size}. Licence: {one.licence}.")
    return _fetch_all(wanted, out, say, progress)


def _is_wanted(path: str, release: Release) -> bool:
    return not release.folders or any(path == one or path.startswith(f"{one}/") for one in release.folders)


def _fetch_all(
    files: dict[Path, tuple[Host, Remote]],
    out: Path,
    say: Callable[[str], None],
    progress: Callable[[int, int], None] | None,
) -> Fetched:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{shown(str(out))}: cannot be created: {error.strerror}; choose another --out") from None
    total = sum(file.size for _, file in files.values())
    wanted = {path: entry for path, entry in files.items() if not is_whole(path, entry[1])}
    to_do = sum(file.size for _, file in wanted.values())
    if not wanted:
        say(f"All files are in {shown(str(out))} and complete; nothing to download.")
        return Fetched(len(files), total, 0)
    free = shutil.disk_usage(out).free
    if free < to_do:
        raise DataError(
            f"{shown(str(out))}: {as_size(to_do)} are needed, {as_size(free)} are free; choose another --out"
        )
    say(f"Downloading {len(wanted)} files, {as_size(to_do)}, into {shown(str(out))}. You can stop and resume it.")
    try:
        _download(wanted, lambda done: progress(done, to_do) if progress else None)
    except OSError as error:
        raise DataError(f"{shown(str(out))}: cannot write: {error}; free space or choose another --out") from None
    pointers = [path for path in wanted if _is_pointer(path)]
    if pointers:
        named = shown(pointers[0].name)
        say(f"{len(pointers)} files only point to Git LFS ({named}, …): get those with 'git lfs pull' in a clone.")
    return Fetched(len(files), total, len(wanted))


class _Stopped(Exception):
    """Raised in a download to end it, because another download failed or the user pressed Ctrl-C."""


def _download(wanted: dict[Path, tuple[Host, Remote]], progress: Callable[[int], None]) -> None:
    """Download several files in parallel. The first failure, or an interrupt, stops all of them and is raised."""
    done: dict[Path, int] = {}
    lock, stop = threading.Lock(), threading.Event()

    def one(path: Path, host: Host, file: Remote) -> None:
        def report(position: int) -> None:
            if stop.is_set():
                raise _Stopped
            with lock:
                done[path] = position
                progress(sum(done.values()))

        host.download(file, path, report)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            for future in as_completed([pool.submit(one, path, *entry) for path, entry in wanted.items()]):
                future.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _is_pointer(path: Path) -> bool:
    if path.stat().st_size > 1000:
        return False
    with path.open("rb") as file:
        return file.read(len(_POINTER)) == _POINTER
