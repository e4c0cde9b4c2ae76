"""Runs with spoken replies and study files over them."""

from __future__ import annotations

from pathlib import Path

from overtone.cli import main
from overtone.studio import study
from overtone.studio.study import Study
from tests.arena.helpers import make_run


def spoken_runs(folder: Path, *names: str, scripts: int = 9) -> list[Path]:
    """Runs that answered the same requests with audio."""
    return [
        make_run(folder / name, number + 1.0, scripts=scripts, spoken=True, root=folder / "clips")
        for number, name in enumerate(names)
    ]


def new_study(folder: Path, *flags: str, names: tuple[str, ...] = ("monday", "friday"), scripts: int = 9) -> Study:
    """A study file over new runs, written by the command."""
    runs = spoken_runs(folder, *names, scripts=scripts)
    path = folder / "study.toml"
    assert main(["studio", "new", str(path), "--from", *map(str, runs), *flags]) == 0
    return study.read(path)
