"""What stage 1 of the preset `people` hears of people whom it has not heard: six folds, asked by prompt.

    python -m experiments.people.folds --packs out/people --data PACK/train --data PACK/style --data PACK/words \\
        --out out/folds --minutes 9 --parallel 3 --train "--encoder FOLDER --lm FILE"
    python -m experiments.people.hearing_tables out/folds

A fold leaves out three actors of RAVDESS, a sixth of the people who cough, cry, laugh or sigh, and a sixth of
speechocean762's speakers. Its settings are chosen without it: runs that leave out the next fold too are asked about
that one (`inner-…`), and the best of SETTINGS by the mean of their scores trains the fold (`outer-…`). One more run has
heard nobody of RAVDESS; its settings are the first, fixed beforehand. The same command again does what is not there.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from experiments.echat.jobs import Clock, Job, Limits, go, predictions_of, report
from experiments.people.rows import FOLDS, LEARNT, SOURCES
from overtone.echat.exam import answer_file
from overtone.echat.exam.answer_file import Prediction
from overtone.echat.exam.tallies import Tallies, Vectors, count, value
from overtone.errors import UsageError
from overtone.paths import shown, write_whole

SETTINGS = {  # what differs from the preset; the first is the spare one where nothing may be chosen
    "plain": "",
    "faster-encoder": "[stage.1b]\nlr = { encoder = 1e-4, adapter = 5e-4 }\n",
}
CHOSEN = "chosen.json"  # fold → its settings, and the score of each
SCORES = (  # part, measure, source; a higher mean of these is better
    ("ravdess", "emotion", "named"), ("nonverbal", "event", "named"),
    ("speechocean", "age", "named"), ("speechocean", "gender", "named"), ("speechocean", "wer", "words"),
)  # fmt: skip
ALWAYS = ("librispeech", "speechocean-test")
LEFT_OUT = "ravdess-left-out"


class Shared(Struct, frozen=True):
    """What all runs share."""

    packs: Path
    out: Path
    data: tuple[Path, ...] = ()
    preset: str = "people"
    stage: str = "1"
    scale: float = 0.5
    seed: int = 0
    training: tuple[str, ...] = ()
    asking: tuple[str, ...] = ("--modes", "labels,words")
    settings: tuple[str, ...] = tuple(SETTINGS)  # among which is chosen


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.people.folds", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--packs", metavar="DIR", type=Path, required=True, help="what experiments.people.packs wrote")
    parser.add_argument("--data", metavar="PACK", type=Path, action="append", default=[], help="synthetic speech")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True)
    parser.add_argument("--preset", default="people")
    parser.add_argument("--stage", default="1")
    parser.add_argument("--settings", metavar="NAME,…", default=",".join(SETTINGS), help="among which is chosen")
    parser.add_argument("--scale", type=float, default=0.5, help="share of the preset's steps (0.5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing that would take longer")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--train", metavar="FLAGS", default="", help="more flags of `overtone train echat`")
    parser.add_argument("--evaluate", metavar="FLAGS", default="", help="more of `overtone evaluate echat`")
    parser.add_argument("--bundle", metavar="FILE", type=Path, help="all results so far in one tar, after each run")
    args = parser.parse_args(argv)
    shared = Shared(
        args.packs, args.out, tuple(args.data), args.preset, args.stage, args.scale, args.seed,
        tuple(args.train.split()), (*Shared(Path(), Path()).asking, *args.evaluate.split()),
        tuple(args.settings.split(",")),
    )  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    limits, clock = Limits(args.out, args.minutes, args.parallel), Clock(args.minutes)
    results = go(inner(shared), limits, args.bundle, clock)
    chosen = choose(shared)
    write_whole(args.out / CHOSEN, msgspec.json.format(msgspec.json.encode(chosen), indent=1))
    results += go(outer(shared, {fold: row.settings for fold, row in chosen.items()}), limits, args.bundle, clock)
    return report(results)


# ── the runs ────────────────────────────────────────────────────────────────────────────────────────────────────────
def inner(shared: Shared) -> list[Job]:
    """Every setting on every fold: it leaves out that fold and the next, and is asked about the next."""
    return [
        job_of(f"inner-{name}-{fold}", shared, name, {fold, _next(fold)}, _of(shared, _next(fold)))
        for fold in range(FOLDS)
        for name in shared.settings
    ]


def outer(shared: Shared, chosen: dict[int, str]) -> list[Job]:
    """The folds whose settings are known, and the run that has heard nobody of RAVDESS."""
    always = [path for name in ALWAYS if (path := shared.packs / "test" / name).is_dir()]
    jobs = [
        job_of(f"outer-{fold}", shared, name, {fold}, [*_of(shared, fold), *always])
        for fold, name in sorted(chosen.items())
    ]
    every = sorted((shared.packs / "test").glob("ravdess-*"))
    return [*jobs, job_of(LEFT_OUT, shared, shared.settings[0], set(), every, without="ravdess")]


def job_of(
    name: str, shared: Shared, settings: str, left_out: set[int], tests: Sequence[Path], without: str = ""
) -> Job:
    """One run: trained on everything but some folds or a corpus, and asked about some packs."""
    if not tests:
        raise UsageError(f"{shown(str(shared.packs))}: nothing to test {name} on; write the packs again")
    words = ["--preset", preset_of(shared, settings), "--stage", shared.stage, "--scale", f"{shared.scale:g}"]
    words += ["--seed", str(shared.seed)]
    for pack in (*shared.data, *_to_learn(shared.packs, left_out, without)):
        words += ["--data", str(pack)]
    asking = ["--arm", name, *(word for pack in tests for word in ("--data", str(pack))), *shared.asking]
    return Job(name, (*words, *shared.training), tuple(asking))


def preset_of(shared: Shared, settings: str) -> str:
    """Write the preset of some settings, if they differ from the experiment's, and return its name or file."""
    if settings not in SETTINGS:
        raise UsageError(f"--settings {shown(settings)!r} is unknown; known: {', '.join(SETTINGS)}")
    if not SETTINGS[settings]:
        return shared.preset
    path = shared.out / f"{settings}.toml"
    write_whole(path, f'like = "{shared.preset}"\n{SETTINGS[settings]}'.encode())
    return str(path)


def _to_learn(packs: Path, left_out: set[int], without: str) -> Iterator[Path]:
    for corpus in LEARNT:
        names = [f"{corpus}-{fold}" for fold in range(FOLDS) if fold not in left_out]
        for name in names if SOURCES[corpus].folded else [corpus]:
            if corpus != without and (packs / name).is_dir():
                yield packs / name


def _of(shared: Shared, fold: int) -> list[Path]:
    """The test packs of a fold."""
    folded = [f"{corpus}-{fold}" for corpus in LEARNT if SOURCES[corpus].folded]
    return [path for name in folded if (path := shared.packs / "test" / name).is_dir()]


def _next(fold: int) -> int:
    return (fold + 1) % FOLDS


# ── the choice ──────────────────────────────────────────────────────────────────────────────────────────────────────
class Choice(Struct, frozen=True):
    """The settings of a fold, and the mean score of each on the next fold."""

    settings: str
    scores: dict[str, float]


def choose(shared: Shared) -> dict[int, Choice]:
    """Return the best settings of every fold for which all of them have been tried."""
    chosen = {}
    for fold in range(FOLDS):
        files = {name: predictions_of(f"inner-{name}-{fold}", shared.out) for name in shared.settings}
        if all(path.is_file() for path in files.values()):
            scores = {name: mean_score(answer_file.read(path)[1]) for name, path in files.items()}
            chosen[fold] = Choice(max(scores, key=lambda name: scores[name]), scores)
    return chosen


def mean_score(rows: Sequence[Prediction]) -> float:
    """Return the mean of the scores of SCORES that the rows have; of word error rates, what they lack to 1."""
    tallied = tally(rows)
    found = []
    for key, tally_ in tallied.items():
        if (key.part, key.name, key.source) in SCORES:
            sums = sum(tally_.by.values())
            found.append(max(1 - float(value("mean", sums)), 0.0) if key.name == "wer" else float(value("uar", sums)))
    if not found:
        raise UsageError("the answers have none of the scores by which settings are chosen; ask for labels and words")
    return round(sum(found) / len(found), 4)


def tally(rows: Sequence[Prediction]) -> Tallies:
    """Return the tallies of answers without replies."""
    nothing: Vectors = {}
    return count(rows, nothing)


if __name__ == "__main__":
    sys.exit(main())
