"""Read EmoBank's files and check them against each other, so that a damaged or different version is refused.

The authors dropped ratings of 1, 1, 1. The remaining single ratings must have the number and the means that
`reader.csv` and `writer.csv` state for every sentence. The weighted means of both perspectives must be those of
`emobank.csv`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct

from overtone.benchmarks._files import read_csv
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.rated_sentences import DIMENSIONS, PERSPECTIVES, Bank

FILES = (
    "emobank.csv",
    "meta.tsv",
    *(f"{who}.csv" for who in PERSPECTIVES),
    *(f"individual_{who}_ratings.csv" for who in PERSPECTIVES),
)
LOW, HIGH = 1.0, 5.0  # the ends of the scale
ROUNDED = 0.0051  # means are written with two decimals
_AGAIN = "fetch EmoBank's files again, all from one version"


class _Mean(Struct, frozen=True):
    """One sentence's line of `reader.csv` or `writer.csv`."""

    where: str
    values: tuple[float, ...]
    count: int


class _Sentence(Struct, frozen=True):
    """One line of `emobank.csv`."""

    where: str
    split: str
    values: tuple[float, ...]
    text: str


def read_bank(folder: Path) -> Bank:
    """Read the sentences that were rated from both perspectives, in the order of `emobank.csv`.

    Raise DataError, with file and line, for a missing file, column or id, for a rating out of range, a duplicated id, a
    sentence without one of the perspectives, and for means that do not match their ratings.
    """
    paths = {name: _path(folder, name) for name in FILES}
    sentences = _sentences(paths["emobank.csv"])
    meta = _meta(paths["meta.tsv"])
    means = {who: _means(paths[f"{who}.csv"]) for who in PERSPECTIVES}
    ratings = {who: _ratings(paths[f"individual_{who}_ratings.csv"]) for who in PERSPECTIVES}
    for who in PERSPECTIVES:
        _check_means(means[who], ratings[who], paths[f"individual_{who}_ratings.csv"])
    _check_perspectives(sentences, means, paths)
    for name, sentence in sentences.items():
        if name not in meta:
            raise DataError(f"{sentence.where}: {shown(name)} is not in meta.tsv; {_AGAIN}")
    ids = list(sentences)
    return Bank(
        ids=ids,
        documents=[meta[name][0] for name in ids],
        genres=[meta[name][1] for name in ids],
        splits=[sentence.split for sentence in sentences.values()],
        means={who: np.array([means[who][name].values for name in ids]) for who in PERSPECTIVES},
        ratings={who: [np.array(ratings[who][name]) for name in ids] for who in PERSPECTIVES},
        texts=[sentence.text for sentence in sentences.values()],
    )


def _path(folder: Path, name: str) -> Path:
    path = inside(folder, name)
    if not path.is_file():
        raise DataError(f"{shown(str(folder))}: {name} is missing; give the folder with {', '.join(FILES)}")
    return path


def _sentences(path: Path) -> dict[str, _Sentence]:
    found: dict[str, _Sentence] = {}
    for where, row in read_csv(path, ("id", "split", *DIMENSIONS, "text")):
        if row["split"] not in ("train", "dev", "test"):
            raise DataError(f"{where}: the split is {shown(row['split'])!r}, not train, dev or test; {_AGAIN}")
        if not row["text"].strip():
            raise DataError(f"{where}: the text is empty; {_AGAIN}")
        _claim(found, row["id"], where)
        found[row["id"]] = _Sentence(where, row["split"], _numbers(row, where), row["text"])
    if not found:
        raise DataError(f"{shown(str(path))}: holds no sentences; {_AGAIN}")
    return found


def _meta(path: Path) -> dict[str, tuple[str, str]]:
    """Return id → document and genre."""
    found: dict[str, tuple[str, str]] = {}
    columns = ("id", "document", "category")
    for where, row in read_csv(path, columns, delimiter="\t", quoting=csv.QUOTE_NONE):
        _claim(found, row["id"], where)
        if not row["document"].strip() or not row["category"].strip():
            raise DataError(f"{where}: the document or the category is empty; {_AGAIN}")
        found[row["id"]] = (row["document"], row["category"])
    return found


def _means(path: Path) -> dict[str, _Mean]:
    found: dict[str, _Mean] = {}
    for where, row in read_csv(path, ("id", *DIMENSIONS, "N")):
        _claim(found, row["id"], where)
        if not row["N"].isdecimal() or int(row["N"]) < 1:
            raise DataError(f"{where}: N is {shown(row['N'])!r}, not a number of ratings; {_AGAIN}")
        found[row["id"]] = _Mean(where, _numbers(row, where), int(row["N"]))
    return found


def _ratings(path: Path) -> dict[str, list[tuple[float, ...]]]:
    """Return id → its ratings. Ratings of 1, 1, 1 are left out, as the authors did."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for where, row in read_csv(path, ("id", *DIMENSIONS)):
        rating = _numbers(row, where)
        if any(value % 1 for value in rating):
            raise DataError(f"{where}: a single rating must be a whole number from 1 to 5; {_AGAIN}")
        if rating != (LOW, LOW, LOW):
            found.setdefault(row["id"], []).append(rating)
    return found


def _claim(found: Iterable[str], name: str, where: str) -> None:
    if not name.strip():
        raise DataError(f"{where}: the id is empty; {_AGAIN}")
    if name in found:
        raise DataError(f"{where}: the id {shown(name)} is duplicated; {_AGAIN}")


def _numbers(row: Mapping[str, str], where: str) -> tuple[float, ...]:
    values = []
    for dimension in DIMENSIONS:
        try:
            value = float(row[dimension])
        except ValueError:
            raise DataError(f"{where}: {dimension} is {shown(row[dimension])!r}, not a number; {_AGAIN}") from None
        if not LOW <= value <= HIGH:  # also NaN
            raise DataError(f"{where}: {dimension} is {value:g}, but ratings lie between 1 and 5; {_AGAIN}")
        values.append(value)
    return tuple(values)


def _check_means(means: Mapping[str, _Mean], ratings: Mapping[str, list[tuple[float, ...]]], rated: Path) -> None:
    """Raise DataError unless the number and the means in every line match its single ratings."""
    name = shown(rated.name)
    for sentence, mean in means.items():
        single = ratings.get(sentence, [])
        if len(single) != mean.count:
            raise DataError(
                f"{mean.where}: N is {mean.count} for {shown(sentence)}, but {name} has {len(single)} ratings of it "
                f"without those of 1, 1, 1; {_AGAIN}"
            )
        for dimension, stated, values in zip(DIMENSIONS, mean.values, zip(*single, strict=True), strict=True):
            if abs(sum(values) / len(values) - stated) > ROUNDED:
                raise DataError(
                    f"{mean.where}: {dimension} is {stated:g} for {shown(sentence)}, but the mean of its ratings in "
                    f"{name} is {sum(values) / len(values):.2f}; {_AGAIN}"
                )
    # The authors give no mean of a single rating.
    if missing := [sentence for sentence, single in ratings.items() if len(single) > 1 and sentence not in means]:
        raise DataError(f"{shown(str(rated))}: {shown(missing[0])} has ratings but no mean; {_AGAIN}")


def _check_perspectives(
    sentences: Mapping[str, _Sentence], means: Mapping[str, Mapping[str, _Mean]], paths: Mapping[str, Path]
) -> None:
    """Raise DataError unless `emobank.csv` has exactly the sentences with both perspectives, with the means over
    both."""
    for name, sentence in sentences.items():
        for who in PERSPECTIVES:
            if name not in means[who]:
                raise DataError(f"{sentence.where}: {shown(name)} has no {who}'s rating in {who}.csv; {_AGAIN}")
        both = [means[who][name] for who in PERSPECTIVES]
        for i, dimension in enumerate(DIMENSIONS):
            weighted = sum(m.values[i] * m.count for m in both) / sum(m.count for m in both)
            if abs(weighted - sentence.values[i]) > 2 * ROUNDED:
                raise DataError(
                    f"{sentence.where}: {dimension} is {sentence.values[i]:g} for {shown(name)}, but the weighted mean "
                    f"of reader.csv and writer.csv is {weighted:.2f}; {_AGAIN}"
                )
    first, second = (means[who] for who in PERSPECTIVES)
    if missing := [name for name in first if name in second and name not in sentences]:
        raise DataError(
            f"{first[missing[0]].where}: {shown(missing[0])} has both perspectives but is missing from "
            f"{shown(paths['emobank.csv'].name)}; {_AGAIN}"
        )
