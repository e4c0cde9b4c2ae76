"""Import plug-in files as modules of this package: `my_metric.py` is `overtone.plugins.my_metric` in every process.

A child process that unpickles a plug-in's object imports the module by this name. It finds the file through
OVERTONE_PLUGINS, to which this process adds every plug-in that it loads.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from overtone.errors import UsageError

VARIABLE = "OVERTONE_PLUGINS"
SUFFIXES = (".py", ".toml")
__path__: list[str] = []  # makes this module a package; its modules are the plug-in files
_files: dict[str, Path] = {}  # name of a plug-in → its file


def name_of(path: Path) -> str:
    """Return a plug-in's name, which is the file's name with "-" for "_". Raise UsageError for an unusable name."""
    name = path.stem.replace("_", "-").lower()
    if path.suffix not in SUFFIXES or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(
            f"plug-in {path} must be a file like my_metric.py or my_rubric.toml: letters, digits and _, a letter first"
        )
    return name


def add(path: Path) -> None:
    """Reserve a plug-in's name for this file, in this process and in every process that it starts."""
    name, path = name_of(path), path.absolute()
    if not path.is_file():
        raise UsageError(f"plug-in {path} does not exist")
    other = _files.get(name)
    if other is not None and other.is_file() and not other.samefile(path):
        raise UsageError(f"two plug-ins are called {name!r}: {other} and {path}; rename one of them")
    _files[name] = path
    known = list(from_environment())
    if path not in known:
        os.environ[VARIABLE] = os.pathsep.join(map(str, (*known, path)))


def from_environment() -> Iterator[Path]:
    """Yield the plug-in files that OVERTONE_PLUGINS names, as absolute paths."""
    for name in os.environ.get(VARIABLE, "").split(os.pathsep):
        if name:
            yield Path(name).absolute()


def import_file(path: Path, *, again: bool = True) -> ModuleType:
    """Import a plug-in file that was added. With `again`, a module that is already imported is replaced.

    An exception in the file becomes a UsageError that names the line."""
    name = f"{__name__}.{path.stem.replace('-', '_').lower()}"
    if again:
        sys.modules.pop(name, None)
    try:
        return importlib.import_module(name)
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path.absolute())]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        place = f"{path}, line {line}" if line else str(path)
        raise UsageError(f"plug-in {place}: {type(error).__name__}: {error}") from error


class _Loader(SourceFileLoader):
    """Compiles the source each time, because bytecode in a __pycache__ may differ from the file that the user read."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _Finder:
    """Finds `overtone.plugins.NAME` among the files that were added or that the environment names."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, stem = fullname.rpartition(".")
        if package != __name__:
            return None
        named = {name_of(file): file for file in from_environment()} | _files
        file = named.get(stem.replace("_", "-"))
        if file is None:
            return None
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


sys.meta_path.append(_Finder)
