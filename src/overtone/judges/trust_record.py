"""Which judges have shown that they can be trusted, and by which rubric: small JSON files of validate and hear.

A judge counts as validated for a rubric where it agreed with people (the lower end of the 95 % interval of
Krippendorff's α is at least BAR) or, by rubrics that hear, where it passed the known-answer test.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.judges.policy import Judge
from overtone.judges.rubric import Rubric
from overtone.paths import shown, user_data, write_whole

HEARING = "known answers"  # `how` of a record that holds for every rubric that hears
PEOPLE = "agreed with people"
VERSION = 1


class Record(Struct, frozen=True):
    """One proof. `rubric` and `sha256` are empty where it holds for all rubrics that hear."""

    identity: str
    how: str
    rubric: str
    sha256: str
    dimensions: tuple[str, ...]  # for which it holds; empty: for all
    sentence: str
    at: str
    version: int = VERSION
    numbers: dict[str, float] = {}  # what was measured, where it is not the agreement with people


def folder() -> Path:
    """Where records lie: OVERTONE_JUDGES, else the user's data folder."""
    return user_data("OVERTONE_JUDGES", "judges")


def identity(judge: Judge, rubric: Rubric) -> str:
    """What a proof is a proof of: the model, what it hears, and whether it is asked everything in one call.

    Temperature, seed and the number of repeats are no part of it.
    """
    hears = judge.policy.hears if rubric.hears else "nothing"
    return f"{judge.identity}|hears:{hears}|calls:{judge.policy.calls}"


def write(
    identity: str,
    rubric: Rubric | None,
    dimensions: tuple[str, ...],
    sentence: str,
    *,
    how: str,
    numbers: dict[str, float] | None = None,
) -> Path:
    """Keep a proof, in place of an older one of the same kind. Without a rubric it holds for all that hear."""
    name = rubric.name if rubric else ""
    record = Record(
        identity,
        how,
        name,
        rubric.sha256 if rubric else "",
        dimensions,
        sentence,
        dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        numbers=numbers or {},
    )
    path = _path(identity, name, record.sha256, how)
    write_whole(path, msgspec.json.format(msgspec.json.encode(record)))
    return path


def forget(identity: str, rubric: Rubric | None, *, how: str) -> None:
    """A later measurement that failed takes the proof back."""
    _path(identity, rubric.name if rubric else "", rubric.sha256 if rubric else "", how).unlink(missing_ok=True)


def kept(identity: str, rubric: Rubric, *, how: str) -> Record | None:
    """The record of this kind, None without one."""
    return _read(_path(identity, rubric.name, rubric.sha256, how))


def validated(judge_identity: str, rubric: Rubric) -> Record | None:
    """The proof that holds for this judge and rubric: agreement with people before known answers; None without one."""
    found = _read(_path(judge_identity, rubric.name, rubric.sha256, PEOPLE))
    if found is None and rubric.hears:
        heard = judge_identity.partition("|calls:")[0]  # how it is asked has nothing to do with hearing
        found = _read(_path(heard, "", "", HEARING))
    return found


def records() -> list[Record]:
    """Every proof there is, in the order of judges and rubrics."""
    found = [record for path in sorted(folder().glob("*.json")) if (record := _read(path)) is not None]
    return sorted(found, key=lambda record: (record.identity, record.rubric))


def _path(identity: str, rubric: str, sha256: str, how: str) -> Path:
    key = hashlib.sha256("\n".join((identity, rubric, sha256, how)).encode()).hexdigest()[:16]
    return folder() / f"{key}.json"


def _read(path: Path) -> Record | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{shown(str(path))}: cannot be read: {error.strerror}") from None
    try:
        record = msgspec.json.decode(data, type=Record)
    except msgspec.DecodeError as error:
        raise DataError(f"{shown(str(path))}: is no record of a judge ({error}); delete it") from None
    return record if record.version == VERSION else None
