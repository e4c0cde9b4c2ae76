"""Trust a run file that runs code or uses a key, until it or the code it names changes; list or remove trust."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, EXIT_USAGE, UsageError

EXAMPLES = ("overtone trust evening.toml", "overtone trust --list")


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("files", metavar="FILE.toml", nargs="*", type=Path, help="run file that you have read")
    flag("--list", action="store_true", help="list the trusted files and whether they have changed")
    flag(
        "--remove",
        metavar="FILE.toml",
        type=Path,
        action="append",
        help="run file to remove from the trusted ones; repeatable",
    )


def main(args: argparse.Namespace) -> int:
    if sum(map(bool, (args.files, args.list, args.remove))) != 1:
        raise UsageError("name a run file, or give --list or --remove FILE.toml")
    if args.list:
        return _list()
    if args.remove:
        return _remove(args.remove)
    for path in args.files:
        _trust(path)
    return EXIT_OK


def _trust(path: Path) -> None:
    from overtone import trusted_files
    from overtone.paths import shown
    from overtone.runs.settings import read_run_file

    if path.suffix == ".py":
        raise UsageError(
            f"{path} is not a run file; trust the run file that names it, or name it yourself in OVERTONE_PLUGINS"
        )
    file = read_run_file(path)
    reasons = file.needs_trust()
    if not reasons:
        print(f"{shown(str(path))} needs no trust: it runs no code, uses no named key and writes only to its folder")
        return
    entry = trusted_files.remember(path, file.sha256, file.code())
    print(f"trusted: {shown(str(path.resolve()))}, which will")
    for reason in reasons:
        print(f"  {shown(reason)}")
    if entry.files:
        print("until it changes, or one of these does:")
        for name, digest in entry.files.items():
            print(f"  {digest[:12]}  {shown(name)}")


def _list() -> int:
    from overtone import trusted_files
    from overtone.paths import shown

    known = trusted_files.read()
    if not known:
        print(f"no trusted files ({shown(str(trusted_files.list_path()))})")
    for name, entry in sorted(known.items()):
        print(f"{trusted_files.state(name, entry):<9}  {shown(name)}")
    return EXIT_OK


def _remove(files: list[Path]) -> int:
    import sys

    from overtone import trusted_files
    from overtone.paths import shown

    code = EXIT_OK
    for path in files:
        if trusted_files.forget(path):
            print(f"no longer trusted: {shown(str(path.resolve()))}")
        else:
            print(f"overtone: {shown(str(path))} was not trusted; see 'overtone trust --list'", file=sys.stderr)
            code = EXIT_USAGE
    return code
