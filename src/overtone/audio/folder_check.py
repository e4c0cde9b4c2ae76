"""Check a folder of audio before a run: empty, cut, silent, clipped, missing, duplicate or unlabelled files."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from overtone.audio._manifest import FILE, LEFT_OUT, manifest_hashes
from overtone.audio._measure import clipped_share
from overtone.audio._read import decode, read_bytes
from overtone.audio._references import SUFFIXES, Labels, read_labels
from overtone.audio._wav import Fault, is_wav, parse_wav
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.processes import usable_cores

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_LOWEST_RATE = 8_000
_SILENT_PEAK = 10.0 ** (-60 / 20)
_CLIPPED = 0.001


class Finding(Struct, frozen=True, order=True):
    """A problem with a file, and what to do about it. `path` is relative to the folder, with `/` between parts."""

    severity: Severity
    code: str
    path: str
    text: str


class _Heard(Struct, frozen=True):
    """The result for one audio file: its findings, and a hash of its decoded content if it has any."""

    findings: tuple[Finding, ...]
    rate: int = 0
    content: bytes = b""
    digest: str = ""  # SHA-256 of the file, if a manifest lists it


def check_folder(root: Path) -> list[Finding]:
    """Return all findings in `root` and below, errors first. Raises DataError if `root` is not a folder.

    Each audio file is decoded. If the folder has EchoMind's script and question files, every file they refer to must
    exist. If it has a built set's manifest, every listed file must have the SHA-256 given there. Hidden folders are
    skipped; links that leave the folder are errors.
    """
    if not root.is_dir():
        raise DataError(f"{shown(str(root))} is not a folder; give the folder of audio files")
    files, findings = _walk(root)
    labels = read_labels(root, files)
    findings += [
        _finding("error", "unreadable", name, f"this JSON cannot be used: {why}") for name, why in labels.broken
    ]
    findings += [_finding("error", "language", name, f"wrong language: {why}") for name, why in labels.bad_tags]
    sounds = [name for name in files if name.lower().endswith(SUFFIXES)]
    listed = manifest_hashes(root)
    # Decoding and hashing release the interpreter's lock, so a few threads help even a small machine.
    with ThreadPoolExecutor(max_workers=min(4, usable_cores())) as pool:
        heard = dict(zip(sounds, pool.map(lambda name: _listen(root, name, name in listed), sounds), strict=True))
    for one in heard.values():
        findings += one.findings
    findings += _mixed_rates(heard)
    findings += _doubles(heard)
    findings += (missing := _missing(root, labels, sounds))
    findings += _changed(listed, heard, {*files, *(f.path for f in missing)})
    findings += _unlabelled(labels, sounds)
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.code, f.path))


def _walk(root: Path) -> tuple[list[str], list[Finding]]:
    """Return the paths of all files under `root`, sorted, and findings on links that cannot be followed or leave it."""
    files: list[str] = []
    findings: list[Finding] = []

    def refused(error: OSError) -> None:
        name = os.path.relpath(error.filename, root) if error.filename else "."
        findings.append(_finding("error", "unreadable", name, f"this folder cannot be read: {error.strerror}"))

    for folder, folders, names in os.walk(root, onerror=refused):
        folders[:] = sorted(d for d in folders if not d.startswith("."))
        here = Path(folder)
        for name in [*folders, *names]:
            path = here / name
            relative = path.relative_to(root).as_posix()
            if path.is_symlink():
                try:
                    inside(root, relative)
                except DataError:
                    text = "this link leaves the folder; copy what it points to into the folder"
                    findings.append(_finding("error", "escapes", relative, text))
                    continue
            if name in names and not name.startswith("."):
                files.append(relative)
    return sorted(files), findings


def _listen(root: Path, name: str, hashed: bool = False) -> _Heard:
    """Decode one file and check it without regard to other files. With `hashed`, also compute its SHA-256."""
    findings: list[Finding] = []
    digest = ""
    try:
        data = read_bytes(root / name)
        digest = sha256(data).hexdigest() if hashed else ""
        if is_wav(data):
            wav = parse_wav(data, name)
            if wav.streamed:
                text = "its header was written for streaming and has no length; Overtone uses the file's size"
                findings.append(_finding("info", "streaming-header", name, text))
        samples, rate = decode(data, name=name)
    except Fault as fault:
        text = f"{fault.what}; {_ADVICE.get(fault.code, 'make or copy it again')}"
        return _Heard((*findings, _finding("error", fault.code, name, text)), digest=digest)
    peak, clipped = float(np.abs(samples).max()), clipped_share(samples)
    if peak < _SILENT_PEAK:
        text = "silent: its peak is below -60 dBFS; record or make it again"
        findings.append(_finding("error", "silent", name, text))
    if clipped > _CLIPPED:
        text = f"clipped: {clipped:.1%} of it is at full scale; make it again at a lower level"
        findings.append(_finding("warning", "clipped", name, text))
    if rate < _LOWEST_RATE:
        text = f"its rate of {rate} Hz is below {_LOWEST_RATE} Hz, too low for speech; make it again at 16000 or more"
        findings.append(_finding("error", "wrong-rate", name, text))
    content = blake2b(samples.data, digest_size=16, key=rate.to_bytes(4, "little")).digest()
    return _Heard(tuple(findings), rate, content, digest)


_ADVICE = {
    "missing": "check the data folder and its download",
    "too-long": "cut it, or leave it out",
    "foreign": "convert it to WAV or FLAC, or leave it out",
    "wrong-rate": "make it again at 16000 Hz or more",
}


def _mixed_rates(heard: dict[str, _Heard]) -> list[Finding]:
    counts = Counter(one.rate for one in heard.values() if one.rate)
    if len(counts) < 2:
        return []
    listed = ", ".join(f"{rate} Hz × {n}" for rate, n in sorted(counts.items()))
    text = f"the sounds have several rates ({listed}); each is sent to a model at its own rate"
    return [_finding("info", "mixed-rates", ".", text)]


def _doubles(heard: dict[str, _Heard]) -> list[Finding]:
    first: dict[bytes, str] = {}
    findings = []
    for name, one in heard.items():
        if one.content and first.setdefault(one.content, name) != name:
            text = f"the same sound as {shown(first[one.content])}; keep one, or correct whichever was meant to differ"
            findings.append(_finding("warning", "duplicate", name, text))
    return findings


def _changed(listed: dict[str, str], heard: dict[str, _Heard], known: set[str]) -> list[Finding]:
    """Return findings on files that differ from the built set's manifest, and on listed files that are missing.

    Missing files in `known` are skipped: they exist, or were already reported as missing.
    """
    owner = {digest: name for name, digest in listed.items()}
    findings = []
    for name, wanted in listed.items():
        if name not in known:
            if name.startswith(LEFT_OUT):  # clips that failed a gate: a copy of the set may omit them
                continue
            text = f"{FILE} lists it, but it does not exist; build the set again, or copy it again"
            findings.append(_finding("error", "missing", name, text))
        elif name in heard and heard[name].digest and heard[name].digest != wanted:
            other = owner.get(heard[name].digest)
            what = f"it holds the sound of {shown(other)}" if other else "its SHA-256 differs"
            text = f"not the file that {FILE} lists: {what}; build the set again, or copy it again"
            findings.append(_finding("error", "changed", name, text))
    return findings


def _missing(root: Path, labels: Labels, sounds: list[str]) -> list[Finding]:
    """Return findings on references to missing files, one per path, however many questions use it."""
    findings: dict[tuple[Path, str], Finding] = {}
    elsewhere: dict[str, str] = {}
    for name in sounds:
        elsewhere.setdefault(name.rpartition("/")[2], name)
    checked: set[tuple[Path, str]] = set()
    for reference in labels.references:
        key = (reference.home, reference.path)
        if key in checked:
            continue
        checked.add(key)
        where = shown(reference.named_in)
        called = f"{Path(os.path.relpath(reference.home, root)).as_posix()}/{reference.path}"  # may be one folder up
        try:
            path = inside(reference.home, reference.path)
        except DataError:
            text = f"{where} names a path that leaves its folder; correct that file, and doubt its origin"
            findings[key] = _finding("error", "escapes", called, text)
            continue
        if _is_file(path):
            continue
        other = elsewhere.get(reference.path.rpartition("/")[2])
        if other:
            text = f"{where} names it, but a file of that name is at {shown(other)}; move it"
            findings[key] = _finding("warning", "misplaced", called, text)
        else:
            text = f"{where} names it, but it does not exist; fetch or copy it again"
            findings[key] = _finding("error", "missing", called, text)
    return list(findings.values())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a file with a name that is too long for the file system cannot exist
        return False


def _unlabelled(labels: Labels, sounds: list[str]) -> list[Finding]:
    if not labels.mentioned:  # a plain folder of audio has no labels
        return []
    text = "no JSON or table in the folder mentions it; remove it, or describe it there"
    loose = [name for name in sounds if name.rpartition("/")[2] not in labels.mentioned]
    return [_finding("warning", "unlabelled", name, text) for name in loose]


def _finding(severity: Severity, code: str, path: str, text: str) -> Finding:
    try:
        path.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8 could not be written as JSON
        path = shown(path)
    return Finding(severity, code, path, shown(text))
