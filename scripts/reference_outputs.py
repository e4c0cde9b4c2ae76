"""Write everything that stored runs give, and compare it with what another version of the code gave.

    python scripts/reference_outputs.py make RUNS OUT [--quick] [--old-names]
    python scripts/reference_outputs.py compare BEFORE AFTER [--all]

`make` copies the runs to OUT/runs, calls the command line for each entry of COMMANDS and keeps files, printed text and
exit codes. It also hashes the runs before and after: reading a run must not change it. Make a folder of such runs with
`scripts/reference_runs.py`. RUNS/reference.json is optional:

    {"groups": {"pair": ["monday", "friday"]},   runs that are shown together; any other run is a group of its own
     "formats": ["pair"],                        groups whose tables are also written as Markdown and LaTeX
     "quick": ["pair"],                          groups that --quick is limited to
     "rescore": ["monday"],                      runs that are scored again, in a copy, and exported
     "labels": {"monday": "labels.csv"},         people's labels, for a report with corrected means
     "arenas": {"vote": {"runs": ["monday", "friday"], "folder": "arena", "votes": "votes.csv"}}}

Files named there lie in RUNS. `compare` fails on a changed or missing number, row, table, file or exit code. It counts
rewording and moved lines of a picture, and lists what is new; see `scripts/reference_compare.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))  # so that `scripts` is found

from scripts.reference_compare import compare_folders

FINDINGS = ("funnel", "sensitivity", "text-only", "levels", "prompts", "source", "upper", "leaderboard")
TABLES = (
    *FINDINGS, "headline", "results", "judged", "voice", "following", "tasks", "cues", "wrong", "apart", "agreement",
    "published",
)  # fmt: skip
FIGURES = (*FINDINGS, "cues", "radar")
REQUIRED = "--require 'failures <= 5%' --require 'latency_p95 <= 2s' --require 'voice_accuracy >= 60%'"

# Words of a command that have another name now, old → new, e.g. {"table voice": "table delivery"}. Outputs keep the old
# name, so that both versions can be compared. --old-names ignores this.
RENAMED: dict[str, str] = {}


class Command(NamedTuple):
    """One call. `name` is that of its output. Words may hold {run}, {runs}, {a}, {b}, {file}, {case}, {given}."""

    name: str
    words: str
    scope: str  # once, run, group, pair (two or more runs), formats, rescore, labels, arena
    quick: bool = False


COMMANDS = (
    Command("list.out", "list", "once", True),
    Command("judge-list.out", "judge list", "once"),
    Command("judge-show.out", "judge show echomind", "once"),
    Command("detect.out", "plan --detect 3%", "once", True),
    Command("published.csv", "table published --format csv -o {file}", "once"),
    Command("published-levels.csv", "table published-levels --format csv -o {file}", "once"),
    Command("export.jsonl", "export {run} -o {file}", "run", True),
    Command("export.csv", "export {run} -o {file}", "run"),
    Command("export.parquet", "export {run} -o {file}", "run"),
    Command("export-predictions.json", "export {run} --format predictions -o {file}", "run"),
    Command("check.out", f"check {{run}} {REQUIRED} --markdown {{file}}.md --junit {{file}}.xml", "run", True),
    Command("cases.out", "case {run}", "run"),
    Command("case-first.out", "case {run} {case[0]} --full", "run"),
    Command("case-middle.out", "case {run} {case[1]}", "run"),
    Command("verify.out", "verify {run}", "run"),
    Command("detect-from.out", "plan --detect 5% --from {run}", "run"),
    Command("analyze.json", "analyze {runs} --format json", "group", True),
    Command("analyze.out", "analyze {runs}", "group"),
    Command("report.html", "report {runs} -o {file}", "group"),
    *(Command(f"table-{t}.csv", f"table {t} {{runs}} --format csv -o {{file}}", "group", True) for t in TABLES),
    *(Command(f"figure-{f}.svg", f"figure {f} {{runs}} -o {{file}}", "group") for f in FIGURES),
    Command("compare.json", "compare {a} {b} --force --format json", "pair", True),
    Command("compare.out", "compare {a} {b} --force", "pair"),
    Command("check-baseline.out", "check {b} --baseline {a} --markdown {file}.md --junit {file}.xml", "pair", True),
    Command("check-margin.out", "check {b} --baseline {a} --no-worse voice_accuracy:5%", "pair"),
    Command("detect-pair.out", "plan --detect 3% --from {a} --from {b}", "pair"),
    *(Command(f"table-{t}.md", f"table {t} {{runs}} --format markdown -o {{file}}", "formats") for t in TABLES),
    *(Command(f"table-{t}.tex", f"table {t} {{runs}} --format latex -o {{file}}", "formats") for t in TABLES),
    Command("table-all.csv", "table results {runs} --by all --format csv -o {file}", "formats"),
    Command("source-all.csv", "table results {runs} --source all --format csv -o {file}", "formats"),
    Command("analyze.md", "analyze {runs} --format markdown", "formats"),
    Command("analyze-all.json", "analyze {runs} --finding funnel --by all --source all --format json", "formats"),
    Command("analyze-deaf.json", "analyze {a} --deaf {b} --finding text-only --format json", "formats"),
    Command("preferences.jsonl", "export {runs} --format preferences --by semsim --voters 1 -o {file}", "formats"),
    Command("score.out", "score {run} --signatures", "rescore"),
    Command("rescored.jsonl", "export {run} -o {file}", "rescore"),
    Command("calibrated.html", "report {run} --calibrated {given} -o {file}", "labels"),
    Command("standings.out", "arena {runs} --out {given}", "arena", True),
    Command("figure-arena.svg", "figure arena --arena {given} -o {file}", "arena"),
    Command("report-arena.html", "report {runs} --arena {given} -o {file}", "arena"),
    Command("arena-preferences.jsonl", "export {runs} --format preferences --arena {given} -o {file}", "arena"),
    Command("votes-alone.out", "arena --votes {votes}", "arena"),
)


def call(command: Command, places: dict[str, Any], folder: Path, old_names: bool) -> None:
    """Run one command in this process and keep its exit code, what it printed and what it wrote."""
    from overtone.cli import main

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / command.name
    writes_file = "{file}" in command.words
    words = command.words
    for old, new in {} if old_names else RENAMED.items():
        words = words.replace(old, new)
    given = [part for word in shlex.split(words) for part in _filled(word, places | {"file": str(path)})]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = str(main(given))
        except SystemExit as end:
            code = str(end.code)
        except Exception:  # noqa: BLE001 - a crash of one command is an output to compare
            code = f"crash: {traceback.format_exc().splitlines()[-1]}"
            traceback.print_exc()
    if not writes_file or path.suffix == ".out":
        path.write_text(out.getvalue())
        out.truncate(0)
    said = f"exit {code}\n{'' if path.suffix == '.out' else out.getvalue()}{err.getvalue()}"
    (folder / f"{command.name}.said").write_text(said)


def _filled(word: str, places: dict[str, Any]) -> list[str]:
    return list(places["runs"]) if word == "{runs}" else [word.format(**places)]


def calls(runs: Path, config: dict[str, Any], quick: bool) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each scope that applies, with the folder of its outputs and what its commands are given."""
    names = sorted(path.parent.name for path in runs.glob("*/run.db"))
    groups: dict[str, list[str]] = dict(config.get("groups", {}))
    grouped = {name for members in groups.values() for name in members}
    groups |= {name: [name] for name in names if name not in grouped}
    if quick:
        groups = {name: groups[name] for name in config.get("quick", groups)}
    yield "once", "once", {"runs": []}
    for name in dict.fromkeys(name for members in groups.values() for name in members):
        run = f"runs/{name}"
        yield "run", f"run/{name}", {"run": run, "runs": [run], "case": Cases(f"run/{name}/export.jsonl")}
    for group, members in groups.items():
        several = [f"runs/{name}" for name in members]
        places = {"runs": several, "a": several[0], "b": several[-1], "run": several[0]}
        yield "group", f"group/{group}", places
        if len(members) > 1:
            yield "pair", f"group/{group}", places
        if group in config.get("formats", ()) and not quick:
            yield "formats", f"group/{group}", places
    for group, arena in config.get("arenas", {}).items():
        several = [f"runs/{name}" for name in arena["runs"]]
        votes = f"runs/{arena['votes']}"
        yield "arena", f"arena/{group}", {"runs": several, "given": f"again/{arena['folder']}", "votes": votes}
    for name in () if quick else config.get("rescore", ()):
        yield "rescore", f"rescore/{name}", {"run": f"again/{name}", "runs": []}
    for name, labels in {} if quick else config.get("labels", {}).items():
        yield "labels", f"labels/{name}", {"run": f"runs/{name}", "runs": [], "given": f"runs/{labels}"}


class Cases:
    """The first and the middle case of an export, read once the export is there."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def __getitem__(self, place: int) -> str:
        lines = self.path.read_text().splitlines()
        return str(json.loads(lines[len(lines) // 2 * place])["case"])


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, but for those that SQLite itself keeps beside a database that is being read."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(("-shm", "-wal")))
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def make(runs: Path, out: Path, quick: bool, old_names: bool) -> None:
    config_file = runs / "reference.json"
    config = json.loads(config_file.read_text()) if config_file.exists() else {}
    if out.exists():
        sys.exit(f"{out} exists: remove it or choose another folder")
    shutil.copytree(runs, out / "runs")
    for name in (*config.get("rescore", ()), *(a["folder"] for a in config.get("arenas", {}).values())):
        shutil.copytree(runs / name, out / "again" / name)
    os.environ |= {"XDG_CONFIG_HOME": str(out.resolve() / "config"), "COLUMNS": "160"}
    os.environ.setdefault("OVERTONE_JUDGES", str(out.resolve() / "judges"))
    before = hashes(out / "runs")
    os.chdir(out)
    began = time.perf_counter()
    for scope, folder, places in calls(Path("runs"), config, quick):
        for command in COMMANDS:
            if command.scope == scope and (command.quick or not quick):
                call(command, places, Path(folder), old_names)
        print(f"{time.perf_counter() - began:6.1f} s  {folder}", file=sys.stderr)
    after = hashes(Path("runs"))
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    Path("about.json").write_text(json.dumps({"quick": quick, "changed_runs": sorted(changed)}, indent=1))
    shutil.rmtree("runs")
    shutil.rmtree("again", ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("make", help="write all outputs of a folder of runs")
    making.add_argument("runs", type=Path, metavar="RUNS")
    making.add_argument("out", type=Path, metavar="OUT")
    making.add_argument("--quick", action="store_true", help="only the groups and commands marked as quick")
    making.add_argument("--old-names", action="store_true", help="ignore RENAMED, for code from before the renaming")
    comparing = actions.add_parser("compare", help="compare two folders that `make` wrote")
    comparing.add_argument("before", type=Path, metavar="BEFORE")
    comparing.add_argument("after", type=Path, metavar="AFTER")
    comparing.add_argument("--all", action="store_true", help="list every difference (default: the first of each file)")
    args = parser.parse_args()
    if args.action == "make":
        make(args.runs, args.out, args.quick, args.old_names)
        return 0
    return compare_folders(args.before, args.after, every=args.all)


if __name__ == "__main__":
    sys.exit(main())
