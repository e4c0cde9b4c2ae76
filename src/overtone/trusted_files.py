"""Which run files the user trusts, remembered by path and content, as direnv does: a file that changes must be trusted
again. One list for each user, in XDG's configuration folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.paths import sha256, shown, write_whole

MISSING = "missing"  # in place of the hash of a file that is not there


class Trusted(Struct, frozen=True):
    """A run file as it was trusted: its SHA-256, and that of each file with code that it names."""

    sha256: str
    files: dict[str, str] = {}


def list_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the list. A relative XDG_CONFIG_HOME is ignored, as XDG asks: it would mean another list in
    every working directory."""
    given = environ.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(given) if Path(given).is_absolute() else Path("~/.config").expanduser()
    except RuntimeError:  # a user without a home
        raise UsageError("no home folder to remember trusted files in; set XDG_CONFIG_HOME") from None
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
    """Trust a run file whose bytes have this SHA-256, with the files of code that it names, as they are now."""
    entry = Trusted(digest, _hashes(code))
    missing = [name for name, found in entry.files.items() if found == MISSING]
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
    for name, found in _hashes(code).items():
        if name not in entry.files:
            return f"{shown(name)}, which {shown(str(run_file))} names, is not trusted"
        if entry.files[name] != found:
            return f"{shown(name)}, which {shown(str(run_file))} names, has changed since you trusted it"
    return ""


def state(name: str, entry: Trusted) -> str:
    """Return the state of a trusted run file and its code: unchanged, changed or missing."""
    found = _hashes([Path(name), *map(Path, entry.files)])
    if MISSING in found.values():
        return MISSING
    return "unchanged" if found == {name: entry.sha256, **entry.files} else "changed"


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    """Path, links resolved → SHA-256."""
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
