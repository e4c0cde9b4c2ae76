"""Draw a picture of what runs found, ready to print: overtone figure NAME RUN... -o x.svg, .pdf or .png."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK, DataError, UsageError

if TYPE_CHECKING:
    from overtone.arena.standings import Standings
    from overtone.report.figures import Source

MOST = 64 * 1024 * 1024  # bytes of standings


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which picture; without it, all are named")
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="a run's folder; several stand together")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="a .svg, .pdf or .png file")
    parser.add_argument(
        "--width", metavar="MM", type=float, default=170.0, help="how wide: 170 is a page, 84 a column (170)"
    )
    parser.add_argument("--dpi", metavar="N", type=int, help="dots per inch of a .png (300)")
    parser.add_argument(
        "--label", metavar="TEXT", action="append", default=[],
        help="what a run is called in the picture, in the order of the runs; repeatable (its model)",
    )  # fmt: skip
    parser.add_argument(
        "--arena", metavar="DIR", type=Path, help="the folder of an arena, for the picture of that name"
    )
    add_choices(parser, by=False)


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.report import figures, printed

    known = figures.names()
    if args.name is None:
        width = max(map(len, known))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in known.items()))
        return EXIT_OK
    if args.name not in known and Path(args.name).is_dir():
        raise UsageError(f"name the picture before the runs: overtone figure NAME RUN... ({', '.join(known)})")
    name = figures.check_name(args.name)
    if args.output is None:
        raise UsageError(f"name the file to write with -o, e.g. -o {name}.svg")
    ending = printed.check(args.output)
    if args.dpi is not None and ending != ".png":
        raise UsageError(f"--dpi is of .png files; a {ending} file is sharp at any size")
    if not args.runs and args.arena is None:
        raise UsageError(f"name the runs to draw: overtone figure {name} RUN... -o {args.output}")
    drawing = figures.draw(name, _source(args), args.width * figures.MM)
    printed.save(drawing, args.output, dpi=printed.DPI if args.dpi is None else args.dpi)
    print(shown(str(args.output)))
    return EXIT_OK


def _source(args: argparse.Namespace) -> Source:
    from overtone.report.figures import Source
    from overtone.report.html import run_labels

    readings, settings, told = read(args)
    labels = args.label or run_labels(readings[:told])
    if len(labels) != told:
        raise UsageError(f"{len(labels)} labels for {told} runs: give --label once for each run, in their order")
    arena = _standings(args.arena) if args.arena else None
    return Source(readings[:told], labels, settings, arena, beside=readings[told:])


def _standings(folder: Path) -> Standings:
    """What `overtone arena --out DIR` wrote."""
    import msgspec

    from overtone.arena.standings import Standings
    from overtone.paths import read_plain

    path = folder / "standings.json"
    if not path.is_file():
        raise UsageError(f"{folder} holds no standings.json; make it with 'overtone arena RUN... --out {folder}'")
    try:
        return msgspec.json.decode(read_plain(path, MOST), type=Standings)
    except msgspec.DecodeError as error:
        raise DataError(f"{path} cannot be read: {error}; make it anew with 'overtone arena'") from None
