"""Write and parse the thought that precedes a reply: the words and labels as tags, or a sentence of reasons.

A thought is enclosed in `<think>` and `<think end>`. Most missing labels are written as `<&&>`. Training skips this
placeholder: it is hidden from attention and not a target. So a record with only one known label can still use the
template of four labels.
"""

from __future__ import annotations

import random
import re
from typing import Literal

from msgspec import Struct

from overtone.echat.data.labels import DEFAULTS, DIMENSIONS, MISSING, Labels, is_reply, label, reply, tag
from overtone.paths import shown

OPEN, CLOSE = "<think>", "<think end>"
MASKED_SHARE = 0.85  # share of missing labels that become <&&>; the others get the default
_FIELDS = {"age": "Age", "gender": "Gender", "emotion": "Emotion", "event": "Sound Event"}  # in the template's order
TAGGED = tuple(_FIELDS)  # the dimensions in a thought in tags
_WORDS, _REPLY = "User's words", "Predicted reply emotion"
_CHINESE = {"age": "年龄为", "gender": "性别为", "emotion": "情感为", "event": "声音事件为"}
_TAG = re.compile(r"\s*<([^<>]{1,32})>")
_MARKS = (OPEN, CLOSE, "</think end>", "</think>")
_OPEN = re.compile(rf"\s*{OPEN}")
_CLOSE = re.compile("|".join(_MARKS[1:]))
_MARK = re.compile("|".join(_MARKS))

# A text and its use in training: "said" is learnt, "read" is input only, "hidden" is also hidden from attention.
Piece = tuple[str, Literal["said", "read", "hidden"]]


class Thought(Struct, frozen=True):
    """A parsed thought and reply. `malformed` has messages about its faults."""

    reply: str = ""
    question: str = ""
    labels: Labels = Labels()
    reply_emotion: str = ""
    natural: str = ""  # the thought, if it is a sentence of reasons
    malformed: tuple[str, ...] = ()


def label_thought(
    question: str,
    labels: Labels,
    reply_emotion: str,
    rng: random.Random,
    masked: float = MASKED_SHARE,
    complete: bool = False,
) -> list[Piece]:
    """Return the thought as tags, including `<think end>` and the reply's leading tag.

    `complete` means that `labels` has every label of the clip. Then a missing event is written as the tag for no sound.
    Any other missing label (such as a child's gender) cannot be known, and its tag stays empty. The model learns to
    write the empty tag. If the tag were only input, it would reveal the following text, and it would be missing when
    the model writes its own thought.
    """
    # Words and labels are separate pieces, so that repeated pieces are encoded once.
    pieces: list[Piece] = [(f"{OPEN}{_WORDS}:", "said"), (f" {question}", "said")]
    for dimension, name in _FIELDS.items():
        known = getattr(labels, dimension) or ("other" if complete and dimension == "event" else "")
        if not known and complete:
            pieces.append((f", {name}: <>", "said"))
        elif not known and rng.random() < masked:
            pieces += [(f", {name}: <", "said"), (MISSING, "hidden"), (">", "said")]
        else:
            pieces.append((f", {name}: {tag(known or DEFAULTS[dimension])}", "said"))
    spoken = tag(reply_emotion or "neutral")
    return [*pieces, (f", {_REPLY}: {spoken}{CLOSE}{spoken}", "said")]


def natural_thought(reasons: str) -> list[Piece]:
    """Return the thought as a sentence of reasons."""
    return [(f"{OPEN}{reasons}{CLOSE}", "said")]


def split(text: str, thinks: bool | None = None) -> tuple[str, str | None]:
    """Split a text into its raw thought and the reply, which is None if the thought does not end.

    The reply has no further marks. The first end mark counts, because a streamed reply cannot be taken back.

    `thinks` says whether a thought was requested. If so, everything up to the end mark is the thought; if not, only a
    text that begins with a thought has one. If None, a text that contains an end mark has a thought too.
    """
    end = _CLOSE.search(text)
    if not (_OPEN.match(text) or (end if thinks is None else thinks)):
        return "", _MARK.sub("", text)
    if end is None:
        return text, None
    return text[: end.end()], _MARK.sub("", text[end.end() :])


def without_partial_mark(text: str) -> str:
    """Return a streamed text without a possible beginning of a mark at its end."""
    at = max(text.rfind("<"), 0)
    begun = any(mark.startswith(text[at:]) and mark != text[at:] for mark in _MARKS)
    return text[:at] if begun else text


def parse(text: str, thinks: bool | None = None) -> Thought:
    """Parse a model's text. Unreadable fields are "" and listed in `malformed`. `thinks` is as in `split`."""
    thought, said = split(text, thinks)
    if not thought and said is not None:
        return _thought(said, (), {})
    opened, end = _OPEN.match(thought), _CLOSE.search(thought)
    wrong = [] if opened else ["the thought has no beginning"]
    inner = thought[opened.end() if opened else 0 : end.start() if end else len(thought)]
    if not end:
        wrong.append("the thought has no end")
    elif end[0] != CLOSE:
        wrong.append(f"the thought ends with {end[0]}")
    fields = _read_fields(inner)
    if fields is None:
        return _thought(said or "", wrong, {"natural": inner.strip()})
    return _thought(said or "", wrong, fields)


def _read_fields(inner: str) -> dict[str, str] | None:
    """Return the raw fields of a thought in tags, or None if it is not in tags."""
    for words, names, predicted in (
        (_WORDS, _FIELDS, _REPLY),
        ("用户说的话是", _CHINESE, "推测使用的回复情感为"),
    ):
        fields: dict[str, str] = {}
        ahead = len(inner)
        for key, name in {**names, "reply": predicted}.items():
            # The last match counts, because the user's words come first and may contain anything.
            places = list(re.finditer(rf"[,，]\s*{name}\s*[:：]\s*<?([^<>,，]*)>?", inner))
            if places:
                fields[key] = places[-1][1]
                ahead = min(ahead, places[-1].start())
        said = re.match(rf"\s*{words}\s*[:：]\s*", inner)
        if said:
            fields["question"] = inner[said.end() : max(ahead, said.end())].strip()
        if fields:
            return fields
    return None


def _thought(said: str, wrong: list[str] | tuple[()], fields: dict[str, str]) -> Thought:
    """Validate the fields of a thought and its reply."""
    wrong = list(wrong)
    labels: dict[str, str] = {}
    tags = bool(fields) and "natural" not in fields
    for dimension in _FIELDS if tags else ():
        if dimension not in fields:
            wrong.append(f"the thought has no {dimension}")
            continue
        name = label(dimension, fields[dimension])
        if name in DIMENSIONS[dimension]:
            labels[dimension] = name
        elif name:
            wrong.append(f"unknown {dimension} {shown(name[:40])!r}")
    if tags and not fields.get("question"):
        wrong.append("the thought has no words")
    emotion = ""
    if tags and "reply" not in fields:
        wrong.append("the thought has no reply emotion")
    elif "reply" in fields:
        emotion = reply(fields["reply"])
        if not is_reply(fields["reply"]):
            wrong.append(f"unknown reply emotion {shown(fields['reply'][:40])!r}")
    first = _TAG.match(said)
    if first and (is_reply(first[1]) or tags):
        if not is_reply(first[1]):
            wrong.append(f"unknown reply emotion {shown(first[1])!r}")
        elif emotion and reply(first[1]) != emotion:
            wrong.append("the reply's emotion differs from the thought's")
        emotion, said = reply(first[1]), said[first.end() :]
    elif tags and said.strip():
        wrong.append("the reply has no emotion tag")
    if not said.strip():
        wrong.append("the reply is empty")
    return Thought(
        said.strip(), fields.get("question", ""), Labels(**labels), emotion, fields.get("natural", ""), tuple(wrong)
    )
