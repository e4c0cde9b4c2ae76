"""Make one table of runs or of published results alone: for a terminal, or as Markdown, LaTeX or CSV."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, StoreError, UsageError

if TYPE_CHECKING:
    from overtone.report.table import PartTable

FORMATS = ("table", "markdown", "latex", "csv")
SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".txt": "table"}
ALONE = ("leaderboard", "published", "published-levels")  # have something to show without a run
LEVELS = "How far levels go together across the published models."


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which one; without it, all are named")
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="a run's folder; several stand in one table")
    parser.add_argument("--format", choices=FORMATS, help="(default: by FILE's ending .md, .tex, .csv or .txt)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="where to write it (the terminal)")
    add_choices(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.analysis.findings import FINDINGS
    from overtone.paths import shown
    from overtone.report.results import RESULTS
    from overtone.spec import suggest

    names = {**_listed(), "published-levels": LEVELS}
    if args.name is None:
        width = max(map(len, names))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in names.items()))
        return EXIT_OK
    if args.name not in names and Path(args.name).is_dir():
        raise UsageError(f"name the table before the runs: overtone table NAME {args.name} ({', '.join(names)})")
    if args.name not in names:
        raise UsageError(f"no table is called {args.name!r}{suggest(args.name, names)}; known: {', '.join(names)}")
    if args.output is not None and args.output.is_dir():
        raise UsageError(f"{args.output} is a folder; give the table a file name, e.g. -o {args.output}/table.md")
    form = _format(args)
    if not args.runs and args.name not in ALONE:
        raise UsageError(f"the table {args.name} is made of runs: overtone table {args.name} RUN …")
    if args.name in FINDINGS:
        tables, labels = _of_findings(args)
    elif args.name in RESULTS:
        tables, labels = _of_results(args)
    else:
        tables, labels = _of_paper(args)
    made = _write(tables, labels, form, args.output)
    if made is not None:
        print(shown(str(made)))
    return EXIT_OK


def _listed() -> dict[str, str]:
    from overtone.analysis.findings import FINDINGS
    from overtone.report.findings import about
    from overtone.report.results import RESULTS

    return {name: about(name) for name in FINDINGS} | {name: made.about for name, made in RESULTS.items()}


def _of_findings(args: argparse.Namespace) -> tuple[list[PartTable], list[str]]:
    from overtone.report import analyzed
    from overtone.report.findings import breakdowns, joined, tables_of
    from overtone.report.findings.advice import advice

    if args.by not in ("overall", "all", *breakdowns(args.name)):
        raise UsageError(f"{args.name} has no breakdown by {args.by}; it has {', '.join(breakdowns(args.name))}")
    readings, settings, told = read(args)
    found = analyzed.analyze(readings, [args.name], settings, told)
    tables = joined(table for one in found.findings for table in tables_of(one, args.by, settings))
    if not tables:
        lines = (line.rstrip(".") for one in found.findings for line in (*one.notes, *advice(one)))
        why = dict.fromkeys(lines)
        raise UsageError(f"these runs have nothing for the table {args.name}: {'; '.join(why)}")
    return tables, found.labels


def _of_results(args: argparse.Namespace) -> tuple[list[PartTable], list[str]]:
    from overtone.analysis.standing import of_source
    from overtone.report.html import run_labels
    from overtone.report.results import result_tables

    if args.by != "overall":
        raise UsageError(f"--by is of findings; {args.name} has no breakdown, but cues and tasks are tables by name")
    readings, settings, told = read(args)
    tables = result_tables(args.name, [of_source(reading, settings.source) for reading in readings[:told]])
    if not tables:
        raise UsageError(f"these runs have nothing for the table {args.name}; 'overtone score RUN' says what they have")
    return tables, run_labels(readings[:told])


def _of_paper(args: argparse.Namespace) -> tuple[list[PartTable], list[str]]:
    from overtone.analysis.levels import published_levels
    from overtone.report.findings.levels import level_tables

    if args.runs:
        raise UsageError(f"the table {args.name} is of the paper alone; for runs: overtone table levels RUN …")
    return level_tables(published_levels(), everything=args.by == "all"), []


def _format(args: argparse.Namespace) -> str:
    """The format that is asked for. Raises UsageError where the file's ending is unknown, or that of another format."""
    if args.output is None:
        return args.format or "table"
    by_ending = SUFFIXES.get(args.output.suffix.lower())
    if by_ending is None and args.format is None:
        raise UsageError(f"{args.output}: name a file that ends in {', '.join(SUFFIXES)}, or give --format")
    if by_ending not in (None, "table") and args.format not in (None, by_ending):
        raise UsageError(f"{args.output}: the ending is that of {by_ending}, but --format is {args.format}")
    return args.format or by_ending or "table"


def _write(tables: list[PartTable], labels: list[str], form: str, out: Path | None) -> Path | None:
    """Write tables to the file that was named, or to the terminal. Returns the file."""
    import io

    from overtone.paths import write_whole
    from overtone.report import written

    if form == "table":
        if out is None:
            written.to_terminal(written.make_console(), tables, labels, hints=True)
            return None
        page = io.StringIO()
        written.to_terminal(written.make_console(page), tables, labels, hints=True)
        text = page.getvalue().lstrip("\n")
    else:
        text = {"markdown": written.markdown, "latex": written.latex, "csv": written.csv_text}[form](tables, labels)
    if out is None:
        print(text, end="")
        return None
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}; choose another file with -o") from None
    return out
