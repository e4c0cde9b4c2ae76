"""Finds benchmarks, models, metrics, tasks and commands by name: a built-in's name is its file's name in its room.

Listing reads file names and first docstring lines and imports nothing. Others come from entry points
(`overtone.<room>`) or from the plug-in files of a run file, each of which says `ROOM = "metrics"` (or another room).
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from overtone.errors import UsageError
from overtone.spec import suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ROOMS = {"benchmarks": "load", "models": "load", "metrics": "load", "tasks": "messages", "cli": "main"}
_HERE = Path(__file__).parent
_plugins: dict[str, dict[str, ModuleType]] = {room: {} for room in ROOMS}


def builtins(room: str) -> dict[str, str]:
    """Name → first docstring line of every built-in of a room."""
    found = {}
    marker = re.compile(rf"^def {ROOMS[room]}\(", re.M)
    for path in sorted((_HERE / room).glob("[a-z]*.py")):
        text = path.read_text(encoding="utf-8")
        if marker.search(text):
            found[path.stem.replace("_", "-")] = _first_line(text)
    return found


def listing(room: str) -> dict[str, str]:
    """Name → one line on every plug-in of a room: built-in, installed, or loaded from a file."""
    found = builtins(room)
    for name, point in _entry_points(room).items():
        found.setdefault(name, f"from {point.dist.name if point.dist else point.value}")
    for name, module in _plugins[room].items():
        found[name] = _first_line(f'"""{module.__doc__ or name}"""')
    return found


def find(room: str, name: str) -> ModuleType:
    """The module of a plug-in; an unknown name is an error with the nearest known one."""
    plain = name.replace("_", "-").lower()
    if plain in _plugins[room]:
        return _plugins[room][plain]
    if plain in builtins(room):
        return importlib.import_module(f"overtone.{room}.{plain.replace('-', '_')}")
    points = _entry_points(room)
    if plain in points:
        module = points[plain].load()
        if not isinstance(module, ModuleType):
            raise UsageError(f"entry point {plain!r} in 'overtone.{room}' names no module: {points[plain].value}")
        return module
    known = listing(room)
    kind = room.removesuffix("s") if room != "cli" else "command"
    raise UsageError(f"unknown {kind} {name!r}{suggest(plain, known)}; known: {', '.join(known)}")


def load_plugin(path: Path) -> None:
    """Take a plug-in file in. The caller has made sure that the user trusts it: this runs its code."""
    if not path.is_file():
        raise UsageError(f"plug-in {path} does not exist")
    found = importlib.util.spec_from_file_location(f"overtone_plugin_{path.stem}", path)
    if found is None or found.loader is None:
        raise UsageError(f"plug-in {path} is not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    room = getattr(module, "ROOM", None)
    if room not in ROOMS:
        raise UsageError(f"plug-in {path} must say ROOM = one of {', '.join(repr(r) for r in ROOMS)}")
    if not hasattr(module, ROOMS[room]):
        raise UsageError(f"plug-in {path} has no function {ROOMS[room]}(), which every file of {room}/ has")
    _plugins[room][path.stem.replace("_", "-").lower()] = module


def plugin_names(room: str) -> list[str]:
    """Names of the plug-in files taken in so far."""
    return list(_plugins[room])


def _entry_points(room: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {p.name.replace("_", "-").lower(): p for p in entry_points(group=f"overtone.{room}")}


def _first_line(text: str) -> str:
    match = re.match(r'\s*[rR]?"""\s*(.+?)(?:"""|\n|$)', text)
    return match.group(1).strip() if match else ""
