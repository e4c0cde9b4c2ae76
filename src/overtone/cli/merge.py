"""Join the shards of a run, which 'overtone run … --shard I/N' wrote, into one run. No model is asked."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, UsageError

NOTES = (
    "Without --out, each run gets the name of its shards without their number, so the shards of several runs can be "
    "named at once. The shards are only read; remove them when the run is complete."
)
EXAMPLES = (
    "overtone merge runs/monday-shard-*",
    "overtone merge runs/monday-shard-1-of-2 runs/monday-shard-2-of-2 --out runs/whole",
)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("shards", metavar="SHARD", nargs="+", type=Path, help="folder of a shard; name all shards of a run")
    flag(
        "--out", metavar="RUN", type=Path, help="new folder of the run (default: the shards' name without their number)"
    )
    flag("--partial", action="store_true", help="join the named shards even if requests are missing")


def main(args: argparse.Namespace) -> int:
    from overtone.judges.judge_run import FILE
    from overtone.judges.verdict_cache import Verdicts
    from overtone.paths import shown
    from overtone.runs.merge_shards import merge
    from overtone.scoring import score_run
    from overtone.text import count

    def copy_verdicts(shard: Path, folder: Path) -> None:
        source = shard / FILE
        if source.is_file() and not source.is_symlink():
            with Verdicts(folder / FILE) as verdicts:
                verdicts.copy_from(source)

    def rescore(folder: Path) -> None:
        score_run(folder, again=False)  # some scores of a reply depend on the other replies of the run

    for out, shards in _runs(args.shards, args.out).items():
        made = merge(shards, out, partial=args.partial, also=copy_verdicts, finish=rescore)
        states = f"{made.answered:,} answered, {made.failed:,} failed"
        if made.pending:
            states += f", {made.pending:,} not sent yet"
        print(shown(f"{count(made.shards, 'shard')}, {count(made.items, 'item')}: {states} → {out}"))
        print(shown(f"next: overtone report {out}"))
    return EXIT_OK


def _runs(shards: list[Path], out: Path | None) -> dict[Path, list[Path]]:
    """Return the folder of each run with its shards. Raises UsageError if it cannot be derived from their names."""
    from overtone.runs.run_shards import whole_name

    if out is not None:
        return {out: shards}
    runs: dict[Path, list[Path]] = {}
    for shard in shards:
        name = whole_name(shard.resolve().name)
        if name is None:
            raise UsageError(f"{shard}: the name of the run does not follow from this folder's name; add --out RUN")
        runs.setdefault(shard.parent / name, []).append(shard)
    return runs
