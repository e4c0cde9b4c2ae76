"""Overtone measures whether a speech language model hears how something is said, and answers to it."""

from overtone.version import __version__

__all__ = ["__version__"]
