"""Starter set: 39 short scripts, one per cue, built offline by `overtone build starter`, in EchoMind's layout."""

from __future__ import annotations

from pathlib import Path

from overtone.benchmarks.echomind import EchoMind


def load(data: Path) -> EchoMind:
    """The set that lies in `data`, read as EchoMind is read."""
    return EchoMind(data, name="starter")
