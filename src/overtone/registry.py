"""Find plug-ins by room and name: benchmarks, models, metrics, findings, voices, rubrics, figures, designs and
corpora.

A built-in is a file or folder of its room; its name is the file's with "-" for "_". Listing reads file names and first
docstring lines and imports nothing. Other plug-ins come from entry points (`overtone.<room>`) or from plug-in files,
each of which defines `ROOM = "metrics"` (or another room). A rubric is a TOML file, which needs no ROOM.
"""

from __future__ import annotations

import functools
import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from overtone import plugins
from overtone.errors import UsageError
from overtone.spec import kind_hint, suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_HERE = Path(__file__).parent


class Room(NamedTuple):
    """One kind of plug-in: where the built-ins are, and the name that each of their files defines."""

    noun: str
    files: tuple[str, ...]  # patterns below this folder; a folder's file is __init__.py
    defines: str = "load"


def _modules(folder: str) -> tuple[str, ...]:
    return f"{folder}/[a-z]*.py", f"{folder}/[a-z]*/__init__.py"


ROOMS = {
    "benchmarks": Room("benchmark", _modules("benchmarks")),
    "models": Room("model", _modules("models")),
    "metrics": Room("metric", _modules("metrics")),
    "findings": Room("finding", _modules("findings"), "FINDING"),
    "voices": Room("voice", _modules("build/voices")),
    "rubrics": Room("rubric", ("judges/rubrics/[a-z]*.toml",), "dimension"),
    "figures": Room("figure", _modules("figures"), "draw"),
    "tasks": Room("task", _modules("tasks"), "messages"),
    "designs": Room("design", _modules("studio/designs"), "DESIGN"),
    "corpora": Room("corpus", _modules("corpora"), "CORPUS"),
    "cli": Room("command", _modules("cli"), "main"),
}
PLUGIN_ROOMS = tuple(room for room in ROOMS if room not in ("tasks", "cli"))  # the others are built in


class Entry(NamedTuple):
    """A line of a listing."""

    summary: str
    origin: str = ""  # "" for a built-in; otherwise the plug-in's file or the package that installed it


_plugins: dict[str, dict[str, ModuleType | Path]] = {room: {} for room in PLUGIN_ROOMS}


def builtins(room: str) -> dict[str, str]:
    """Return the summary of every built-in of a room by name. Imports nothing."""
    return {name: summary for name, (_, summary) in _built_in(room).items()}


def entries(room: str) -> dict[str, Entry]:
    """Return every plug-in of a room by name: built-in, installed, or loaded from a file."""
    _take_in_environment(room)
    listed = {name: Entry(summary) for name, summary in builtins(room).items()}
    for name, point in _entry_points(room).items():
        listed.setdefault(name, Entry(point.value, point.dist.name if point.dist else "an entry point"))
    for name, plugin in _plugins.get(room, {}).items():
        summary = _summary(plugin) if isinstance(plugin, Path) else (plugin.__doc__ or "").strip().partition("\n")[0]
        listed[name] = Entry(summary, _file(plugin) or "this process")
    return listed


def listing(room: str) -> dict[str, str]:
    """Return the summary of every plug-in of a room by name."""
    return {name: entry.summary for name, entry in entries(room).items()}


def find(room: str, name: str) -> ModuleType:
    """Return the module of a plug-in. Raise UsageError with the nearest known name for an unknown one."""
    plugin = _find(room, name)
    if not isinstance(plugin, ModuleType):
        raise UsageError(f"the {ROOMS[room].noun} {name!r} is not a module: {plugin}")
    return plugin


def find_rubric(name: str) -> Path:
    """Return the TOML file of a rubric. Raise UsageError with the nearest known name for an unknown one."""
    path = _find("rubrics", name)
    if not isinstance(path, str | Path):
        raise UsageError(f"the rubric {name!r} is not the path of a TOML file: {path!r:.60}")
    return Path(path)


def check_name(room: str, name: str) -> str:
    """Return the name as listings write it. Raise UsageError with the nearest known name for an unknown one."""
    _take_in_environment(room)
    plain = name.replace("_", "-").lower()
    if not any(plain in known for known in (_plugins.get(room, {}), _built_in(room), _entry_points(room))):
        names = listing(room)
        near = suggest(plain, names)
        if room == "models" and not near:
            near = kind_hint(name)
        raise UsageError(f"unknown {ROOMS[room].noun} {name!r}{near}; known: {', '.join(names)}")
    return plain


def load_plugin(path: Path, *, again: bool = True) -> tuple[str, str]:
    """Load a plug-in file and return its room and name. This runs its code: the caller must check that it is trusted.

    With `again` false, a module that this process has already imported is kept."""
    plugins.add(path)
    name = plugins.name_of(path)
    plugin: ModuleType | Path = path.absolute() if path.suffix == ".toml" else plugins.import_file(path, again=again)
    room = _room_of(path, plugin)
    if name in builtins(room):
        raise UsageError(f"plug-in {path} has the name of a built-in of {room}, {name!r}; rename the file")
    _plugins[room][name] = plugin
    return room, name


def add(name: str, module: ModuleType) -> None:
    """Register a module of this process as a plug-in of its ROOM. It replaces an earlier one of the same name."""
    plain = name.replace("_", "-").lower()
    room = _room_of(name, module)
    if plain in builtins(room):
        raise UsageError(f"{name!r} is the name of a built-in of {room}; choose another name")
    _plugins[room][plain] = module


def _room_of(path: Path | str, plugin: ModuleType | Path) -> str:
    if isinstance(plugin, Path):
        if not _is_rubric(plugin):
            raise UsageError(f"plug-in {path} is not a rubric: it has no [[dimension]]; see 'overtone list rubrics'")
        return "rubrics"
    modules = [room for room in PLUGIN_ROOMS if room != "rubrics"]
    room: str | None = getattr(plugin, "ROOM", None)
    if room not in modules:
        raise UsageError(f"plug-in {path} must define ROOM as one of {', '.join(map(repr, modules))}")
    defines = ROOMS[room].defines
    if not hasattr(plugin, defines) or (defines.islower() and not callable(getattr(plugin, defines))):
        what = f"function {defines}()" if defines.islower() else defines
        raise UsageError(f"plug-in {path} has no {what}, which every file of {room}/ has")
    return room


def _is_rubric(path: Path) -> bool:
    try:
        return "dimension" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"plug-in {path} cannot be read: {error}") from None


def _find(room: str, name: str) -> object:
    plain = check_name(room, name)
    if plain in _plugins.get(room, {}):
        return _plugins[room][plain]
    if plain in _built_in(room):
        path, _ = _built_in(room)[plain]
        if path.suffix == ".toml":
            return path
        parts = path.relative_to(_HERE).with_suffix("").parts
        return importlib.import_module(".".join(("overtone", *(part for part in parts if part != "__init__"))))
    return _entry_points(room)[plain].load()


@functools.cache
def _built_in(room: str) -> dict[str, tuple[Path, str]]:
    """Return the file and the summary of every built-in by name."""
    defines = ROOMS[room].defines
    marker = re.compile(rf"^(?:def {defines}\(|{defines}\b|\[\[{defines}\]\])", re.M)
    files = {}
    for pattern in ROOMS[room].files:
        for path in _HERE.glob(pattern):
            if marker.search(path.read_text(encoding="utf-8")):
                name = path.stem if "*" in Path(pattern).name else path.parent.name
                files[name.replace("_", "-")] = path, _summary(path)
    return dict(sorted(files.items()))


def _take_in_environment(room: str) -> None:
    """Load the files of OVERTONE_PLUGINS that are not loaded yet."""
    if room not in PLUGIN_ROOMS:
        return
    loaded = {_file(plugin) for by_name in _plugins.values() for plugin in by_name.values()}
    for path in plugins.from_environment():
        if str(path) not in loaded:
            load_plugin(path, again=False)


def _file(plugin: ModuleType | Path) -> str:
    return str(plugin) if isinstance(plugin, Path) else getattr(plugin, "__file__", "") or ""


@functools.cache
def _entry_points(room: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {p.name.replace("_", "-").lower(): p for p in entry_points(group=f"overtone.{room}")}


def _summary(path: Path) -> str:
    """Return the first line of a module's docstring, or the title of a rubric."""
    text = path.read_text(encoding="utf-8")
    pattern = r'(?m)^title\s*=\s*"(.+)"' if path.suffix == ".toml" else r'\s*[rR]?"""\s*(.+?)(?:"""|\n|$)'
    match = re.search(pattern, text) if path.suffix == ".toml" else re.match(pattern, text)
    return match[1].strip() if match else ""
