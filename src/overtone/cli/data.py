"""Check a folder of clips before a run, or download the official release of a benchmark."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._run_flags import add_insecure_flag
from overtone.errors import EXIT_OK, EXIT_REQUIREMENT

if TYPE_CHECKING:
    from overtone.audio import Finding

_SHOWN = 20  # details per kind of finding; --json gives all
EXAMPLES = (
    "overtone data check clips",
    "overtone data check clips --rebuild --part 20",
    "overtone data fetch echomind --out data/echomind",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the two subcommands and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="list broken, silent, missing, changed, duplicate or unlabelled clips")
    check.add_argument(
        "folder", metavar="DIR", type=Path, help="folder of audio files, or the data folder of a benchmark"
    )
    check.add_argument("--json", action="store_true", help="print every finding as JSON")
    flag = check.add_argument_group("reproducibility").add_argument
    flag(
        "--rebuild", metavar="DIR2", nargs="?", const="", type=str,
        help="compare the measurements of a built set with its rebuild in DIR2 (default: rebuild it now)",
    )  # fmt: skip
    flag("--part", metavar="N", type=int, help="rebuild only N scripts, evenly spread")
    flag("--scripts", metavar="FILE", help="your own scripts, if the set was built from them; used by --rebuild")
    fetch = actions.add_parser("fetch", help="download the official release of a benchmark; resumes and verifies")
    fetch.add_argument("benchmark", metavar="BENCHMARK", help="name of the benchmark, e.g. echomind")
    flag = fetch.add_argument_group("download").add_argument
    flag("--out", metavar="DIR", type=Path, help="output folder (default: data/BENCHMARK)")
    flag("--revision", metavar="REV", default="", help="branch, tag or commit (default: the newest)")
    flag("--accept", action="store_true", help="accept the licence, which is printed first")
    for action in (check, fetch):
        add_insecure_flag(action)


def main(args: argparse.Namespace) -> int:
    """Run the chosen subcommand."""
    if args.action == "fetch":
        return _fetch(args)
    if args.rebuild is not None:
        return _rebuild(args)
    return _check(args.folder, args.json)


def _check(folder: Path, as_json: bool) -> int:
    from overtone.audio import check_folder

    findings = [*check_folder(folder), *_language_findings(folder)]
    if as_json:
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(findings)).decode()
        print(re.sub(r"[^\n -~]", _escaped, text))
    else:
        _print_findings(folder, findings)
    return EXIT_REQUIREMENT if any(f.severity == "error" for f in findings) else EXIT_OK


def _language_findings(folder: Path) -> list[Finding]:
    """Return warnings if texts of a benchmark do not seem to be in the language that they are scored in."""
    from overtone import registry
    from overtone.audio import Finding
    from overtone.benchmarks import Selection, layouts
    from overtone.errors import DataError
    from overtone.languages import LanguageCheck
    from overtone.runs.session import texts_of

    if not (name := layouts.benchmark_of(folder)):
        return []
    check = LanguageCheck()
    try:
        benchmark = registry.find("benchmarks", name).load(folder)
        for item in benchmark.items(Selection()):
            check.add(item.id, item.language, texts_of(item))
    except DataError:  # `overtone run` reports it; this command checks the audio
        return []
    return [Finding("warning", "language", ".", line) for line in check.warnings()]


def _rebuild(args: argparse.Namespace) -> int:
    import tempfile

    from overtone.build.rebuild import TOLERANCES, compare, rebuild_and_compare
    from overtone.cli.build._options import progress
    from overtone.paths import shown
    from overtone.processes import usable_cores

    jobs = usable_cores()
    if args.rebuild:
        differences = compare(args.folder, Path(args.rebuild), jobs=jobs, progress=progress())
    else:
        with tempfile.TemporaryDirectory(prefix="overtone-") as tmp:
            differences = rebuild_and_compare(
                args.folder, args.part, Path(tmp), scripts=args.scripts, jobs=jobs, progress=progress()
            )
    for finding in differences[:_SHOWN]:
        print(f"{shown(finding.subject)}: {shown(finding.reason)}")
    if len(differences) > _SHOWN:
        print(f"and {len(differences) - _SHOWN} more")
    if not differences:
        within = ", ".join(f"{name} {t.most:g} {t.unit}" for name, t in TOLERANCES.items())
        print(f"{shown(str(args.folder))}: the rebuild is the same set, within {within}")
    return EXIT_REQUIREMENT if differences else EXIT_OK


def _escaped(match: re.Match[str]) -> str:
    """Return an unprintable character as a JSON escape, so that it cannot control a terminal."""
    units = match[0].encode("utf-16-be").hex(" ", 2).split()
    return match[0] if match[0].isprintable() else "".join(f"\\u{unit}" for unit in units)


def _print_findings(folder: Path, findings: list[Finding]) -> None:
    """Print the counts, then the details: a coloured table on a terminal, plain lines elsewhere.

    Names come from files, so they are made printable and never interpreted as markup.
    """
    from overtone.paths import shown

    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.severity, finding.code), []).append(finding)
    say = _counted(kinds)
    if not findings:
        say(f"{shown(str(folder))}: nothing to report", "")
    for (severity, code), members in kinds.items():
        say(f"\n{severity}: {code}", _COLOURS[severity])
        for finding in members[:_SHOWN]:
            say(f"  {shown(finding.path)}: {shown(finding.text)}", "")
        if len(members) > _SHOWN:
            say(f"  and {len(members) - _SHOWN} more; --json lists all", "")


def _counted(kinds: dict[tuple[str, str], list[Finding]]) -> Callable[[str, str], None]:
    """Print the number of findings of each kind. Return a function that prints a further line in the same style."""
    if not sys.stdout.isatty():
        for (severity, code), members in kinds.items():
            print(f"{severity:<8} {code:<18} {len(members):>6}")
        return lambda line, style: print(line)
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    table = Table("severity", "finding", "files")
    for (severity, code), members in kinds.items():
        table.add_row(severity, code, str(len(members)), style=_COLOURS[severity])
    if kinds:
        console.print(table)
    return lambda line, style: console.print(line, style=style or None)


_COLOURS = {"error": "red", "warning": "yellow", "info": "dim"}


def _fetch(args: argparse.Namespace) -> int:
    from overtone.benchmarks.fetch import fetch, release_of, terms_of
    from overtone.paths import shown

    _agreed(terms_of(release_of(args.benchmark)), args.accept)
    out = args.out or Path("data") / args.benchmark
    last = -1

    def progress(done: int, total: int) -> None:
        nonlocal last
        percent = done * 100 // total if total else 100
        if percent // 5 != last // 5:
            last = percent
            print(f"{percent:3d} %  {done / 1e6:.1f} of {total / 1e6:.1f} MB", file=sys.stderr, flush=True)

    result = fetch(args.benchmark, out, revision=args.revision, progress=progress)
    print(f"{result.files} files in {shown(str(out))}, {result.new_files} of them new.")
    print(f"Next: overtone data check {shown(str(out))}")
    return EXIT_OK


def _agreed(terms: str, accepted: bool) -> None:
    """Print the terms and ask for agreement. Raises UsageError if they are not accepted."""
    from overtone.errors import UsageError

    print(f"Licence\n{terms}", flush=True)
    if accepted:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"the licence must be accepted before the download; add --accept ({terms})")
    if input("Do you accept it? Type yes: ").strip().casefold() not in ("yes", "y"):
        raise UsageError("the licence was not accepted; nothing was downloaded")
