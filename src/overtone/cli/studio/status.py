"""Print the state of a study: progress, people, time, quality flags, lost sounds, agreement, differences."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK
from overtone.paths import shown
from overtone.text import count

if TYPE_CHECKING:
    from rich.table import Table

    from overtone.studio.overview import Overview

SUMMARY = "print progress, people, time per screen, quality flags, agreement and differences"
EXAMPLES = ("overtone studio status study.toml", "overtone studio status study.toml --json")
SHOWN = 40  # people


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def main(args: argparse.Namespace) -> int:
    """Print the state of a study."""
    from overtone.studio.labels.collect import collect
    from overtone.studio.overview import overview
    from overtone.studio.study_results import sentences, study_results

    study, store = _study.open_store(args)
    with store:
        store.check()
        found = overview(study, store)
        results = study_results(study, collect(study, store))
    if args.json:
        import msgspec

        both = {**msgspec.to_builtins(found), "results": msgspec.to_builtins(results)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(both)).decode() + "\n")
        return EXIT_OK
    from overtone.report.table_formats import make_console

    for line in summary(found):
        print(line)
    if found.people:
        make_console().print(_table(found))
    if len(found.people) > SHOWN:
        print(f"and {len(found.people) - SHOWN} more; --json lists all")
    for line in sentences(results):
        print(shown(line))
    return EXIT_OK


def summary(found: Overview) -> list[str]:
    """Return the counts in sentences."""
    status = found.status
    state = {"new": "not opened yet", "open": "open", "closed": "closed"}[status.state]
    share = f" ({status.answers / whole:.0%})" if (whole := status.answers + status.missing) else ""
    people = [f"{n} {name.replace('_', ' ')}" for name, n in status.people.items() if n]
    lines = [
        f"{shown(found.title)} ({found.design}): {state}",
        f"answers: {status.answers}{share}; {status.missing} more are wanted, {status.reserved} are reserved",
        f"people:  {', '.join(people) or 'none yet'}",
    ]
    if found.seconds is not None:
        minutes = f"; {found.minutes:g} min on screens per person" if found.minutes is not None else ""
        lines.append(f"time:    {found.seconds:g} s per screen{minutes} (medians)")
    if found.sessions:
        flags = ", ".join(f"{rule} {n}" for rule, n in sorted(found.flags.items()))
        named = f"; flags: {flags}" if flags else "; no flags"
        lines.append(
            f"quality: {count(found.sessions, 'session')}: {found.usable} usable, {found.payable} payable{named}"
        )
    for place, people in found.withdrawn_in.items():
        lines.append(f"withdrawn: {shown(place)} still contains {', '.join(people)}; delete these people there")
    for unit, reason in found.blocked.items():
        lines.append(f"left out: {shown(unit)}: {shown(reason)}")
    return lines


def _table(found: Overview) -> Table:
    from rich.table import Table

    table = Table("person", "role", "from", "state", "screens", "s each", "headphones", "usable", "payable", "flags")
    for row in found.people[:SHOWN]:
        table.add_row(
            row.label, row.role, row.source, row.state.replace("_", " "), str(row.done),
            "" if row.seconds is None else f"{row.seconds:g}", _yes(row.headphones), _yes(row.usable),
            _yes(row.payable), ", ".join(f"{rule} {n}" for rule, n in sorted(row.flags.items())),
        )  # fmt: skip
    return table


def _yes(value: bool | None) -> str:
    return {None: "", True: "yes", False: "no"}[value]
