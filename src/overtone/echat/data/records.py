"""The record of EChat-200K: a spoken query with its labels, a thought and a reply; and records of text alone.

Reading and writing lose nothing: keys we do not know stay in `extra` and `rest`.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.echat.data.labels import DIMENSIONS, Labels, is_reply, label, reply, tag
from overtone.errors import DataError
from overtone.paths import shown

KEYS = {"age": "age", "gender": "gender", "event": "caption", "emotion": "q_emotion", "style": "style"}
CHAT = "S2TCHAT"
UNDERSTANDING = {  # the tag of an understanding task → the label it asks for
    "EMOTION": "emotion",
    "AGE": "age",
    "GENDER": "gender",
    "CAPTION": "event",
    "STYLE": "style",
}
_LEADING = re.compile(r"\s*<([^<>]{1,32})>\s*")
_NUMBERED = re.compile(r"(wav|txt|speech_token|question|a_emotion)_([1-9]\d{0,2})")


class Turn(Struct, frozen=True):
    """An earlier exchange of the same dialogue."""

    wav: str = ""
    question: str = ""
    txt: str = ""  # without the tag of its emotion
    speech_token: tuple[int, ...] = ()
    reply_emotion: str = ""


class Record(Struct, frozen=True):
    """One exchange. `wav` is relative to `home`: the folder of its list, or the tar that holds it."""

    key: str
    txt: str = ""  # the reply, without the tag of its emotion
    wav: str = ""  # the query; in a pack `clips.i16#INDEX`
    question: str = ""  # the query's words
    labels: Labels = Labels()
    reply_emotion: str = ""  # one of labels.REPLY
    think_str: str = ""
    speech_token: tuple[int, ...] = ()  # the reply's
    a_wav_path: str = ""
    dataset: str = ""
    task: str = ""
    history: tuple[Turn, ...] = ()  # the oldest first
    extra: dict[str, Any] = {}  # what else its `extra` holds; ours: part, speaker, group, cue
    rest: dict[str, Any] = {}  # what else stands beside `key`
    home: str = ""  # not written

    @property
    def part(self) -> str:
        return str(self.extra.get("part", ""))

    @property
    def speaker(self) -> str:
        return str(self.extra.get("speaker", ""))

    @property
    def group(self) -> str:
        return str(self.extra.get("group", ""))

    @property
    def complete(self) -> bool:
        """Whether a builder wrote down all that is heard: then what is not told is not there."""
        return isinstance(self.extra.get("heard"), dict)

    @property
    def heard(self) -> Labels:
        """Every label that is true of the query: `extra.heard` where a builder wrote it, for `labels` may hold only
        those the exchange is about."""
        if not self.complete:
            return self.labels
        told = self.extra["heard"]
        return Labels(**{name: label(name, str(found)) for name, found in told.items() if name in DIMENSIONS})

    @property
    def tags(self) -> tuple[str, ...]:
        """Its task's tags without brackets."""
        return tuple(re.findall(r"<([^<>]+)>", self.task))

    def problems(self, codes: int = 0) -> list[str]:
        """What training cannot use, in words; `codes` is how many speech tokens there are (0: not checked)."""
        found = list(dict.fromkeys([*self.labels.problems(), *self.heard.problems()]))
        for emotion in (self.reply_emotion, *(turn.reply_emotion for turn in self.history)):
            if emotion and not is_reply(emotion):
                found.append(f"reply emotion {emotion!r} is no label")
        for tokens in (self.speech_token, *(turn.speech_token for turn in self.history)):
            if tokens and (min(tokens) < 0 or (codes and max(tokens) >= codes)):
                worst = min(tokens) if min(tokens) < 0 else max(tokens)
                found.append(f"speech token {worst} is outside 0–{codes - 1 if codes else '…'}")
        return found


class Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str


class TextRecord(Struct, frozen=True):
    """Text alone: a dialogue whose assistant's turns are learnt, or, with `targets`, a text with numbers to predict."""

    messages: tuple[Message, ...]
    targets: tuple[float, ...] = ()
    key: str = ""


def from_raw(raw: Any, where: str, home: str = "") -> Record:
    """A record from its JSON object; `where` begins the errors (file and line)."""
    if not isinstance(raw, dict):
        raise DataError(f'{where}: not an object but {type(raw).__name__}; a record is {{"key": …, "extra": …}}')
    rest = dict(raw)
    extra = rest.pop("extra", {})
    if not isinstance(extra, dict):
        raise DataError(f"{where}: `extra` is not an object; write it as in EChat-200K's raw records")
    extra = dict(extra)
    key = _text(rest, "key", where)
    if not key:
        raise DataError(f"{where}: the record has no `key`; give each its own")
    where = f"{where} ({shown(key)})"
    labels = {}
    for dimension, name in KEYS.items():
        if dimension == "style" and not str(extra.get(name, "")).startswith("<"):
            continue  # a description of how a reply is spoken may have this name
        if told := _text(extra, name, where):
            labels[dimension] = label(dimension, told)
    if "emotion" not in labels and "emotion" in extra:
        labels["emotion"] = label("emotion", _text(extra, "emotion", where))
    emotion = _text(extra, "a_emotion", where) if "a_emotion" in extra else None
    txt, spoken = _spoken(_text(rest, "txt", where), emotion)
    question = _text(extra, "question", where) or _text(extra, "q_txt", where)
    record = Record(
        key,
        txt,
        _text(rest, "wav", where),
        question,
        Labels(**labels),
        spoken,
        _text(extra, "think_str", where),
        _tokens(extra.pop("speech_token", []), where),
        _text(extra, "a_wav_path", where),
        _text(extra, "dataset", where),
        _text(rest, "task", where),
        home=home,
    )
    turns = _turns(rest, extra, where)
    if turns and not record.wav:  # every turn is numbered: the last is the one to answer
        now = turns.pop()
        record = msgspec.structs.replace(
            record,
            wav=now.wav,
            txt=record.txt or now.txt,
            reply_emotion=spoken or now.reply_emotion,
            question=record.question or now.question,
            speech_token=record.speech_token or now.speech_token,
        )
    return msgspec.structs.replace(record, history=tuple(turns), extra=extra, rest=rest)


def to_raw(record: Record) -> dict[str, Any]:
    """The record as EChat-200K's raw lists have it. A reply's emotion stands in `extra.a_emotion`, an earlier one's in
    `extra.a_emotion_1` and so on."""
    tags = {KEYS[dimension]: tag(name) for dimension, name in record.labels.known().items()}
    told = {
        "question": record.question,
        "think_str": record.think_str,
        "a_wav_path": record.a_wav_path,
        "dataset": record.dataset,
    }
    extra: dict[str, Any] = {**record.extra, **tags, **{name: text for name, text in told.items() if text}}
    extra |= _emotion("a_emotion", record)
    if record.speech_token:
        extra["speech_token"] = record.speech_token
    raw: dict[str, Any] = {**record.rest, "key": record.key, "txt": record.txt, "wav": record.wav}
    for number, turn in enumerate(record.history, start=1):
        raw |= {f"wav_{number}": turn.wav, f"txt_{number}": turn.txt}
        extra[f"question_{number}"] = turn.question
        extra[f"speech_token_{number}"] = turn.speech_token
        extra |= _emotion(f"a_emotion_{number}", turn)
    return {**raw, "extra": extra, "task": record.task}


def prefixes(record: Record) -> list[Record]:
    """A dialogue as one record for each of its turns that has a reply, the shortest first; the last is the record."""
    found = []
    for number, turn in enumerate(record.history):
        if turn.txt:
            past = Record(f"{record.key}_{number + 1}", turn.txt, turn.wav, turn.question, dataset=record.dataset)
            found.append(
                msgspec.structs.replace(
                    past,
                    reply_emotion=turn.reply_emotion,
                    speech_token=turn.speech_token,
                    task=record.task,
                    history=record.history[:number],
                    extra={name: record.extra[name] for name in ("part", "speaker", "group") if name in record.extra},
                    home=record.home,
                )
            )
    return [*found, record]


def text_from_raw(raw: Any, where: str) -> TextRecord:
    """A record of text alone: `messages`, or `text` with `targets` (numbers; `target` for one)."""
    if isinstance(raw, dict) and "messages" not in raw and isinstance(raw.get("text"), str):
        raw = {**raw, "messages": [{"role": "user", "content": raw["text"]}]}
    if isinstance(raw, dict) and "target" in raw and "targets" not in raw:
        raw = {**raw, "targets": [raw["target"]]}
    try:
        record = msgspec.convert(raw, TextRecord)
    except msgspec.ValidationError as error:
        raise DataError(
            f'{where}: {error}; a row is {{"messages": [{{"role": "user", "content": …}}, …]}} '
            'or {"text": …, "targets": [1.5, …]}'
        ) from None
    if not record.messages:
        raise DataError(f"{where}: no messages; give at least one")
    return record


def understanding(record: Record) -> tuple[bool, tuple[str, ...]] | None:
    """What an understanding task's tags ask for: whether the words, and which labels; None for another task."""
    tags = record.tags
    wanted = tuple(dimension for name, dimension in UNDERSTANDING.items() if name in tags)
    if CHAT in tags or ("TRANSCRIBE" not in tags and not wanted):
        return None
    return "TRANSCRIBE" in tags, wanted


def _text(table: dict[str, Any], name: str, where: str) -> str:
    found = table.pop(name, None)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise DataError(f"{where}: `{name}` is not a text but {type(found).__name__}; write it in quotes")
    return found


def _tokens(found: Any, where: str) -> tuple[int, ...]:
    if isinstance(found, (list, tuple)) and set(map(type, found)) <= {int}:
        return tuple(found)
    raise DataError(f"{where}: `speech_token` is not a list of whole numbers; make the tokens again")


def _spoken(txt: str, emotion: str | None) -> tuple[str, str]:
    """A reply and its emotion: the one told, or, where none is, that of the tag it begins with."""
    if emotion is None and (first := _LEADING.match(txt)):
        return txt[first.end() :], reply(first[1])
    return txt, reply(emotion or "")


def _emotion(name: str, said: Record | Turn) -> dict[str, str]:
    """A reply's emotion as `extra` has it, told to be none where the reply begins like a tag."""
    if said.reply_emotion:
        return {name: tag(said.reply_emotion)}
    return {name: ""} if _LEADING.match(said.txt) else {}


def _turns(rest: dict[str, Any], extra: dict[str, Any], where: str) -> list[Turn]:
    """The numbered turns, taken out of both tables."""
    found: dict[int, dict[str, Any]] = {}
    for table in (rest, extra):
        for name in [name for name in table if _NUMBERED.fullmatch(name)]:
            kind, _, number = name.rpartition("_")
            value = _tokens(table.pop(name), where) if kind == "speech_token" else _text(table, name, where)
            found.setdefault(int(number), {})[kind] = value
    if sorted(found) != list(range(1, len(found) + 1)):
        raise DataError(f"{where}: turns {sorted(found)} are not numbered from 1 without gaps; number them so")
    turns = []
    for _, turn in sorted(found.items()):
        txt, emotion = _spoken(turn.pop("txt", ""), turn.pop("a_emotion", None))
        turns.append(Turn(**turn, txt=txt, reply_emotion=emotion))
    return turns
