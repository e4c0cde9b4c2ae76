"""Flags of the commands about findings, and the checked runs and settings that they name."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.errors import UsageError
from overtone.spec import suggest

if TYPE_CHECKING:
    from msgspec import Struct

    from overtone.findings.finding import Settings
    from overtone.results.load import Reading


def add_choices(parser: argparse.ArgumentParser, *, by: bool = True) -> None:
    """Add the flags that `analyze`, `table` and `figure` share. Without `by`, --by is left out; a figure defines its
    own."""
    group = parser.add_argument_group("which replies, and how they are read")
    flag = group.add_argument
    if by:
        flag(
            "--by", metavar="BY", default="overall",
            help="breakdown: overall, dimension, style, category, cue or all (default: overall)",
        )  # fmt: skip
    flag(
        "--prompt", metavar="P", default="",
        help="prompt whose replies represent a run (default: the first that all runs share)",
    )  # fmt: skip
    flag("--input", metavar="I", default="", help="input modality (default: audio if a run has it)")
    add_source(group)
    add_heard(group)
    flag(
        "--set", metavar="FINDING.NAME=X", action="append", default=[],
        help="parameter of a finding, e.g. funnel.words=0.2; repeatable",
    )  # fmt: skip
    flag(
        "--deaf", metavar="RUN", type=Path, action="append", default=[],
        help="run of a model that gets only the words; its correct answers mark questions that text solves; repeatable",
    )  # fmt: skip


def add_source(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --source to a parser or a group of flags."""
    parser.add_argument(
        "--source", metavar="NAME", default="",
        help="source of the clips: synthesis, human, …; all pools them (default: synthesis if the run has it)",
    )  # fmt: skip


def add_heard(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --heard to a parser or a group of flags."""
    parser.add_argument(
        "--heard", metavar="LEVEL", default="",
        help="count items in the headline although the model heard their corpus in training; speaker: also their "
        "speaker; clip: all (default: count none of them)",
    )  # fmt: skip


def read(args: argparse.Namespace) -> tuple[list[Reading], Settings, int]:
    """Read the runs and the deaf runs that `args` names.

    Return all readings, the settings, and the number of runs. The deaf runs that are not among the runs come after
    them.
    """
    from overtone.findings.finding import Settings
    from overtone.results.headline_condition import check_source
    from overtone.results.heard_items import mark_heard
    from overtone.results.load import open_run

    options = parse_options(args.set)
    check_breakdown(getattr(args, "by", "overall"))
    folders = [*args.runs]
    _check_unique(folders)
    deaf_places = []
    for deaf in args.deaf:
        same = [n for n, folder in enumerate(folders) if folder.resolve() == deaf.resolve()]
        deaf_places.append(same[0] if same else len(folders))
        folders += [] if same else [deaf]
    readings = [open_run(folder, light=True) for folder in folders]
    for reading in readings:
        if not reading.answers:
            raise UsageError(f"{reading.folder} holds no answers; run the benchmark first: overtone run …")
    shown = len(args.runs)
    given = args.input or _usual_input(readings[:shown])
    _check_asked(readings[:shown], args.prompt, given)
    check_source(readings[:shown], args.source)
    mark_heard(readings, args.heard)
    return readings, Settings(options, args.prompt, given, tuple(dict.fromkeys(deaf_places)), args.source), shown


def _check_unique(folders: Sequence[Path]) -> None:
    """Raise UsageError if a run is given twice, because it would be compared with itself."""
    seen: set[Path] = set()
    for folder in folders:
        if (real := folder.resolve()) in seen:
            raise UsageError(f"{folder} is given twice; name every run once")
        seen.add(real)


def _usual_input(readings: Sequence[Reading]) -> str:
    """Return "audio", or the first input that the runs have if no run was asked with audio (a benchmark in writing)."""
    inputs = {a.condition.partition("/")[2]: None for reading in readings for a in reading.answers}
    return "audio" if "audio" in inputs else next(iter(inputs), "audio")


def _check_asked(readings: Sequence[Reading], prompt: str, given: str) -> None:
    """Raise UsageError for a prompt or input that no run has, because every finding would be empty."""
    conditions = {a.condition for reading in readings for a in reading.answers}
    inputs = {c.partition("/")[2] for c in conditions}
    prompts = {c.partition("/")[0] for c in conditions} - {"task"}
    for flag, name, known in (("--input", given, inputs), ("--prompt", prompt, prompts)):
        if readings and name and name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise UsageError(f"no run was asked with {flag} {name}{suggest(name, known)}; they have {has}")


def check_breakdown(by: str) -> None:
    """Raise UsageError for a breakdown that no finding has."""
    from overtone.findings.lookup import known_findings

    known = [*dict.fromkeys(name for finding in known_findings().values() for name in finding.breakdowns), "all"]
    if by not in known:
        raise UsageError(f"--by {by}: no such breakdown{suggest(by, known)}; known: {', '.join(known)}")


# ── parameters of findings ──────────────────────────────────────────────────────────────────────────────────────────


def parse_options(given: Sequence[str]) -> dict[str, Any]:
    """Return the options of findings by name, from texts like `funnel.words=0.2`. Raises UsageError for a bad one."""
    import msgspec

    from overtone.findings.lookup import known_findings

    known = {name: f.options for name, f in known_findings().items() if f.options is not None}
    chosen: dict[str, dict[str, Any]] = {}
    for text in given:
        path, _, value = (part.strip() for part in text.partition("="))
        name, _, field = path.partition(".")
        if name not in known:
            raise UsageError(
                f"--set {text}: no finding {name!r} has parameters{suggest(name, known)}; {', '.join(known)}"
            )
        fields = known[name].__struct_fields__
        if field not in fields:
            raise UsageError(f"--set {text}: {name} has no {field!r}{suggest(field, fields)}; {', '.join(fields)}")
        if field in chosen.setdefault(name, {}):
            raise UsageError(f"--set {path} is given twice")
        chosen[name][field] = _option(text, known[name], field, value)
    return {name: msgspec.structs.replace(known[name], **values) for name, values in chosen.items()}


def _option(text: str, default: Struct, field: str, value: str) -> Any:
    """Convert the value of one field. Raises UsageError with the values that the field allows."""
    import msgspec

    try:
        converted = getattr(msgspec.convert({field: value}, type(default), strict=False), field)
        if isinstance(converted, float) and not math.isfinite(converted):
            raise msgspec.ValidationError
    except msgspec.ValidationError:
        kind = {f.name: f.type for f in msgspec.inspect.type_info(type(default)).fields}[field]  # type: ignore[attr-defined]
        raise UsageError(f"--set {text}: give {_allowed(kind)}") from None
    return converted


def _allowed(kind: Any) -> str:
    import msgspec

    if isinstance(kind, msgspec.inspect.LiteralType):
        return " or ".join(map(str, kind.values))
    low, high = getattr(kind, "ge", None), getattr(kind, "le", None)
    return "a number" + ("" if low is None else f" from {low:g}") + ("" if high is None else f" to {high:g}")
