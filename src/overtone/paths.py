"""Check paths and texts from files and servers: paths stay inside their folder, and texts are safe to print."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from overtone.errors import DataError, UsageError

SHOWN = 80  # characters that are shown of a long name

_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


def inside(root: Path, relative: str) -> Path:
    """Return the real path of `relative` (written with `/`) under `root`, with symbolic links resolved.

    The file need not exist. Raises DataError for an absolute or empty path and for one that leaves `root` by `..` or
    by a link, so that an untrusted file list can neither read nor write elsewhere.
    """
    if not relative or "\0" in relative:
        raise DataError(f"{shown(str(root))}: {relative!r} is not a file name; correct the file that names it")
    if PurePosixPath(relative).is_absolute() or PureWindowsPath(relative).drive or PureWindowsPath(relative).root:
        raise DataError(f"{relative!r} is an absolute path; it must be relative to {shown(str(root))}")
    try:
        home = root.resolve()
        target = (home / relative).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links before Python 3.13; a null byte in root
        raise DataError(f"{relative!r} under {shown(str(root))} cannot be resolved: {error}") from None
    if target == home or not target.is_relative_to(home):
        raise DataError(
            f"{relative!r} leaves its folder {shown(str(root))}; correct the file that names it, "
            "or copy the file that it points to into the folder"
        )
    return target


def user_path(written: str | Path) -> Path:
    """Return the path that a user wrote, with `~` and `~name` expanded. The file need not exist.

    Raises UsageError if the home folder does not exist or the name is not valid for a file."""
    try:
        path = Path(written).expanduser()
    except RuntimeError:
        raise UsageError(f"{shown(str(written))[:SHOWN]}: there is no such home folder; write the whole path") from None
    check_name(str(path))
    return path


def check_name(path: str) -> None:
    """Raise UsageError for an invalid path: one that is too long or contains a NUL character."""
    if "\0" in path:
        raise UsageError(f"{shown(path)[:SHOWN]}: a file's name cannot contain a NUL character; remove it")
    try:
        os.lstat(path or ".")
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{shown(path)[:SHOWN]}…: the name is too long for a file; use a shorter one") from None


def user_data(variable: str, name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a folder for Overtone's data: the one that `variable` names, else overtone/NAME in XDG's data folder."""
    if given := environ.get(variable):
        return user_path(given).absolute()
    data = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return user_path(data).absolute() / "overtone" / name


def narrow(folder: Path) -> list[Path]:
    """Return [folder], or [] if the folder is too general to identify whose recordings it contains.

    The root, the folder for temporary files, the home folder and the folders above it are too general.
    """
    import tempfile  # here, because it would slow the start of every command

    here = folder.resolve()
    wide = [Path(here.anchor), Path(tempfile.gettempdir()).resolve()]
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = Path.home().resolve()
        wide += [home, *home.parents]
    return [] if here in wide else [here]


def read_plain(path: Path, limit: int) -> bytes:
    """Return the bytes of a plain file of at most `limit` bytes. Raises DataError, also for a pipe."""
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise DataError(f"{shown(str(path))}: cannot be read: not a plain file")
        if info.st_size > limit:
            raise DataError(f"{shown(str(path))}: {info.st_size} bytes is too large; at most {limit} are read")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{shown(str(path))}: cannot be read: {error.strerror}") from None


def write_whole(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file atomically, and create its folder if missing. If the disk is full, an existing file is kept.

    Blocks of an iterable are written one by one. A pipe or device, such as /dev/stdout, is written to, not replaced.
    Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blocks = (data,) if isinstance(data, bytes) else data
    if _is_stream(path):
        with path.open("wb") as file:
            file.writelines(blocks)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.writelines(blocks)
        part.replace(path)
    except BaseException:  # also when interrupted, so that no partial file is left
        part.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    if path.absolute().parent in _STREAMS:  # a link to the file or pipe that the shell connected
        return path.exists()
    return not path.is_symlink() and path.exists() and not path.is_file() and not path.is_dir()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks. Raises OSError."""
    import hashlib  # here, because it would slow the start of every command

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_disk(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk, so that they survive a power failure. Raises OSError."""
    windows = sys.platform == "win32"  # it can sync neither folders nor files that are open only for reading
    if windows and path.is_dir():
        return
    number = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def shown(text: str) -> str:
    """Return `text` on one line, with control, bidirectional and other unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown_lines(text: str) -> str:
    """Return `text` like `shown`, but keep its line breaks."""
    return "\n".join(map(shown, text.split("\n")))


class OneLine(logging.Formatter):
    """Formats log records on one line and safe for a terminal, because they quote models, files and programs."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record))
