"""People's labels named on the command line: a file of them, or a study (.toml) whose runs hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import UsageError
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.judge_trust.labels import Labels
    from overtone.results.load import Reading
    from overtone.studio.study import Study


def is_study(path: Path) -> bool:
    """Return whether a path names a study. Any other file is a file of labels."""
    return path.suffix.lower() == ".toml"


def read_study(path: Path) -> Study:
    """Read a study whose answers are labels of runs. Raises UsageError if its sources are not runs."""
    from overtone.studio import study

    found = study.read(path)
    if not any(source.kind == "run" for source in found.sources):
        raise UsageError(f"{shown(str(path))} asks about no run; name a study over runs")
    return found


def read(path: Path, dimensions: Collection[str] = ()) -> Labels:
    """Return the labels of a file, or those that the runs of a study hold."""
    from overtone.judge_trust import labels, run_labels

    if not is_study(path):
        return labels.read(path, dimensions)
    found = read_study(path)
    folders = {source.name: found.folder(source) for source in found.sources if source.kind == "run"}
    return run_labels.of_runs(folders, found.id, path, rubrics=found.rubrics)


def of_runs(path: Path) -> Path | Callable[[Reading], Labels]:
    """Return the path of a label file unchanged, or for a study a function that returns the labels of one run."""
    from overtone.judge_trust import run_labels

    if not is_study(path):
        return path
    found = read_study(path)
    return lambda reading: run_labels.of_run(reading, found.id, path)
