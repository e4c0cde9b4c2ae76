"""Draw a figure of a finding, ready to print, as .svg, .pdf or .png."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, StoreError, UsageError

if TYPE_CHECKING:
    from overtone.display.drawing import Drawing
    from overtone.findings.figure_source import FigureSource

EXAMPLES = (
    "overtone figure funnel runs/monday runs/friday -o funnel.svg",
    "overtone figure levels runs/* -o levels.pdf --bare --caption levels.tex --font serif --width 84mm",
)
UNITS = {"": 1.0, "mm": 1.0, "cm": 10.0, "in": 25.4}  # in mm


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the figure; omit it to list all")
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="folder of a run; several are drawn together")
    flag = parser.add_argument_group("output").add_argument
    flag("-o", "--output", metavar="FILE", type=Path, help="output file (.svg, .pdf or .png)")
    flag(
        "--caption", metavar="FILE.tex", type=Path,
        help="file for the figure's title, hint and notes as a LaTeX caption (default: none)",
    )  # fmt: skip
    flag("--dpi", metavar="N", type=int, help="resolution of a .png in dots per inch (default: 300)")
    flag = parser.add_argument_group("look").add_argument
    flag(
        "--width", metavar="W", default="170mm",
        help="width in mm, cm or in: 170mm fits a page, 84mm a column (default: 170mm)",
    )  # fmt: skip
    flag("--bare", action="store_true", help="leave out title, hint, notes and signature, for a paper with a caption")
    flag("--font", choices=("sans", "serif"), default="sans", help="font (default: sans)")
    flag(
        "--label", metavar="TEXT", action="append", default=[],
        help="label of a run, in the order of the runs; repeatable (default: its model)",
    )  # fmt: skip
    add_choices(parser, by=False)
    flag = parser.add_argument_group("arena").add_argument
    flag("--arena", metavar="DIR", type=Path, help="folder of an arena, for the figure 'arena'")


def main(args: argparse.Namespace) -> int:
    from overtone import figures
    from overtone.display import figure_files
    from overtone.display.drawing import bare
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
    wide = parse_width(args.width)
    if args.caption is not None and args.caption.suffix.lower() != ".tex":
        raise UsageError(f"--caption {args.caption}: name a file that ends in .tex")
    drawing = figures.draw(name, _source(args), wide * figures.MM)
    drawing.font = args.font
    if args.caption is not None:
        _write_caption(drawing, name, args.caption)
    figure_files.save(
        bare(drawing) if args.bare else drawing,
        args.output,
        dpi=figure_files.DPI if args.dpi is None else args.dpi,
    )
    print(shown(str(args.output)))
    return EXIT_OK


def parse_width(text: str) -> float:
    """Return a width in mm from `84`, `84mm`, `8.4cm` or `3.3in`. Raises UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([a-z]*)", text.strip().lower())
    if match is None or match[2] not in UNITS:
        raise UsageError(f"--width {text}: give 70 to 1000 mm, as a number with mm, cm or in, e.g. 84mm or 3.3in")
    return float(match[1]) * UNITS[match[2]]


def _write_caption(drawing: Drawing, name: str, out: Path) -> None:
    """Write title, hint and notes as a LaTeX caption with a label, and the signature as a comment."""
    from overtone.paths import shown, write_whole
    from overtone.report.latex_tables import CHARACTER, breakable

    title = drawing.title if drawing.title.endswith((".", "?", "!")) else f"{drawing.title}."
    text = breakable(" ".join(filter(None, (title, drawing.hint, *drawing.notes))))
    lines = [f"\\caption{{{text}}}", f"\\label{{fig:{name}}}", f"% {shown(drawing.signature)}", ""]
    first = CHARACTER if r"\overtonechar" in text else ""
    try:
        write_whole(out, (first + "\n".join(lines)).encode())
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}; choose another file with --caption") from None


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
