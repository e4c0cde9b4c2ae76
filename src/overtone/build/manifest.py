"""The manifest of a built set: the inputs of each sound, the ingredients of the set, and its licence."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.audio._manifest import FILE as FILE
from overtone.audio._manifest import LEFT_OUT as LEFT_OUT
from overtone.audio._manifest import MAX_BYTES
from overtone.build.licence import Ingredient
from overtone.build.sound_plan import Options
from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, shown, write_whole


class Made(Struct, frozen=True, omit_defaults=True):
    """One sound. `made_from` is a hash of everything that went into it."""

    path: str
    sha256: str
    seconds: float
    dbfs: float  # root mean square
    peak: float  # of full scale
    case_id: str
    style: str
    voice: str
    made_from: str
    cue: str = ""
    also: tuple[str, ...] = ()  # cues in addition to `cue`
    manner: str = ""  # kind of its cue
    scene: str = ""
    take: int = 0  # number of earlier speakers who failed a gate
    recipe: dict[str, Any] = {}
    reply: str = ""  # the voice in which a reply is spoken
    ingredients: tuple[Ingredient, ...] = ()

    @property
    def kept(self) -> bool:
        return not self.path.startswith(LEFT_OUT)


class SpeakerRecord(Struct, frozen=True, omit_defaults=True):
    """A person whose recordings are in the set, under a pseudonym, and the uses that the person agreed to."""

    name: str
    voice: str  # male or female
    study: str  # id of the study
    consents: dict[str, bool]
    consent_sha: str  # version of the text that the person read
    licence: str
    guardian: bool = False  # agreed for a person who is not an adult


class Manifest(Struct, frozen=True):
    """The record that a build writes next to the clips. `status` says for each cue whether it is validated."""

    name: str
    version: str  # version of Overtone
    recipes: str  # version of the recipes
    licence: str
    options: Options
    release: bool
    status: dict[str, str]
    ingredients: tuple[Ingredient, ...]  # of all sounds, and the texts
    clips: tuple[Made, ...]
    speakers: tuple[SpeakerRecord, ...] = ()  # of recordings made in a study

    @property
    def takes(self) -> dict[str, int]:
        """The take number of each script whose take is not the first."""
        return {m.case_id: m.take for m in self.clips if m.take}


def open_folder(out: Path, name: str, *other: str) -> Manifest | None:
    """Return the manifest of an earlier build of the same set, or None for a new folder. Raises UsageError if the
    folder holds something else: another set, or one of the files in `other`."""
    path = out / FILE
    if path.is_file():
        manifest = read_manifest(out)
        if manifest.name != name:
            raise UsageError(f"{shown(str(out))} holds the set {manifest.name!r}; give another --out for {name!r}")
        return manifest
    if any((out / file).exists() for file in ("data_synthesis", "data_human", "audio_response", *other)):
        raise UsageError(f"{shown(str(out))} holds a benchmark that was not built here; give another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{shown(str(out))}: cannot create the folder: {error.strerror}; give another --out") from None
    return None


def read_manifest(out: Path) -> Manifest:
    path = out / FILE
    try:
        return msgspec.json.decode(read_plain(path, MAX_BYTES), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{shown(str(path))}: not a manifest of this builder ({error}); give another --out") from error


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise DataError(
            f"{shown(str(path))}: cannot be written: {error.strerror}; free some space, then run the same command "
            "again: finished sounds are kept"
        ) from error


def write_json(path: Path, value: object) -> None:
    write(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def same(out: Path, made: Made | None, made_from: str) -> bool:
    """Return whether a sound exists unchanged and was made from the same inputs."""
    if made is None or made.made_from != made_from:
        return False
    try:
        return hashlib.sha256((out / made.path).read_bytes()).hexdigest() == made.sha256
    except OSError:
        return False
