"""The flags that `run` and `plan` share, and their conversion to settings."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.errors import UsageError

if TYPE_CHECKING:
    from overtone.runs.settings import RunFile, Settings


def add_run_flags(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the flags that `run` and `plan` share. With `optional`, the benchmark may be left out."""
    flag = parser.add_argument
    times = "?" if optional else None
    flag(
        "what",
        metavar="BENCHMARK|FILE.toml",
        nargs=times,
        help="name of a benchmark, its plug-in file (.py), or a run file (.toml)",
    )
    flag("--data", metavar="DIR", help="folder with the benchmark's files")
    flag(
        "--model",
        metavar="SPEC",
        action="append",
        help="model to ask, as kind:name?key=value, e.g. openai:NAME or cascade; repeatable",
    )
    flag("--out", metavar="RUN", help="folder of the run (default: runs/BENCHMARK-MODEL)")
    add_score_flags(parser)
    flag = parser.add_argument_group("what is asked").add_argument
    flag("--levels", metavar="1,2,3", help="levels: 1 understanding, 2 reasoning, 3 conversation (default: all)")
    flag(
        "--prompt",
        metavar="NAMES",
        help="prompts: zero, basic, enhance, oracle, oracle-false, warm, plain or all (default: enhance); "
        "likelihood: answer questions by the likelihood of each option instead of a letter",
    )
    flag("--styles", metavar="NAMES", help="styles: target, alternative, neutral, control (default: all)")
    flag(
        "--parts",
        metavar="NAMES",
        help="parts: core, control, false-cue, conflict, dialogue, fixed (default: all that the set has)",
    )
    flag(
        "--input",
        metavar="NAMES",
        help="inputs: audio, transcript, both, silence, alone, context, recognised (default: audio)",
    )
    flag("--asr", choices=("target", "all"), help="clips to transcribe (default: target)")
    flag("--repeats", type=int, metavar="N", help="number of repeats per item (default: 1)")
    flag("--limit", type=int, metavar="N", help="ask only N items, spread over levels, tasks and cues")
    flag("--seed", type=int, metavar="N", help="seed sent to the model; repeat r uses N + r")
    flag = parser.add_argument_group("requests and cost").add_argument
    flag("--max-connections", type=int, metavar="N", help="maximum number of parallel requests (default: 16)")
    flag("--budget-requests", type=int, metavar="N", help="stop after N requests")
    flag("--budget-usd", type=float, metavar="X", help="stop when the replies have cost X US dollars")
    flag("--wait", type=float, metavar="SECONDS", help="time to wait for a server that is still loading (default: 0)")
    flag(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="pause for a server that goes away during the run, at most this long (default: 600)",
    )
    flag = add_ray_flags(parser).add_argument
    flag("--ray-actors", type=int, metavar="N", help="actors that hold each model (default: one per node or GPU)")
    flag("--ray-gpus", type=float, metavar="X", help="GPUs of each actor (default: 0)")
    flag(
        "--shard",
        metavar="I/N",
        help="ask only the I-th of N parts, each in its own folder; 'overtone merge' joins them",
    )
    flag = parser.add_argument_group("safety").add_argument
    flag(
        "--fsync",
        action="store_const",
        const=True,
        help="flush every reply to disk, so that a power failure loses none; slower",
    )
    flag(
        "--trust",
        action="store_true",
        help="let the run file run code and use keys, this time only; 'overtone trust FILE.toml' remembers it",
    )


def add_ray_flags(parser: argparse.ArgumentParser, what: str = "run the models") -> argparse._ArgumentGroup:
    """Add the flags that every command with Ray has, and return their group."""
    group = parser.add_argument_group("several machines")
    group.add_argument(
        "--ray",
        action=argparse.BooleanOptionalAction,
        help=f"{what} on a Ray cluster (default: no)",
    )
    group.add_argument(
        "--ray-address", metavar="HOST:PORT", help="the cluster's address (default: RAY_ADDRESS, else this machine)"
    )
    return group


def add_score_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags about scoring that `run` and `score` share."""
    flag = parser.add_argument_group("scoring").add_argument
    flag("--metric", metavar="NAME", action="append", help="additional metric, e.g. nisqa or emoalign; repeatable")
    flag("--judge", metavar="SPEC", action="append", help="model that judges the replies, e.g. openai:NAME; repeatable")
    flag("--reader", metavar="SPEC", help="model that reads the multiple-choice answers that the rules cannot read")
    add_insecure_flag(parser)


def add_insecure_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--insecure", action="store_true", help="allow keys to be sent to other machines over plain http (default: no)"
    )


def planned_of(args: argparse.Namespace) -> tuple[list[Settings], str]:
    """Return the planned runs, and a note if their run file is not trusted yet.

    Raises UsageError if an untrusted file names plug-ins. Nothing else in such a file is loaded or started.
    """
    from overtone.runs.settings import resolve

    flags, file = _given(args)
    note = "" if file is None or args.trust else untrusted(file, flags)
    if file is not None:
        _load_plugins(file, note)
    runs = resolve(flags, file, os.environ)
    for run in runs:
        _check(run, args, metrics=not note)
    return runs, note


def asked_of(args: argparse.Namespace) -> tuple[list[Settings], Path | None, int]:
    """Return the requested runs, the file of their report, if one is wanted, and how many runs may be asked at once.

    Loads the plug-ins of a trusted run file. Raises UsageError for an untrusted one that needs trust."""
    from overtone.runs.settings import report_file, resolve, runs_at_once

    flags, file = _given(args)
    if file is not None:
        if not args.trust and (note := untrusted(file, flags)):
            raise UsageError(note)
        _load_plugins(file)
    runs = resolve(flags, file, os.environ)
    for run in runs:
        _check(run, args)
    page = report_file(getattr(args, "report", None), file, os.environ)
    return runs, page, runs_at_once(getattr(args, "jobs", None), file, os.environ)


def untrusted(file: RunFile, flags: Mapping[str, Any]) -> str:
    """Return why a run file needs the user's trust, with the command that gives it; "" if it is trusted or needs
    none."""
    from overtone import trusted_files
    from overtone.paths import shown

    reasons = file.needs_trust(flags)
    problem = trusted_files.problem(file.path, file.sha256, file.code()) if reasons else ""
    if not problem:
        return ""
    would = shown("; ".join(reasons))
    command = shown(f"overtone trust {shlex.quote(str(file.path))}")
    return f"{problem}. It would: {would}. Read it, then run '{command}', or add --trust to allow it this time only"


def _given(args: argparse.Namespace) -> tuple[dict[str, Any], RunFile | None]:
    from overtone import registry
    from overtone.runs.settings import read_run_file

    flags = {k: v for k, v in vars(args).items() if k not in ("what", "trust")}
    is_name = args.what in registry.listing(
        "benchmarks"
    )  # a file of this name in the working directory must not replace a benchmark
    if args.what.endswith(".toml") or (Path(args.what).is_file() and not is_name):
        return flags, read_run_file(Path(args.what))
    return flags | {"benchmark": args.what}, None


def _load_plugins(file: RunFile, note: str = "") -> None:
    from overtone import registry

    if file.plugins and note:
        raise UsageError(note)
    for plugin in file.plugins:
        registry.load_plugin(plugin)


def _check(run: Settings, args: argparse.Namespace, metrics: bool = True) -> None:
    """Raise UsageError for an unknown name or option, before the first request."""
    from overtone import registry
    from overtone.runs.store import check_place
    from overtone.scoring import check, check_reader

    check_place(run.folder)
    registry.find("benchmarks", run.benchmark)
    registry.find("models", run.model.kind)
    check(run.metrics if metrics else (), run.judges, run.benchmark)
    check_reader(run.reader)
    wanted = run.model.options.get("trust_remote_code", "no").lower() not in ("no", "0", "false", "off")
    if wanted and not args.trust:  # the worker asks for OVERTONE_TRUST_REMOTE_CODE as well
        raise UsageError(f"{run.model}: running a checkpoint's own code needs --trust")
