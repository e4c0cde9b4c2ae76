"""The offline recogniser, language model, sentence embedder, voices and hearing.

Each file can be imported without its package. On first use, a missing package raises an error with the command that
installs it.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

from overtone.errors import MissingExtra

INSTALL = "overtone setup local"


def present(package: str) -> bool:
    """Return whether a top-level package can be imported. Imports nothing."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # an import hook hides it, or sys.modules blocks the name
        return False


def require(package: str, purpose: str = "") -> Path:
    """Return the folder of an installed package without importing it. Raises MissingExtra if it is not installed."""
    spec = importlib.util.find_spec(package) if present(package) else None
    if spec is None or not spec.origin:
        raise MissingExtra(
            f"the package {package!r} is not installed{f' ({purpose})' if purpose else ''}; run '{INSTALL}'"
        )
    return Path(spec.origin).parent


def version(distribution: str) -> str:
    """Return the installed version of a distribution, or "" if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
