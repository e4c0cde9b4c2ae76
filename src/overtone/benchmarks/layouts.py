"""Which benchmark a folder belongs to, told by the files that only that benchmark has.

Several benchmarks read files of any name, and two share one layout, so a folder given to the wrong one would run
without a complaint. The files are named by each benchmark's `SUITE.layout`; a built set also has a manifest.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from overtone import registry
from overtone.audio._manifest import FILE, MAX_BYTES
from overtone.errors import DataError, OvertoneError
from overtone.paths import read_plain, shown
from overtone.suite import Suite


class _Manifest(Struct):
    name: str
    recipes: str  # which only a set built by Overtone has


def built_set(root: Path) -> str:
    """Return the name that the manifest of a set built by Overtone gives it, or "" where there is no such manifest."""
    try:
        return msgspec.json.decode(read_plain(root / FILE, MAX_BYTES), type=_Manifest).name
    except (OSError, OvertoneError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def looks_like(name: str, data: Path) -> str:
    """Return the built-in benchmark other than `name` that `data` belongs to by its files.

    Returns "" where `name` is not a built-in, where the folder has files of `name` itself, or where it has those of no
    other or of several others.
    """
    known, name = registry.builtins("benchmarks"), name.replace("_", "-").lower()
    if name not in known or not data.is_dir():
        return ""
    mine = _has_layout(name, data)
    if name in ("open", "echomind") and mine:  # one layout: only the manifest tells them apart
        other = "open" if built_set(_root(data)) else "echomind"
        return "" if other == name else other
    others = [] if mine else [other for other in known if other not in (name, "open") and _has_layout(other, data)]
    return ("open" if others == ["echomind"] and built_set(_root(data)) else others[0]) if len(others) == 1 else ""


def benchmark_of(data: Path) -> str:
    """Return the built-in benchmark that `data` belongs to by its files; "" where it has those of none or several."""
    names = [name for name in registry.builtins("benchmarks") if _has_layout(name, data)]
    if set(names) == {"echomind", "open"}:  # one layout: only the manifest tells them apart
        return "open" if built_set(_root(data)) else "echomind"
    return names[0] if len(names) == 1 else ""


def refuse_built(name: str, data: Path) -> None:
    """Raise DataError where a manifest leaves no doubt: results of a built set must not stand beside EchoMind's."""
    if looks_like(name, data) == "open":
        built = shown(built_set(_root(data)))
        raise DataError(
            f"{shown(str(data))}: its manifest.json says that Overtone built this set ({built!r}), so it is not a copy "
            f"of {_title(name)}; run it with 'overtone run open'"
        )


def warnings(name: str, data: Path) -> list[str]:
    """Return a warning where a folder that `name` can read looks like another benchmark's."""
    other = looks_like(name, data)
    if not other:
        return []
    told = f"looks like {_title(other)}, not like {_title(name)}"
    return [f"{shown(str(data))} {told}; if it is, run it with 'overtone run {other}'"]


def hint(name: str, data: Path) -> str:
    """Return what to add to an error about a folder that `name` cannot read: which benchmark it belongs to."""
    other = looks_like(name, data)
    return f"; this folder looks like {_title(other)}: 'overtone run {other}' reads it" if other else ""


def _root(data: Path) -> Path:
    """The folder of a whole set, where `data` may be one of its sources."""
    return data.parent if data.name.startswith("data_") else data


def _has_layout(name: str, data: Path) -> bool:
    try:
        return any(next(data.glob(pattern), None) is not None for pattern in _suite(name).layout)
    except OSError:  # a folder that cannot be listed: the loader reports it
        return False


def _title(name: str) -> str:
    return _suite(name).facts.title


def _suite(name: str) -> Suite:
    found = registry.find("benchmarks", name).SUITE
    assert isinstance(found, Suite)
    return found
