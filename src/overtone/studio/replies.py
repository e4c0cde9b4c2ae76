"""The spoken replies of a run as a study uses them: sounds, words, and the identity to which labels refer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile
from msgspec import Struct

from overtone.audio import read as read_sound
from overtone.errors import AudioError, DataError, StoreError
from overtone.judges.judge_run import answered
from overtone.judges.reply_texts import style, texts
from overtone.paths import inside, sha256, shown
from overtone.runs.store import Ask, Store

TARGET_DB = -26.0  # level of the loudest part of every system's replies together
PEAK = 0.97  # full scale is 1


class Sound(Struct, frozen=True):
    """A sound on disk. It is not played if the file's SHA-256 has changed."""

    path: str
    sha256: str


class SpokenReply(Struct, frozen=True):
    """One spoken reply of a run to an item. `clip` is the user's utterance, if its file exists."""

    run: str
    item: str
    condition: str
    repeat: int
    group: str
    style: str
    texts: dict[str, str]  # cue, topic, words, reply
    sound: Sound
    clip: Sound | None = None
    reference: Sound | None = None  # the benchmark's spoken reply
    language: str = ""  # BCP-47 tag

    @property
    def key(self) -> tuple[str, str, int]:
        """The request that the reply answers. Replies of several runs to the same request share it."""
        return self.item, self.condition, self.repeat

    @property
    def id(self) -> str:
        """A name for this reply in the study, which does not reveal the run."""
        return hashlib.sha256(repr((self.run, *self.key, self.sound.sha256)).encode()).hexdigest()[:16]


class UserClip(Struct, frozen=True):
    """The user's clip of one item, of a run or of a set."""

    item: str
    group: str
    style: str
    cue: str  # slug; "" for none
    words: str
    language: str
    path: str  # from the set's folder; the same clip has the same path in every source
    sound: Sound


class RunReplies(Struct, frozen=True):
    """A source of replies and clips (a run), or of clips only (a built set).

    `silent` is the number of answered conversations without audio.
    """

    name: str
    folder: Path
    replies: tuple[SpokenReply, ...]
    silent: int
    benchmark: str = ""
    kind: Literal["run", "set"] = "run"
    clips: tuple[UserClip, ...] = ()


def read(folder: Path, name: str = "") -> RunReplies:
    """Read the spoken replies of a run: the last reply of each answered conversation, first repeat only.

    Raises StoreError if the folder is not a run, and DataError if a stored sound is missing.
    """
    found: list[SpokenReply] = []
    silent = 0
    with Store.read(folder) as store:
        meta = store.meta()
        called = name or meta.get("label") or folder.resolve().name
        root, clips = meta.get("root", ""), store.clips()
        for ask in answered(store):
            if ask.repeat or ask.item.part:
                continue
            if not ask.reply.audio:
                silent += 1
                continue
            sound = store.audio_path(ask.reply.audio)
            if not _exists(sound):
                raise DataError(
                    f"{shown(str(folder))}: the reply to {shown(ask.item.id)} has lost its sound {sound.name}; "
                    "restore the run's folder audio, or run 'overtone verify' to list all losses"
                )
            clip, reference = _clip(ask, root, clips), _reference(ask, root)
            found.append(_reply(called, ask, Sound(str(sound), ask.reply.audio), clip, reference))
    return RunReplies(called, folder, tuple(found), silent, meta.get("benchmark", ""))


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise StoreError(f"{shown(str(path))}: {error.strerror}") from None


def _reply(run: str, ask: Ask, sound: Sound, clip: Sound | None, reference: Sound | None) -> SpokenReply:
    known = texts(ask)
    shared = {name: known[name] for name in ("cue", "topic", "words", "reply")}
    item = ask.item
    return SpokenReply(
        run, item.id, ask.condition, ask.repeat, item.group or item.case, style(item), shared, sound, clip, reference,
        item.language,
    )  # fmt: skip


def _clip(ask: Ask, root: str, clips: dict[str, tuple[str, int, int, float]]) -> Sound | None:
    clip = ask.item.turns[-1].clip
    if clip is None or (path := _file(root, clip.path)) is None:
        return None
    return Sound(str(path), clips[clip.path][0] if clip.path in clips else sha256(path))


def _reference(ask: Ask, root: str) -> Sound | None:
    path = _file(root, ask.item.turns[-1].reference_audio or ask.item.reference_audio)
    return Sound(str(path), sha256(path)) if path else None


def _file(root: str, relative: str) -> Path | None:
    """Return a file of the benchmark, or None if it is not there."""
    if not root or not relative:
        return None
    path = inside(Path(root), relative)
    return path if _exists(path) else None


def check(sound: Sound) -> None:
    """Raise DataError if a sound is missing or has changed since the run."""
    path = Path(sound.path)
    try:
        same = sha256(path) == sound.sha256
    except OSError as error:
        raise DataError(f"{shown(sound.path)}: cannot be read ({error.strerror}); restore it") from None
    if not same:
        raise DataError(f"{shown(sound.path)} has changed since the run; restore the file, or make a new study")


def seconds(sounds: Sequence[Sound]) -> float:
    """Return the total length of sounds. Raises DataError for one that cannot be read."""
    total = 0.0
    for sound in sounds:
        try:
            total += float(soundfile.info(sound.path).duration)
        except (RuntimeError, OSError) as error:
            raise DataError(f"{shown(sound.path)}: cannot be read as audio ({error})") from None
    return total


def gain_db(sounds: Sequence[Sound]) -> float:
    """Return one gain in dB for all sounds of a system: to the common level, without clipping any of them.

    One gain for the whole system keeps the level differences within it, which may carry the cue.
    """
    power, samples, peak = 0.0, 0, 0.0
    for sound in sounds:
        try:
            wave, _ = read_sound(Path(sound.path))
        except AudioError as error:
            raise DataError(f"{shown(sound.path)}: {error}") from None
        power += float(np.sum(np.square(wave, dtype=np.float64)))
        samples += len(wave)
        peak = max(peak, float(np.max(np.abs(wave), initial=0.0)))
    if not samples or peak <= 0:
        raise DataError("all replies of the run are silent; a listening test needs sound")
    level = 10 * np.log10(power / samples)
    return round(float(min(TARGET_DB - level, 20 * np.log10(PEAK / peak))), 2)
