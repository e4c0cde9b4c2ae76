"""The command line. Each command is a file of this room; `main` finds it by name."""

from overtone.cli._main import main

__all__ = ["main"]
