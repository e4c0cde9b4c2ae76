"""A record and a task become a sequence: what the language model reads, and what of it the model has to say.

    <|im_start|>system\n{system}<|im_end|>\n
    <|im_start|>user\n[prompt of an understanding task][audio-begin] clip [audio-end]<|im_end|>\n
    <|im_start|>assistant\n{thought}{reply}<|im_end|>[BOS] speech codes [EOS]

Only the assistant's last turn is learnt. In streaming, text and speech take turns, six and eighteen tokens long.
Joint ids: text below V, speech code k is V+k, V+K begins and ends speech, V+K+1 and V+K+2 enclose a clip.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Hashable, Iterable
from collections.abc import Sequence as Many
from typing import Literal, Protocol, cast

from msgspec import Struct, field

from overtone.echat.data import prompts
from overtone.echat.data import think as thinking
from overtone.echat.data.containers import LONGEST, SHORTEST
from overtone.echat.data.labels import numbers, tag
from overtone.echat.data.records import Record, TextRecord, understanding
from overtone.errors import DataError
from overtone.paths import shown

AUDIO, IGNORED = -2, -100  # in ids: a whole clip; in targets: no loss here
TEXT_BLOCK, SPEECH_BLOCK = 6, 18  # tokens that take turns in streaming
TURNS = 5  # of a dialogue's past that are kept
MAX_LABEL, MAX_SEQUENCE = 1200, 2000
WORDS_ONLY = 0.2  # share of understanding sequences that ask for the words alone
LABELS_ONLY = 0.5  # of the others: labels without the words
START, END = "<|im_start|>", "<|im_end|>"
_MARKS = re.compile(r"<\|[^|<>]{1,40}\|>")

Task = Literal["s2t", "t2s", "s2s", "t2t"]
Think = Literal["", "label", "natural"]


class Tokens(Protocol):
    """What is needed of a tokenizer. `encode` knows the marks of the chat template and adds none by itself."""

    @property
    def vocab(self) -> int:
        """V: text ids lie below it."""

    @property
    def codes(self) -> int:
        """K: how many speech codes there are."""

    def encode(self, text: str) -> list[int]: ...


class ClipRef(Struct, frozen=True):
    """A clip by where it lies, with its words for the CTC helper ("" where they are not known)."""

    wav: str
    home: str = ""
    words: str = ""


class Sequence(Struct):
    """What a model reads. `targets[i]` is `ids[i]` where that has to be said (not shifted), else -100; `ignore` marks
    what is not attended to. Each AUDIO in `ids` stands for one of `clips`, in order."""

    key: str
    task: str
    ids: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    ignore: list[bool] = field(default_factory=list)
    clips: list[ClipRef] = field(default_factory=list)
    heard: list[list[int]] = field(default_factory=list)  # of each clip the text ids of its words, [] = not known
    labels: list[list[int]] = field(default_factory=list)  # and of each dimension its label's number, -1 = not known
    text: int = 0  # targets that are text
    speech: int = 0  # targets that are speech, without BOS and EOS
    reply: int = 0  # text tokens of the reply, said or given
    streaming: bool = False


class Unfit(DataError):
    """A record that cannot be laid out for this task: `why` is one of a few words, to be counted."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{shown(key)}: {why}; leave it out of this list, or complete it")
        self.why = why


def build(
    record: Record,
    task: Task,
    tok: Tokens,
    *,
    think: Think = "",
    streaming: bool = False,
    rng: random.Random,
    style: Literal["understand", "chat"] = "chat",
    reply_tag: bool = False,
    all_heard: bool = False,
) -> Sequence:
    """The sequence of a record for a task. Raises Unfit for a record without what the task needs.

    `reply_tag` puts the tag of the reply's emotion before the reply also where no thought in tags does. `all_heard`
    lets a thought in tags tell every label that is true of the query, not only those the exchange is about; where a
    builder wrote down all that is heard (`extra.heard`), also that there is no sound besides the voice. Streaming falls
    back to text before speech where the speech is too short for it; `Sequence.streaming` says which it is.
    """
    if style == "understand":
        words, dimensions = _asked(record, rng)
        out = _prompt(record, "s2t", tok, ask=prompts.read().ask(words, dimensions, rng))
        found = record.heard.known()
        out.say(_plain(record.question) if words else "", *(tag(found[dimension]) for dimension in dimensions), END)
        return out.done()
    if why := _lacks(record, task, think):
        raise Unfit(record.key, why)
    thought: list[thinking.Piece] = []
    if think == "label":  # brings the tag of the reply with it
        known = record.heard if all_heard else record.labels
        complete = all_heard and record.complete
        thought = thinking.label_thought(_plain(record.question), known, record.reply_emotion, rng, complete=complete)
    else:
        if think == "natural":
            thought = thinking.natural_thought(_plain(record.think_str))
        if reply_tag and task in ("s2t", "s2s"):
            thought.append((tag(record.reply_emotion or "neutral"), "said"))
    reply = [*_encode(tok, _plain(record.txt)), *_encode(tok, END)]
    streaming = streaming and task in ("t2s", "s2s") and can_stream(len(reply), len(record.speech_token) + 1)
    out = _prompt(record, task, tok, think=think, streaming=streaming)
    out.think(thought)
    if streaming:
        out.put(interleave(reply, [tok.vocab + code for code in (*record.speech_token, tok.codes)]))
    else:
        if task != "t2s":
            out.put(reply)
        if task in ("t2s", "s2s"):
            out.put(tok.vocab + code for code in (tok.codes, *record.speech_token, tok.codes))
    out.sequence.streaming, out.sequence.reply = streaming, len(reply)
    return out.done(len(record.speech_token), 1 if streaming else 2) if task in ("t2s", "s2s") else out.done()


def prompt(
    record: Record,
    task: Task,
    tok: Tokens,
    *,
    think: Think = "",
    streaming: bool = False,
    ask: str = "",
    beside: str = "",
    system: str = "",
) -> Sequence:
    """What a model reads before it answers, without targets; `ask` is the prompt of an understanding task.

    No training sequence has what follows: `beside` is text before the last clip of a conversation, `system` stands in
    place of the task's own system prompt.
    """
    ask, beside, system = _plain(ask), _plain(beside), _plain(system)
    return _prompt(record, task, tok, think=think, streaming=streaming, ask=ask, beside=beside, system=system).sequence


def build_text(record: TextRecord, tok: Tokens) -> Sequence:
    """The sequence of a dialogue of text alone: every turn of the assistant is learnt."""
    out = _Writer(tok, record.key, "t2t")
    for message in record.messages:
        out.read(f"{START}{message.role}\n")
        if message.role == "assistant":
            out.say(_plain(message.content), END)
        else:
            out.read(_plain(message.content), END)
        out.read("\n")
    return out.done()


# ── text and speech in turn ───────────────────────────────────────────────────────────────────────────────────────────
def can_stream(text: int, speech: int) -> bool:
    """Whether so many text tokens never wait for speech: three tokens of speech, or more, for each."""
    return 3 * text <= speech


def interleave(text: Many[int], speech: Many[int]) -> list[int]:
    """Six of text, eighteen of speech, and so on until the text is at its end; then the rest of the speech."""
    if not can_stream(len(text), len(speech)):
        raise ValueError(f"{len(text)} text tokens need {3 * len(text)} of speech, not {len(speech)}")
    out: list[int] = []
    said = 0
    for at in range(0, len(text), TEXT_BLOCK):
        out += text[at : at + TEXT_BLOCK]
        more = SPEECH_BLOCK if at + TEXT_BLOCK < len(text) else len(speech)
        out += speech[said : said + more]
        said += more
    return out if text else list(speech)


# ── lengths and filters ───────────────────────────────────────────────────────────────────────────────────────────────
def length(sequence: Sequence, seconds: Many[float], positions: Callable[[float], int]) -> int:
    """How many positions it takes; `positions` says how many a clip of so many seconds does (theirs: 12.5 a second)."""
    return len(sequence.ids) - len(sequence.clips) + sum(positions(s) for s in seconds)


def why_not(
    sequence: Sequence, seconds: Many[float], positions: Callable[[float], int], longest: int = MAX_SEQUENCE
) -> str:
    """Why training leaves a sequence out, or "": the published filters."""
    if any(not SHORTEST <= s <= LONGEST for s in seconds):
        return f"a clip outside {SHORTEST:g}–{LONGEST:g} s"
    if sequence.text > MAX_LABEL:
        return f"more than {MAX_LABEL} tokens of text"
    if sequence.speech and 0.8 * sequence.reply >= sequence.speech:
        return "speech too short for its text"
    if length(sequence, seconds, positions) > longest:
        return f"more than {longest} positions"
    return ""


# ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────────
class _Writer:
    """Writes a sequence from left to right."""

    def __init__(self, tok: Tokens, key: str, task: str) -> None:
        self.tok = tok
        self.sequence = Sequence(key, task)

    def read(self, *texts: str) -> None:
        for text in texts:
            self._add(_encode(self.tok, text), learnt=False)

    def say(self, *texts: str) -> None:
        for text in texts:
            self.put(_encode(self.tok, text))

    def think(self, pieces: Many[thinking.Piece]) -> None:
        for text, how in pieces:
            self._add(_encode(self.tok, text), learnt=how == "said", ignore=how == "hidden")

    def put(self, ids: Iterable[int], learnt: bool = True) -> None:
        self._add(ids, learnt=learnt)

    def done(self, speech: int = 0, edges: int = 0) -> Sequence:
        """The sequence, its targets counted: so many of them are speech codes, so many begin or end speech."""
        learnt = len(self.sequence.targets) - self.sequence.targets.count(IGNORED)
        self.sequence.text, self.sequence.speech = learnt - speech - edges, speech
        return self.sequence

    def user(self, wav: str, words: str, home: str, ask: str = "", labels: dict[str, str] | None = None) -> None:
        """A user's turn: the recording, or its words where there is none."""
        self.read(f"{START}user\n", ask)
        if wav:
            self._add([self.tok.vocab + self.tok.codes + 1, AUDIO, self.tok.vocab + self.tok.codes + 2], learnt=False)
            self.sequence.clips.append(ClipRef(wav, home, words))
            self.sequence.heard.append(list(_encode(self.tok, _plain(words))))
            self.sequence.labels.append(numbers(labels or {}))
        else:
            self.read(_plain(words))
        self.read(f"{END}\n")

    def _add(self, ids: Iterable[int], *, learnt: bool, ignore: bool = False) -> None:
        found = list(ids)
        sequence = self.sequence
        sequence.ids += found
        sequence.targets += found if learnt else [IGNORED] * len(found)
        sequence.ignore += [ignore] * len(found)


def _prompt(
    record: Record,
    task: Task,
    tok: Tokens,
    *,
    think: str = "",
    streaming: bool = False,
    ask: str = "",
    beside: str = "",
    system: str = "",
) -> _Writer:
    out = _Writer(tok, record.key, task)
    kind = {"t2s": "tts", "t2t": "t2t"}.get(task, task)
    kind = "understand" if ask else "-".join([kind, *["streaming"] * streaming, *["think"] * bool(think)])
    out.read(f"{START}system\n", system or prompts.read().system[kind], f"{END}\n")
    if task == "t2s":
        # The emotion is given, ours to add: else nothing would tell how the same words are to be spoken.
        out.user("", f"{tag(record.reply_emotion) if record.reply_emotion else ''}{record.txt}", "")
        out.read(f"{START}assistant\n")
        return out
    hears = task in ("s2t", "s2s")
    for turn in record.history[-TURNS:] if not ask else ():
        out.user(turn.wav if hears else "", turn.question, record.home)
        out.read(f"{START}assistant\n", _plain(turn.txt), END)
        if task == "s2s" and turn.speech_token:
            out.put((tok.vocab + code for code in (tok.codes, *turn.speech_token, tok.codes)), learnt=False)
        out.read("\n")
    out.user(record.wav if hears else "", record.question, record.home, ask or beside, _complete(record))
    out.read(f"{START}assistant\n")
    return out


def _complete(record: Record) -> dict[str, str]:
    """What is known of the query; where all that is heard was written down, also that there is no other sound."""
    known = record.heard.known()
    return {"event": "other", **known} if record.complete else known


def _asked(record: Record, rng: random.Random) -> tuple[bool, tuple[str, ...]]:
    """Whether the words are asked for, and which labels: as its task says, else drawn among what is known."""
    if not record.wav:
        raise Unfit(record.key, "no recording")
    known = tuple(record.heard.known())
    told = understanding(record)
    if told is not None:
        words, dimensions = told[0], tuple(name for name in told[1] if name in known)
    else:
        words, dimensions = True, known
        if rng.random() < WORDS_ONLY:
            dimensions = ()
        elif len(known) > 1 and rng.random() < 0.5:
            dimensions = (rng.choice(known),)
    if dimensions and words and rng.random() < LABELS_ONLY:
        words = False
    if not record.question:
        words, dimensions = False, dimensions or known
    if not words and not dimensions:
        raise Unfit(record.key, "neither words nor labels")
    return words, dimensions


def _lacks(record: Record, task: Task, think: Think) -> str:
    """What the task needs and the record has not."""
    if think and task not in ("s2t", "s2s"):
        raise ValueError(f"{task} has nothing to think about: thoughts are for s2t and s2s")
    if task in ("s2t", "s2s") and not record.wav:
        return "no recording"
    if task == "t2t" and not record.question:
        return "no words of the query"
    if not record.txt.strip():
        return "no reply"
    if task in ("t2s", "s2s") and not record.speech_token:
        return "no speech tokens"
    if think == "label" and not record.question:
        return "no words of the query"
    if think == "natural" and not record.think_str:
        return "no thought"
    return ""


def _plain(text: str) -> str:
    """Text of data, without what the chat template would take for its marks, also for one that is left when another is
    taken out of it. Each is taken out as it ends: passes over the whole text could be as many as it has marks."""
    if not _MARKS.search(text):
        return text
    kept: list[str] = []
    for piece in re.split("(?<=>)", text):
        kept += piece
        if mark := _MARKS.search("".join(kept[-44:])):  # no mark is longer
            del kept[-len(mark[0]) :]
    return "".join(kept)


def _encode(tok: Tokens, text: str) -> tuple[int, ...]:
    return _encoded(cast(Hashable, tok), text) if text else ()


@functools.lru_cache(maxsize=1 << 16)  # prompts come with every record, a record's texts with every epoch
def _encoded(tok: Hashable, text: str) -> tuple[int, ...]:
    return tuple(cast(Tokens, tok).encode(text))
