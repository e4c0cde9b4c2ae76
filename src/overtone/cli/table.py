"""Print or write one table of runs or of published results, as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, StoreError, UsageError

if TYPE_CHECKING:
    from overtone.display.table_data import PartTable

FORMATS = ("table", "markdown", "latex", "csv")
SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".txt": "table"}
PUBLISHED_LEVELS = {"published-levels": "How far levels go together across the published models."}
EXAMPLES = ("overtone table funnel runs/monday runs/friday -o funnel.tex", "overtone table published-levels")


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("name", metavar="NAME", nargs="?", help="name of the table; omit it to list all")
    flag("runs", metavar="RUN", nargs="*", type=Path, help="folder of a run; several share one table")
    flag("--format", choices=FORMATS, help="output format (default: by the ending of FILE: .md, .tex, .csv or .txt)")
    flag("-o", "--output", metavar="FILE", type=Path, help="output file (default: print to the terminal)")
    add_choices(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.report.named_tables import needs_runs, table_names
    from overtone.spec import suggest

    names = {**table_names(), **PUBLISHED_LEVELS}
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
    if args.name in PUBLISHED_LEVELS:
        tables, labels = _of_paper(args)
    elif not args.runs and needs_runs(args.name):
        raise UsageError(f"the table {args.name} needs runs: overtone table {args.name} RUN …")
    else:
        tables, labels = _of_runs(args)
    made = _write(tables, labels, form, args.output)
    if made is not None:
        print(shown(str(made)))
    return EXIT_OK


def _of_runs(args: argparse.Namespace) -> tuple[list[PartTable], list[str]]:
    from overtone.findings.lookup import known_findings
    from overtone.report.named_tables import named_tables
    from overtone.report.page import run_labels

    finding = known_findings().get(args.name)
    if finding is None and args.by != "overall":
        raise UsageError(
            f"--by applies to findings only; {args.name} has no breakdown. See also the tables cues and tasks"
        )
    if finding is not None and args.by not in ("overall", "all", *finding.breakdowns):
        raise UsageError(f"{args.name} has no breakdown by {args.by}; it has {', '.join(finding.breakdowns)}")
    readings, settings, shown = read(args)
    return named_tables(args.name, readings, args.by, settings, shown), run_labels(readings[:shown])


def _of_paper(args: argparse.Namespace) -> tuple[list[PartTable], list[str]]:
    from overtone.findings.levels.compute import published_levels
    from overtone.findings.levels.tables import level_tables

    if args.runs:
        raise UsageError(f"the table {args.name} covers published results only; for runs: overtone table levels RUN …")
    return level_tables(published_levels(), everything=args.by == "all"), []


def _format(args: argparse.Namespace) -> str:
    """Return the requested format. Raises UsageError if the file's ending is unknown or belongs to another format."""
    if args.output is None:
        return args.format or "table"
    by_ending = SUFFIXES.get(args.output.suffix.lower())
    if by_ending is None and args.format is None:
        raise UsageError(f"{args.output}: name a file that ends in {', '.join(SUFFIXES)}, or give --format")
    if by_ending not in (None, "table") and args.format not in (None, by_ending):
        raise UsageError(
            f"{args.output}: the file name ends like {by_ending}, but --format is {args.format}; change one of them"
        )
    return args.format or by_ending or "table"


def _write(tables: list[PartTable], labels: list[str], form: str, out: Path | None) -> Path | None:
    """Write tables to the named file, or print them. Return the file, or None."""
    import io

    from overtone.paths import write_whole
    from overtone.report import table_formats

    if form == "table":
        if out is None:
            table_formats.to_terminal(table_formats.make_console(), tables, labels, hints=True)
            return None
        page = io.StringIO()
        table_formats.to_terminal(table_formats.make_console(page), tables, labels, hints=True)
        text = page.getvalue().lstrip("\n")
    else:
        text = {"markdown": table_formats.markdown, "latex": table_formats.latex, "csv": table_formats.csv_text}[form](
            tables, labels
        )
    if out is None:
        print(text, end="")
        return None
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}; choose another file with -o") from None
    return out
