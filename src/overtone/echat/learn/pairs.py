"""Preference pairs as training reads them: a pack whose records are the chosen replies, each with the rejected one.

`overtone export --format preferences` writes them as JSON Lines; `pack` puts their clips beside them. What a model
thought before a reply comes along and is read back into words and labels: a pair is laid out as the model said it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.echat.data import layout, think
from overtone.echat.data.containers import RATE, Pack, PackWriter
from overtone.echat.data.labels import is_reply, tag
from overtone.echat.data.layout import Task, Think, Tokens
from overtone.echat.data.records import Record, from_raw, to_raw
from overtone.echat.speech import SpeechTokens
from overtone.errors import DataError
from overtone.paths import read_plain, sha256, shown

TASK = "<S2TCHAT> <TEXT2TOKEN>"
DATASET = "preferences"
LIMIT = 1 << 30  # bytes of a file of pairs


class Side(Struct, frozen=True):
    """A reply, as far as it is needed here."""

    text: str
    thought: str = ""
    audio: str = ""
    speech_tokens: tuple[int, ...] = ()
    emotion: str = ""


class Pair(Struct, frozen=True):
    """One line of the file; what else stands there is for people."""

    id: str
    clip: str
    chosen: Side
    rejected: Side
    part: str = "train"
    group: str = ""
    words: str = ""
    clip_sha256: str = ""


class Both(Struct, frozen=True):
    """A pair as two records that share a clip; `thinks` says how each side's thought is laid out, "" for none."""

    chosen: Record
    rejected: Record
    thinks: tuple[Think, Think] = ("", "")

    def lay(
        self, task: Task, tok: Tokens, *, thinking: bool, tags: bool = False
    ) -> tuple[layout.Sequence, layout.Sequence]:
        """Both sequences. Raises Unfit where a side lacks what the task needs. Without thoughts where one has none.
        With `tags` the model begins every reply with the tag of its emotion; where that is not known, none is made up.
        """
        made = []
        for record, how in ((self.chosen, self.thinks[0]), (self.rejected, self.thinks[1])):
            way: Think = how if thinking and all(self.thinks) else ""
            rng = random.Random(0)  # decides only about labels that a thought lacks: see _way
            told = (tags and bool(record.reply_emotion)) or (way == "natural" and _tagged(record))
            made.append(layout.build(record, task, tok, think=way, rng=rng, reply_tag=told))
        return made[0], made[1]


def read(path: Path) -> list[Pair]:
    """The pairs of a file; it may be empty. Raises DataError with the line that is wrong."""
    found, seen = [], set()
    for number, line in enumerate(read_plain(path, LIMIT).splitlines(), start=1):
        where = f"{shown(str(path))} line {number}"
        if not line.strip():
            continue
        try:
            pair = msgspec.json.decode(line, type=Pair)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataError(
                f"{where}: not a preference pair: {error}; 'overtone export --format preferences' writes them"
            ) from None
        if pair.id in seen:
            raise DataError(f"{where}: the pair {shown(pair.id)!r} comes twice; remove one")
        if not pair.clip:
            raise DataError(f"{where}: the pair {shown(pair.id)!r} has no clip; was its run made without the data?")
        seen.add(pair.id)
        found.append(pair)
    return found


def pack(paths: Sequence[Path], out: Path, tokens: SpeechTokens | None = None) -> int:
    """Write the pairs of these files as one pack; how many. Replies with a sound and without tokens get those of
    `tokens`: what it hears in the sound, which need not be what the model wrote."""
    pairs = [pair for path in paths for pair in read(path)]
    if not pairs:
        raise DataError(f"{', '.join(shown(str(path)) for path in paths)}: holds no pair")
    check_apart((pair.group, pair.part) for pair in pairs)
    clips: dict[str, NDArray[np.float32]] = {}
    with PackWriter(out) as writer:
        for pair in pairs:
            if pair.clip not in clips:
                clips.clear()  # pairs of one clip stand together
                clips[pair.clip] = _clip(pair)
            record = _record(pair, pair.chosen, tokens)
            rejected = to_raw(_record(pair, pair.rejected, tokens))
            extra = {"part": pair.part, "group": pair.group, "rejected": rejected}
            writer.add(msgspec.structs.replace(record, extra=extra), [clips[pair.clip]])
        return writer.count


def check_apart(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise DataError where pairs (script, part) of one script are learnt from and held out."""
    parts: dict[str, str] = {}
    for group, part in pairs:
        if group and parts.setdefault(group, part) != part:
            raise DataError(
                f"the script {shown(group)!r} is learnt from and held out; export both files with the same --hold-out "
                "and --seed"
            )


def of_pack(source: Pack) -> list[Both]:
    """The pairs of a pack. Raises DataError for a pack of something else."""
    found = []
    where = shown(str(source.folder))
    for record in source.records:
        raw = record.extra.get("rejected")
        if not isinstance(raw, dict):
            raise DataError(
                f"{where}: {shown(record.key)} has no rejected reply: this is no pack of preference pairs; "
                "make one with 'overtone export --format preferences'"
            )
        rejected = from_raw(raw, f"{where}: {shown(record.key)}, rejected", record.home)
        rejected = msgspec.structs.replace(rejected, wav=record.wav)
        found.append(Both(record, rejected, (_way(record), _way(rejected))))
    check_apart((both.chosen.group, both.chosen.part) for both in found)
    return found


def _clip(pair: Pair) -> NDArray[np.float32]:
    path = Path(pair.clip)
    if pair.clip_sha256 and path.is_file() and sha256(path) != pair.clip_sha256:
        raise DataError(f"{shown(pair.clip)}: changed since {shown(pair.id)!r} was judged (another SHA-256)")
    return audio.read(path, rate=RATE)[0]


def _record(pair: Pair, side: Side, tokens: SpeechTokens | None) -> Record:
    codes = side.speech_tokens
    if not codes and side.audio and tokens is not None:
        codes = tuple(int(code) for code in tokens.encode(*audio.read(Path(side.audio))))
    inner = side.thought.removeprefix(think.OPEN).removesuffix(think.CLOSE)
    heard = think.parse(f"{think.OPEN}{inner}{think.CLOSE}x") if side.thought else think.Thought()
    return Record(
        pair.id,
        side.text,
        "clip",
        heard.question or pair.words,
        heard.labels,
        heard.reply_emotion or (side.emotion if is_reply(side.emotion) else ""),
        inner,
        codes,
        dataset=DATASET,
        task=TASK,
    )


def _thought(record: Record) -> think.Thought:
    spoken = tag(record.reply_emotion) if record.reply_emotion else ""
    return think.parse(f"{think.OPEN}{record.think_str}{think.CLOSE}{spoken}x")


def _tagged(record: Record) -> bool:
    """Whether its thought is one in tags, well formed or not."""
    return bool(record.think_str) and not _thought(record).natural


def _way(record: Record) -> Think:
    """How its thought is laid out: one in tags that has them all piece by piece as in training, any other as it
    stands, also where a place is empty: laid out anew, it would be hidden or have a default."""
    if not record.think_str:
        return ""
    found = _thought(record)
    whole = not found.malformed and len(found.labels.known()) == len(think.TAGGED)
    return "label" if _tagged(record) and whole else "natural"


def problems(pairs: Iterable[Both], codes: int) -> list[str]:
    """What training would stumble over, in words."""
    found: list[str] = []
    for both in pairs:
        for name, record in (("chosen", both.chosen), ("rejected", both.rejected)):
            found += [f"{shown(record.key)}, {name}: {why}" for why in record.problems(codes)]
            if not record.txt.strip():
                found.append(f"{shown(record.key)}, {name}: no words")
    return found
