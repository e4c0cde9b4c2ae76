"""EChat-200K's record (a spoken query with labels, a thought and a reply), and text-only records.

Reading and writing are lossless: unknown keys are kept in `extra` and `rest`.
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
    """One exchange. `wav` is relative to `home`: the folder of the record's list, or the tar that holds the audio."""

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
    extra: dict[str, Any] = {}  # other keys of `extra`; in our sets: part, speaker, group, cue
    rest: dict[str, Any] = {}  # other top-level keys
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
        """Whether the record lists all labels, so that an unlisted sound is absent."""
        return isinstance(self.extra.get("heard"), dict)

    @property
    def heard(self) -> Labels:
        """All labels of the query: `extra.heard` if present, because `labels` may omit some."""
        if not self.complete:
            return self.labels
        heard = self.extra["heard"]
        return Labels(**{name: label(name, str(text)) for name, text in heard.items() if name in DIMENSIONS})

    @property
    def tags(self) -> tuple[str, ...]:
        """The task's tags without brackets."""
        return tuple(re.findall(r"<([^<>]+)>", self.task))

    def problems(self, codes: int = 0) -> list[str]:
        """Return the faults that make the record unusable in training. `codes` is the number of speech codes (0: not
        checked)."""
        problems = list(dict.fromkeys([*self.labels.problems(), *self.heard.problems()]))
        for emotion in (self.reply_emotion, *(turn.reply_emotion for turn in self.history)):
            if emotion and not is_reply(emotion):
                problems.append(f"unknown reply emotion {emotion!r}")
        for tokens in (self.speech_token, *(turn.speech_token for turn in self.history)):
            if tokens and (min(tokens) < 0 or (codes and max(tokens) >= codes)):
                worst = min(tokens) if min(tokens) < 0 else max(tokens)
                problems.append(f"speech token {worst} is outside 0–{codes - 1 if codes else '…'}")
        return problems


class Message(Struct, frozen=True):
    """One turn of a text-only dialogue."""

    role: Literal["system", "user", "assistant"]
    content: str


class TextRecord(Struct, frozen=True):
    """A text-only record: a dialogue whose assistant turns are learnt or, with `targets`, a text with numbers to
    predict."""

    messages: tuple[Message, ...]
    targets: tuple[float, ...] = ()
    key: str = ""


def from_raw(raw: Any, where: str, home: str = "") -> Record:
    """Return the record of a JSON object. Raises DataError; `where` (file and line) begins its message."""
    if not isinstance(raw, dict):
        raise DataError(f'{where}: expected an object, not {type(raw).__name__}: {{"key": …, "extra": …}}')
    rest = dict(raw)
    extra = rest.pop("extra", {})
    if not isinstance(extra, dict):
        raise DataError(f"{where}: `extra` is not an object; write it as in EChat-200K's raw records")
    extra = dict(extra)
    key = _text(rest, "key", where)
    if not key:
        raise DataError(f"{where}: the record has no `key`; give each record its own")
    where = f"{where} ({shown(key)})"
    labels = {}
    for dimension, name in KEYS.items():
        if dimension == "style" and not str(extra.get(name, "")).startswith("<"):
            continue  # this key may also describe how the reply is spoken
        if text := _text(extra, name, where):
            labels[dimension] = label(dimension, text)
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
    if turns and not record.wav:  # all turns are numbered, so the last is the one to answer
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
    """Return the record as in EChat-200K's raw lists.

    `extra.a_emotion` has the reply's emotion; `extra.a_emotion_1` and so on have the emotions of earlier replies.
    """
    tags = {KEYS[dimension]: tag(name) for dimension, name in record.labels.known().items()}
    texts = {
        "question": record.question,
        "think_str": record.think_str,
        "a_wav_path": record.a_wav_path,
        "dataset": record.dataset,
    }
    extra: dict[str, Any] = {**record.extra, **tags, **{name: text for name, text in texts.items() if text}}
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
    """Return one record per answered turn of a dialogue, shortest first. The last is the record itself."""
    earlier = []
    for number, turn in enumerate(record.history):
        if turn.txt:
            past = Record(f"{record.key}_{number + 1}", turn.txt, turn.wav, turn.question, dataset=record.dataset)
            earlier.append(
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
    return [*earlier, record]


def text_from_raw(raw: Any, where: str) -> TextRecord:
    """Return a text-only record: `messages`, or `text` with `targets` (numbers; `target` for one). Raises DataError."""
    if isinstance(raw, dict) and "messages" not in raw and isinstance(raw.get("text"), str):
        raw = {**raw, "messages": [{"role": "user", "content": raw["text"]}]}
    if isinstance(raw, dict) and "target" in raw and "targets" not in raw:
        raw = {**raw, "targets": [raw["target"]]}
    try:
        record = msgspec.convert(raw, TextRecord)
    except msgspec.ValidationError as error:
        raise DataError(
            f'{where}: {error}; write a row as {{"messages": [{{"role": "user", "content": …}}, …]}} '
            'or {"text": …, "targets": [1.5, …]}'
        ) from None
    if not record.messages:
        raise DataError(f"{where}: no messages; give at least one")
    return record


def understanding(record: Record) -> tuple[bool, tuple[str, ...]] | None:
    """Return whether an understanding task asks for the words, and the labels it asks for; None for other tasks."""
    tags = record.tags
    wanted = tuple(dimension for name, dimension in UNDERSTANDING.items() if name in tags)
    if CHAT in tags or ("TRANSCRIBE" not in tags and not wanted):
        return None
    return "TRANSCRIBE" in tags, wanted


def _text(table: dict[str, Any], name: str, where: str) -> str:
    value = table.pop(name, None)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: `{name}` is {type(value).__name__}, not text; write it in quotes")
    return value


def _tokens(value: Any, where: str) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)) and set(map(type, value)) <= {int}:
        return tuple(value)
    raise DataError(f"{where}: `speech_token` is not a list of whole numbers; encode the speech again")


def _spoken(txt: str, emotion: str | None) -> tuple[str, str]:
    """Return a reply without its leading tag, and its emotion: the given emotion, or else the tag's."""
    if emotion is None and (first := _LEADING.match(txt)):
        return txt[first.end() :], reply(first[1])
    return txt, reply(emotion or "")


def _emotion(name: str, said: Record | Turn) -> dict[str, str]:
    """Return the entry of `extra` that stores a reply's emotion under `name`; {} if no entry is needed.

    A reply without an emotion whose text begins like a tag needs the entry "", so that `from_raw` does not take that
    beginning for an emotion.
    """
    if said.reply_emotion:
        return {name: tag(said.reply_emotion)}
    return {name: ""} if _LEADING.match(said.txt) else {}


def _turns(rest: dict[str, Any], extra: dict[str, Any], where: str) -> list[Turn]:
    """Return the earlier turns of a dialogue, read from numbered keys such as `txt_1`, and delete these keys.

    `rest` and `extra` may both have such keys. Raises DataError if the numbers have gaps.
    """
    by_number: dict[int, dict[str, Any]] = {}
    for table in (rest, extra):
        for name in [name for name in table if _NUMBERED.fullmatch(name)]:
            kind, _, number = name.rpartition("_")
            value = _tokens(table.pop(name), where) if kind == "speech_token" else _text(table, name, where)
            by_number.setdefault(int(number), {})[kind] = value
    if sorted(by_number) != list(range(1, len(by_number) + 1)):
        raise DataError(f"{where}: turns {sorted(by_number)} are not numbered from 1 without gaps; renumber them")
    turns = []
    for _, turn in sorted(by_number.items()):
        txt, emotion = _spoken(turn.pop("txt", ""), turn.pop("a_emotion", None))
        turns.append(Turn(**turn, txt=txt, reply_emotion=emotion))
    return turns
