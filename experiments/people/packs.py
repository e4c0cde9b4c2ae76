"""Recordings of people as packs to learn from and to be tested on, in folds that share no speaker.

    python -m experiments.people.packs DATA out/people          # DATA has people/, nonverbal/, librispeech/ …
    python -m experiments.people.packs DATA out/people --twins  # and synthetic stand-ins of all that is learnt from

`out/people/ravdess-0` … `ravdess-5` have the actors of one fold each, to learn from; `out/people/test/ravdess-0` has
the same clips to be asked about. The same holds for `nonverbal` and `speechocean` (its training split). TESS, SAVEE,
EMO-DB and ESC-50 are only learnt from, LibriSpeech and `speechocean-test` only tested. `out/people/open.json` is the
manifest of the packs whose recordings are all open: weights that are given away may learn from these and no others.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.echat.real_pack import trimmed
from experiments.people.rows import FOLDS, SOURCES, folds, read, record_of
from overtone import corpora
from overtone.build.licence import Ingredient, derive
from overtone.build.manifest import write_json
from overtone.corpora import Recording, is_open
from overtone.echat.data.containers import PACK, RATE, PackWriter
from overtone.paths import sha256
from overtone.version import __version__

OPEN = "open.json"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.people.packs", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="the folder of the corpora")
    parser.add_argument("out", metavar="OUT", type=Path, help="where the packs go")
    parser.add_argument("--corpora", metavar="NAME,…", default=",".join(SOURCES))
    parser.add_argument("--clips", metavar="N", type=int, default=0, help="of each corpus at most, for a rehearsal")
    parser.add_argument("--twins", action="store_true", help="write the synthetic stand-ins too")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="processes (one a core)")
    given = parser.parse_args(argv)
    rows = read(given.data, given.corpora.split(","), given.clips)
    counts = write(rows, given.out)
    write_json(given.out / OPEN, manifest(rows, given.out))
    if given.twins:
        from experiments.people.twins import write_twins

        counts |= write_twins(rows, given.out, given.jobs)
    for name, count in counts.items():
        print(f"{given.out / name}: {count} clips")


def write(rows: Mapping[str, Sequence[Recording]], out: Path) -> dict[str, int]:
    """Write a pack for each corpus and fold that is not there; return how many clips each has."""
    counts = {}
    for corpus, recordings in rows.items():
        learnt = SOURCES[corpus].learnt
        for name, some in folded(corpus, recordings):
            home = out / name if learnt else out / "test" / name
            if not (home / PACK[0]).is_file():
                _write_clips(home, corpus, some, test=not learnt)
            if learnt and SOURCES[corpus].tests and not (out / "test" / name / PACK[0]).is_file():
                _write_again(home, out / "test" / name, corpus, some)
            counts[str(home.relative_to(out))] = len(some)
    return counts


def manifest(rows: Mapping[str, Sequence[Recording]], out: Path) -> dict[str, object]:
    """Return the manifest of the packs of open corpora, as a release of weights reads it."""
    used = [
        corpus for corpus, some in rows.items() if SOURCES[corpus].learnt and all(is_open(row.licence) for row in some)
    ]
    names = [name for corpus in used for name, _ in folded(corpus, rows[corpus])]
    licences = {Ingredient("recordings", corpus, row.licence) for corpus in used for row in rows[corpus]}
    return {
        "name": "people-open",
        "version": __version__,
        "licence": derive([Ingredient("labels", "people", "CC-BY-4.0"), *licences]).licence,
        "seed": 0,
        "sha256": {f"{name}/{PACK[0]}": sha256(out / name / PACK[0]) for name in names},
    }


def folded(corpus: str, rows: Sequence[Recording]) -> Iterator[tuple[str, list[Recording]]]:
    """Yield the packs of a corpus by name: one for each fold that has a speaker, or one."""
    if not SOURCES[corpus].folded:
        yield corpus, list(rows)
        return
    fold = folds(rows)
    for number in range(FOLDS):
        if some := [row for row in rows if fold[row.speaker] == number]:
            yield f"{corpus}-{number}", some


def _write_clips(folder: Path, corpus: str, rows: Sequence[Recording], *, test: bool) -> None:
    with PackWriter(folder) as writer:
        for row in rows:
            writer.add(record_of(corpus, row, test=test), [trimmed(corpora.sound(row, RATE))])


def _write_again(clips: Path, folder: Path, corpus: str, rows: Sequence[Recording]) -> None:
    """Write the same clips as a test, without copying them."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    with PackWriter(part) as writer:
        for row in rows:
            writer.add(record_of(corpus, row, test=True), [np.zeros(1, np.int16)])
    for name in PACK[1:]:
        (part / name).unlink()
        os.link(clips / name, part / name)
    part.replace(folder)


if __name__ == "__main__":
    main()
