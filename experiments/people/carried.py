"""The recordings of the experiment in a small form, for a machine to which only some megabytes can be sent.

    python -m experiments.people.carried DATA out/corpora   # → out/corpora/people/ravdess/labels.csv …

The copy has the folders of `rows.SOURCES`, each with a table that every reader of corpora reads. Ogg files are copied;
what is only learnt from becomes Ogg Opus, and what is tested FLAC, which changes no sample.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
from collections.abc import Sequence
from pathlib import Path

from experiments.people.rows import SOURCES, read
from overtone import corpora
from overtone.corpora import Recording
from overtone.echat.data.containers import RATE
from overtone.paths import write_whole

COLUMNS = (
    "file", "speaker", "sex", "age", "age_group", "emotion", "intensity", "event", "words", "language", "licence",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.people.carried", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="the folder of the corpora")
    parser.add_argument("out", metavar="OUT", type=Path, help="where the copy goes")
    parser.add_argument("--corpora", metavar="NAME,…", default=",".join(SOURCES))
    parser.add_argument("--clips", metavar="N", type=int, default=0, help="of each corpus at most, for a rehearsal")
    given = parser.parse_args(argv)
    for name, rows in read(given.data, given.corpora.split(","), given.clips).items():
        size = copy(name, rows, given.out / SOURCES[name].folder)
        print(f"{given.out / SOURCES[name].folder}: {len(rows)} recordings, {size / 1e6:.1f} MB")


def copy(name: str, rows: Sequence[Recording], folder: Path) -> int:
    """Write a corpus and its table; return its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    lossless = bool(SOURCES[name].tests)
    size = 0
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, COLUMNS)
    table.writeheader()
    for at, row in enumerate(rows):
        file = _copied(row, folder, f"{at:05}", lossless)
        size += file.stat().st_size
        cells = {column: getattr(row, column, "") for column in COLUMNS}
        table.writerow(cells | {"file": file.name, "age": "" if row.age is None else row.age})
    write_whole(folder / "labels.csv", text.getvalue().encode())
    return size


def _copied(row: Recording, folder: Path, name: str, lossless: bool) -> Path:
    if Path(row.path).suffix == ".ogg" and not row.start and row.end is None:
        path = folder / f"{name}.ogg"
        shutil.copyfile(row.path, path)
        return path
    import soundfile

    sound = corpora.sound(row, RATE)
    path = folder / f"{name}.{'flac' if lossless else 'ogg'}"
    if lossless:
        soundfile.write(path, sound, RATE, subtype="PCM_16")
    else:
        soundfile.write(path, sound, RATE, format="OGG", subtype="OPUS")
    return path


if __name__ == "__main__":
    main()
