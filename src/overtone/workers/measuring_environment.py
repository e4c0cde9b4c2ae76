"""The measuring environment: a separate virtual environment with torch, made by `overtone setup measures`.

Metrics run programs in it. A trained speech model imports torch from it, if Overtone's own environment has none.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from overtone.paths import user_data


def measures_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the measuring environment's folder: OVERTONE_MEASURES, else overtone/measures in the user's data."""
    return user_data("OVERTONE_MEASURES", "measures", environ)


def spare_packages(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the folder of the measuring environment's packages, or [] if it is not needed or not usable.

    It is needed if this environment has no torch, and usable if it was made for the same version of Python.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = measures_folder(environ) / "lib" / version / "site-packages"
    return [str(folder)] if find_spec("torch") is None and (folder / "torch").is_dir() else []


def borrow_torch() -> None:
    """Make torch importable from the measuring environment, if this environment has none.

    Its packages come last, so that this environment's own versions win.
    """
    sys.path += spare_packages()
    importlib.invalidate_caches()
