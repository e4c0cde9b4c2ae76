"""Read preference pairs for training: a pack whose records are the chosen replies, each with the rejected one.

`overtone export --format preferences` writes pairs as JSON Lines; `pack` adds their clips. The thought before a reply
is parsed into words and labels, so that training sees the reply in the form in which the model generated it.
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
from overtone.echat.data.exchange_records import Record, from_raw, to_raw
from overtone.echat.data.labels import is_reply, tag
from overtone.echat.data.layout import Task, Think, Tokens
from overtone.echat.speech import SpeechTokens
from overtone.errors import DataError
from overtone.paths import read_plain, sha256, shown

TASK = "<S2TCHAT> <TEXT2TOKEN>"
DATASET = "preferences"
LIMIT = 1 << 30  # maximum bytes of a file of pairs


class Side(Struct, frozen=True):
    """The fields of a reply that training needs."""

    text: str
    thought: str = ""
    audio: str = ""
    speech_tokens: tuple[int, ...] = ()
    emotion: str = ""


class Pair(Struct, frozen=True):
    """One line of the file. Its other fields are for human readers."""

    id: str
    clip: str
    chosen: Side
    rejected: Side
    part: str = "train"
    group: str = ""
    words: str = ""
    clip_sha256: str = ""


class Both(Struct, frozen=True):
    """A pair as two records that share a clip. `thinks` has the layout of the thought of each side, "" for no
    thought."""

    chosen: Record
    rejected: Record
    thinks: tuple[Think, Think] = ("", "")

    def lay_out(
        self, task: Task, tok: Tokens, *, thinking: bool, tags: bool = False
    ) -> tuple[layout.Sequence, layout.Sequence]:
        """Return both sequences. Raises Unfit if a side lacks a field that the task needs.

        Thoughts are left out if one side has none. With `tags`, every reply begins with the tag of its emotion, if
        known.
        """
        made = []
        for record, how in ((self.chosen, self.thinks[0]), (self.rejected, self.thinks[1])):
            think_as: Think = how if thinking and all(self.thinks) else ""
            rng = random.Random(0)  # affects only labels that a thought lacks: see _thought_layout
            tagged = (tags and bool(record.reply_emotion)) or (think_as == "natural" and _tagged(record))
            made.append(layout.build(record, task, tok, think=think_as, rng=rng, reply_tag=tagged))
        return made[0], made[1]


def read(path: Path) -> list[Pair]:
    """Read the pairs of a file, which may be empty. Raises DataError with the line of an invalid pair."""
    pairs, seen = [], set()
    for number, line in enumerate(read_plain(path, LIMIT).splitlines(), start=1):
        where = f"{shown(str(path))} line {number}"
        if not line.strip():
            continue
        try:
            pair = msgspec.json.decode(line, type=Pair)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise DataError(
                f"{where}: not a preference pair: {error}; create pairs with 'overtone export --format preferences'"
            ) from None
        if pair.id in seen:
            raise DataError(f"{where}: duplicate pair {shown(pair.id)!r}; remove one")
        if not pair.clip:
            raise DataError(
                f"{where}: the pair {shown(pair.id)!r} has no clip; its run may have been made without the data"
            )
        seen.add(pair.id)
        pairs.append(pair)
    return pairs


def pack(paths: Sequence[Path], out: Path, tokens: SpeechTokens | None = None) -> int:
    """Write the pairs of some files as one pack. Return the number of pairs.

    Replies with audio but without tokens are encoded with `tokens`; the result may differ from the model's own tokens.
    """
    pairs = [pair for path in paths for pair in read(path)]
    if not pairs:
        raise DataError(f"{', '.join(shown(str(path)) for path in paths)}: no pairs")
    check_apart((pair.group, pair.part) for pair in pairs)
    clips: dict[str, NDArray[np.float32]] = {}
    with PackWriter(out) as writer:
        for pair in pairs:
            if pair.clip not in clips:
                clips.clear()  # pairs of one clip are adjacent
                clips[pair.clip] = _clip(pair)
            record = _record(pair, pair.chosen, tokens)
            rejected = to_raw(_record(pair, pair.rejected, tokens))
            extra = {"part": pair.part, "group": pair.group, "rejected": rejected}
            writer.add(msgspec.structs.replace(record, extra=extra), [clips[pair.clip]])
        return writer.count


def check_apart(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise DataError if a script has pairs both in training and held out, given (script, part) tuples."""
    parts: dict[str, str] = {}
    for group, part in pairs:
        if group and parts.setdefault(group, part) != part:
            raise DataError(
                f"the script {shown(group)!r} is both in training and held out; export both files with the same "
                "--hold-out and --seed"
            )


def of_pack(source: Pack) -> list[Both]:
    """Return the pairs of a pack. Raises DataError if a record has no rejected reply."""
    pairs = []
    where = shown(str(source.folder))
    for record in source.records:
        raw = record.extra.get("rejected")
        if not isinstance(raw, dict):
            raise DataError(
                f"{where}: {shown(record.key)} has no rejected reply, so this is not a pack of preference pairs; "
                "create one with 'overtone export --format preferences'"
            )
        rejected = from_raw(raw, f"{where}: {shown(record.key)}, rejected", record.home)
        rejected = msgspec.structs.replace(rejected, wav=record.wav)
        pairs.append(Both(record, rejected, (_thought_layout(record), _thought_layout(rejected))))
    check_apart((both.chosen.group, both.chosen.part) for both in pairs)
    return pairs


def _clip(pair: Pair) -> NDArray[np.float32]:
    path = Path(pair.clip)
    if pair.clip_sha256 and path.is_file() and sha256(path) != pair.clip_sha256:
        raise DataError(f"{shown(pair.clip)}: changed since {shown(pair.id)!r} was judged (different SHA-256)")
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
    """Return whether a record's thought is in tags, well formed or not."""
    return bool(record.think_str) and not _thought(record).natural


def _thought_layout(record: Record) -> Think:
    """Return the layout of a record's thought: "label" for a complete thought in tags, "natural" for any other.

    An incomplete thought in tags is kept as raw text, because "label" would hide a missing label or fill in a default.
    """
    if not record.think_str:
        return ""
    thought = _thought(record)
    complete = not thought.malformed and len(thought.labels.known()) == len(think.TAGGED)
    return "label" if _tagged(record) and complete else "natural"


def problems(pairs: Iterable[Both], codes: int) -> list[str]:
    """Return messages about replies that cannot be used in training."""
    messages: list[str] = []
    for both in pairs:
        for name, record in (("chosen", both.chosen), ("rejected", both.rejected)):
            messages += [f"{shown(record.key)}, {name}: {why}" for why in record.problems(codes)]
            if not record.txt.strip():
                messages.append(f"{shown(record.key)}, {name}: no words")
    return messages
