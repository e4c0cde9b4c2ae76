"""Convert a record to the token sequence of a task: the model's input, and the tokens it has to predict.

    <|im_start|>system\n{system}<|im_end|>\n
    <|im_start|>user\n[prompt of an understanding task][audio-begin] clip [audio-end]<|im_end|>\n
    <|im_start|>assistant\n{thought}{reply}<|im_end|>[BOS] speech codes [EOS]

Only the assistant's last turn is learnt. In streaming, blocks of six text and, as published, eighteen speech tokens
alternate; a configuration may have shorter blocks of speech, for tokens that last longer.
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
from overtone.echat.data.exchange_records import Record, TextRecord, understanding
from overtone.echat.data.labels import numbers, tag
from overtone.errors import DataError
from overtone.paths import shown

AUDIO, IGNORED = -2, -100  # in ids: a whole clip; in targets: no loss here
TEXT_BLOCK, SPEECH_BLOCK = 6, 18  # tokens per block in streaming, as published
TURNS = 5  # earlier turns of a dialogue that are kept
MAX_LABEL, MAX_SEQUENCE = 1200, 2000
WORDS_ONLY = 0.2  # share of understanding sequences that ask only for the words
LABELS_ONLY = 0.5  # share of the others that ask only for labels
START, END = "<|im_start|>", "<|im_end|>"
_MARKS = re.compile(r"<\|[^|<>]{1,40}\|>")

Task = Literal["s2t", "t2s", "s2s", "t2t"]
Think = Literal["", "label", "natural"]


class Tokens(Protocol):
    """The tokenizer's interface. `encode` recognises the chat template's marks and adds none itself."""

    @property
    def vocab(self) -> int:
        """V: text ids are below it."""

    @property
    def codes(self) -> int:
        """K: the number of speech codes."""

    @property
    def speech_block(self) -> int:
        """The number of speech tokens per block in streaming."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""


class ClipRef(Struct, frozen=True):
    """The location of a clip, and its words for the auxiliary CTC loss ("" if unknown)."""

    wav: str
    home: str = ""
    words: str = ""


class Sequence(Struct):
    """A model's input and targets.

    `targets[i]` is `ids[i]` if the model has to predict it (not shifted), else -100. `ignore` marks positions that are
    hidden from attention. Each AUDIO in `ids` is a placeholder for one of `clips`, in order.
    """

    key: str
    task: str
    ids: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    ignore: list[bool] = field(default_factory=list)
    clips: list[ClipRef] = field(default_factory=list)
    heard: list[list[int]] = field(default_factory=list)  # per clip, the text ids of its words; [] = unknown
    labels: list[list[int]] = field(default_factory=list)  # per clip and dimension, the label's index; -1 = unknown
    text: int = 0  # number of text targets
    speech: int = 0  # number of speech targets, without BOS and EOS
    reply: int = 0  # text tokens of the reply, as target or input
    streaming: bool = False
    block: int = SPEECH_BLOCK  # speech tokens per block in streaming: fewer if each of them lasts longer


class Unfit(DataError):
    """A record does not fit the task. `why` is one of a few fixed reasons, so that reasons can be counted."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{shown(key)}: {why}; remove it from this list, or complete it")
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
    """Return the sequence of a record for a task. Raises Unfit if the record lacks a field that the task needs.

    `reply_tag` puts the tag of the reply's emotion before the reply even without a thought in tags. With `all_heard`, a
    thought in tags gives every label of the query, not only the labels that the exchange is about. If the record lists
    all labels (`extra.heard`), the thought also says that there is no other sound; otherwise its missing labels are
    hidden and not learnt. If the speech is too short for streaming, text comes before speech; `Sequence.streaming`
    tells which layout was used.
    """
    if style == "understand":
        words, dimensions = _asked(record, rng)
        out = _prompt(record, "s2t", tok, ask=prompts.read().ask(words, dimensions, rng))
        known = record.heard.known()
        out.say(_plain(record.question) if words else "", *(tag(known[dimension]) for dimension in dimensions), END)
        return out.done()
    if why := _lacks(record, task, think):
        raise Unfit(record.key, why)
    thought: list[thinking.Piece] = []
    if think == "label":  # includes the reply's tag
        labels = record.heard if all_heard else record.labels
        complete = all_heard and record.complete
        # A recording whose corpus lacks a label must not teach the label's default.
        masked = 1.0 if all_heard else thinking.MASKED_SHARE
        said, emotion = _plain(record.question), record.reply_emotion
        thought = thinking.label_thought(said, labels, emotion, rng, masked, complete=complete)
    else:
        if think == "natural":
            thought = thinking.natural_thought(_plain(record.think_str))
        if reply_tag and task in ("s2t", "s2s"):
            thought.append((tag(record.reply_emotion or "neutral"), "said"))
    reply = [*_encode(tok, _plain(record.txt)), *_encode(tok, END)]
    streaming = (
        streaming and task in ("t2s", "s2s") and can_stream(len(reply), len(record.speech_token) + 1, tok.speech_block)
    )
    out = _prompt(record, task, tok, think=think, streaming=streaming)
    out.think(thought)
    if streaming:
        speech = [tok.vocab + code for code in (*record.speech_token, tok.codes)]
        out.put(interleave(reply, speech, tok.speech_block))
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
    """Return the sequence that a model reads before it answers, without targets.

    `ask` is the question of an understanding task. Two options do not occur in training: `beside` is text before the
    last clip of a conversation, and `system` replaces the task's system prompt.
    """
    ask, beside, system = _plain(ask), _plain(beside), _plain(system)
    return _prompt(record, task, tok, think=think, streaming=streaming, ask=ask, beside=beside, system=system).sequence


def build_text(record: TextRecord, tok: Tokens) -> Sequence:
    """Return the sequence of a text-only dialogue. All turns of the assistant are learnt."""
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
def can_stream(text: int, speech: int, block: int = SPEECH_BLOCK) -> bool:
    """Return whether there is enough speech for its text: a block of speech tokens per six of text."""
    return block * text <= TEXT_BLOCK * speech


def interleave(text: Many[int], speech: Many[int], block: int = SPEECH_BLOCK) -> list[int]:
    """Merge blocks of six text and `block` speech tokens until the text ends, then append the remaining speech."""
    if not can_stream(len(text), len(speech), block):
        raise ValueError(
            f"{len(text)} text tokens need {block * len(text) / TEXT_BLOCK:g} of speech, not {len(speech)}"
        )
    out: list[int] = []
    said = 0
    for at in range(0, len(text), TEXT_BLOCK):
        out += text[at : at + TEXT_BLOCK]
        more = block if at + TEXT_BLOCK < len(text) else len(speech)
        out += speech[said : said + more]
        said += more
    return out if text else list(speech)


# ── lengths and filters ───────────────────────────────────────────────────────────────────────────────────────────────
def length(sequence: Sequence, seconds: Many[float], positions: Callable[[float], int]) -> int:
    """Return the number of positions of a sequence.

    `positions` converts a clip's seconds to positions (published: 12.5 per second).
    """
    return len(sequence.ids) - len(sequence.clips) + sum(positions(s) for s in seconds)


def why_not(
    sequence: Sequence, seconds: Many[float], positions: Callable[[float], int], longest: int = MAX_SEQUENCE
) -> str:
    """Return the name of the published filter that makes training skip a sequence, or "" if no filter does."""
    if any(not SHORTEST <= s <= LONGEST for s in seconds):
        return f"a clip outside {SHORTEST:g}–{LONGEST:g} s"
    if sequence.text > MAX_LABEL:
        return f"more than {MAX_LABEL} tokens of text"
    if sequence.speech and 0.8 * sequence.reply * sequence.block >= sequence.speech * SPEECH_BLOCK:
        return "speech too short for its text"
    if length(sequence, seconds, positions) > longest:
        return f"more than {longest} positions"
    return ""


# ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────────
class _Writer:
    """Builds a sequence from left to right."""

    def __init__(self, tok: Tokens, key: str, task: str) -> None:
        self.tok = tok
        self.sequence = Sequence(key, task, block=tok.speech_block)

    def read(self, *texts: str) -> None:
        """Append texts that the model only reads."""
        for text in texts:
            self._add(_encode(self.tok, text), learnt=False)

    def say(self, *texts: str) -> None:
        """Append texts that the model has to predict."""
        for text in texts:
            self.put(_encode(self.tok, text))

    def think(self, pieces: Many[thinking.Piece]) -> None:
        """Append a thought."""
        for text, how in pieces:
            self._add(_encode(self.tok, text), learnt=how == "said", ignore=how == "hidden")

    def put(self, ids: Iterable[int], learnt: bool = True) -> None:
        """Append ids."""
        self._add(ids, learnt=learnt)

    def done(self, speech: int = 0, edges: int = 0) -> Sequence:
        """Count the targets and return the sequence. `speech` is the number of speech codes, `edges` that of marks."""
        learnt = len(self.sequence.targets) - self.sequence.targets.count(IGNORED)
        self.sequence.text, self.sequence.speech = learnt - speech - edges, speech
        return self.sequence

    def user(self, wav: str, words: str, home: str, ask: str = "", labels: dict[str, str] | None = None) -> None:
        """Append a user's turn: the recording, or its words if there is no recording."""
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
        added = list(ids)
        sequence = self.sequence
        sequence.ids += added
        sequence.targets += added if learnt else [IGNORED] * len(added)
        sequence.ignore += [ignore] * len(added)


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
        # Our addition to the published layout: without the emotion, nothing says how to speak the words.
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
    out.user(record.wav if hears else "", record.question, record.home, ask or beside, _all_labels(record))
    out.read(f"{START}assistant\n")
    return out


def _all_labels(record: Record) -> dict[str, str]:
    """Return the query's labels; if the record lists all labels, a missing event becomes "other"."""
    known = record.heard.known()
    return {"event": "other", **known} if record.complete else known


def _asked(record: Record, rng: random.Random) -> tuple[bool, tuple[str, ...]]:
    """Return whether to ask for the words, and the labels to ask for: as in the task, or drawn at random.

    Of several labels, one alone is asked for in half of the cases, because users ask for one.
    """
    if not record.wav:
        raise Unfit(record.key, "no recording")
    known = tuple(record.heard.known())
    wanted = understanding(record)
    if wanted is not None:
        words, dimensions = wanted[0], tuple(name for name in wanted[1] if name in known)
        if len(dimensions) > 1 and rng.random() < 0.5:
            dimensions = (rng.choice(dimensions),)
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
    """Return a message about a field that the task needs and the record lacks, or ""."""
    if think and task not in ("s2t", "s2s"):
        raise ValueError(f"{task} cannot have a thought; only s2t and s2s can")
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
    """Return a text without the chat template's marks, including marks that appear when an inner mark is removed.

    The text is scanned once, and a mark is removed as soon as it is complete. Removing marks in repeated passes could
    take as many passes as the text has marks.
    """
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


@functools.lru_cache(maxsize=1 << 16)  # prompts repeat with every record, and a record's texts with every epoch
def _encoded(tok: Hashable, text: str) -> tuple[int, ...]:
    return tuple(cast(Tokens, tok).encode(text))
