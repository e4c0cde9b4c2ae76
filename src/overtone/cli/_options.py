"""The flags that `run` and `plan` share, and how they become settings."""

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
    """`optional`: what is run may be left out."""
    times = "?" if optional else None
    parser.add_argument("what", metavar="BENCHMARK|FILE.toml", nargs=times, help="a benchmark's name, or a run file")
    parser.add_argument("--data", metavar="DIR", help="the benchmark's files")
    parser.add_argument(
        "--model", metavar="SPEC", action="append", help="kind:name?key=value, e.g. cascade; repeatable"
    )
    add_score_flags(parser)
    parser.add_argument("--levels", metavar="1,2,3", help="1 understanding, 2 reasoning, 3 conversation (all)")
    parser.add_argument(
        "--prompt", metavar="NAMES", help="zero, basic, enhance, oracle, oracle-false, warm, plain or all (enhance)"
    )
    parser.add_argument("--styles", metavar="NAMES", help="target, alternative, neutral, control (all)")
    parser.add_argument(
        "--parts", metavar="NAMES", help="core, control, false-cue, conflict, dialogue, fixed: what the set has (all)"
    )
    parser.add_argument(
        "--input", metavar="NAMES", help="audio, transcript, both, silence, alone, context, recognised (audio)"
    )
    parser.add_argument("--asr", choices=("target", "all"), help="which clips are transcribed (target)")
    parser.add_argument("--repeats", type=int, metavar="N", help="ask everything N times (1)")
    parser.add_argument("--limit", type=int, metavar="N", help="only N items, spread over levels, tasks and cues")
    parser.add_argument("--out", metavar="RUN", help="the run's folder (runs/BENCHMARK-MODEL)")
    parser.add_argument("--max-connections", type=int, metavar="N", help="requests at once (16)")
    parser.add_argument("--budget-requests", type=int, metavar="N", help="stop after N requests")
    parser.add_argument("--budget-usd", type=float, metavar="X", help="stop when the replies have cost X dollars")
    parser.add_argument(
        "--wait", type=float, metavar="SECONDS", help="time to wait for a server that is still loading (default: 0)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        help="pause for a server that goes away during the run, at most this long (default: 600)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="sent to the model; repeat r is asked with N + r")
    parser.add_argument("--fsync", action="store_const", const=True, help="survive a loss of power too (slower)")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let the run file run code and use keys this time; 'overtone trust FILE.toml' remembers it",
    )


def add_score_flags(parser: argparse.ArgumentParser) -> None:
    """What `run` and `score` are told about scoring."""
    parser.add_argument(
        "--metric", metavar="NAME", action="append", help="score this too, e.g. nisqa or emoalign; repeatable"
    )
    parser.add_argument(
        "--judge", metavar="SPEC", action="append", help="have a model judge the replies, e.g. openai:NAME; repeatable"
    )
    parser.add_argument(
        "--reader", metavar="SPEC", help="have a model read the multiple-choice answers that the rules cannot read"
    )
    add_insecure_flag(parser)


def add_insecure_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--insecure", action="store_true", help="allow keys to be sent to other machines over plain http (default: no)"
    )


def planned_of(args: argparse.Namespace) -> tuple[list[Settings], str]:
    """The runs that the command line would make, and a note where their run file is not trusted yet.

    Plug-ins of such a file are refused. Nothing else that it names is loaded or started: a plan needs none of it.
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


def asked_of(args: argparse.Namespace) -> tuple[list[Settings], Path | None]:
    """The runs that the command line asks for, and where their report goes, if one is wanted. Plug-ins are loaded here,
    if they may be."""
    from overtone.runs.settings import report_file, resolve

    flags, file = _given(args)
    if file is not None:
        if not args.trust and (note := untrusted(file, flags)):
            raise UsageError(note)
        _load_plugins(file)
    runs = resolve(flags, file, os.environ)
    for run in runs:
        _check(run, args)
    return runs, report_file(getattr(args, "report", None), file, os.environ)


def untrusted(file: RunFile, flags: Mapping[str, Any]) -> str:
    """Why a run file may not do what it asks for, and the command that allows it; "" where it may."""
    from overtone import trust
    from overtone.paths import shown

    reasons = file.needs_trust(flags)
    problem = trust.problem(file.path, file.sha256, file.code()) if reasons else ""
    if not problem:
        return ""
    would = shown("; ".join(reasons))
    command = shown(f"overtone trust {shlex.quote(str(file.path))}")
    return f"{problem}. It would: {would}. Read it, then run '{command}', or give --trust for this time only"


def _given(args: argparse.Namespace) -> tuple[dict[str, Any], RunFile | None]:
    from overtone import registry
    from overtone.runs.settings import read_run_file

    flags = {k: v for k, v in vars(args).items() if k not in ("what", "trust")}
    is_name = args.what in registry.builtins("benchmarks")  # a file here cannot stand in for a benchmark
    if args.what.endswith(".toml") or (Path(args.what).is_file() and not is_name):
        return flags, read_run_file(Path(args.what))
    return flags | {"benchmark": args.what}, None


def _load_plugins(file: RunFile, note: str = "") -> None:
    from overtone import registry

    if file.plugins and note:
        raise UsageError(note)
    names = [plugin.stem for plugin in file.plugins]
    for plugin in file.plugins:
        if names.count(plugin.stem) > 1:
            raise UsageError(f"{file.path}: two plug-ins are called {plugin.stem!r}; rename one of them")
        registry.load_plugin(plugin)


def _check(run: Settings, args: argparse.Namespace, metrics: bool = True) -> None:
    """Raise UsageError for a name or option that does not exist, before anything is asked."""
    from overtone import registry
    from overtone.runs.store import check_place
    from overtone.scoring import check, check_reader

    check_place(run.folder)
    registry.find("benchmarks", run.benchmark)
    registry.find("models", run.model.kind)
    check(run.metrics if metrics else (), run.judges)
    check_reader(run.reader)
    wanted = run.model.options.get("trust_remote_code", "no").lower() not in ("no", "0", "false", "off")
    if wanted and not args.trust:  # the worker asks for OVERTONE_TRUST_REMOTE_CODE as well
        raise UsageError(f"{run.model}: running a checkpoint's own code needs --trust")
