"""The messages that ask a model about an item: prompts as data, conditions of asking, and message parts.

A task is a module of this package with `messages(item, condition, turn, history, sound, prompts)`. The last message
that it returns is the user's turn; this message and the model's reply are added to the `history` of the next turn.
A task that can be answered by likelihood (LIKELY) also has `continuations(item)` and `without(item, prompts)`, which
return those fields of a Request.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from overtone.cues import BY_SLUG
from overtone.errors import DataError, UsageError
from overtone.schema import LIKELIHOOD, UNKNOWN, WRITTEN, Condition, Input, Item, Message, Sound

FROM_DEFAULT = "Overtone's own words"
FROM_COPY = "read from the user's copy"

LIKELY = ("choose", "rate")  # the tasks that can be answered by likelihood
VARIANTS: dict[str, str] = {
    "task": "the task's own prompt, for transcription and multiple choice",
    "likelihood": "no answer is written: the model says how likely each one is, for multiple choice and ratings",
    "zero": "conversation without a system prompt",
    "basic": "conversation with the topic and the instruction to give one reply",
    "enhance": "basic, plus the cue's dimension (person, voice or surroundings) to pay attention to, never the cue",
    "oracle": "enhance, plus the clip's cue in words: the upper bound of perfect hearing",
    "oracle-false": "enhance, plus the script's other cue: does the model believe words over its ears?",
    "warm": "basic, plus the instruction to reply in a warm voice: does the delivery follow it?",
    "plain": "basic, plus the instruction to reply in a neutral voice, to compare with warm",
}

_FOLDER = Path(__file__).parent / "prompts"
_PLACEHOLDER = re.compile(r"\{(role\.plain|role\.service|topic|question|options|letters|words|cue|letter)\}")
_FOREIGN_TOPIC = re.compile(r"\{\{\s*topic\s*\}\}|\$?\{\s*topic\s*\}|<\s*topic\s*>|\[\s*topic\s*\]", re.I)
_TOPIC_SENTENCE = re.compile(  # with the line it fills, or with the blank before it
    r"^[^.!?\n]*\{topic\}[^.!?\n]*[.!?]?[ ]*\n?|[ ]*[^.!?\n]*\{topic\}[^.!?\n]*[.!?]?", re.M
)
_ROLE = re.compile(r"\{role\.\w+\}")
_FIRST_SENTENCE = re.compile(r"\A\s*You are\b[^.!?\n]*[.!?]?", re.I)


class Prompts(Struct, frozen=True):
    """All prompt texts for one model. `origins` maps each text's key to the source of the text."""

    model: str
    version: int
    texts: dict[str, str]
    origins: dict[str, str]

    @property
    def hash(self) -> str:
        """Twelve hex digits that change if any text changes."""
        return hashlib.sha256(msgspec.json.encode(sorted(self.texts.items()))).hexdigest()[:12]

    def fill(self, key: str, **values: str) -> str:
        """Return the text of `key`, its placeholders filled in. Without a topic, sentences with {topic} are omitted."""
        text = self.texts[key]
        if "{" not in text:
            return text.strip()
        if "{topic}" in text and not values.get("topic"):
            text = _TOPIC_SENTENCE.sub("", text)
        return _PLACEHOLDER.sub(lambda m: values.get(m[1], m[0]), text).strip()

    def converse_system(self, item: Item, condition: Condition, turn: int = 0) -> str:
        """Return the system prompt of a conversation, or "" if the condition has none."""
        key = f"{condition.prompt}.system"
        if condition.prompt == "enhance":
            dimension = item.dimension if f"enhance.{item.dimension}.system" in self.texts else "any"
            key = f"enhance.{dimension}.system"
        text = self.fill(key, topic=item.topic.replace("_", " "))
        if condition.oracle == "none":
            return text
        cue = heard(item, turn) if condition.oracle == "true" else _not_heard(item, turn)
        line = self.fill("oracle.cue", cue=cue) if cue else self.fill("oracle.nothing")
        return f"{text}\n{line}".strip()


def heard(item: Item, turn: int = 0) -> str:
    """Return a phrase for the cue of this turn's clip: the benchmark's phrase, otherwise ours; "" without a cue."""
    carried = item.turns[turn].cue if len(item.turns) > 1 else item.cue
    return _name(carried, item.cue_text if carried == item.cue else "")


def _not_heard(item: Item, turn: int) -> str:
    """Return a phrase for a cue that is not in this turn's clip: the item's other cue, or its own if the clip has the
    other one."""
    if len(item.turns) > 1 and item.turns[turn].cue == item.other_cue:
        return _name(item.cue, item.cue_text)
    return _name(item.other_cue, item.other_cue_text)


def _name(slug: str, text: str) -> str:
    return text or (BY_SLUG[slug].phrase if slug in BY_SLUG else slug)


def load_prompts(model_name: str, overrides: Mapping[str, str], *, origin: str = FROM_COPY) -> Prompts:
    """Return the prompts for one model: our texts, replaced by those in `overrides`, with the model's exceptions.

    `overrides` are a benchmark's `prompts`, with the keys of default.toml joined by dots.
    """
    version, defaults = _defaults()
    texts = dict(defaults)
    origins = dict.fromkeys(texts, FROM_DEFAULT)
    for key, text in overrides.items():
        if key not in defaults:
            near = difflib.get_close_matches(key, defaults, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no prompt is called {key!r}{hint}; known: {', '.join(sorted(defaults))}")
        texts[key], origins[key] = _FOREIGN_TOPIC.sub("{topic}", text), origin
    for exception in _exceptions():
        if not re.search(exception.model, model_name, re.I):
            continue
        note = f"changed for this model: {exception.why}"
        changed = _apply(exception, texts, set(overrides))
        origins |= {key: f"{origins[key]}; {note}" for key in changed}
    roles = {key: texts[key] for key in ("role.plain", "role.service")}
    for key, text in texts.items():
        texts[key] = re.sub(r"\{(role\.\w+)\}", lambda m: roles.get(m[1], m[0]), text).strip()
    return Prompts(model_name, version, texts, origins)


class _Exception(Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    why: str
    role: str = ""
    opening: str = ""
    copies: tuple[str, ...] = ()
    set: dict[str, str] = {}


def _apply(exception: _Exception, texts: dict[str, str], overridden: set[str]) -> list[str]:
    """Change `texts` in place and return the keys that changed.

    An exception replaces a benchmark's text as a whole only if it lists the text's key in `copies` and the text comes
    from the benchmark's files. (Such a text has no {role} placeholder; texts of our files do.)
    """
    before = dict(texts)
    for key, text in exception.set.items():
        if key not in overridden or (key in exception.copies and "{role." not in texts[key]):
            texts[key] = text
    if exception.role:
        texts["role.plain"] = texts["role.service"] = exception.role
        for key in overridden:  # a benchmark's text has no {role} to replace, but begins with a role
            if key.endswith(".system"):
                texts[key] = _FIRST_SENTENCE.sub(lambda _: exception.role, texts[key])
    if exception.opening:
        for key, text in texts.items():
            if key.startswith(("basic.", "enhance.", "warm.", "plain.")) and text != exception.set.get(key):
                rest = _ROLE.sub("", _FIRST_SENTENCE.sub("", text)).strip()
                texts[key] = f"{exception.opening}\n{rest}"
    return [key for key in texts if texts[key] != before[key]]


@functools.cache
def _defaults() -> tuple[int, dict[str, str]]:
    tree = tomllib.loads((_FOLDER / "default.toml").read_text(encoding="utf-8"))
    version = int(tree.pop("version"))
    return version, dict(_flat(tree))


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


@functools.cache
def _exceptions() -> tuple[_Exception, ...]:
    tree = tomllib.loads((_FOLDER / "exceptions.toml").read_text(encoding="utf-8"))
    return msgspec.convert(tuple(tree["exception"]), tuple[_Exception, ...])


def conditions(item: Item, prompts: Sequence[str], inputs: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions for an item, given the chosen prompt variants and inputs.

    A conversation gets one condition per prompt variant and input, any other task one per input, with the task's own
    prompt. With the variant `likelihood`, multiple choice and ratings get that condition too; with `likelihood` alone,
    they get no other, and items of other tasks get none. Some combinations are left out: an oracle for an item whose
    cue is unknown, a transcription with the words shown, and the inputs `alone` and `context` for an item without a
    context. An item without a recording is asked with its words instead of a sound: with input `transcript`.
    """
    for given in inputs:
        if given not in get_args(Input):
            raise UsageError(f"no input is called {given!r}; known: {', '.join(get_args(Input))}")
    for variant in prompts:
        if variant not in VARIANTS:
            raise UsageError(f"no prompt variant is called {variant!r}; known: {', '.join(VARIANTS)}")
    if item.task == "converse":
        chosen: Sequence[str] = [v for v in prompts if v not in ("task", LIKELIHOOD)]
        if item.status == UNKNOWN:  # an oracle cannot name a cue that the files do not name
            chosen = [v for v in chosen if not v.startswith("oracle")]
    else:
        chosen = ["task"] if set(prompts) != {LIKELIHOOD} else []
        if LIKELIHOOD in prompts and _is_likely(item):
            chosen = [*chosen, LIKELIHOOD]
    if item.task == "rate":  # a sentence to rate is text
        inputs = ["transcript"]
    if item.task == "transcribe":
        inputs = [given for given in inputs if given in ("audio", "silence")]
    if not item.context:
        inputs = [given for given in inputs if given not in ("alone", "context")]
    if not has_clip(item) and item.task != "transcribe":  # words must not pass for a sound: they are a transcript
        inputs = [given for given in inputs if given in WRITTEN] or ["transcript"]
    if len(item.turns) > 1:
        inputs = [given for given in inputs if given != "context"]
    return tuple(Condition.parse(f"{variant}/{given}") for given in inputs for variant in chosen)


def has_clip(item: Item) -> bool:
    """Return whether an item has a recording to play."""
    return any(turn.clip is not None for turn in item.turns)


def _is_likely(item: Item) -> bool:
    """Return whether an item can be answered by likelihood.

    Its options must be texts, and the replies to all earlier turns must be given.
    """
    written = all(option.text and option.clip is None for option in item.options)
    return item.task in LIKELY and written and all(turn.given for turn in item.turns[:-1])


def assemble(
    item: Item,
    condition: Condition,
    turn: int,
    history: Sequence[Message],
    system: str,
    parts: Iterable[str | Sound],
) -> tuple[Message, ...]:
    """Return the messages: the system prompt (if any), the turns so far, and this turn. The item's context is placed
    before the first turn."""
    with_context = turn == 0 and item.context and condition.input != "alone"
    opening: tuple[str | Sound, ...] = (item.context,) if with_context else ()
    user = (*opening, *(part for part in parts if part != ""))
    if not user:
        raise DataError(f"{item.id}: turn {turn} has neither sound nor words to send")
    head = (Message("system", (system,)),) if system else ()
    return (*head, *history, Message("user", user))


def spoken(
    item: Item, condition: Condition, turn: int, sound: Sound | None, framed: str, *, bare: str | None = None
) -> tuple[str | Sound, ...]:
    """Return the parts of this turn that the condition's input presents: words, sound or both.

    `framed` is a text around {words} that says who speaks; `bare` replaces it if the words come without a sound.
    """
    if condition.input == "context":
        return ()
    words = item.turns[turn].words
    if condition.input == "recognised":
        words = item.turns[turn].heard
        if not words:
            raise DataError(
                f"{item.id}: turn {turn} has no recogniser's transcript; ask it with input transcript or audio"
            )
    if condition.input in ("transcript", "recognised") or sound is None:
        if not words:
            raise DataError(
                f"{item.id}: turn {turn} has no transcript, so it cannot be asked with input {condition.input}"
            )
        return ((bare if bare is not None else framed).replace("{words}", words),)
    if condition.input == "both" and words:
        return (framed.replace("{words}", words), sound)
    return (sound,)
