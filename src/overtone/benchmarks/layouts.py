"""Recognise the benchmark of a folder by files that no other benchmark has.

Several benchmarks read files of any name, and two share one layout, so a folder could run with the wrong benchmark
without an error. Each benchmark lists its files in `SUITE.layout`; a built set also has a manifest.
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
    recipes: str  # only a set built by Overtone has it


def built_set(root: Path) -> str:
    """Return the name in the manifest of a set built by Overtone, or "" if the folder has no such manifest."""
    try:
        return msgspec.json.decode(read_plain(root / FILE, MAX_BYTES), type=_Manifest).name
    except (OSError, OvertoneError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def looks_like(name: str, data: Path) -> str:
    """Return the built-in benchmark other than `name` whose files are in `data`.

    Returns "" if `name` is not built in, if the folder has files of `name` itself, or if it does not have the files of
    exactly one other benchmark.
    """
    known, name = registry.builtins("benchmarks"), name.replace("_", "-").lower()
    if name not in known or not data.is_dir():
        return ""
    if not _has_layout(name, data):
        return benchmark_of(data)
    other = _open_or_echomind(data) if name in ("open", "echomind") else name
    return "" if other == name else other


def benchmark_of(data: Path) -> str:
    """Return the built-in benchmark whose files are in `data`; "" unless it is exactly one."""
    names = [name for name in registry.builtins("benchmarks") if _has_layout(name, data)]
    if set(names) == {"echomind", "open"}:
        return _open_or_echomind(data)
    return names[0] if len(names) == 1 else ""


def _open_or_echomind(data: Path) -> str:
    """Return "open" or "echomind". Both have the same layout, but only a built (open) set has a manifest."""
    return "open" if built_set(_root(data)) else "echomind"


def refuse_built(name: str, data: Path) -> None:
    """Raise DataError if `data` has the manifest of a built set, whose results must not be reported as EchoMind's."""
    if looks_like(name, data) == "open":
        built = shown(built_set(_root(data)))
        raise DataError(
            f"{shown(str(data))}: its manifest.json says that Overtone built this set ({built!r}), so it is not a copy "
            f"of {_title(name)}; run it with 'overtone run open'"
        )


def warnings(name: str, data: Path) -> list[str]:
    """Return a list with a warning if the folder has the files of another benchmark than `name`, otherwise []."""
    other = looks_like(name, data)
    if not other:
        return []
    return [
        f"{shown(str(data))} looks like {_title(other)}, not like {_title(name)}; "
        f"if it is, run it with 'overtone run {other}'"
    ]


def hint(name: str, data: Path) -> str:
    """Return the end of an error about a folder that `name` cannot read. It names the benchmark that can; "" if
    unknown."""
    other = looks_like(name, data)
    return f"; this folder looks like {_title(other)}: 'overtone run {other}' reads it" if other else ""


def _root(data: Path) -> Path:
    """Return the folder of the whole set: the parent of `data` if `data` is the folder of one source, else `data`."""
    return data.parent if data.name.startswith("data_") else data


def _has_layout(name: str, data: Path) -> bool:
    try:
        return any(next(data.glob(pattern), None) is not None for pattern in _suite(name).layout)
    except OSError:  # the loader reports a folder that cannot be listed
        return False


def _title(name: str) -> str:
    return _suite(name).facts.title


def _suite(name: str) -> Suite:
    suite = registry.find("benchmarks", name).SUITE
    assert isinstance(suite, Suite)
    return suite
