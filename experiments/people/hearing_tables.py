"""The tables of what is heard of people never heard before, from the answers of experiments.people.folds.

    python -m experiments.people.hearing_tables out/folds --out experiments/people/hearing.json   # sums, no texts
    python -m experiments.people.hearing_tables experiments/people/hearing.json --page PAGE

The answers of all folds are scored together, so every speaker counts once. Intervals are 95 %, from draws of speakers.
A table replaces the text between `<!-- NAME -->` and `<!-- /NAME -->` of the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from experiments.echat.result_tables import cell, chance, replace_block, table
from experiments.people.folds import CHOSEN, LEFT_OUT, Choice
from experiments.people.rows import FOLDS
from overtone.echat.exam import answer_file, counts
from overtone.echat.exam.answer_file import Head, Prediction
from overtone.echat.exam.counts import Counts
from overtone.echat.exam.exam_scores import Row, score
from overtone.errors import DataError, UsageError
from overtone.paths import shown, write_whole

UNHEARD, NO_RAVDESS = "people", LEFT_OUT  # names of the two sets of runs
ROWS = (  # part, measure, source, what it is, target
    ("ravdess", "emotion.uar", "named", "emotion (7), RAVDESS", "≥ .60"),
    ("nonverbal", "event.uar", "named", "cough, cry, laugh, sigh", "≥ .65"),
    ("ravdess", "gender.uar", "named", "gender, RAVDESS", "≥ .95"),
    ("speechocean", "gender.uar", "named", "gender of adults, speechocean762", "≥ .95"),
    ("speechocean", "age.uar", "named", "child or adult, speechocean762", "≥ .80"),
    ("speechocean", "wer", "words", "word error rate, adults of speechocean762", "≤ .35"),
    ("librispeech", "wer", "words", "word error rate, LibriSpeech test-other", "≤ .40"),
    ("ravdess", "wer", "words", "word error rate, RAVDESS", ""),
)
RAVDESS_LEFT_OUT = ("ravdess", "emotion.uar", "named", "emotion (7), nobody of RAVDESS heard", "≥ .50")


class Stored(Struct, frozen=True):
    """What is kept of all folds: sums by speaker, and the choice of settings."""

    heard: list[Counts]
    chosen: dict[str, Choice]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.people.hearing_tables", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("source", metavar="DIR|FILE", type=Path, help="answers of all folds, or what --out wrote")
    parser.add_argument("--out", metavar="FILE", type=Path, help="keep the sums")
    parser.add_argument("--page", metavar="FILE", type=Path, action="append", default=[], help="to fill")
    args = parser.parse_args(argv)
    stored = gathered(args.source) if args.source.is_dir() else read(args.source)
    if args.out:
        write_whole(args.out, msgspec.json.format(msgspec.json.encode(stored), indent=0))
    lines = hearing(stored)
    print("\n".join([*lines, "", *settings(stored)]))
    for page in args.page:
        text = replace_block(page.read_text(encoding="utf-8"), "hearing", lines)
        write_whole(page, replace_block(text, "settings", settings(stored)).encode())


def read(path: Path) -> Stored:
    """Read what --out wrote. Raises DataError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Stored)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{shown(str(path))}: not the sums of all folds ({error}); write it with --out") from None


def gathered(out: Path) -> Stored:
    """Count the answers of all folds together. Raises UsageError if a fold is missing."""
    missing = [fold for fold in range(FOLDS) if not (out / f"outer-{fold}.jsonl.gz").is_file()]
    if missing:
        raise UsageError(
            f"{shown(str(out))}: no answers of fold {', '.join(map(str, missing))}; "
            "give experiments.people.folds more time"
        )
    heads, rows = zip(*(_read(out / f"outer-{fold}.jsonl.gz") for fold in range(FOLDS)), strict=True)
    runs = [(_head(heads[0], UNHEARD), joined(rows))]
    if (path := out / f"{LEFT_OUT}.jsonl.gz").is_file():
        head, answers = _read(path)
        runs.append((_head(head, NO_RAVDESS), answers))
    chosen = msgspec.json.decode((out / CHOSEN).read_bytes(), type=dict[str, Choice])
    return Stored(counts.count(runs, embed=_nothing, heard="corpus"), chosen)


def _read(path: Path) -> tuple[Head, list[Prediction]]:
    """Read the answers of a run. Raises DataError if it was asked about somebody whom it has heard."""
    head, rows = answer_file.read(path)
    known = [row for row in rows if row.mark in ("speaker", "clip")]
    if known:
        raise DataError(f"{shown(str(path))}: {known[0].key} is by a speaker that the run learnt from; train it again")
    return head, rows


def _nothing(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.zeros((len(texts), 1), np.float32)


def joined(folds: Sequence[Sequence[Prediction]]) -> list[Prediction]:
    """Return the answers of all folds. A test that every fold was asked keeps all answers, under keys of their own."""
    return [replace(row, key=f"{row.key}@{fold}") for fold, rows in enumerate(folds) for row in rows]


def _head(head: Head, arm: str) -> Head:
    return replace(head, arm=arm, notes={})


def hearing(stored: Stored, draws: int = 1000) -> list[str]:
    """Return the table of scores, with intervals over speakers."""
    lines = []
    for run in stored.heard:
        rows = {(row.part, row.measure, row.source): row for row in score([run], draws=draws).rows}
        wanted = ROWS if run.head.arm == UNHEARD else (RAVDESS_LEFT_OUT,)
        for part, measure, source, name, target in wanted:
            if row := rows.get((part, measure, source)):
                likely = rows.get((part, measure, "chosen")) if source == "named" else None
                lines.append([name, *_cells(row, likely), target])
    return table(["", "clips", "speakers", "chance", "answer", "most likely label", "target"], lines)


def _cells(row: Row, likely: Row | None) -> list[str]:
    return [str(row.n), str(row.clusters), chance([row]), cell(row), cell(likely) if likely else ""]


def settings(stored: Stored) -> list[str]:
    """Return the table of chosen settings."""
    names = sorted({name for choice in stored.chosen.values() for name in choice.scores})
    lines = [
        [fold, *(f"{choice.scores[name]:.3f}" for name in names), choice.settings]
        for fold, choice in sorted(stored.chosen.items())
    ]
    return table(["fold", *names, "chosen"], lines)


if __name__ == "__main__":
    main()
