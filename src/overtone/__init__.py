"""Overtone measures whether a speech language model hears how something is said, and answers to it.

The public interface is what this module names: `run` asks and stores, `score` scores what is stored, `open_run` reads.
"""

from typing import TYPE_CHECKING, Any

from overtone.version import __version__

if TYPE_CHECKING:
    from overtone.api import Run, open_run, run, score
    from overtone.errors import OvertoneError
    from overtone.schema import Item, Reply, Score

__all__ = ["Item", "OvertoneError", "Reply", "Run", "Score", "__version__", "open_run", "run", "score"]

_HOME = {"Item": "schema", "Reply": "schema", "Score": "schema", "OvertoneError": "errors"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'overtone' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"overtone.{_HOME.get(name, 'api')}"), name)
