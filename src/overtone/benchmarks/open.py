"""Overtone-Open: 468 scripts, 12 for each of the 39 cues, built by `overtone build open`, in EchoMind's layout."""

from __future__ import annotations

from pathlib import Path

from overtone.benchmarks.echomind import EchoMind


def load(data: Path) -> EchoMind:
    """The set that lies in `data`, read as EchoMind is read."""
    return EchoMind(data, name="open")
