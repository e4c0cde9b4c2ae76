"""Download a benchmark's official release, from a dataset hub or a repository: resumable and verified.

What is published where, and on what terms, a benchmark's own file says (`SUITE.release`).
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


def fetch(
    name: str,
    out: Path,
    *,
    revision: str = "",
    say: Callable[[str], None] = print,
    progress: Callable[[int, int], None] | None = None,
    pause: float = 0.5,
) -> Fetched:
    """Download the release of benchmark `name` into `out`. Files that are already there and whole are skipped.

    `revision` is a branch, a tag or a commit of the release's first place; "" is the newest.

    The hosts are the hub's and GitHub's own, or those that `HF_ENDPOINT`, `GITHUB_ENDPOINT` and `GITHUB_RAW_ENDPOINT`
    name. A token is read from `HF_TOKEN` or `GITHUB_TOKEN` alone and goes to its host only. `say` gets the terms and
    sizes before anything is downloaded, `progress` bytes done and bytes to do, from several threads in turn. Raises
    MissingExtra without huggingface_hub, and DataError, with what to do, when a host cannot be reached, refuses, names
    a path outside `out`, or sends wrong bytes.
    """
    release = release_of(name)
    # All paths are checked before the first file is written; one that is listed twice is one file, the first.
    wanted: dict[Path, tuple[Host, Remote]] = {}
    for part in parts_of(release):
        host = HOSTS[part.host](part.repo, revision if part is release else "", pause)
        files = [file for file in host.files() if _is_wanted(file.path, part)]
        if not files:
            raise DataError(f"{part.repo} at {host.revision} has no such files; check --revision")
        for file in files:
            wanted.setdefault(inside(out, file.path), (host, file))
        size = as_size(sum(file.size for file in files))
        say(f"{part.repo}: {len(files)} files, {size}. Licence: {part.licence}.")
    return _fetch_all(wanted, out, say, progress)


def _is_wanted(path: str, release: Release) -> bool:
    wanted = release.folders
    return not wanted or any(path == folder or path.startswith(f"{folder}/") for folder in wanted)


def _fetch_all(
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
    wanted = {path: entry for path, entry in files.items() if not is_whole(path, entry[1])}
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
    try:
        _download(wanted, lambda done: progress(done, to_do) if progress else None)
    except OSError as error:
        raise DataError(f"{shown(str(out))}: cannot write: {error}; free space or choose another --out") from None
    pointers = [path for path in wanted if _is_pointer(path)]
    if pointers:
        named = shown(pointers[0].name)
        say(f"{len(pointers)} files only point to Git LFS ({named}, …): get those with 'git lfs pull' in a clone.")
    return Fetched(len(files), total, len(wanted), to_do)


class _Stopped(Exception):
    """Ends a download because another one failed, or the user pressed Ctrl-C."""


def _download(wanted: dict[Path, tuple[Host, Remote]], progress: Callable[[int], None]) -> None:
    """Download several files at once. The first failure, or an interrupt, ends them all and is raised."""
    done: dict[Path, int] = {}
    turn, stop = threading.Lock(), threading.Event()

    def one(path: Path, host: Host, file: Remote) -> None:
        def tell(position: int) -> None:
            if stop.is_set():
                raise _Stopped
            with turn:
                done[path] = position
                progress(sum(done.values()))

        host.download(file, path, tell)

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
