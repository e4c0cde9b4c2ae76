"""Draw a figure of a finding, ready to print, as .svg, .pdf or .png."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.findings.figure_source import FigureSource

EXAMPLES = ("overtone figure funnel runs/monday runs/friday -o funnel.svg",)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("name", metavar="NAME", nargs="?", help="name of the figure; omit it to list all")
    flag("runs", metavar="RUN", nargs="*", type=Path, help="folder of a run; several are drawn together")
    flag("-o", "--output", metavar="FILE", type=Path, help="output file (.svg, .pdf or .png)")
    flag(
        "--width",
        metavar="MM",
        type=float,
        default=170.0,
        help="width in mm: 170 fits a page, 84 a column (default: 170)",
    )
    flag("--dpi", metavar="N", type=int, help="resolution of a .png in dots per inch (default: 300)")
    flag(
        "--label", metavar="TEXT", action="append", default=[],
        help="label of a run, in the order of the runs; repeatable (default: its model)",
    )  # fmt: skip
    flag("--arena", metavar="DIR", type=Path, help="folder of an arena, for the figure 'arena'")
    add_choices(parser, by=False)


def main(args: argparse.Namespace) -> int:
    from overtone import figures
    from overtone.display import figure_files
    from overtone.paths import shown

    known = figures.names()
    if args.name is None:
        width = max(map(len, known))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in known.items()))
        return EXIT_OK
    if args.name not in known and Path(args.name).is_dir():
        raise UsageError(f"name the figure before the runs: overtone figure NAME RUN... ({', '.join(known)})")
    name = figures.check_name(args.name)
    if args.output is None:
        raise UsageError(f"name the file to write with -o, e.g. -o {name}.svg")
    ending = figure_files.check(args.output)
    if args.dpi is not None and ending != ".png":
        raise UsageError(f"--dpi applies to .png files only; remove it, a {ending} file is sharp at any size")
    if not args.runs and args.arena is None:
        raise UsageError(f"name the runs to draw: overtone figure {name} RUN... -o {args.output}")
    drawing = figures.draw(name, _source(args), args.width * figures.MM)
    figure_files.save(drawing, args.output, dpi=figure_files.DPI if args.dpi is None else args.dpi)
    print(shown(str(args.output)))
    return EXIT_OK


def _source(args: argparse.Namespace) -> FigureSource:
    from overtone.findings.figure_source import FigureSource
    from overtone.report.arena_page import read_standings
    from overtone.report.page import run_labels

    readings, settings, shown = read(args)
    labels = args.label or run_labels(readings[:shown])
    if len(labels) != shown:
        raise UsageError(f"{len(labels)} labels for {shown} runs: give --label once for each run, in their order")
    arena = read_standings(args.arena) if args.arena else None
    return FigureSource(readings[:shown], labels, settings, arena, beside=readings[shown:])
