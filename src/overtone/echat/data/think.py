"""Thoughts before a reply: the words and the labels as tags, or a sentence of reasons; how they are written and read.

A thought stands between `<think>` and `<think end>`. Labels that data do not have are mostly written as `<&&>`, whose
inside the training neither attends to nor learns: so data with one label can train a template with four.
"""

from __future__ import annotations

import random
import re
from typing import Literal

from msgspec import Struct

from overtone.echat.data.labels import DEFAULTS, DIMENSIONS, MISSING, Labels, is_reply, label, reply, tag
from overtone.paths import shown

OPEN, CLOSE = "<think>", "<think end>"
MASKED_SHARE = 0.85  # of missing labels that become <&&>; the others get the default
_FIELDS = {"age": "Age", "gender": "Gender", "emotion": "Emotion", "event": "Sound Event"}  # in the template's order
TAGGED = tuple(_FIELDS)  # the dimensions that a thought in tags tells
_WORDS, _REPLY = "User's words", "Predicted reply emotion"
_CHINESE = {"age": "年龄为", "gender": "性别为", "emotion": "情感为", "event": "声音事件为"}
_TAG = re.compile(r"\s*<([^<>]{1,32})>")
_MARKS = (OPEN, CLOSE, "</think end>", "</think>")
_OPEN = re.compile(rf"\s*{OPEN}")
_CLOSE = re.compile("|".join(_MARKS[1:]))
_MARK = re.compile("|".join(_MARKS))

# What training does with a text: it is learnt; it stands there, and is not learnt; it is not even attended to.
Piece = tuple[str, Literal["said", "read", "hidden"]]


class Thought(Struct, frozen=True):
    """What a model thought and said; `malformed` says what was not as it should be, in words."""

    reply: str = ""
    question: str = ""
    labels: Labels = Labels()
    reply_emotion: str = ""
    natural: str = ""  # the thought where it is a sentence of reasons
    malformed: tuple[str, ...] = ()


def label_thought(
    question: str,
    labels: Labels,
    reply_emotion: str,
    rng: random.Random,
    masked: float = MASKED_SHARE,
    complete: bool = False,
) -> list[Piece]:
    """The thought as tags, up to and with `<think end>` and the tag the reply begins with.

    `complete`: `labels` is all there is to hear. Then a missing event is none, which has a tag; any other missing label
    (whether a child is a girl) nobody can tell, and its place is left empty. That is learnt too: an empty place that is
    only read would tell what comes after it, and never be there when the model thinks for itself.
    """
    # Words and labels are pieces of their own, so that what comes again need not be encoded again.
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
    """The thought as a sentence of reasons."""
    return [(f"{OPEN}{reasons}{CLOSE}", "said")]


def split(text: str, thinks: bool | None = None) -> tuple[str, str | None]:
    """The thought as it stands there, and what is said after it, without further marks; None where it has no end. The
    first end counts: who hears a reply as it comes has heard what a second one would take back.

    `thinks`: whether a thought was asked for. Then all is one up to its end, else only what begins like one is. None:
    nobody knows, and what ends like one is one, too.
    """
    end = _CLOSE.search(text)
    if not (_OPEN.match(text) or (end if thinks is None else thinks)):
        return "", _MARK.sub("", text)
    if end is None:
        return text, None
    return text[: end.end()], _MARK.sub("", text[end.end() :])


def sure(text: str) -> str:
    """Of a text on its way, what is no mark, whatever comes next."""
    at = max(text.rfind("<"), 0)
    begun = any(mark.startswith(text[at:]) and mark != text[at:] for mark in _MARKS)
    return text[:at] if begun else text


def parse(text: str, thinks: bool | None = None) -> Thought:
    """What a model thought and said, from its text; tolerant: what cannot be read is "" and named in `malformed`.
    `thinks` as in `split`."""
    thought, said = split(text, thinks)
    if not thought and said is not None:
        return _said(said, (), {})
    opened, end = _OPEN.match(thought), _CLOSE.search(thought)
    wrong = [] if opened else ["the thought has no beginning"]
    inner = thought[opened.end() if opened else 0 : end.start() if end else len(thought)]
    if not end:
        wrong.append("the thought has no end")
    elif end[0] != CLOSE:
        wrong.append(f"the thought ends with {end[0]}")
    fields = _read_fields(inner)
    if fields is None:
        return _said(said or "", wrong, {"natural": inner.strip()})
    return _said(said or "", wrong, fields)


def _read_fields(inner: str) -> dict[str, str] | None:
    """The fields of a thought in tags as they stand there, None where it is none."""
    for words, names, predicted in (
        (_WORDS, _FIELDS, _REPLY),
        ("用户说的话是", _CHINESE, "推测使用的回复情感为"),
    ):
        found: dict[str, str] = {}
        ahead = len(inner)
        for key, name in {**names, "reply": predicted}.items():
            # The last one counts: the user's words come first and may hold anything.
            places = list(re.finditer(rf"[,，]\s*{name}\s*[:：]\s*<?([^<>,，]*)>?", inner))
            if places:
                found[key] = places[-1][1]
                ahead = min(ahead, places[-1].start())
        said = re.match(rf"\s*{words}\s*[:：]\s*", inner)
        if said:
            found["question"] = inner[said.end() : max(ahead, said.end())].strip()
        if found:
            return found
    return None


def _said(said: str, wrong: list[str] | tuple[()], found: dict[str, str]) -> Thought:
    """Labels, reply emotion and reply from what was found, with what is wrong about them."""
    wrong = list(wrong)
    labels: dict[str, str] = {}
    tags = bool(found) and "natural" not in found
    for dimension in _FIELDS if tags else ():
        if dimension not in found:
            wrong.append(f"the thought says no {dimension}")
            continue
        name = label(dimension, found[dimension])
        if name in DIMENSIONS[dimension]:
            labels[dimension] = name
        elif name:
            wrong.append(f"{dimension} {shown(name[:40])!r} is no label")
    if tags and not found.get("question"):
        wrong.append("the thought says no words")
    emotion = ""
    if tags and "reply" not in found:
        wrong.append("the thought says no reply emotion")
    elif "reply" in found:
        emotion = reply(found["reply"])
        if not is_reply(found["reply"]):
            wrong.append(f"reply emotion {shown(found['reply'][:40])!r} is no label")
    first = _TAG.match(said)
    if first and (is_reply(first[1]) or tags):
        if not is_reply(first[1]):
            wrong.append(f"reply emotion {shown(first[1])!r} is no label")
        elif emotion and reply(first[1]) != emotion:
            wrong.append("the reply has another emotion than the thought")
        emotion, said = reply(first[1]), said[first.end() :]
    elif tags and said.strip():
        wrong.append("the reply has no emotion tag")
    if not said.strip():
        wrong.append("there is no reply")
    return Thought(
        said.strip(), found.get("question", ""), Labels(**labels), emotion, found.get("natural", ""), tuple(wrong)
    )
