"""Count what a run would ask and cost; takes the same words as `run` and spends nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from overtone.cli._options import add_run_flags, settings_of
from overtone.errors import EXIT_OK

if TYPE_CHECKING:
    from overtone.judges.policy import Judge
    from overtone.runs.plan import Plan
    from overtone.runs.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    add_run_flags(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.runs.plan import make_plan

    for settings in settings_of(args):
        print(_shown(settings, make_plan(settings)))
    return EXIT_OK


def _shown(settings: Settings, plan: Plan) -> str:
    from overtone.scoring import check

    tasks = ", ".join(f"{task} {count:,}" for task, count in plan.by_task.items())
    if plan.usd is None:
        price = "price not known; name a price file in OVERTONE_PRICES for an estimate"
    elif plan.price_date == "free":
        price = "runs here: no price"
    else:
        price = f"${plan.usd[0]:,.2f} to ${plan.usd[1]:,.2f} (prices of {plan.price_date})"
    lines = [
        f"{settings.benchmark} · {settings.model} → {settings.folder}",
        f"  items        {plan.items:,}",
        f"  requests     {plan.requests:,}" + (f" ({tasks})" if tasks else ""),
        f"  answered     {plan.already:,} before, not asked again",
        f"  audio        {plan.audio_seconds / 3600:.2f} h sent",
        f"  tokens in    {_range(plan.input_tokens)}",
        f"  tokens out   {_range(plan.output_tokens)}",
        f"  price        {price}",
        f"  time         {_time(plan.seconds[0])} to {_time(plan.seconds[1])} at {settings.max_connections} at once",
    ]
    lines += [_judged(judge, plan.by_task.get("converse", 0)) for judge in check((), settings.judges)]
    for name, budget, need in (
        ("--budget-requests", settings.budget_requests, plan.requests),
        ("--budget-usd", settings.budget_usd, plan.usd[0] if plan.usd else None),
    ):
        if budget is not None and need is not None and need > budget:
            lines.append(f"  {name} {budget:g} would stop this run before its end")
    return "\n".join([*lines, *(f"  warning: {w}" for w in plan.warnings)])


def _judged(judge: Judge, replies: int) -> str:
    """How often a judge will be asked at most: a rubric that is for some styles only is asked less."""
    from overtone.judges.rubric import load

    rubrics = [load(name) for name in judge.rubrics]
    calls = sum(len(r.dimensions) if judge.policy.calls == "apart" else 1 for r in rubrics if r.subject == "reply")
    most = replies * calls * judge.policy.repeats
    return f"  judge        {judge.label}: up to {most:,} requests ({', '.join(r.name for r in rubrics)})"


def _range(ends: tuple[float, float]) -> str:
    low, high = (f"{round(end):,}" for end in ends)
    return low if low == high else f"{low} to {high}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
