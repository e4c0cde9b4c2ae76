"""Read EchoMind's fields. Its public code shows only some of their names, so similar names are accepted too."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from msgspec import Struct

from overtone.benchmarks._files import Fields, kind_of, lowered, slugify, text
from overtone.cues import BY_SLUG, REASONING, UNDERSTANDING, Cue, find_cue
from overtone.errors import DataError
from overtone.schema import STYLES, Option

WORDS = ("speak_a", "script", "text", "transcript", "script_text", "content", "utterance", "spoken_text", "sentence")
CUE = ("spoken_info", "cue", "spoken_information", "vocal_cue", "attribute")
QUESTION_ID = ("question_id", "id", "qid", "uid", "index")
QUESTION = ("question", "question_text", "stem", "query", "prompt")
QUESTION_TYPE = ("question_type", "type", "task", "category", "sub_task", "subtask", "task_type", "task_name")
OPTIONS = ("options_text", "options", "choices", "option", "candidates")
GOLD = ("answer", "correct_answer", "gold", "label", "answer_letter", "correct_option", "ground_truth", "answer_gt")
AUDIO = ("audio_path", "audio_file", "audio", "file", "path", "wav", "clip")
_SOUND = re.compile(r"\.(wav|flac|mp3|ogg|opus|m4a)$", re.I)

_KINDS: dict[int, tuple[tuple[str, str], ...]] = {  # pattern in a question's type, stem or id → its category
    1: (
        (r"coarse|describes? (this|the) (audio|recording)\b", "coarse"),
        (r"gender", "gender"),
        (r"\bage\b", "age"),
        (r"non ?verbal|\bnve\b", "nonverbal"),
        (r"emotion|\bser\b", "emotion"),
        (r"\bpace\b|speaking speed|\bspeed\b", "pace"),
        (r"background", "background"),
        (r"voice style|\bstyle\b|describes? the voice\b", "style"),
    ),
    2: (
        (r"recommend", "recommendation"),
        (r"empath", "empathy"),
        (r"multiple people|several people", "people"),
        (r"laugh", "laughter"),
        (r"shout", "shouting"),
        (r"consisten", "consistency"),
        (r"response style|style matching|kind of (response|reply)", "response-style"),
        (r"suggest", "suggestion"),
        (r"preceding|prior event|which of the following scenarios", "preceding-event"),
        (r"intent", "intent"),
    ),
}
_COMPILED = {level: tuple((re.compile(p), c) for p, c in table) for level, table in _KINDS.items()}
_NAMES: dict[int, dict[str, str]] = {
    1: {slug: slug for slug in UNDERSTANDING} | {stem.casefold(): slug for slug, stem in UNDERSTANDING.items()},
    2: {slug: slug for slug in REASONING} | {name.casefold(): slug for slug, name in REASONING.items()},
}


def block(fields: Fields, style: str, where: str) -> Fields:
    """Return the fields of a script that belong to one style: a nested object, or the keys that begin with the style's
    name."""
    for key in (f"{style}_audio_info", f"{style}_info", style):
        value = fields.get(key)
        if isinstance(value, dict):
            return lowered(value)
        if value is not None:
            raise DataError(f"{where}: {key!r} holds {kind_of(value)}, but an object is expected")
    return {key: value for key, value in fields.items() if key.startswith(f"{style}_")}


def clip_of(fields: Fields, style: str, where: str) -> str:
    """Return the path of the clip in a style's block, or "" if it is missing."""
    keys = (
        f"{style}_input_audio_file",
        "input_audio_file",
        f"{style}_input_audio",
        f"{style}_audio_file",
        f"{style}_audio",
    )
    return text(fields, (*keys, "input_audio", *AUDIO), where)


_REPLY_TEXT = re.compile(r"(response|reply|reference)(_text|_content|_transcript)?$", re.I)
_REPLY_AUDIO = re.compile(r"(response|reply|reference)(_audio|_audio_file|_audio_path|_file|_wav)?$", re.I)


def reply_of(fields: Fields) -> tuple[str, str]:
    """Return the reference reply of a style's block: its text and the path of its sound."""
    strings = [(key, value.strip()) for key, value in fields.items() if isinstance(value, str) and value.strip()]
    words = [value for key, value in strings if _REPLY_TEXT.search(key) and not _SOUND.search(value)]
    sounds = [value for key, value in strings if _REPLY_AUDIO.search(key) and _SOUND.search(value)]
    return (words[0] if words else "", sounds[0] if sounds else "")


def cue_of(fields: Fields, style: str, where: str) -> str:
    """Return the name of a style's cue: the value of a known key, otherwise any value that is the name of a cue."""
    named = text(fields, (f"{style}_spoken_info", *CUE, f"{style}_cue"), where)
    if named:
        return named
    return next((v.strip() for v in fields.values() if isinstance(v, str) and find_cue(v)), "")


def kinds_of(fields: Fields) -> list[str]:
    """Return all values that may name a question's type, the most reliable first."""
    return [value.strip() for key in QUESTION_TYPE if isinstance(value := fields.get(key), str) and value.strip()]


def category_of(level: int, texts: Sequence[str]) -> str:
    """Return the category of a question; "" if unknown. `texts` are its types, stem and id; the first that has one
    decides."""
    return next((category for given in texts if (category := _category(level, given))), "")


@functools.lru_cache(1024)  # thousands of questions share a type or a stem
def _category(level: int, given: str) -> str:
    known = _NAMES[level].get(given.casefold()) or _NAMES[level].get(slugify(given))
    if known:
        return known
    plain = re.sub(r"[\W_]+", " ", given.casefold())
    return next((category for pattern, category in _COMPILED[level] if pattern.search(plain)), "")


_MARK = r"(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])[.):、])"
_LINE = re.compile(rf"^\s*{_MARK}\s*(.*)$")


def options_of(value: object, provenance: object = None) -> tuple[Option, ...]:
    """Return the options of a question, given as text with marks like (A), as a list, or as an object."""
    pairs: list[tuple[str, str]] = []
    if isinstance(value, str):
        pairs = _by_line(value)
        if len(pairs) < 2:
            pairs = _in_one_line(value)
    elif isinstance(value, list):
        for position, given in enumerate(value[:27]):  # more than 26 options are refused below
            inner = given.get("text", given.get("option", "")) if isinstance(given, dict) else given
            pairs.append((_letter(position), _unmarked(str(inner).strip(), _letter(position))))
    elif isinstance(value, dict):
        pairs = sorted((str(key).strip(" .():[]").upper(), str(given).strip()) for key, given in value.items())
    letters = "".join(letter for letter, _ in pairs)
    if not "ABCDEFGHIJKLMNOPQRSTUVWXYZ".startswith(letters) or not all(words for _, words in pairs):
        return ()
    return tuple(Option(letter, words, _provenance(provenance, letter)) for letter, words in pairs)


def _letter(position: int) -> str:
    return chr(ord("A") + position)


def _unmarked(words: str, letter: str) -> str:
    """Return an option's words without the letter that may precede them."""
    mark = _LINE.match(words)
    return mark[4].strip() if mark and letter in mark.groups()[:3] else words


def _by_line(value: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for line in value.splitlines():
        mark = _LINE.match(line)
        letter = next((g for g in mark.groups()[:3] if g), "") if mark else ""
        if mark and letter == _letter(len(pairs)):
            pairs.append((letter, mark[4].strip()))
        elif pairs and line.strip():  # another line of the same option
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}".strip())
    return pairs


def _in_one_line(value: str) -> list[tuple[str, str]]:
    starts: list[tuple[int, int]] = []
    for mark in re.finditer(rf"(?:(?<=\s)|^){_MARK}\s*", value):
        if next(g for g in mark.groups() if g) == _letter(len(starts)):
            starts.append((mark.start(), mark.end()))
    ends = [start for start, _ in starts[1:]] + [len(value)]
    return [(_letter(i), value[begin : ends[i]].strip(" \t\n;,|")) for i, (_, begin) in enumerate(starts)]


def _provenance(value: object, letter: str) -> str:
    if isinstance(value, dict):
        return str(value.get(letter) or "")
    if isinstance(value, list) and ord(letter) - ord("A") < len(value):
        return str(value[ord(letter) - ord("A")] or "")
    return ""


def gold_of(given: str, options: Sequence[Option]) -> str:
    """Return the right letter, given as a letter like "(b)" or as the text of an option; "" if it is neither."""
    letters = {option.letter for option in options}
    bare = re.fullmatch(r"\W*([A-Za-z])\W*", given)
    if bare:
        return bare[1].upper() if bare[1].upper() in letters else ""
    same = [option.letter for option in options if _plain(option.text) == _plain(given)]
    if len(same) == 1:
        return same[0]
    mark = _LINE.match(given) or re.search(r"answer is\W*(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])\b)", given)
    letter = next((g for g in mark.groups()[:3] if g), "") if mark else ""
    return letter if letter in letters else ""


def _plain(words: str) -> str:
    return re.sub(r"[\W_]+", " ", words.casefold()).strip()


class FileName(Struct, frozen=True):
    """The parts of a clip's file name. `cue_text` is the script's target cue in every style."""

    case_id: str
    cue_text: str
    topic: str
    style: str

    @property
    def cue(self) -> Cue | None:
        return find_cue(self.cue_text)


_LABELS = sorted(  # the longest first: "sad" must not match before "sad-toned …"
    {label.casefold() for cue in BY_SLUG.values() for label in (cue.slug, *cue.labels)}, key=len, reverse=True
)


def parse_name(name: str, folder: str = "") -> FileName | None:
    """Parse `{case_id}_{cue}_{topic}_{style}[_response].wav` from the right; return None if the style is missing.

    A cue may contain spaces and a topic underscores, so the cue is the folder's name or a known name.
    """
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0].removesuffix("_response")
    rest, _, style = stem.rpartition("_")
    if style not in STYLES or not rest:
        return None
    head = re.match(r"(?:[A-Za-z]+_\d+|[^_]+)(?=_|$)", rest)
    if head is None:
        return None
    case_id, rest = head[0], rest[head.end() :].lstrip("_")
    low = rest.casefold()
    for label in (folder.casefold(), *_LABELS):
        if label and (low == label or low.startswith(f"{label}_")):
            return FileName(case_id, rest[: len(label)], rest[len(label) + 1 :], style)
    cue, _, topic = rest.partition("_")
    return FileName(case_id, cue, topic, style)
