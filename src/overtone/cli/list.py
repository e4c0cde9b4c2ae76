"""List the benchmarks, models, metrics and prompts there are."""

from __future__ import annotations

import argparse

from overtone.errors import EXIT_OK

ROOMS = ("benchmarks", "models", "metrics", "prompts")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=ROOMS, help="only these (default: all)")


def main(args: argparse.Namespace) -> int:
    from overtone import registry

    for room in [args.what] if args.what else ROOMS:
        if room == "prompts":
            from overtone.tasks import variants

            rows = variants()
        else:
            rows = registry.listing(room)
        print(room)
        width = max(map(len, rows), default=0)
        for name, line in rows.items():
            print(f"  {name:<{width}}  {line}")
    return EXIT_OK
