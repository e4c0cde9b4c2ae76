"""Write the tables of repeated runs, and of runs that think in sentences, into experiments/echat/ablation.md.

python -m experiments.echat.repeat_tables
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from experiments.echat.result_tables import (
    ARMS,
    MEASURES,
    NOTES,
    OURS,
    PARTS,
    Lookup,
    marked,
    replace_block,
    table,
)
from overtone.echat.exam import counts
from overtone.echat.exam.counts import Counts
from overtone.echat.exam.exam_scores import FULL, score
from overtone.paths import write_whole

HERE = Path(__file__).parent
KERNELS = {  # run → which kernels were recorded as CUDA graphs; in the order of the table
    "full-0": "none", "again-0": "all", "recorded-0": "all", "unrecorded-0": "none",
    "full-1": "none", "recorded-1": "all", "unrecorded-1": "none",
    "full-2": "language model", "full-3": "all", "full-4": "all",
    "natural-0": "all", "natural-1": "all", "natural-2": "all",
}  # fmt: skip
REPEATED = ("again-0", "recorded-0", "recorded-1", "unrecorded-0")  # runs of the full arm with all tests
NATURAL = "natural"


def read(name: str) -> Counts:
    folders = (HERE / "runs", HERE / "later_runs")
    return counts.read(next(path for folder in folders if (path := folder / f"{name}.json.gz").is_file()))


def each() -> list[str]:
    """Return the scores of every single run on seen recipes."""
    lines = []
    for name, kernels in KERNELS.items():
        run = read(name)
        lookup = Lookup(score([run], draws=2))
        rows = [lookup.row(run.head.arm, "seen", measure, source) for _, measure, source in MEASURES]
        thinks = "sentences" if run.head.arm == NATURAL else "tags"
        lines.append([str(run.head.seed), thinks, kernels, *(f"{row.value:.2f}" for row in rows if row)])
    return table(["seed", "thoughts in", "recorded kernels", *(name for name, _, _ in MEASURES)], lines)


def pooled() -> list[str]:
    """Return full, including the repeated runs, minus each other arm, in percentage points."""
    runs = [counts.read(path) for path in sorted((HERE / "runs").glob("*.gz")) if "whole" not in path.name]
    runs += [read(f"{NATURAL}-{seed}") for seed in range(3)]
    runs += [numbered(read(name), number) for number, name in enumerate(REPEATED, 100)]
    lookup = Lookup(score(runs))
    others = {
        "no-understanding": ARMS["no-understanding"],
        "no-think": ARMS["no-think"],
        NATURAL: "thoughts in sentences",
    }
    wanted = [("seen", *measure) for measure in MEASURES] + [(part, *MEASURES[-1]) for part in OURS[1:]]
    lines = [
        [PARTS[part], name, *(
            marked(lookup.differences.get((part, measure, f"{FULL}/{source}", f"{arm}/{source}"))) for arm in others
        )]
        for part, name, measure, source in wanted
    ]  # fmt: skip
    sizes = [f"{name} ({len(lookup.scores.arms[arm])} runs)" for arm, name in others.items()]
    return table([f"full ({len(lookup.scores.arms[FULL])} runs) minus", "", *sizes], lines)


def numbered(run: Counts, number: int) -> Counts:
    """Return the run as one more seed of the full arm."""
    return msgspec.structs.replace(run, head=msgspec.structs.replace(run.head, arm=FULL, seed=number))


def main() -> None:
    page = replace_block(NOTES.read_text(encoding="utf-8"), "each", each())
    write_whole(NOTES, replace_block(page, "pooled", pooled()).encode())


if __name__ == "__main__":
    main()
