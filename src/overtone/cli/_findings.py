"""What the commands about findings share: the flags, the runs they read, and the checks of both."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import UsageError
from overtone.spec import suggest

if TYPE_CHECKING:
    from overtone.analysis.findings import Settings
    from overtone.analysis.funnel_stages import Stages
    from overtone.analysis.reading import Reading

BYS = ("overall", "dimension", "style", "category", "cue", "all")
LIMITS: dict[str, tuple[float, float]] = {
    "words": (0, math.inf), "reasoned": (0, 1), "used": (1, 5), "sounded": (1, 5), "margin": (-math.inf, math.inf),
}  # fmt: skip


def add_choices(parser: argparse.ArgumentParser, *, by: bool = True) -> None:
    """What `analyze`, `table` and `figure` let choose; a figure has its own breakdown."""
    if by:
        parser.add_argument("--by", choices=BYS, default="overall", help="how far numbers are broken down (overall)")
    parser.add_argument("--prompt", metavar="P", default="", help="whose replies stand for a run (the shared one)")
    parser.add_argument("--input", metavar="I", default="audio", help="what the model was given (audio)")
    add_source(parser)
    parser.add_argument(
        "--stage", metavar="NAME=X", action="append", default=[],
        help="the funnel: words=0.2, cue=coarse, reasoned=0.5, used=4, margin=0, sounded=4; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--deaf", metavar="RUN", type=Path, action="append", default=[],
        help="a run known to get no more than the words: solves what text alone can; repeatable",
    )  # fmt: skip


def add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source", metavar="NAME", default="",
        help="only clips of this source: synthesis, human, …; all pools them (default: synthesis where the run has it)",
    )  # fmt: skip


def read(args: argparse.Namespace) -> tuple[list[Reading], Settings, int]:
    """The runs, then the deaf ones that are not among them; what was chosen; and how many runs are told of."""
    from overtone.analysis.findings import Settings
    from overtone.analysis.reading import open_run
    from overtone.analysis.standing import check_source

    stages = parse_stages(args.stage)
    folders = [*args.runs]
    _once(folders)
    places = []
    for deaf in args.deaf:
        same = [n for n, folder in enumerate(folders) if folder.resolve() == deaf.resolve()]
        places.append(same[0] if same else len(folders))
        folders += [] if same else [deaf]
    readings = [open_run(folder, light=True) for folder in folders]
    for reading in readings:
        if not reading.answers:
            raise UsageError(f"{reading.folder} holds nothing yet: no item was asked; run the benchmark first")
    told = len(args.runs)
    _check_asked(readings[:told], args.prompt, args.input)
    check_source(readings[:told], args.source)
    return readings, Settings(stages, args.prompt, args.input, tuple(dict.fromkeys(places)), args.source), told


def _once(folders: Sequence[Path]) -> None:
    """A run given twice would be compared with itself."""
    seen: set[Path] = set()
    for folder in folders:
        if (real := folder.resolve()) in seen:
            raise UsageError(f"{folder} is given twice; name every run once")
        seen.add(real)


def _check_asked(readings: Sequence[Reading], prompt: str, given: str) -> None:
    """A misspelt prompt or input would find nothing, and say so in every finding."""
    conditions = {a.condition for reading in readings for a in reading.answers}
    inputs = {c.partition("/")[2] for c in conditions}
    prompts = {c.partition("/")[0] for c in conditions} - {"task"}
    for what, name, known in (("--input", given, inputs), ("--prompt", prompt, prompts)):
        if readings and name and name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise UsageError(f"no run was asked with {what} {name}{suggest(name, known)}; they have {has}")


def parse_stages(given: Sequence[str]) -> Stages:
    """The funnel's parameters from NAME=X, checked."""
    import msgspec

    from overtone.analysis.funnel_stages import DEFAULT

    known = msgspec.structs.asdict(DEFAULT)
    found: dict[str, str | float] = {}
    for text in given:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in known:
            raise UsageError(f"--stage {text}: no stage is called {name!r}{suggest(name, known)}; {', '.join(known)}")
        if name in found:
            raise UsageError(f"--stage {name} is given twice")
        found[name] = _which(value) if name == "cue" else _number(name, value)
    return msgspec.structs.replace(DEFAULT, **found)


def _which(value: str) -> str:
    if value not in ("fine", "coarse"):
        raise UsageError(f"--stage cue={value}: which question about the cue, fine or coarse?")
    return value


def _number(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    low, high = LIMITS[name]
    if not math.isfinite(found) or not low <= found <= high:
        least = f" from {low:g}" if math.isfinite(low) else ""
        most = f" to {high:g}" if math.isfinite(high) else ""
        raise UsageError(f"--stage {name}={value}: give a number{least}{most}")
    return found
