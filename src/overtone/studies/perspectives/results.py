"""Results of jobs on disk: predictions per item, a file per job, or many jobs packed into one file.

A packed file has the jobs of one split, seed and tuning. Ratings are rounded to 16 bits of a job's own range,
log-likelihoods to 1/8. A question whose chosen option would change by this, in any scoring, is kept in full, so every
accuracy is exact.
"""

from __future__ import annotations

import io
import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overtone.errors import DataError
from overtone.paths import write_whole
from overtone.rated_sentences import Array

from .answers import KEY_FILE, Answers
from .design import SCORINGS, Job, Study

LEVELS = 2**16 - 1  # between the smallest and the largest rating of a job
NAT = 8  # steps of a nat
ARM, PROMPT = 0, 2  # axes along which predictions change little
LARGEST = 5_000_000  # bytes of a file


@dataclass(frozen=True)
class Result:
    """One job with facts about its run (seconds, losses, hashes) and its predictions for each item."""

    job: Job
    about: dict[str, Any]
    arrays: dict[str, Array]

    @property
    def file(self) -> str:
        if self.job.arm == "base" and not self.job.tuned:  # it rated all rows, so its arrays have another length
            return "base.xz"
        return f"{self.job.split}.{self.job.seed}" + (".tuned" if self.job.tuned else "") + ".xz"


def read(folder: Path, study: Study, data: str) -> dict[Job, Result]:
    """Read all results in a folder that were made from the data with this SHA-256, packed or not.

    Raises DataError for a damaged file, and for results of another study file or of other data.
    """
    out = {}
    for path in paths(folder):
        for result in read_file(path):
            for name, what, expected in (("study", "study file", study.sha256), ("data", "data", data)):
                if result.about.get(name) != expected:
                    raise DataError(
                        f"{path}: {result.job.key} was made with another {what} (SHA-256 "
                        f"{str(result.about.get(name))[:12]}…, here {expected[:12]}…). Use another folder, or the "
                        f"{what} that it was made with"
                    )
            out[result.job] = result
    return out


def paths(folder: Path) -> list[Path]:
    """Return the files of results in a folder."""
    return [path for path in sorted((*folder.glob("*.xz"), *folder.glob("*.npz"))) if path.name != KEY_FILE]


def add(results: Iterable[Result], folder: Path, answers: dict[str, Answers]) -> list[Path]:
    """Pack results into their files in a folder, beside the existing ones. Return the files."""
    files: dict[str, dict[Job, Result]] = defaultdict(dict)
    for result in results:
        files[result.file][result.job] = result
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, new in files.items():
        path = folder / name
        merged = {result.job: result for result in (read_file(path) if path.exists() else [])} | new
        packed = lzma.compress(_packed(list(merged.values()), answers), preset=9 | lzma.PRESET_EXTREME)
        if len(packed) > LARGEST:
            raise ValueError(f"{path}: {len(packed)} bytes are more than {LARGEST}")
        write_whole(path, packed)
        written.append(path)
    return written


def write_file(path: Path, about: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write one job's result atomically, so that a killed run leaves no incomplete file."""
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, file.getvalue())


def read_file(path: Path) -> list[Result]:
    """Return the results of a packed file, or of one job. Raises DataError for a damaged file."""
    try:
        if path.suffix == ".xz":
            return list(_unpacked(lzma.decompress(path.read_bytes())))
        with np.load(path) as file:
            about = json.loads(str(file["about"]))
            return [Result(_job(about), about, {name: file[name] for name in file.files if name != "about"})]
    except Exception as error:  # a damaged archive fails in many ways
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: not a result of a study, or damaged ({reason}). Delete it and run again") from error


def _job(about: dict[str, Any]) -> Job:
    return Job(**{name: about[name] for name in ("split", "part", "arm", "seed", "tuned")})


# ── packing ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def _packed(results: Sequence[Result], answers: dict[str, Answers]) -> bytes:
    """Return the bytes of an archive of one array per group of jobs and outcome, and the rows kept in full."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda r: (r.job.part, r.job.arm)):
        groups[result.job.part].append(result)
    arrays: dict[str, Array] = {}
    for part, members in groups.items():
        for name in members[0].arrays:
            values = np.stack([member.arrays[name] for member in members])
            if name == "emobank":
                limits = np.stack((values.min((1, 2)), values.max((1, 2))), 1)
                arrays[f"{part}|limits|"], values = limits, _planes(_rating_steps(values, limits), PROMPT)
            elif "/" in name:
                values = _planes(_likelihood_steps(values) - _reference(name, members), ARM)
            arrays[f"{part}|{name}"] = values
        for k, member in enumerate(members):
            for name, rows in exact_rows(member.arrays, answers).items():
                arrays[f"{part}|{k}|{name}"] = rows.astype(np.uint16)
                full = [member.arrays[of][rows].T for of in member.arrays if of.startswith(f"{name}/")]
                raw = np.ascontiguousarray(np.concatenate(full).astype("<f4"))
                arrays[f"{part}|{k}|{name}|full"] = raw.view(np.uint8).reshape(*raw.shape, 4).transpose(2, 0, 1)
    abouts = {part: [member.about for member in members] for part, members in groups.items()}
    file = io.BytesIO()
    np.savez(file, about=np.array(json.dumps(abouts).encode()), **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpacked(raw: bytes) -> Iterator[Result]:
    with np.load(io.BytesIO(raw)) as file:
        for part, abouts in json.loads(file["about"].item()).items():
            whole: dict[str, Array] = {}
            steps: dict[str, Array] = {}
            for name in (key.split("|")[1] for key in file.files if key.startswith(f"{part}|") and key.count("|") == 1):
                whole[name] = file[f"{part}|{name}"]
                if name == "emobank":
                    whole[name] = _ratings(_joined(whole[name], PROMPT), file[f"{part}|limits|"])
                elif "/" in name:
                    steps[name] = _joined(whole[name], ARM) + steps.get(_words(name), np.uint16(0))
                    whole[name] = _likelihoods(steps[name])
            for k, about in enumerate(abouts):
                arrays = {name: values[k].copy() for name, values in whole.items()}
                for name in sorted({of.split("/")[0] for of in arrays if f"{part}|{k}|{of.split('/')[0]}" in file}):
                    rows, planes = file[f"{part}|{k}|{name}"], file[f"{part}|{k}|{name}|full"]
                    full = np.ascontiguousarray(planes.transpose(1, 2, 0)).view("<f4")[..., 0]
                    conditions = [of for of in arrays if of.startswith(f"{name}/")]
                    for condition, values in zip(conditions, np.split(full, len(conditions)), strict=True):
                        arrays[condition][rows] = values.T
                yield Result(_job(about), about, arrays)


def _rating_steps(values: Array, limits: Array) -> Array:
    """Return ratings, (jobs, items, 2, 3), as whole steps between the limits, (jobs, 2, 3)."""
    low, high = (limits[:, i, None, None].astype(float) for i in range(2))
    return np.asarray(np.rint((values - low) / np.maximum(high - low, 1e-12) * LEVELS).astype(np.uint16))


def _ratings(steps: Array, limits: Array) -> Array:
    low, high = (limits[:, i, None, None].astype(float) for i in range(2))
    return np.asarray((low + (high - low) * (steps / LEVELS)).astype(np.float32))


def _likelihood_steps(values: Array) -> Array:
    """Return whole steps below 0. An option that a question does not have, −inf, is 0, so the others begin at 1."""
    there = np.isfinite(values)
    steps = np.where(there, 1 - np.rint(np.where(there, values, 0.0) * NAT), 0)
    if steps.min() < 0 or steps.max() >= 2**16:
        raise ValueError(f"log-likelihoods must be from {-(2**16) // NAT} to 0")
    return steps.astype(np.uint16)


def _likelihoods(steps: Array) -> Array:
    return np.where(steps == 0, -np.inf, (1 - steps.astype(np.float32)) / NAT).astype(np.float32)


def _words(name: str) -> str:
    """Return the array that this one is kept as a difference to, "" for none: heard or told words are like the true."""
    return "open/words" if name in ("open/heard", "open/told") else ""


def _reference(name: str, members: Sequence[Result]) -> Array:
    if not (words := _words(name)):
        return np.zeros(1, np.uint16)
    return _likelihood_steps(np.stack([member.arrays[words] for member in members]))


def _planes(steps: Array, axis: int) -> Array:
    """Return what compresses well: changes along an axis, their low and high bytes apart, items last."""
    first = np.zeros_like(steps.take([0], axis))
    change = np.diff(steps, axis=axis, prepend=first).view(np.int16)
    small = ((change << 1) ^ (change >> 15)).view(np.uint16)  # small changes of either sign become small numbers
    small = np.moveaxis(small, 1, -1)
    return np.stack((small & 255, small >> 8), 1).astype(np.uint8)


def _joined(planes: Array, axis: int) -> Array:
    """Undo `_planes`."""
    small = np.moveaxis(planes[:, 0].astype(np.uint16) | (planes[:, 1].astype(np.uint16) << 8), -1, 1)
    change = (small >> 1) ^ (0 - (small & 1)).astype(np.uint16)
    return np.cumsum(change, axis=axis, dtype=np.uint16)


def exact_rows(arrays: dict[str, Array], answers: dict[str, Answers]) -> dict[str, Array]:
    """Return the questions of each set whose choice would change through rounding, in any condition and scoring."""
    rounded = {name: _likelihoods(_likelihood_steps(a)) for name, a in arrays.items() if "/" in name}
    out = {}
    for name in sorted({of.split("/")[0] for of in rounded}):
        asked = answers["dream" if name == "tuned" else name]
        changed = np.zeros(len(asked), bool)
        for condition in (of.split("/")[1] for of in rounded if of.startswith(f"{name}/") and of != f"{name}/none"):
            for scoring in SCORINGS:
                if scoring != "less" or f"{name}/none" in arrays:
                    before, after = (asked.chosen(a, name, condition, scoring) for a in (arrays, rounded))
                    changed |= before != after
        out[name] = np.flatnonzero(changed)
    return out
