"""Finds benchmarks, models, metrics, tasks and commands by name: a built-in's name is its file's name in its room.

Listing reads file names and first docstring lines and imports nothing. Others come from entry points
(`overtone.<room>`) or from plug-in files, each of which says `ROOM = "metrics"` (or another room). Plug-in files are
named by a run file, or by OVERTONE_PLUGINS for the commands that take none.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from overtone.errors import UsageError
from overtone.spec import suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ROOMS = {"benchmarks": "load", "models": "load", "metrics": "load", "tasks": "messages", "cli": "main"}
PLUGIN_ROOMS = ("benchmarks", "models", "metrics")  # tasks and commands are built in
_HERE = Path(__file__).parent
_plugins: dict[str, dict[str, ModuleType]] = {room: {} for room in ROOMS}
_environment_seen = ""  # the value of OVERTONE_PLUGINS that has been taken in


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
    _take_in_environment(room)
    found = builtins(room)
    for name, point in _entry_points(room).items():
        found.setdefault(name, f"from {point.dist.name if point.dist else point.value}")
    for name, module in _plugins[room].items():
        found[name] = _first_line(f'"""{module.__doc__ or name}"""')
    return found


def find(room: str, name: str) -> ModuleType:
    """The module of a plug-in; an unknown name is an error with the nearest known one."""
    _take_in_environment(room)
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
    """Load a plug-in file. This runs its code: the caller has made sure that the user trusts it."""
    if not path.is_file():
        raise UsageError(f"plug-in {path} does not exist")
    name = path.stem.replace("_", "-").lower()
    if path.suffix != ".py" or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"plug-in {path} must be a file like my_metric.py: letters, digits and _, a letter first")
    module = _imported(path)
    room = getattr(module, "ROOM", None)
    if room not in PLUGIN_ROOMS:
        raise UsageError(f"plug-in {path} must say ROOM = one of {', '.join(repr(r) for r in PLUGIN_ROOMS)}")
    if not callable(getattr(module, ROOMS[room], None)):
        raise UsageError(f"plug-in {path} has no function {ROOMS[room]}(), which every file of {room}/ has")
    if name in builtins(room):
        raise UsageError(f"plug-in {path} has the name of a built-in of {room}, {name!r}; rename the file")
    _plugins[room][name] = module


def _imported(path: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"overtone_plugin_{path.stem}", path)
    assert found is not None  # a .py file always has a loader
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # before it runs: dataclasses and pickles look their module up by name
    try:
        # Not by the loader, which would run __pycache__ in place of the file that the user has read.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        del sys.modules[found.name]
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{path}, line {line}" if line else str(path)
        raise UsageError(f"plug-in {where}: {type(error).__name__}: {error}") from error
    return module


def _take_in_environment(room: str) -> None:
    """Take in the files of OVERTONE_PLUGINS once. A run file's plug-in of the same name, taken in before, stays."""
    global _environment_seen
    named = os.environ.get("OVERTONE_PLUGINS", "")
    if room not in PLUGIN_ROOMS or named == _environment_seen:
        return
    before = {room: dict(found) for room, found in _plugins.items()}
    for path in filter(None, named.split(os.pathsep)):
        load_plugin(Path(path))
    for room, found in before.items():
        _plugins[room] |= found
    _environment_seen = named


def _entry_points(room: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {p.name.replace("_", "-").lower(): p for p in entry_points(group=f"overtone.{room}")}


def _first_line(text: str) -> str:
    match = re.match(r'\s*[rR]?"""\s*(.+?)(?:"""|\n|$)', text)
    return match.group(1).strip() if match else ""
