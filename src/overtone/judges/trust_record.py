"""Records of which judges are validated for which rubrics: small JSON files, written by `overtone judge`.

There are two ways to be validated. The judge agreed with people: the lower limit of the 95 % interval of Krippendorff's
α is at least BAR. Or, for rubrics with sounds, it passed the known-answer test.
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

HEARING = "known answers"  # `how` of a record that is valid for every rubric with sounds
PEOPLE = "agreed with people"
VERSION = 1


class Record(Struct, frozen=True):
    """Proof that a judge is validated. `rubric` and `sha256` are "" if it holds for all rubrics with sounds."""

    identity: str
    how: str
    rubric: str
    sha256: str
    dimensions: tuple[str, ...]  # the validated ones; empty: all
    sentence: str
    at: str
    version: int = VERSION
    numbers: dict[str, float] = {}  # results of other measurements than agreement with people


def folder() -> Path:
    """Return the folder of the records: OVERTONE_JUDGES, else `judges` in the user's data folder."""
    return user_data("OVERTONE_JUDGES", "judges")


def identity(judge: Judge, rubric: Rubric) -> str:
    """Return the settings of a judge that a validation depends on: the model, its access to sounds, and the questions
    per call.

    Temperature, seed and the number of repeats are not included.
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
    """Store a proof, replacing an older one of its kind. Without a rubric, it holds for all rubrics with sounds."""
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
    """Delete a proof because a later measurement failed."""
    _path(identity, rubric.name if rubric else "", rubric.sha256 if rubric else "", how).unlink(missing_ok=True)


def kept(identity: str, rubric: Rubric, *, how: str) -> Record | None:
    """Return the record of this kind, or None."""
    return _read(_path(identity, rubric.name, rubric.sha256, how))


def validated(judge_identity: str, rubric: Rubric) -> Record | None:
    """Return the proof for this judge and rubric, or None. Agreement with people is preferred to known answers."""
    record = _read(_path(judge_identity, rubric.name, rubric.sha256, PEOPLE))
    if record is None and rubric.hears:
        heard = judge_identity.partition("|calls:")[0]  # the number of calls does not affect hearing
        record = _read(_path(heard, "", "", HEARING))
    return record


def records() -> list[Record]:
    """Return all proofs, sorted by judge and rubric."""
    proofs = [record for path in sorted(folder().glob("*.json")) if (record := _read(path)) is not None]
    return sorted(proofs, key=lambda record: (record.identity, record.rubric))


def _path(identity: str, rubric: str, sha256: str, how: str) -> Path:
    key = hashlib.sha256("\n".join((identity, rubric, sha256, how)).encode()).hexdigest()[:16]
    return folder() / f"{key}.json"


def _read(path: Path) -> Record | None:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{shown(str(path))}: cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise DataError(f"{shown(str(path))}: is not a record of a judge ({error}); delete it") from None
    return record if record.version == VERSION else None
