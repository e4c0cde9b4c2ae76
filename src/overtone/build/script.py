"""Read scripts and dialogues as written by their authors, and check that they are complete."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from overtone.build.voices import ROLES
from overtone.cues import BY_SLUG, REASONING, Cue
from overtone.errors import DataError
from overtone.languages import DEFAULT, primary, tag_problem
from overtone.paths import read_plain, shown
from overtone.schema import STYLES, Style
from overtone.spec import suggest

SET_LICENCE = "CC-BY-4.0"  # of the texts that come with the package
LONGEST = 400  # characters of a script
MAX_BYTES = 50_000_000  # of one file
Item = TypeVar("Item")
TWO_WAY = {  # reasoning categories with two fixed options, in their order
    "people": ("Yes", "No"),
    "laughter": ("Yes", "No"),
    "shouting": ("Yes", "No"),
    "consistency": ("Consistent", "Inconsistent"),
}


MANNERS = {  # cues of several kinds; the first is the default
    "laughter": ("hearty", "nervous"),
    "shout": ("angry", "joyful"),
    "music": ("happy", "funny", "sad", "exciting", "angry"),
}


class Reasoning(Struct, frozen=True, forbid_unknown_fields=True):
    """One question for the target and the alternative clip. Options are named by the reading that makes them right."""

    category: str
    question: str
    target: str
    alternative: str
    words: str = ""  # right for a reader who has only the text
    harmful: str = ""  # would hurt, or overinterprets the voice
    moves: bool = True  # False: `target` is right for any voice; asked on the target clip, as a separate part


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """Neutral words, two cues that give the words different meanings, and a reply to each meaning."""

    id: str
    cue: str
    alternative: str
    topic: str
    voice: str
    words: str
    reply: dict[str, str]
    style: dict[str, str]  # style → the voice in which the reply to it is spoken
    reasoning: tuple[Reasoning, ...] = ()
    manner: dict[str, str] = {}  # style → kind of its cue, one of MANNERS
    says: str = ""  # conflict scripts only: the cue that the words state; the target's voice contradicts it
    language: str = ""  # BCP-47 tag of its words and replies; "" is English

    @property
    def styles(self) -> tuple[Style, ...]:
        """The styles in which the script is spoken: all styles that have a reply."""
        return tuple(s for s in STYLES if s in self.reply)

    @property
    def control_of(self) -> Style:
        """The style that the control clip repeats with another voice of the same sex, as an example of "nothing
        changed".

        It is the neutral style, or the target style of a script without a neutral one.
        """
        return "neutral" if "neutral" in self.reply else "target"

    def cue_in(self, style: str) -> Cue | None:
        """Return the cue of a clip in this style; None for a neutral one."""
        if style == "control":
            style = self.control_of
        return {"target": BY_SLUG[self.cue], "alternative": BY_SLUG[self.alternative]}.get(style)

    def manner_in(self, style: str) -> str:
        """Return the kind of the cue in a clip of this style; "" if the cue has only one kind."""
        cue = self.cue_in(style)
        kinds = MANNERS.get(cue.slug, ("",)) if cue else ("",)
        return self.manner.get(style, kinds[0])

    def sex_in(self, style: str) -> str:
        """Return the speaker's sex in this style: the cue's if the cue is a gender, otherwise the script's."""
        cue = self.cue_in(style)
        return cue.slug if cue is not None and cue.category == "gender" else ROLES[self.voice]

    def file_name(self, style: str, ending: str = ".wav") -> str:
        """Return the path relative to `audio/` or `audio_response/`, in EchoMind's form."""
        return f"{self.cue}/{self.id}_{self.cue}_{self.topic}_{style}{ending}"


class DialogueTurn(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn of a dialogue: its words, its cue, and the reference reply with its voice."""

    words: str
    cue: str  # slug, or "" for a plain voice
    reply: str
    style: str
    manner: str = ""


class Dialogue(Struct, frozen=True, forbid_unknown_fields=True):
    """Two turns of one speaker, with different cues. In the steady variant the second turn keeps the first turn's cue,
    so the same words need another reply, `steady_reply`."""

    id: str
    topic: str
    voice: str
    turn: tuple[DialogueTurn, DialogueTurn]
    steady_reply: str
    steady_style: str
    language: str = ""  # BCP-47 tag; "" is English


class Collection(Struct, frozen=True):
    """Everything a set is built from."""

    name: str
    scripts: tuple[Script, ...]
    conflicts: tuple[Script, ...] = ()
    dialogues: tuple[Dialogue, ...] = ()
    licence: str = "unknown"  # of the texts

    @property
    def everything(self) -> list[Script | Dialogue]:
        return [*self.scripts, *self.conflicts, *self.dialogues]

    @property
    def languages(self) -> list[str]:
        """The primary languages of its texts, sorted."""
        return sorted({primary(one.language) or DEFAULT for one in self.everything})


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    script: tuple[Script, ...] = ()
    dialogue: tuple[Dialogue, ...] = ()
    language: str = ""  # default of scripts and dialogues without a language


HERE = Path(__file__).parent
OTHER_TEXTS = frozenset({"aeq", "echat_eval"})  # folders of other texts, which aeq_set and echat_eval_set build


def sets() -> tuple[str, ...]:
    """Return the names of the package's script sets: folders here with scripts and a licence."""
    found = {p.parent.name for p in HERE.glob("*/LICENSE") if any(p.parent.glob("*.toml"))}
    return tuple(sorted(found - OTHER_TEXTS))


def first_of_each(items: Iterable[Item], key: Callable[[Item], str], most: int | None) -> list[Item]:
    """Return the first `most` items per key (None: all), in the original order."""
    seen: Counter[str] = Counter()
    chosen = []
    for item in items:
        seen[key(item)] += 1
        if most is None or seen[key(item)] <= most:
            chosen.append(item)
    return chosen


def read_set(name: str) -> tuple[Script, ...]:
    """Read the scripts of a set by name: all its files, ordered by name."""
    if name not in sets():
        raise DataError(f"no script set {name!r}{suggest(name, sets())}; known: {', '.join(sets())}")
    return read_scripts(*sorted((HERE / name).glob("*.toml")))


def read_conflicts(name: str) -> tuple[Script, ...]:
    """Read the conflict scripts of a set, from its folder `conflict`."""
    return read_scripts(*sorted((HERE / name / "conflict").glob("*.toml")))


def read_dialogues(name: str) -> tuple[Dialogue, ...]:
    """Read the dialogues of a set, from its folder `dialogues`."""
    return read_files(*sorted((HERE / name / "dialogues").glob("*.toml")))[1]


def read_collection(named: str, licence: str = "unknown") -> Collection:
    """Read a set of the package by name, or a user's file of scripts and dialogues (.toml or .jsonl)."""
    if named in sets():
        return Collection(named, read_set(named), read_conflicts(named), read_dialogues(named), SET_LICENCE)
    path = Path(named)
    if path.suffix not in (".toml", ".jsonl"):
        raise DataError(
            f"no script set {named!r}{suggest(named, sets())}; known: {', '.join(sets())}; "
            "or give your own scripts as a file that ends in .jsonl or .toml"
        )
    scripts, dialogues = read_files(path)
    if not scripts and not dialogues:
        raise DataError(f"{shown(path.name)}: contains no scripts; give a file with at least one script or dialogue")
    plain, conflicts = ([s for s in scripts if bool(s.says) == conflict] for conflict in (False, True))
    return Collection(path.stem, tuple(plain), tuple(conflicts), dialogues, licence)


def read_scripts(*paths: Path) -> tuple[Script, ...]:
    """Read and check files of scripts. Raises DataError that names the script and the fault."""
    return read_files(*paths)[0]


def read_files(*paths: Path) -> tuple[tuple[Script, ...], tuple[Dialogue, ...]]:
    """Read the scripts and dialogues of files. Raises DataError with the file, the line or script, and the fault."""
    everything: list[Script | Dialogue] = []
    for path in paths:
        entries = _read_lines(path) if path.suffix == ".jsonl" else _read_toml(path)
        seen = {one.id for one in everything}
        for one in entries:
            problem = _name_problem(one, seen)
            problem = problem or (_problem(one) if isinstance(one, Script) else _dialogue_problem(one))
            if problem:
                raise DataError(f"{shown(path.name)}: {type(one).__name__.lower()} {shown(one.id)}: {problem}")
            seen.add(one.id)
        everything += entries
    scripts = tuple(one for one in everything if isinstance(one, Script))
    return scripts, tuple(one for one in everything if isinstance(one, Dialogue))


def read_toml(path: Path, kind: type[Item], what: str) -> Item:
    """Read a TOML file as `kind`. Raises DataError that says it cannot be read as `what`."""
    try:
        return msgspec.convert(tomllib.loads(read_plain(path, MAX_BYTES).decode("utf-8")), kind)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{shown(path.name)}: cannot be read as {what}: {error}") from error


def _read_toml(path: Path) -> list[Script | Dialogue]:
    file = read_toml(path, _File, "scripts")
    entries: tuple[Script | Dialogue, ...] = (*file.script, *file.dialogue)
    return [msgspec.structs.replace(one, language=one.language or file.language) for one in entries]


def _read_lines(path: Path) -> list[Script | Dialogue]:
    """Read one script or dialogue per line; a dialogue has turns."""
    entries: list[Script | Dialogue] = []
    for number, line in enumerate(read_plain(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            fields = msgspec.json.decode(line)
            dialogue = isinstance(fields, dict) and "turn" in fields
            entries.append(msgspec.convert(fields, Dialogue) if dialogue else msgspec.convert(fields, Script))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{shown(path.name)}: line {number}: not a script: {error}") from error
    return entries


def unspeakable(text: str) -> bool:
    """Return whether a text is empty, too long, or has characters that cannot be printed on one line."""
    return not text.strip() or len(text) > LONGEST or not text.isprintable()


def _name_problem(one: Script | Dialogue, seen: set[str]) -> str:
    """Return a message about a fault in the fields that are spoken or become part of a file name, or ""."""
    if one.id in seen:
        return "another script has this id"
    if not re.fullmatch(r"[A-Za-z]+_\d{1,12}|[A-Za-z0-9-]{1,40}", one.id):
        return "an id is letters and digits, like id_1207 or take-3"
    if not re.fullmatch(r"[a-z_]{1,40}", one.topic):
        return f"a topic is one word of small letters, not {shown(one.topic)!r}"
    for words in (one.words,) if isinstance(one, Script) else [t.words for t in one.turn]:
        if unspeakable(words):
            return f"its words must be 1 to {LONGEST} printable characters on one line"
    if one.language and (problem := tag_problem(one.language)):
        return f"language: {shown(problem)}"
    if one.voice not in ROLES:
        return f"no voice {shown(one.voice)!r}{suggest(one.voice, ROLES)}; known: {', '.join(ROLES)}"
    return ""


def _dialogue_problem(d: Dialogue) -> str:
    first, second = ((t.cue, t.manner) for t in d.turn)
    if first == second:
        return "the cue does not change between its turns"
    for turn in d.turn:
        if turn.cue and turn.cue not in BY_SLUG:
            return f"no cue {turn.cue!r}{suggest(turn.cue, BY_SLUG)}"
        if turn.cue and BY_SLUG[turn.cue].dimension == "speaker":
            return "a speaker does not change within a dialogue"
        if turn.manner and turn.manner not in MANNERS.get(turn.cue, ()):
            return f"manner {turn.manner!r} is not a kind of {turn.cue!r}"
    return ""


def _problem(script: Script) -> str:
    """Return a message about the fault of a script, or "" if it is valid."""
    for slug in (script.cue, script.alternative):
        if slug not in BY_SLUG:
            return f"no cue {slug!r}{suggest(slug, BY_SLUG)}"
    if (script.cue, script.manner_in("target")) == (script.alternative, script.manner_in("alternative")):
        return "the alternative is the target cue itself"
    for style, manner in script.manner.items():
        cue = script.cue_in(style)
        if cue is None or manner not in MANNERS.get(cue.slug, ()):
            return f"manner.{style} {manner!r} is not a kind of its cue"
    if script.says and script.says != script.alternative:
        return "the alternative of a conflict script is what its words say"
    if (BY_SLUG[script.cue].dimension == "speaker") != (BY_SLUG[script.alternative].dimension == "speaker"):
        return "a cue about the speaker needs another such cue as its alternative"
    if BY_SLUG[script.cue].category == "gender" and ROLES[script.voice] != script.cue:
        return f"its voice {script.voice!r} is not {script.cue}"
    missing = {"target", "alternative"} - set(script.reply)
    if missing or set(script.reply) != set(script.style) or set(script.reply) - {"target", "alternative", "neutral"}:
        return "reply and style each need target and alternative, and the same styles"
    kinds = [r.category for r in script.reasoning]
    if len(set(kinds)) != len(kinds) or not (kinds or script.says):
        return "it needs at least one reasoning question, and at most one per category"
    return next((p for r in script.reasoning if (p := _reasoning_problem(r))), "")


def _reasoning_problem(r: Reasoning) -> str:
    if r.category not in REASONING:
        return f"no reasoning category {r.category!r}{suggest(r.category, REASONING)}"
    if r.category in TWO_WAY:
        if {r.target, r.alternative} != set(TWO_WAY[r.category]) or r.words or r.harmful:
            return f"{r.category}: target and alternative must be {' and '.join(TWO_WAY[r.category])}, and nothing else"
        return ""
    if len({r.target, r.alternative, r.words, r.harmful} - {""}) != 4:
        return f"{r.category}: needs four different options: target, alternative, words, harmful"
    return ""
