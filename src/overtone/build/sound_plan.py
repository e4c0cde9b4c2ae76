"""Plan a set: every sound it needs, the speaker of each, and a hash of everything that determines it.

A sound's bytes depend only on its job and this package's code. So a build can be killed, resumed, split or run with any
number of processes and gives the same bytes.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.build.script import Collection, Dialogue, Script
from overtone.build.voices import ROLES, Cast, How, Speaker, VoiceError, cast
from overtone.build.voices.instructions import instructions
from overtone.cues import BY_SLUG, CATEGORIES
from overtone.embedded import version

REPLIES = "audio_response/"
SYNTHESIS, HUMAN = "data_synthesis", "data_human"  # folders of clips, whose names tell a benchmark their source
_CLIPS = re.compile(rf"^({SYNTHESIS}|{HUMAN})/audio/")
PLAIN = "plain"  # style of a clip for the gates only: words of a conflict or dialogue in a plain voice
OPTIONAL = frozenset({PLAIN, "control"})  # styles that a folder of recordings may lack
_LISTED = 20
_NOT_PERFORMED = {category for category, dimension in CATEGORIES.items() if dimension == "environment"} | {"gender"}
_CODE = (  # files whose code changes the audio
    "tract.py", "vocal_events.py", "delivery.py", "recipes.py", "scenes/*.py", "real_sounds.py", "room.py",
    "reference_replies.py", "render.py", "voices/*.py",
)  # fmt: skip


class Options(Struct, frozen=True):
    """The settings that change the sounds of a set."""

    voices: tuple[str, ...] = ("espeak",)
    sounds: str = ""  # folder of real sounds; missing ones are synthesised
    strength: float = 1.0  # strength of the deliveries
    room: str = ""
    snr: float = 10.0  # level of the voice over its scene, dB
    seed: int = 0


class Job(Struct, frozen=True):
    """One sound to make: a clip if it has a speaker or a recording, else a reference reply."""

    path: str
    case_id: str
    style: str
    text: str
    speaker: Speaker | None = None
    cue: str = ""
    manner: str = ""  # kind of its cue
    outdoors: bool = False  # belongs to a script with a scene, and is as loud as that
    voice_style: str = ""  # replies only
    twin: str = ""  # path of the plain clip with which it is compared
    take: int = 0  # number of earlier speakers who failed a gate
    also: tuple[str, ...] = ()  # cues in addition to `cue`
    drawn_as: str = ""  # path of the clip whose random draws it shares: the same voice with one cue less
    file: str = ""  # a recording to use instead of speaking
    file_sha256: str = ""
    recorded_by: str = ""
    made_from: str = ""

    @property
    def is_clip(self) -> bool:
        return self.speaker is not None or bool(self.file)

    @property
    def cues(self) -> tuple[str, ...]:
        """All its cues, in the order in which they are applied."""
        return (self.cue, *self.also) if self.cue else self.also

    @property
    def scene(self) -> str:
        return next((s for s in self.cues if s in BY_SLUG and BY_SLUG[s].dimension == "environment"), "")


class Group(Struct, frozen=True):
    """All sounds of one script or dialogue, made together because they share the analysis of its words."""

    id: str
    cue: str
    jobs: tuple[Job, ...]
    corpus: str = ""  # source of its recordings, if it has any
    licence: str = ""  # licence of the corpus


def home(options: Options) -> str:
    """Return the folder of the clips: HUMAN if people speak all of them, else SYNTHESIS."""
    human = all(getattr(engine, "human", False) for engine in cast(options.voices).engines.values())
    return HUMAN if human else SYNTHESIS


def clip_name(path: str) -> str:
    """Return a clip's path relative to its folder `audio/`, which does not depend on who speaks."""
    return _CLIPS.sub("", path, count=1)


def plan(collection: Collection, options: Options, takes: Mapping[str, int] = MappingProxyType({})) -> list[Group]:
    """Return all sounds of a set, by script in file order. `takes` maps the id of a script to its take number."""
    speakers = cast(options.voices)
    clips = f"{home(options)}/audio/"
    groups = [
        Group(s.id, s.cue, tuple(_script_jobs(s, clips, speakers, takes.get(s.id, 0))))
        for s in (*collection.scripts, *collection.conflicts)
    ]
    groups += [
        Group(d.id, d.turn[1].cue or d.turn[0].cue, tuple(_dialogue_jobs(d, clips, speakers, takes.get(d.id, 0))))
        for d in collection.dialogues
    ]
    return settled(groups, options)


def settled(groups: Sequence[Group], options: Options) -> list[Group]:
    """Check that no recording is missing and add to each job a hash of everything it is made from. A job in an optional
    style is dropped if its recording is missing. Any other missing recording raises VoiceError."""
    speakers = cast(options.voices)
    code = code_hash() + repr(msgspec.to_builtins(options)) + speakers.identity()
    lacking = [m for g in groups for j in g.jobs if j.style not in OPTIONAL for m in _missing(j, speakers)]
    if lacking:
        more = f"\n  and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        raise VoiceError(f"{len(lacking)} takes are missing:\n  " + "\n  ".join(lacking[:_LISTED]) + more)

    def hashed(job: Job) -> Job:
        inputs = (code, repr(replace(job, file="")))  # without the recording's path, which depends on the machine
        return replace(job, made_from=hashlib.sha256(repr(inputs).encode()).hexdigest()[:16])

    return [
        replace(g, jobs=tuple(hashed(j) for j in g.jobs if j.style not in OPTIONAL or not _missing(j, speakers)))
        for g in groups
    ]


def how(job: Job) -> How:
    """Return the speaking instructions of a clip, for engines that deliver cues themselves."""
    sentence = instructions(job.cue, job.manner)
    if job.also:  # only cues that the voice performs; the choice of the speaker covers gender
        sentence = " ".join(instructions(slug) for slug in job.cues if BY_SLUG[slug].category not in _NOT_PERFORMED)
    return How(job.case_id, job.style, job.cue, job.manner, sentence, clip_name(job.path))


def _missing(job: Job, speakers: Cast) -> list[str]:
    return speakers.missing(job.speaker, how(job)) if job.speaker else []


def _script_jobs(script: Script, clips: str, speakers: Cast, take: int) -> Iterator[Job]:
    outdoors = BY_SLUG[script.cue].dimension == "environment"
    main = speakers.of(script.voice, script.id, take)
    neutral = "neutral" if "neutral" in script.reply else PLAIN if script.says else ""
    twin = clips + script.file_name(neutral) if neutral else ""
    for style in (*script.styles, PLAIN if script.says else "control"):
        speaker: Speaker | None = (
            main if script.sex_in(style) == ROLES[script.voice] else speakers.partner(main, script.id, take)
        )
        if style == "control" and speaker is not None:
            speaker = speakers.other(speaker, script.id, take)
        if speaker is None:
            continue
        cue = script.cue_in(style)
        path = clips + script.file_name(style)
        yield Job(
            path, script.id, style, script.words, speaker, cue.slug if cue else "", script.manner_in(style), outdoors,
            twin=twin if path != twin else "", take=take,
        )  # fmt: skip
        if style in script.reply:
            reply = REPLIES + script.file_name(style, "_response.wav")
            yield Job(reply, script.id, style, script.reply[style], voice_style=script.style[style])


def dialogue_file(dialogue: Dialogue, turn: int, style: str, ending: str = ".wav") -> str:
    """Return the path of a turn, relative to `audio/` or `audio_response/`."""
    return f"dialogue/{dialogue.id}_{dialogue.topic}_turn{turn + 1}_{style}{ending}"


def _dialogue_jobs(dialogue: Dialogue, clips: str, speakers: Cast, take: int) -> Iterator[Job]:
    """Yield the jobs of turn one and of turn two (changed, steady), each with its reply, and plain clips for gates."""
    speaker = speakers.of(dialogue.voice, dialogue.id, take)
    first, second = dialogue.turn
    outdoors = any(t.cue and BY_SLUG[t.cue].dimension == "environment" for t in dialogue.turn)
    turns = (
        (0, "changed", first.words, first.cue, first.manner, first.reply, first.style),
        (1, "changed", second.words, second.cue, second.manner, second.reply, second.style),
        (1, "steady", second.words, first.cue, first.manner, dialogue.steady_reply, dialogue.steady_style),
    )
    plain = [next((style for t, style, _, cue, *_ in turns if t == turn and not cue), PLAIN) for turn in (0, 1)]
    extra = [(t, PLAIN, dialogue.turn[t].words, "", "", "", "") for t in (0, 1) if plain[t] == PLAIN]
    for turn, style, words, cue, manner, reply, voice_style in (*turns, *extra):
        path = clips + dialogue_file(dialogue, turn, style)
        twin = clips + dialogue_file(dialogue, turn, plain[turn]) if cue else ""
        yield Job(path, dialogue.id, style, words, speaker, cue, manner, outdoors, twin=twin, take=take)
        if reply:
            path = REPLIES + dialogue_file(dialogue, turn, style, "_response.wav")
            yield Job(path, dialogue.id, style, reply, voice_style=voice_style)


@functools.cache
def code_hash(folder: Path = Path(__file__).parent) -> str:
    """Return a hash of the code and the library versions that, besides the scripts, determine the audio.

    Comments, docstrings and layout do not count, so a set is not rendered again after they change.
    """
    paths = [path for name in _CODE for path in sorted(folder.glob(name))]
    code = "".join(_without_docstrings(path.read_text(encoding="utf-8")) for path in paths)
    engines = f"{version('pyworld-prebuilt')} {version('pyworld')} {version('soxr')} {np.__version__}"
    return hashlib.sha256((code + engines).encode()).hexdigest()[:16]


def _without_docstrings(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
