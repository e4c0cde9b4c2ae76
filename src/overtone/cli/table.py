"""Print or write one table of runs or of published results, as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, StoreError, UsageError

if TYPE_CHECKING:
    from overtone.display.table_data import PartTable

FORMATS = ("table", "markdown", "latex", "csv")
SUFFIXES = {".md": "markdown", ".tex": "latex", ".csv": "csv", ".txt": "table"}
PUBLISHED_LEVELS = {"published-levels": "How far levels go together across the published models."}
EXAMPLES = (
    "overtone table headline runs/* --part main --compact --bold-best -o main.tex",
    "overtone table funnel runs/monday runs/friday -o funnel.md",
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the table; omit it to list all")
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="folder of a run; several share one table")
    flag = parser.add_argument_group("output").add_argument
    flag("--format", choices=FORMATS, help="output format (default: by the ending of FILE: .md, .tex, .csv or .txt)")
    flag("-o", "--output", metavar="FILE", type=Path, help="output file (default: print to the terminal)")
    flag = parser.add_argument_group("shape").add_argument
    flag(
        "--part", metavar="KEY", action="append", default=[],
        help="one of several tables under a name, e.g. main or rq1 of headline; repeatable (default: all)",
    )  # fmt: skip
    flag("--columns", metavar="A,B,…", default="", help="columns to keep, by their heads, in this order (default: all)")
    flag("--compact", action="store_true", help="write value ± half the width of the interval, and n in the caption")
    flag("--bold-best", action="store_true", help="set the best value of each column with an arrow in bold")
    flag("--caption", metavar="TEXT", default="", help="caption of a LaTeX table, as LaTeX (default: title and hint)")
    flag("--label", metavar="NAME", default="", help="label of a LaTeX table (default: tab: and the table's key)")
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
    _check_shape(args, form)
    if args.name in PUBLISHED_LEVELS:
        tables, labels = _of_paper(args)
    elif not args.runs and needs_runs(args.name):
        raise UsageError(f"the table {args.name} needs runs: overtone table {args.name} RUN …")
    else:
        tables, labels = _of_runs(args)
    tables = _shaped(args, tables)
    made = _write(args, tables, labels, form)
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
    if by_ending is None:
        known = "an unknown ending" if args.output.suffix else "no ending"
        raise UsageError(f"{args.output} has {known}; name a file that ends in {', '.join(SUFFIXES)}")
    if by_ending != "table" and args.format not in (None, by_ending):
        raise UsageError(
            f"{args.output}: the file name ends like {by_ending}, but --format is {args.format}; change one of them"
        )
    return args.format or by_ending


def _check_shape(args: argparse.Namespace, form: str) -> None:
    """Raise UsageError for flags that the format does not have."""
    for flag, given in (("--caption", args.caption), ("--label", args.label)):
        if given and form != "latex":
            raise UsageError(f"{flag} applies to LaTeX; write to a .tex file or give --format latex")
    for flag, given in (("--compact", args.compact), ("--bold-best", args.bold_best)):
        if given and form == "csv":
            raise UsageError(f"{flag} does not apply to CSV, which has every number, interval and n in full")
    if args.label and not re.fullmatch(r"[A-Za-z0-9:._/+-]+", args.label):
        raise UsageError(f"--label {args.label}: use letters, digits and : . _ / + - only, e.g. tab:main")
    if args.caption.replace(r"\{", "").count("{") != args.caption.replace(r"\}", "").count("}"):
        raise UsageError("--caption: the braces are not balanced; the caption is LaTeX, so write % as \\%")


def _shaped(args: argparse.Namespace, tables: list[PartTable]) -> list[PartTable]:
    """Return the tables and columns that the user asked for."""
    from overtone.report.table_choices import chosen_columns, chosen_parts, part_name

    tables = chosen_parts(tables, args.part)
    if args.columns:
        tables = chosen_columns(tables, [name.strip() for name in args.columns.split(",") if name.strip()])
    if (args.caption or args.label) and len(tables) > 1:
        flag = "--caption" if args.caption else "--label"
        parts = ", ".join(part_name(table) for table in tables)
        raise UsageError(f"{flag} is for one table, and these are {len(tables)}; choose one with --part: {parts}")
    return tables


def _write(args: argparse.Namespace, tables: list[PartTable], labels: list[str], form: str) -> Path | None:
    """Write tables to the named file, or print them. Return the file, or None."""
    import io

    from overtone.display.grid import Look
    from overtone.paths import write_whole
    from overtone.report import table_formats
    from overtone.report.latex_tables import latex

    out: Path | None = args.output
    look = Look(args.compact, args.bold_best)
    if form == "table":
        if out is None:
            table_formats.to_terminal(table_formats.make_console(), tables, labels, hints=True, look=look)
            return None
        page = io.StringIO()
        table_formats.to_terminal(table_formats.make_console(page), tables, labels, hints=True, look=look)
        text = page.getvalue().lstrip("\n")
    elif form == "latex":
        text = latex(tables, labels, look=look, caption=args.caption, label=args.label)
    elif form == "markdown":
        text = table_formats.markdown(tables, labels, look=look)
    else:
        text = table_formats.csv_text(tables, labels)
    if out is None:
        print(text, end="")
        return None
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}; choose another file with -o") from None
    return out
