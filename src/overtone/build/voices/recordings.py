"""A folder of people's recordings (takes), one file per script and style, in which the speaker delivers the cue.

SPEC: `recordings:takes?female=ann,eve&male=bob,joe&licence=CC-BY-4.0`

A take is named like EchoMind's clips (`id_0101_male_health_target.wav`) or simply `id_0101_target.wav`, in any
subfolder. A subfolder with a speaker's name holds that speaker's takes. `speakers.csv` in the folder may name the
speakers instead: its columns are `speaker`, `sex` and, if one folder has takes of several people, `case_id`.

`recordings:STUDY.toml` opens the takes of a recording study instead.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath

from overtone import audio
from overtone.audio import Samples
from overtone.build.tables import read_table
from overtone.build.voices._programs import sounding
from overtone.build.voices._records import (
    PACE,
    SEXES,
    UNKNOWN,
    Engine,
    How,
    Sex,
    Speaker,
    VoiceError,
    cast_of,
    named,
    options,
)
from overtone.errors import AudioError, DataError, UsageError
from overtone.paths import inside, shown, user_path
from overtone.spec import Spec

KEYS: dict[str, type] = {**dict.fromkeys(SEXES, str), "licence": str}
ENDINGS = (".wav", ".flac", ".mp3", ".ogg", ".opus")
TABLE = "speakers.csv"


class Recordings:
    """Takes of people, found by name. Other words cannot be spoken."""

    native = True
    human = True

    def __init__(self, spec: Spec) -> None:
        given = options(spec, KEYS)
        if not spec.name:
            raise UsageError("recordings: no folder is named; write recordings:FOLDER?female=NAME,…&male=NAME,…")
        self._folder = user_path(spec.name)
        if not self._folder.is_dir():
            raise UsageError(f"recordings: {shown(spec.name)} is not a folder; give the folder with the takes")
        self.licence: str = given.get("licence", UNKNOWN)
        people = named(spec, given, {"male": (), "female": ()})
        self._of_case: dict[str, list[str]] = {}
        self._read_table(people)
        self._people = cast_of(spec, people)
        if not self._people:
            raise UsageError(
                f"recordings: no speaker is named; write recordings:{shown(spec.name)}?female=NAME,…&male=NAME,…, "
                f"or put {TABLE} with the columns speaker and sex into the folder"
            )

    def speakers(self) -> tuple[Speaker, ...]:
        return self._people

    def speakers_of(self, script_id: str) -> tuple[Speaker, ...]:
        """Return the speakers that the table or the folders name for a script; all speakers if neither names any."""
        if script_id in self._of_case:
            return tuple(p for p in self._people if p.name in self._of_case[script_id])
        prefix = f"{script_id.casefold()}_"
        folders = {owner for stem, takes in self._takes.items() if stem.startswith(prefix) for owner in takes}
        mine = tuple(p for p in self._people if p.name in folders)
        return mine if mine and "" not in folders else self._people

    def identity(self) -> str:
        """Return an identity that changes when a take is added, removed or changed (by size and date)."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        seen = hashlib.sha256()
        for stem in sorted(self._takes):
            for owner, path in sorted(self._takes[stem].items()):
                info = path.stat()
                seen.update(f"{stem}/{owner}/{info.st_size}/{info.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
        return f"recordings@{seen.hexdigest()[:12]}"

    def missing(self, wanted: Iterable[How]) -> list[str]:
        """Return the missing takes. Each is described by the file names that it may have."""
        return [" or ".join(f"{n}.wav" for n in _names(how)) for how in wanted if self._find(_names(how), "") is None]

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        path = self._find(_names(how), speaker.name)
        if path is None:
            lacking = ", ".join(map(shown, self.missing([how])))
            raise VoiceError(f"{shown(str(self._folder))}: a take is missing: {lacking}; record it")
        return self._read(path)

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        """Read `{case_id}_{style}_response.wav` if it was recorded."""
        stem = PurePosixPath(file).stem
        parts = stem.removesuffix("_response").split("_")
        case = "_".join(parts[:2]) if parts[0] == "id" else parts[0]
        path = self._find((stem, f"{_short(case, parts[-1], stem)}_response"), "")
        return self._read(path) if path else None

    def _read(self, path: Path) -> tuple[Samples, int]:
        try:
            return sounding(*audio.read(path), shown(str(path)))
        except AudioError as error:
            raise VoiceError(f"a take cannot be used: {error}") from None

    def _find(self, stems: Iterable[str], speaker: str) -> Path | None:
        """Return the speaker's own take, else a take without a named speaker, else any take."""
        for stem in stems:
            if takes := self._takes.get(stem.casefold()):
                return takes.get(speaker) or takes.get("") or next(iter(takes.values()))
        return None

    @cached_property
    def _takes(self) -> dict[str, dict[str, Path]]:
        """The files by stem, then by speaker ("" if the folder names none). Links that leave the folder are refused."""
        names = {p.name for p in self._people}
        by_stem: dict[str, dict[str, Path]] = {}
        for path in sorted(self._folder.rglob("*")):
            if path.suffix.lower() not in ENDINGS or not path.is_file():
                continue
            relative = path.relative_to(self._folder)
            real = inside(self._folder, relative.as_posix())
            owner = next((part for part in relative.parent.parts if part in names), "")
            takes = by_stem.setdefault(path.stem.casefold(), {})
            if owner in takes:
                first, second = shown(str(takes[owner])), shown(str(real))
                raise DataError(f"two takes have one name: {first} and {second}; keep one of them")
            takes[owner] = real
        return by_stem

    def _read_table(self, people: dict[Sex, tuple[str, ...]]) -> None:
        path = self._folder / TABLE
        if not path.is_file():
            return
        for where, row in read_table(path, ("speaker", "sex")):
            name, sex, case = (row.get(key, "").strip() for key in ("speaker", "sex", "case_id"))
            kind = next((s for s in SEXES if s == sex), None)
            if not name or kind is None:
                raise DataError(f"{where}: a row needs a speaker and a sex, male or female, not {shown(sex)!r}")
            if any(name in people[other] for other in SEXES if other != kind):
                raise DataError(f"{where}: {shown(name)!r} is named as male and as female")
            if name not in people[kind]:
                people[kind] = (*people[kind], name)
            if case:
                self._of_case.setdefault(case, []).append(name)


def load(spec: Spec) -> Engine:
    """Open a folder of takes, or the takes of a recording study if its file (STUDY.toml) is named."""
    if spec.name.endswith(".toml"):
        from overtone.studio.recorded_voice import StudyRecordings

        return StudyRecordings(spec)
    return Recordings(spec)


def _names(how: How) -> tuple[str, ...]:
    """Return the stems a take may have: the clip's own name, or script and style."""
    own = PurePosixPath(how.file).stem if how.file else ""
    return tuple(dict.fromkeys(name for name in (own, _short(how.case_id, how.style, own)) if name))


def _short(case: str, style: str, stem: str) -> str:
    """Return script and style and, for a dialogue, the turn, because its two turns share script and style."""
    turn = re.search(r"_(turn\d+)_", stem)
    return f"{case}_{turn[1]}_{style}" if turn else f"{case}_{style}"
