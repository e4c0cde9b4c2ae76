"""Make a process of a Ray node like the driver: the same version, plug-ins, settings and working directory.

A node's process inherits the environment of `ray start`, not the driver's. It gets the variables of Overtone, the keys
that the models of this command need, and the variables that OVERTONE_RAY_ENV names. They travel as an argument, so no
key appears in Ray's dashboard or logs.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from overtone import plugins
from overtone.paths import user_data, write_whole
from overtone.version import __version__

MORE = "OVERTONE_RAY_ENV"
# The packages whose version can change a sound or a score.
_PACKAGES = ("numpy", "soxr", "soundfile", "rapidfuzz", "pyworld", "espeakng-loader", "moonshine-voice", "xllamacpp")
_PACKAGE = Path(__file__).parents[1]
_made: set[str] = set()  # setups that this process already has


class Setup(Struct, frozen=True):
    """Everything that a process of a node needs. It may hold keys, so it must never be logged."""

    versions: dict[str, str]
    environment: dict[str, str]
    folder: str
    plugins: tuple[tuple[str, bytes], ...]  # path on the driver's machine, content

    def __repr__(self) -> str:
        return f"Setup({len(self.plugins)} plug-ins)"

    @property
    def sha256(self) -> str:
        parts = (sorted(self.environment.items()), self.folder, self.plugins)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@functools.cache
def _code() -> str:
    """Return a hash of this package's code: copies of one version may differ while someone works on them."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def versions() -> dict[str, str]:
    """Return the versions that must be the same on every node."""
    python = ".".join(platform.python_version_tuple()[:2])
    own = {"overtone": __version__, "python": python, "overtone's code": _code()}
    for name in _PACKAGES:
        try:
            own[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            own[name] = "not installed"
    return own


def setup_of(variables: Iterable[str] = ()) -> Setup:
    """Return the setup of this process. `variables` are the names of further variables, such as those of keys."""
    more = [name.strip() for name in os.environ.get(MORE, "").split(",")]
    names = {name for name in os.environ if name.startswith("OVERTONE_")} | {*variables, *more}
    environment = {name: os.environ[name] for name in sorted(names) if name in os.environ}
    files = tuple((str(path), path.read_bytes()) for path in plugins.from_environment())
    return Setup(versions(), environment, str(Path.cwd()), files)


def difference(setup: Setup, packages: bool) -> str:
    """Return how the versions of this process differ from those of the driver, "" for no difference.

    Without `packages`, only Overtone and Python count: enough for a model, which describes what it depends on."""
    own = versions()
    wrong = [
        f"{name} {own.get(name, 'not installed')} instead of {version}"
        for name, version in setup.versions.items()
        if own.get(name) != version and (packages or name in ("overtone", "python"))
    ]
    return ", ".join(wrong)


def apply(setup: Setup) -> None:
    """Set this process up. Applying the same setup again does nothing."""
    if setup.sha256 in _made:
        return
    os.environ.update(setup.environment)
    os.environ[plugins.VARIABLE] = os.pathsep.join(_placed(Path(path), data) for path, data in setup.plugins)
    if Path(setup.folder).is_dir():
        os.chdir(setup.folder)  # relative paths in a SPEC mean the driver's
    _made.add(setup.sha256)


def _placed(path: Path, data: bytes) -> str:
    """Return the plug-in's file: the driver's path if it has the same content here, else a copy of the content."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return str(path)
    copy = user_data("OVERTONE_RAY_PLUGINS", "ray-plugins") / hashlib.sha256(data).hexdigest()[:16] / path.name
    write_whole(copy, data)
    return str(copy)
