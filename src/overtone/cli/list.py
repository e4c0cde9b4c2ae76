"""List the plug-ins of each room, built-in or added, and the prompts."""

from __future__ import annotations

import argparse

from overtone.errors import EXIT_OK
from overtone.registry import PLUGIN_ROOMS, Entry

ROOMS = (*PLUGIN_ROOMS, "prompts")
EXAMPLES = ("overtone list metrics", "overtone list metrics --plugin my_metric.py")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("room", nargs="?", choices=ROOMS, metavar="ROOM", help=f"{', '.join(ROOMS)} (default: all)")


def main(args: argparse.Namespace) -> int:
    for room in [args.room] if args.room else ROOMS:
        entries = _entries(room)
        added = sum(bool(entry.origin) for entry in entries.values())
        print(f"{room} ({len(entries) - added} built in" + (f", {added} added)" if added else ")"))
        width = max(map(len, entries), default=0)
        for name, entry in entries.items():
            print(f"  {name:<{width}}  {entry.summary}" + (f" [from {entry.origin}]" if entry.origin else ""))
    return EXIT_OK


def _entries(room: str) -> dict[str, Entry]:
    from overtone import registry

    if room == "prompts":
        from overtone.tasks import VARIANTS

        return {name: Entry(line) for name, line in VARIANTS.items()}
    entries = registry.entries(room)
    if room == "figures":
        for name, finding in registry.entries("findings").items():  # built-in findings are not imported for this
            if not finding.origin or getattr(registry.find("findings", name).FINDING, "draw", None):
                entries[name] = finding
    return entries
