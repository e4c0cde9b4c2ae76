"""Overtone's nouns as typed records: items, conditions, requests, replies and scores.

Records are msgspec Structs: immutable, cheap, and the same class encodes, decodes and checks their JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Style = Literal["target", "alternative", "neutral", "control"]
STYLES: tuple[Style, ...] = ("target", "alternative", "neutral", "control")  # control: neutral again, in another voice
# What is sent in place of the clip: the sound, its true words, both, or a silence of the same length. For an item with
# a context also: the sound without the context, the context alone, and the words from a recogniser.
Input = Literal["audio", "transcript", "both", "silence", "alone", "context", "recognised"]
INPUTS: tuple[Input, ...] = ("audio", "transcript", "both", "silence", "alone", "context", "recognised")
WRITTEN: tuple[Input, ...] = ("transcript", "context", "recognised")  # inputs without a sound
PARTS = ("core", "control", "false-cue", "conflict", "dialogue", "fixed")  # of a benchmark; an item of core says ""
UNKNOWN = "unknown"  # the status of an item whose files do not name its cue
Prompt = Literal["task", "likelihood", "zero", "basic", "enhance", "warm", "plain"]
LIKELIHOOD: Prompt = "likelihood"  # the model does not write: it says how likely each answer is
Oracle = Literal["none", "true", "false"]


class Clip(Struct, frozen=True, omit_defaults=True):
    """A script spoken in one style by one source. `path` is relative to the benchmark's data folder, with `/`."""

    path: str
    sha256: str = ""
    seconds: float = 0.0


class Option(Struct, frozen=True, omit_defaults=True):
    """One choice of a question.

    `provenance` says, if the benchmark states it, in which case this choice would be right: "target" or "alternative"
    for that cue, "words" for the text alone, "nothing" for no cue. "harmful" marks a harmful or over-interpreting
    choice.
    """

    letter: str
    text: str
    provenance: str = ""
    clip: Clip | None = None  # set if the choice is a recording


class Turn(Struct, frozen=True, omit_defaults=True):
    """One utterance of the user: a clip and its true words.

    `cue` is the slug of the cue in this clip; `reference` and `reference_audio` are a dialogue's reference reply to it.
    """

    clip: Clip | None
    words: str = ""
    cue: str = ""
    reference: str = ""
    reference_audio: str = ""
    heard: str = ""  # the words from a recogniser
    given: str = ""  # a fixed reply from the benchmark, used in the history instead of asking the model


class Guess(Struct, frozen=True):
    """The answer of a baseline that a benchmark computes from its files alone, without a model."""

    baseline: str
    letter: str


class Item(Struct, frozen=True, omit_defaults=True):
    """One task for a model. `case` links the items of all levels about one script and style; `group` links the styles
    of one script."""

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
    cue_text: str = ""  # the benchmark's name for `cue`
    other_cue_text: str = ""
    dimension: str = ""  # of the script's target cue: speaker, paralinguistic, environment
    source: str = ""  # which voice: synthesis, human, an engine
    topic: str = ""
    context: str = ""  # text that comes before the first turn
    question: str = ""
    options: tuple[Option, ...] = ()
    gold: str = ""  # the correct letter; for a conversation the wanted property of the reply, e.g. a style; "" for none
    references: tuple[str, ...] = ()  # reference transcript or reply
    reference_audio: str = ""  # path of the reference reply's sound, relative like a clip's
    part: str = ""  # part of the benchmark outside its headline: false-cue, conflict, dialogue, control, fixed
    status: str = ""  # of the clip's cue: validated, unvalidated, UNKNOWN (the benchmark does not name it) or ""
    language: str = ""  # BCP-47 tag of the words and the reply: en, zh, …, mul (several); "": see `overtone.languages`
    guesses: tuple[Guess, ...] = ()  # the baselines' answers to a question, if the benchmark has baselines

    @classmethod
    def of(cls, benchmark: str, name: str, task: str, *turns: Turn, **fields: Any) -> Item:
        """Return an item of a benchmark that has no levels, styles or scripts. `fields` sets its other fields.

        Its id is BENCHMARK/TASK/NAME, its level follows from the task, and its case and group are NAME.
        """
        level = 3 if task == "converse" else 1
        values: dict[str, Any] = {"level": level, "category": task, "case": name, "group": name, "style": ""} | fields
        return cls(f"{benchmark}/{task}/{name}", benchmark, task=task, turns=turns, **values)


class Condition(Struct, frozen=True, omit_defaults=True):
    """How an item is asked: a combination of prompt variant, input and oracle. Its name identifies it in the store."""

    prompt: Prompt = "task"
    input: Input = "audio"
    oracle: Oracle = "none"

    @property
    def name(self) -> str:
        prompt = {"none": self.prompt, "true": "oracle", "false": "oracle-false"}[self.oracle]
        return f"{prompt}/{self.input}"

    @property
    def sounds(self) -> bool:
        """Whether the request contains a clip."""
        return self.input not in WRITTEN

    @classmethod
    def parse(cls, name: str) -> Condition:
        """Return the condition with this name. Raises ValueError for an unknown name."""
        prompt, _, given = name.partition("/")
        table: dict[str, tuple[Prompt, Oracle]] = {
            "task": ("task", "none"),
            "likelihood": ("likelihood", "none"),
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
    """Audio ready to send: a mono 16-bit PCM WAV with a correct header."""

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
    """A request to a model. `options` repeats a question's choices as data, in the order of their letters.

    With `continuations`, the model does not write. Each step lists alternative texts of the reply: the model returns
    the log-likelihood of each, appends the most likely one per token (and a space between steps), and continues with
    the next step. Multiple choice has one step, the texts of its options.
    """

    key: Key
    messages: tuple[Message, ...]
    speech: bool = False  # whether a spoken reply is wanted
    task: str = ""
    options: tuple[str, ...] = ()
    seed: int | None = None  # overrides the SPEC's, so that each repeat is a new sample
    schema: dict[str, Any] | None = None  # JSON schema of the answer, for endpoints that can enforce it
    greedy: bool = False  # disables sampling, overriding the SPEC; endpoints only
    continuations: tuple[tuple[str, ...], ...] = ()
    last: bool = True  # no later turn of this conversation follows, so that a session may end
    without: tuple[Message, ...] = ()  # the same request without the clip or its words, for `Likelihood.prior`


class Usage(Struct, frozen=True, omit_defaults=True):
    """The tokens of a reply, as reported by the endpoint (0 if not reported)."""

    input_tokens: int = 0
    output_tokens: int = 0
    input_audio_tokens: int = 0
    output_audio_tokens: int = 0


class Likelihood(Struct, frozen=True, omit_defaults=True):
    """The log-likelihood of one alternative after the prompt, summed over its tokens.

    `prior` is the same sum after `Request.without`, None if the request has none.
    """

    total: float
    tokens: int
    prior: float | None = None

    @property
    def mean(self) -> float:
        """The log-likelihood per token."""
        return self.total / self.tokens

    @property
    def less(self) -> float | None:
        """The log-likelihood minus its prior: how much the clip or its words speak for this alternative."""
        return None if self.prior is None else self.total - self.prior


THOUGHT, EMOTION, TOKENS = "thought: ", "reply emotion: ", "speech tokens: "  # prefixes of notes that are reply content


def remarks(notes: Iterable[str]) -> list[str]:
    """Return the notes about a reply, without those that are part of its content."""
    return [note for note in notes if not note.startswith((THOUGHT, EMOTION, TOKENS))]


Seconds = Annotated[float, Meta(ge=-1e6, le=1e6)]
Origin = Literal["request", "turn", "voice"]


class Timings(Struct, frozen=True, omit_defaults=True):
    """When the parts of a streamed reply arrived, in seconds. A field is None if it was not measured.

    `origin` is the start of `first_text`, `first_audio` and `done`: the moment the request was sent, or, in a realtime
    session, the end of the user's turn, or the last voiced sample if the server does not report the end.
    `voice_to_voice` begins at the last voiced sample of the clip and ends at the
    first audible sample on a playback clock; `vad_wait` is its part until the server noticed that the turn is over.
    """

    origin: Origin = "request"
    first_text: Seconds | None = None
    first_audio: Seconds | None = None
    voice_to_voice: Seconds | None = None
    vad_wait: Seconds | None = None
    done: Seconds | None = None
    stalled: Seconds | None = None  # how long the playback clock waited for sound within the reply
    real_time_factor: Seconds | None = None  # `done` per second of the reply's sound


class SessionEvent(Struct, frozen=True, omit_defaults=True):
    """An event of a realtime session, or several equal ones in a row. `at` is the time of the first, `until` that of
    the last, in seconds on the session's clock."""

    at: Seconds
    type: str
    sent: bool = False  # by the user's side
    count: int = 1
    until: Seconds | None = None


class Session(Struct, frozen=True, omit_defaults=True):
    """One turn of a realtime session on one clock, which starts with the first sample of the user's clip.

    `audio` is a WAV of two channels: the user on the left, the model on the right, as a listener hears both.
    """

    audio: bytes | None = None
    events: tuple[SessionEvent, ...] = ()


class Reply(Struct, frozen=True, omit_defaults=True):
    """A model's reply. `text` is its text output; `audio` is its speech as the bytes of a WAV, if any."""

    text: str
    audio: bytes | None = None
    finish: str = ""  # stop, length, refusal, …
    usage: Usage = Usage()
    model: str = ""  # the model's name as reported by the endpoint
    notes: tuple[str, ...] = ()  # remarks for a reader, e.g. "speech refused, asked for text only"
    refused: bool = False  # the endpoint itself marked the answer as a refusal
    likelihoods: tuple[tuple[Likelihood, ...], ...] = ()  # of `Request.continuations`: per step, of each alternative
    timings: Timings | None = None  # of a reply that streamed
    session: Session | None = None  # of a reply in a realtime session


class Score(Struct, frozen=True, omit_defaults=True):
    """A metric's result for one reply: a value, or the reason why the value is missing.

    `detail` has the numbers from which a score of many replies can be computed, such as error counts.
    """

    metric: str
    signature: str
    value: float | None
    reason: str = ""  # why there is no value
    detail: dict[str, float | int | str | None] = {}
