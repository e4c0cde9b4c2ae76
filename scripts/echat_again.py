"""Write what runs of the short schedule came to that were made again, and three that think in sentences, into
docs/echat-results.md: every run by itself, and what differs where all runs are counted.

python -m scripts.echat_again
"""

from __future__ import annotations

import msgspec

from overtone.echat.exam import counts
from overtone.echat.exam.counts import Counts
from overtone.echat.exam.scores import FULL, OWN, score
from overtone.paths import write_whole
from scripts.echat_results import ARMS, DIMENSIONS, OURS, PAGE, PARTS, Found, block, marked, table

BENCH = PAGE.parents[1] / "bench"
KERNELS = {  # run → which of its kernels were recorded; in the order of the table
    "full-0": "none", "again-0": "all", "recorded-0": "all", "unrecorded-0": "none",
    "full-1": "none", "recorded-1": "all", "unrecorded-1": "none",
    "full-2": "language model", "full-3": "all", "full-4": "all",
    "natural-0": "all", "natural-1": "all", "natural-2": "all",
}  # fmt: skip
AGAIN = ("again-0", "recorded-0", "recorded-1", "unrecorded-0")  # of the full arm, asked all tests
NATURAL = "natural"
MEASURES = [
    *((name, f"{name}.uar", "named") for name in DIMENSIONS),
    ("word error rate", "wer", "words"),
    ("replies", "direction", OWN),
]


def read(name: str) -> Counts:
    folders = (BENCH / "echat_runs", BENCH / "echat_later")
    return counts.read(next(path for folder in folders if (path := folder / f"{name}.json.gz").is_file()))


def each() -> list[str]:
    """Every run by itself, on seen recipes."""
    lines = []
    for name, kernels in KERNELS.items():
        run = read(name)
        found = Found(score([run], draws=2))
        rows = [found.row(run.head.arm, "seen", measure, source) for _, measure, source in MEASURES]
        thinks = "sentences" if run.head.arm == NATURAL else "tags"
        lines.append([str(run.head.seed), thinks, kernels, *(f"{row.value:.2f}" for row in rows if row)])
    return table(["seed", "thinks in", "recorded kernels", *(name for name, _, _ in MEASURES)], lines)


def pooled() -> list[str]:
    """Full, with the runs that were made again, against the others, in points."""
    runs = [counts.read(path) for path in sorted((BENCH / "echat_runs").glob("*.gz")) if "whole" not in path.name]
    runs += [read(f"{NATURAL}-{seed}") for seed in range(3)]
    runs += [numbered(read(name), number) for number, name in enumerate(AGAIN, 100)]
    found = Found(score(runs))
    others = {"no-understanding": ARMS["no-understanding"], "no-think": ARMS["no-think"], NATURAL: "in sentences"}
    wanted = [("seen", *measure) for measure in MEASURES] + [(part, *MEASURES[-1]) for part in OURS[1:]]
    lines = [
        [PARTS[part], name, *(
            marked(found.differences.get((part, measure, f"{FULL}/{source}", f"{arm}/{source}"))) for arm in others
        )]
        for part, name, measure, source in wanted
    ]  # fmt: skip
    sizes = [f"{name} ({len(found.scores.arms[arm])} runs)" for arm, name in others.items()]
    return table([f"full ({len(found.scores.arms[FULL])} runs) against", "", *sizes], lines)


def numbered(run: Counts, number: int) -> Counts:
    """One more run of the full arm."""
    return msgspec.structs.replace(run, head=msgspec.structs.replace(run.head, arm=FULL, seed=number))


def main() -> None:
    page = block(PAGE.read_text(), "each", each())
    write_whole(PAGE, block(page, "pooled", pooled()).encode())


if __name__ == "__main__":
    main()
