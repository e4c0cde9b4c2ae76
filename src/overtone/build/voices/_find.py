"""Finds an engine by name: the name of its file in this folder. A new engine is one new file with a `load(spec)`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from overtone.build.voices._records import Engine
from overtone.errors import UsageError
from overtone.spec import Spec, suggest

_DOC = re.compile(r'\s*"""\s*(.+?)(?:"""|\n|$)')


def engines() -> dict[str, str]:
    """Name → first docstring line of every engine; imports none of them."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^def load\(", text, re.M):
            line = _DOC.match(text)
            found[path.stem.replace("_", "-")] = line[1].strip() if line else ""
    return found


def open_engine(spec: Spec) -> Engine:
    """The engine a SPEC names; an unknown name is an error with the nearest known one."""
    known = engines()
    name = spec.kind.replace("_", "-")
    if name not in known:
        raise UsageError(f"unknown voice engine {spec.kind!r}{suggest(name, known)}; known: {', '.join(known)}")
    module = importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
    engine: Engine = module.load(spec)
    return engine
