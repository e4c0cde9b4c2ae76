"""The list of run files that the user trusts, by path and content. As in direnv, a changed file must be trusted again.

There is one list per user, in XDG's configuration folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.paths import sha256, shown, write_whole

MISSING = "missing"  # replaces the hash of a missing file


class Trusted(Struct, frozen=True):
    """A trusted run file: its SHA-256, and that of each file with code that it names."""

    sha256: str
    files: dict[str, str] = {}


def list_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the list. A relative XDG_CONFIG_HOME is ignored, as the XDG specification requires."""
    given = environ.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(given) if Path(given).is_absolute() else Path("~/.config").expanduser()
    except RuntimeError:  # a user without a home
        raise UsageError("there is no home folder for the list of trusted files; set XDG_CONFIG_HOME") from None
    return folder / "overtone" / "trusted.json"


def read() -> dict[str, Trusted]:
    """Return all trusted run files by path, with links resolved."""
    path = list_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Trusted])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the list of trusted files {shown(str(path))} cannot be read ({error}); "
            "delete it and trust your run files again"
        ) from None


def remember(run_file: Path, digest: str, code: Iterable[Path]) -> Trusted:
    """Trust a run file with this SHA-256, and the current content of the files with code that it names."""
    entry = Trusted(digest, _hashes(code))
    missing = [name for name, file_hash in entry.files.items() if file_hash == MISSING]
    if missing:
        raise UsageError(f"{shown(str(run_file))} names {shown(missing[0])}, which cannot be read; correct it first")
    _write(read() | {str(run_file.resolve()): entry})
    return entry


def forget(run_file: Path) -> bool:
    """Remove a run file from the list. Return False if it was not trusted."""
    known = read()
    if known.pop(str(run_file.resolve()), None) is None:
        return False
    _write(known)
    return True


def problem(run_file: Path, digest: str, code: Iterable[Path]) -> str:
    """Return why a run file is not trusted, as a clause, or "" if it is."""
    entry = read().get(str(run_file.resolve()))
    if entry is None:
        return f"{shown(str(run_file))} is not trusted"
    if entry.sha256 != digest:
        return f"{shown(str(run_file))} has changed since you trusted it"
    for name, file_hash in _hashes(code).items():
        if name not in entry.files:
            return f"{shown(name)}, which {shown(str(run_file))} names, is not trusted"
        if entry.files[name] != file_hash:
            return f"{shown(name)}, which {shown(str(run_file))} names, has changed since you trusted it"
    return ""


def state(name: str, entry: Trusted) -> str:
    """Return the state of a trusted run file and its code: unchanged, changed or missing."""
    hashes = _hashes([Path(name), *map(Path, entry.files)])
    if MISSING in hashes.values():
        return MISSING
    return "unchanged" if hashes == {name: entry.sha256, **entry.files} else "changed"


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    """Map each path, with links resolved, to its SHA-256."""
    out = {}
    for file in files:
        path = file.resolve()
        try:
            out[str(path)] = sha256(path) if path.is_file() else MISSING
        except OSError:
            out[str(path)] = MISSING
    return out


def _write(known: Mapping[str, Trusted]) -> None:
    path = list_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n")
        path.chmod(0o600)
    except OSError as error:
        raise UsageError(f"cannot write {shown(str(path))}: {error.strerror}") from None
