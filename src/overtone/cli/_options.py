"""The flags that `run` and `plan` share, and how they become settings."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import UsageError

if TYPE_CHECKING:
    from overtone.runs.settings import Settings


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
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N items")
    parser.add_argument("--out", metavar="RUN", help="the run's folder (runs/BENCHMARK-MODEL)")
    parser.add_argument("--max-connections", type=int, metavar="N", help="requests at once (16)")
    parser.add_argument("--budget-requests", type=int, metavar="N", help="stop after N requests")
    parser.add_argument("--budget-usd", type=float, metavar="X", help="stop when the replies have cost X dollars")
    parser.add_argument("--seed", type=int, metavar="N", help="sent to the model; repeat r is asked with N + r")
    parser.add_argument("--fsync", action="store_const", const=True, help="survive power loss too, more slowly")
    parser.add_argument(
        "--trust", action="store_true", help="allow a run file from elsewhere to run programs and use keys"
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


def settings_of(args: argparse.Namespace) -> list[Settings]:
    """The runs that the command line asks for."""
    return asked_of(args)[0]


def asked_of(args: argparse.Namespace) -> tuple[list[Settings], Path | None]:
    """The same, and where their report goes, if one is wanted. Plug-ins are taken in here, if they may be."""
    from overtone import registry
    from overtone.runs.settings import read_run_file, report_file, resolve
    from overtone.scoring import check, check_reader

    flags = {k: v for k, v in vars(args).items() if k not in ("what", "trust")}
    file = None
    if args.what.endswith(".toml") or Path(args.what).is_file():
        file = read_run_file(Path(args.what))
        elsewhere = not file.path.resolve().is_relative_to(Path.cwd().resolve())
        if elsewhere and not args.trust and (found := file.needs_trust()):
            raise UsageError(
                f"{file.path} lies outside the working directory and would {', '.join(found)}; "
                "read it, then give --trust"
            )
        names = [plugin.stem for plugin in file.plugins]
        for plugin in file.plugins:
            if names.count(plugin.stem) > 1:
                raise UsageError(f"{file.path}: two plug-ins are called {plugin.stem!r}; rename one of them")
            registry.load_plugin(plugin)
    else:
        flags["benchmark"] = args.what
    runs = resolve(flags, file, os.environ)
    for run in runs:
        registry.find("benchmarks", run.benchmark)
        registry.find("models", run.model.kind)
        check(run.metrics, run.judges)
        check_reader(run.reader)
        wanted = run.model.options.get("trust_remote_code", "no").lower() not in ("no", "0", "false", "off")
        if wanted and not args.trust:  # the worker asks for OVERTONE_TRUST_REMOTE_CODE as well
            raise UsageError(f"{run.model}: running a checkpoint's own code needs --trust")
    return runs, report_file(getattr(args, "report", None), file, os.environ)
