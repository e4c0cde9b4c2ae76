"""Estimate the requests and cost of a run, or the number of scripts that a difference needs. Sends nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._run_flags import add_run_flags, planned_of
from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.judges.policy import Judge
    from overtone.results.sample_size import Need
    from overtone.runs.cost_plan import Plan
    from overtone.runs.settings import Settings
    from overtone.schema import Item
    from overtone.spec import Spec

EXAMPLES = (
    "overtone plan echomind --data data/echomind --model openai:gpt-4o-audio-preview",
    "overtone plan echomind --data data/echomind --detect 3%",
)


def add(parser: argparse.ArgumentParser) -> None:
    add_run_flags(parser, optional=True)
    flag = parser.add_argument_group("sample size").add_argument
    flag(
        "--detect",
        metavar="X",
        help="compute how many scripts are needed to detect a difference X between two models; X is a share of the "
        "scale, 3%% or 0.03",
    )
    flag("--power", type=float, metavar="P", help="probability of detecting that difference (default: 0.8)")
    flag(
        "--from",
        dest="stored",
        type=Path,
        action="append",
        metavar="RUN",
        help="run from which --detect estimates rates and spread; give two runs to also estimate how they differ",
    )


def main(args: argparse.Namespace) -> int:
    from overtone.runs.cost_plan import make_plan

    if args.detect is not None:
        return _detect(args)
    if args.power is not None or args.stored:
        raise UsageError("--power and --from only apply to --detect; add --detect X")
    if args.what is None:
        raise UsageError("name a benchmark or a run file, e.g. 'overtone plan echomind …', or give --detect X")
    runs, note = planned_of(args)
    for settings in runs:
        print(_shown(settings, make_plan(settings)))
    if note:
        print(f"not trusted: {note}")
    return EXIT_OK


def _shown(settings: Settings, plan: Plan) -> str:
    from overtone.scoring import check, check_reader

    tasks = ", ".join(f"{task} {count:,}" for task, count in plan.by_task.items())
    if plan.usd is None:
        price = "price unknown; name a price file in OVERTONE_PRICES for an estimate"
    elif plan.price_date == "free":
        price = "free (runs on this machine)"
    else:
        price = f"${plan.usd[0]:,.2f} to ${plan.usd[1]:,.2f} (prices of {plan.price_date})"
    lines = [
        f"{settings.benchmark} · {settings.model} → {settings.folder}",
        *([f"  runs on      {settings.ray.line}"] if settings.ray else []),
        f"  items        {plan.items:,}",
        f"  requests     {plan.requests:,}" + (f" ({tasks})" if tasks else ""),
        f"  answered     {plan.already:,} before; not asked again",
        f"  audio        {plan.audio_seconds / 3600:.2f} h; clips are {plan.clips}",
        f"  tokens in    {_range(plan.input_tokens)}",
        f"  tokens out   {_range(plan.output_tokens)}",
        f"  price        {price}",
        f"  time         {_time(plan.seconds[0])} to {_time(plan.seconds[1])} at {settings.max_connections} at once",
    ]
    if reader := check_reader(settings.reader):
        lines.append(_read(reader, plan.by_task))
    judges = check((), settings.judges)
    lines += [_judged(judge, plan.by_task, settings.benchmark) for judge in judges]
    for name, budget, need in (
        ("--budget-requests", settings.budget_requests, plan.requests),
        ("--budget-usd", settings.budget_usd, plan.usd[0] if plan.usd else None),
    ):
        if budget is not None and need is not None and need > budget:
            lines.append(f"  {name} {budget:g} would stop this run early")
    refusals = _refusals([settings.model, *(one.spec for one in (*judges, *([reader] if reader else ())))])
    return "\n".join([*lines, *(f"  warning: {w}" for w in (*plan.warnings, *refusals))])


def _refusals(specs: Sequence[Spec]) -> list[str]:
    """Return the reasons why `overtone run` would not start: a key is missing, or must not be sent to the SPEC's
    URL."""
    from overtone.runs.session import check_key

    refusals = []
    for spec in specs:
        try:
            check_key(spec)
        except UsageError as error:
            refusals.append(f"'overtone run' would refuse to start: {error}")
    return refusals


def _read(reader: Judge, replies: Mapping[str, int]) -> str:
    """Return a line with the largest possible number of requests to a reader. The rules read most answers without
    it."""
    from overtone.judges.choice_reader import kept_check, known_replies

    first = 0 if kept_check(reader) else len(known_replies()) * reader.policy.repeats
    most = replies.get("choose", 0) * reader.policy.repeats
    return f"  reader       {reader.label}: up to {most:,} requests" + (f" and {first} to check it" if first else "")


def _judged(judge: Judge, replies: Mapping[str, int], benchmark: str) -> str:
    """Return a line with the largest possible number of requests to a judge. A rubric that applies to few styles needs
    fewer."""
    from overtone.judges.judge_run import with_own_rubrics
    from overtone.judges.rubric import load
    from overtone.suite import find_suite

    rubrics = [load(name) for name in with_own_rubrics(judge, find_suite(benchmark)).rubrics]
    most = 0
    for one in rubrics:
        calls = len(one.dimensions) if judge.policy.calls == "apart" else 1
        orders = 2 if one.subject == "pair" and judge.policy.swap else 1
        most += sum(replies.get(task, 0) for task in one.tasks) * calls * orders * judge.policy.repeats
    return f"  judge        {judge.label}: up to {most:,} requests ({', '.join(r.name for r in rubrics)})"


def _range(ends: tuple[float, float]) -> str:
    low, high = (f"{round(end):,}" for end in ends)
    return low if low == high else f"{low} to {high}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ── sample size ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _detect(args: argparse.Namespace) -> int:
    from overtone.results.load import open_run
    from overtone.results.requirements import parse_share
    from overtone.results.sample_size import POWER, needs

    part = parse_share(args.detect, "--detect")
    power = POWER if args.power is None else args.power
    readings = [open_run(folder, light=True) for folder in args.stored or ()]
    items = _items(args) if args.what is not None else None
    needed = needs(part, power, readings, items)
    print(_needed(needed, part, power, bool(items or readings)))
    return EXIT_OK


def _items(args: argparse.Namespace) -> list[Item]:
    """Return the items that the benchmark would ask any model."""
    from overtone.runs.session import load_benchmark, planned

    if args.model is None and not args.what.endswith(".toml"):
        args.model = ["cascade"]  # any model: it is not asked
    settings = planned_of(args)[0][0]
    return [item for item, _ in planned(settings, load_benchmark(settings))]


def _needed(needs: list[Need], part: float, power: float, known: bool) -> str:
    from overtone.paths import shown
    from overtone.results.sample_size import amount

    rows = [["", "difference", "scripts", "items", *(["available", "these detect"] if known else []), "source"]]
    for need in needs:
        have = f"{need.have:,} {'✓' if need.have >= need.scripts else '✗'}"
        finds = "–" if need.finds is None else amount(need, need.finds)
        row = [shown(need.label), amount(need, need.difference), f"{need.scripts:,}", f"{need.items:,}"]
        rows.append([*row, *([have, finds] if known else []), need.basis])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [f"To detect a difference of {part:g} of the scale between two models, with power {power:g}:"]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:-1], strict=True)), row[-1]]
        lines.append("  " + "  ".join(cells).rstrip())
    how = "both models are asked each item once; two-sided paired test at the 5 % level, clustered by script"
    return "\n".join(
        [
            *lines,
            how
            + ("" if known else "; one item per script: name a benchmark or --from RUN to use its numbers of items"),
        ]
    )
