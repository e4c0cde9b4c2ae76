"""Write constraints.txt: the core's packages as installed here, pinned, with the hashes of their wheels in the index.

    python -m scripts.lock_core [--index URL]

The index is the one that pip is set up for, unless --index names another. Every package is listed that Linux, macOS or
Windows with Python 3.11 to 3.14 needs.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parent.parent
FILE = ROOT / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = (("linux", "Linux"), ("darwin", "Darwin"), ("win32", "Windows"))
HEAD = """\
# The core's packages, pinned, with the hash of every wheel that fits Linux, macOS or Windows, Python 3.11 to 3.14.
# Written by `python -m scripts.lock_core`. Install exactly these, then Overtone itself:
#   pip install --require-hashes -r constraints.txt
#   pip install --no-deps .
"""
_PLATFORM = re.compile(r"any|(many|musl)linux\w*_(x86_64|aarch64)|macosx_\w+_(x86_64|arm64|universal2)|win_amd64")


def plain(name: str) -> str:
    """A distribution's name as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def environments() -> list[dict[str, str]]:
    """What markers are evaluated against: each Python on each system."""
    return [
        {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "sys_platform": system,
            "platform_system": name,
            "os_name": "nt" if system == "win32" else "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }
        for python in PYTHONS
        for system, name in SYSTEMS
    ]


def closure(names: Iterable[str], installed: Mapping[str, Distribution]) -> dict[str, list[Requirement]]:
    """These packages and all that they require on any supported system, with the requirements that ask for each."""
    found: dict[str, list[Requirement]] = {plain(name): [] for name in names}
    todo = [(name, "") for name in found]
    seen = set(todo)
    while todo:
        name, extra = todo.pop()
        for text in (installed[name].requires or ()) if name in installed else ():
            one = Requirement(text)
            if one.marker and not any(one.marker.evaluate({**where, "extra": extra}) for where in environments()):
                continue
            found.setdefault(plain(one.name), []).append(one)
            more = {(plain(one.name), wanted) for wanted in ("", *one.extras)} - seen
            seen |= more
            todo += more
    return found


def core() -> dict[str, list[Requirement]]:
    """Every package that an installation of the core can bring, with the requirements that ask for it."""
    found = closure(["overtone"], {plain(one.name): one for one in distributions()})
    del found["overtone"]
    return found


def fits(tag: Tag) -> bool:
    """Whether wheels of this tag are for a supported Python and system."""
    wanted = {f"cp{python.replace('.', '')}" for python in PYTHONS}
    older = tag.abi == "abi3" and tag.interpreter.startswith("cp3") and int(tag.interpreter[3:]) <= 14
    own = tag.interpreter in wanted and tag.abi in {*wanted, "none"}
    return (tag.interpreter == "py3" or own or older) and bool(_PLATFORM.fullmatch(tag.platform))


def pip_index() -> str:
    """The package index that pip is set up for, by PIP_INDEX_URL or its configuration."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    found = os.environ.get("PIP_INDEX_URL") or subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not found:
        raise SystemExit("pip names no index in its configuration; give --index URL")
    return found.rstrip("/")


def hashes(name: str, version: str, index: str) -> list[str]:
    """The SHA-256 of each wheel of a version that fits a supported Python and system."""
    with urllib.request.urlopen(f"{index}/{name}/") as answer:
        page = answer.read().decode()
    out = []
    for file, digest in re.findall(r"/([^/#\"]+\.whl)#sha256=([0-9a-f]{64})", page):
        try:
            _, found, _, tags = parse_wheel_filename(unquote(file))
        except InvalidWheelFilename:  # of a release from before names had rules
            continue
        if found == Version(version) and any(map(fits, tags)):
            out.append(digest)
    if not out:
        raise SystemExit(f"{index} has no wheel of {name} {version}")
    return sorted(set(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", metavar="URL", help="a package index (default: the one in pip's configuration)")
    args = parser.parse_args()
    index = args.index or pip_index()
    text = HEAD
    for name in sorted(core()):
        version = importlib.metadata.version(name)
        lines = [f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes(name, version, index))]
        text += " \\\n    ".join(lines) + "\n"
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
