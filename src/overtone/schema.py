"""The nouns as typed records: what is asked, what comes back, what it scored. One name each, used everywhere.

Records are msgspec Structs: immutable, cheap, and the same class encodes, decodes and checks their JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

Style = Literal["target", "alternative", "neutral", "control"]
STYLES: tuple[Style, ...] = ("target", "alternative", "neutral", "control")  # control: neutral again, in another voice
# What stands for the clip: the sound, its true words, both, an equally long silence; of an item with a context also the
# sound without it, the context without anything said, and the words as a recogniser heard them.
Input = Literal["audio", "transcript", "both", "silence", "alone", "context", "recognised"]
INPUTS: tuple[Input, ...] = ("audio", "transcript", "both", "silence", "alone", "context", "recognised")
PARTS = ("core", "control", "false-cue", "conflict", "dialogue", "fixed")  # of a benchmark; an item of core says ""
UNKNOWN = "unknown"  # the status of an item whose files do not say what is heard
Prompt = Literal["task", "zero", "basic", "enhance", "warm", "plain"]
Oracle = Literal["none", "true", "false"]


class Clip(Struct, frozen=True, omit_defaults=True):
    """A script spoken in one style by one source. `path` is relative to the benchmark's data folder, with `/`."""

    path: str
    sha256: str = ""
    seconds: float = 0.0


class Option(Struct, frozen=True, omit_defaults=True):
    """One choice of a question. `provenance` says under which reading it would be right, where the benchmark knows:
    target, alternative, words (the text alone), harmful (harmful or over-read) or nothing (no cue is there)."""

    letter: str
    text: str
    provenance: str = ""
    clip: Clip | None = None  # where the choice is a recording


class Turn(Struct, frozen=True, omit_defaults=True):
    """One thing the user says: a clip and its true words. `cue` is the slug of the cue this clip carries. Where a
    dialogue has a reference reply to this turn, it stands here."""

    clip: Clip | None
    words: str = ""
    cue: str = ""
    reference: str = ""
    reference_audio: str = ""
    heard: str = ""  # the words as a recogniser wrote them down
    given: str = ""  # the reply that the benchmark gives to it: it stands in the history, and none is asked for


class Item(Struct, frozen=True, omit_defaults=True):
    """One thing asked of a model. `case` links it to the other levels; `group` holds the variants of one utterance."""

    id: str
    benchmark: str
    level: int  # 1 understanding, 2 reasoning, 3 conversation
    task: str  # a file in tasks/: transcribe, choose, converse
    category: str  # the sub-task: asr, coarse, age, …, conversation
    case: str  # script and style, e.g. "synthesis/id_854/target"
    group: str  # the script, e.g. "synthesis/id_854"
    style: str
    turns: tuple[Turn, ...]
    cue: str = ""  # slug of the cue the clip carries; "" when neutral
    other_cue: str = ""  # the script's other cue, named by oracle-false
    cue_text: str = ""  # the benchmark's own words for `cue`
    other_cue_text: str = ""
    dimension: str = ""  # of the script's target cue: speaker, paralinguistic, environment
    source: str = ""  # which voice: synthesis, human, an engine
    topic: str = ""
    context: str = ""  # text that comes before the first turn
    question: str = ""
    options: tuple[Option, ...] = ()
    gold: str = ""  # the right letter; of a conversation what is wanted of the reply, e.g. a style; "" where nothing is
    references: tuple[str, ...] = ()  # reference transcript or reply
    reference_audio: str = ""  # path of the reference reply's sound, relative like a clip's
    part: str = ""  # of the benchmark, kept apart from its headline: false-cue, conflict, dialogue, control, fixed
    # Of the clip's cue: validated or unvalidated; UNKNOWN where the benchmark's files do not say which cue it carries;
    # else "".
    status: str = ""
    language: str = ""  # BCP-47 tag of the words and the reply: en, zh, …, mul (several); "": see `overtone.languages`

    @classmethod
    def of(cls, benchmark: str, name: str, task: str, *turns: Turn, **fields: Any) -> Item:
        """Return an item of a benchmark without levels, styles or scripts. `fields` sets its other fields.

        Its id is BENCHMARK/TASK/NAME, its level follows from the task, and it is a case and a group of its own."""
        level = 3 if task == "converse" else 1
        own: dict[str, Any] = {"level": level, "category": task, "case": name, "group": name, "style": ""} | fields
        return cls(f"{benchmark}/{task}/{name}", benchmark, task=task, turns=turns, **own)


class Condition(Struct, frozen=True, omit_defaults=True):
    """Under which an item is asked: prompt variant × input × oracle. Its name is its identity in the store."""

    prompt: Prompt = "task"
    input: Input = "audio"
    oracle: Oracle = "none"

    @property
    def name(self) -> str:
        prompt = {"none": self.prompt, "true": "oracle", "false": "oracle-false"}[self.oracle]
        return f"{prompt}/{self.input}"

    @property
    def sounds(self) -> bool:
        """Whether a clip is sent."""
        return self.input not in ("transcript", "context", "recognised")

    @classmethod
    def parse(cls, name: str) -> Condition:
        """The condition a name stands for; raises ValueError for a name no condition has."""
        prompt, _, given = name.partition("/")
        table: dict[str, tuple[Prompt, Oracle]] = {
            "task": ("task", "none"),
            "zero": ("zero", "none"),
            "basic": ("basic", "none"),
            "enhance": ("enhance", "none"),
            "warm": ("warm", "none"),
            "plain": ("plain", "none"),
            "oracle": ("enhance", "true"),
            "oracle-false": ("enhance", "false"),
        }
        for modality in INPUTS:
            if given == modality and prompt in table:
                return cls(table[prompt][0], modality, table[prompt][1])
        raise ValueError(f"not a condition: {name!r}")


class Key(Struct, frozen=True, order=True):
    """A reply's identity."""

    item: str
    condition: str
    repeat: int = 0
    turn: int = 0


class Sound(Struct, frozen=True):
    """Audio ready to send: a mono 16-bit PCM WAV with a true header."""

    wav: bytes
    sha256: str
    seconds: float


class Message(Struct, frozen=True):
    """One message: text and sounds in the order they are presented."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Sound, ...]

    @property
    def text(self) -> str:
        return "\n".join(p for p in self.parts if isinstance(p, str))


class Request(Struct, frozen=True):
    """What is sent to a model. `options` repeats a question's choices as data, in the order of their letters."""

    key: Key
    messages: tuple[Message, ...]
    speech: bool = False  # audio is wanted back
    task: str = ""
    options: tuple[str, ...] = ()
    seed: int | None = None  # wins over the SPEC's: a repeat is another draw, not the same one again
    schema: dict[str, Any] | None = None  # JSON schema of the answer, for endpoints that can hold a model to one
    greedy: bool = False  # without sampling, whatever the SPEC says; endpoints only


class Usage(Struct, frozen=True, omit_defaults=True):
    """What a reply cost, in tokens, as the endpoint reported it (0 where it did not)."""

    input_tokens: int = 0
    output_tokens: int = 0
    input_audio_tokens: int = 0
    output_audio_tokens: int = 0


THOUGHT, EMOTION, TOKENS = "thought: ", "reply emotion: ", "speech tokens: "  # how notes begin that are part of a reply


def remarks(notes: Iterable[str]) -> list[str]:
    """The notes that tell something about a reply and are no part of it."""
    return [note for note in notes if not note.startswith((THOUGHT, EMOTION, TOKENS))]


class Reply(Struct, frozen=True, omit_defaults=True):
    """What came back. `text` is the model's own text stream; `audio` the bytes of its speech, if any, as a WAV."""

    text: str
    audio: bytes | None = None
    finish: str = ""  # stop, length, refusal, …
    usage: Usage = Usage()
    model: str = ""  # the name the endpoint gave itself
    notes: tuple[str, ...] = ()  # what a reader should know: "speech refused, asked for text only"
    refused: bool = False  # the endpoint itself marked the answer as a refusal


class Score(Struct, frozen=True, omit_defaults=True):
    """A metric's word on one reply: a value, or unscored with a reason. `detail` holds the sufficient statistics."""

    metric: str
    signature: str
    value: float | None
    reason: str = ""  # why there is no value
    detail: dict[str, float | int | str | None] = {}
