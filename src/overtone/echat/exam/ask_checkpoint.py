"""Ask a checkpoint about every test record: labels, words, replies with and without a thought, spoken replies.

Scoring is separate (see `counts` and `exam_scores`).
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.data import layout, prompts, think
from overtone.echat.data.containers import Pack, open_audio
from overtone.echat.data.exchange_records import Record, understanding
from overtone.echat.data.labels import DIMENSIONS, tag
from overtone.echat.data.layout import ClipRef
from overtone.echat.data.record_origins import mark_of
from overtone.echat.exam.answer_file import FORMAT, MODES, Head, Prediction, arm_of
from overtone.echat.exam.batched_decoding import Heard, Machine, answer, hear, likelihoods
from overtone.echat.learn.batch_stream import TRAIN
from overtone.echat.learn.stages import stages
from overtone.echat.net import checkpoint, decode
from overtone.echat.net.config import Config
from overtone.echat.net.device import cast_weights, choose_device
from overtone.echat.net.tokenizer import Bytes, Tokenizer, open_tokenizer
from overtone.echat.speech import quiet_code
from overtone.errors import DataError, UsageError
from overtone.paths import shown
from overtone.spec import suggest
from overtone.version import __version__

# Token limits of answers: 1.5 times the longest of the open set, in SmolLM2's tokens.
LONGEST = {"labels": 16, "words": 40, "plain": 64, "deaf": 64, "label": 160, "natural": 128, "told": 96, "oracle": 96}
LONGEST_SPEECH = 500  # 20 s
SPOKEN = 48  # records that are also answered in speech


class Wanted(Struct, frozen=True):
    """Options of a test.

    An empty `parts` means all parts that are not used in training. An empty `modes` means all modes that the model was
    trained for.
    """

    parts: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    limit: int = 0  # records per part, in whole groups
    spoken: int = SPOKEN
    longest: int = 0  # token limit of an answer, if below LONGEST
    seed: int = 0  # for sampling spoken replies

    def token_limit(self, mode: str, tok: Tokenizer) -> int:
        """Return the maximum number of tokens of an answer."""
        usual = LONGEST[mode] * (5 if isinstance(tok, Bytes) else 1)  # a token has about five bytes
        return min(usual, self.longest or usual)


def evaluate(
    folder: Path, data: Sequence[Path], wanted: Wanted, *, device: str = "auto", arm: str = "",
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Head, list[Prediction]]:  # fmt: skip
    """Ask a checkpoint about the packs' records. Raises DataError for invalid records, or if there are none."""
    began = time.monotonic()
    machine, config, notes = open_machine(folder, device)
    modes = chosen_modes(wanted.modes, config, notes)
    records = [r for pack in data for r in chosen(Pack(pack).records, wanted)]
    if not records:
        raise DataError("no records to test on; give packs of test parts, or other --parts")
    for record in records:
        if problems := record.problems():
            raise DataError(f"{shown(record.key)}: {problems[0]}; correct the pack")
    say(f"{len(records)} records, {', '.join(modes)}")
    rows = predict(machine, records, modes, wanted, say)
    heard = checkpoint.heard(folder)
    if heard is not None:
        marks = [mark_of(heard, record).level for record in records]
        rows = [replace(row, mark=mark) for row, mark in zip(rows, marks, strict=True)]
    seed = int(notes.get("seed", 0))
    seconds = round(time.monotonic() - began, 1)
    tokens = config.model.speech.tokens
    return Head(FORMAT, arm or arm_of(notes), seed, modes, notes, __version__, seconds, tokens, heard is not None), rows


def open_machine(folder: Path, device: str = "auto") -> tuple[Machine, Config, dict[str, Any]]:
    """Load a checkpoint for decoding. On a GPU, its language model is converted to bf16."""
    place = choose_device(device)
    model, config = checkpoint.load(folder, device=place)
    if place.type == "cuda":
        cast_weights(model.lm, torch.bfloat16)  # otherwise autocast would convert it in every step
        cast_weights(model.speech, torch.bfloat16)
    return Machine(model, open_tokenizer(config.model), place), config, checkpoint.index(folder).notes


def chosen_modes(asked: Sequence[str], config: Config, notes: dict[str, Any]) -> tuple[str, ...]:
    """Return the requested modes, or all modes that the model was trained for up to its stage."""
    for name in asked:
        if name not in MODES:
            raise UsageError(f"unknown --modes {shown(name)!r}{suggest(name, MODES)}; known: {', '.join(MODES)}")
    if asked:
        return tuple(mode for mode in MODES if mode in asked)
    thoughts: set[str] = set()
    if "think" not in notes.get("ablate", ()):
        for name, stage in stages(config.stage, config.name).items():
            if any(feed.think for feed in stage.feeds):
                thoughts |= {"label", "natural"} if stage.think == "both" else {stage.think}
            if name == notes.get("stage"):
                break
    without = {"label", "natural"} - thoughts
    if "label" in without:
        without |= {"told", "oracle"}  # these modes give a thought in tags
    return tuple(mode for mode in MODES if mode not in without)


def chosen(records: Sequence[Record], wanted: Wanted) -> list[Record]:
    """Return the records of the requested parts: at most `limit` per part, in random whole groups (at least one)."""
    out = []
    for part in sorted({record.part for record in records}):
        if part not in wanted.parts if wanted.parts else part in TRAIN:
            continue
        groups: dict[str, list[Record]] = {}
        for record in records:
            if record.part == part and record.wav:
                groups.setdefault(record.group or record.key, []).append(record)
        taken = 0
        for name in sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest()):
            if not taken or not wanted.limit or taken + len(groups[name]) <= wanted.limit:
                out += groups[name]
                taken += len(groups[name])
    return out


def predict(
    machine: Machine, records: Sequence[Record], modes: Sequence[str], wanted: Wanted,
    say: Callable[[str], None] = lambda line: None,
) -> list[Prediction]:  # fmt: skip
    """Return a prediction for each record, in input order."""
    answers = [Answers() for _ in records]
    began = time.monotonic()
    heard = hear(machine, [clip for record in records for clip in _clips(record)])
    say(f"  {len(heard.place)} clips encoded: {time.monotonic() - began:.1f} s")
    for mode in modes:
        began = time.monotonic()
        if mode == "labels":
            _ask_labels(machine, heard, records, answers, wanted.token_limit("labels", machine.tok))
        elif mode == "speech":
            _speak(machine, records, answers, wanted, modes)
        else:
            longest = wanted.token_limit(mode, machine.tok)
            if mode == "words" and not wanted.longest:  # recordings may have more words than the open set's
                longest = max(longest, *(round(1.5 * len(machine.tok.encode(r.question))) for r in records))
            _ask(machine, heard, records, answers, mode, longest)
        say(f"  {mode}: {time.monotonic() - began:.1f} s")
    return [
        Prediction(
            record.key, record.part, record.group or record.key, record.speaker, str(record.extra.get("kind", "")),
            record.question, record.txt if replies(record) else "", record.reply_emotion, record.heard.known(),
            row.named, row.scored, row.words, row.said, row.spoken, row.codes, tuple(row.cut),
        )
        for record, row in zip(records, answers, strict=True)
    ]  # fmt: skip


@dataclass
class Answers:
    """The answers to one record so far."""

    named: dict[str, str] = field(default_factory=dict)
    scored: dict[str, list[float]] = field(default_factory=dict)
    words: str | None = None
    said: dict[str, str] = field(default_factory=dict)
    spoken: str = ""
    codes: tuple[int, ...] = ()
    cut: list[str] = field(default_factory=list)


def replies(record: Record) -> bool:
    """Return whether a record has a reply. Records without one only test understanding."""
    return bool(record.txt) and understanding(record) is None


# ── modes ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def _ask_labels(
    machine: Machine, heard: Heard, records: Sequence[Record], answers: list[Answers], longest: int
) -> None:  # fmt: skip
    """Ask for each known label with its own prompt, and compute the likelihood of every label in the inventory."""
    for dimension, labels in DIMENSIONS.items():
        at = [i for i, record in enumerate(records) if getattr(record.heard, dimension)]
        ask = prompts.read().ask(False, (dimension,))
        asked = [layout.prompt(records[i], "s2t", machine.tok, ask=ask) for i in at]
        for i, (text, _) in zip(at, answer(machine, heard, asked, longest), strict=True):
            answers[i].named[dimension] = text
        endings = [[*machine.tok.encode(tag(name)), machine.tok.im_end] for name in labels]
        for i, scores in zip(at, likelihoods(machine, heard, asked, endings), strict=True):
            answers[i].scored[dimension] = [round(score, 3) for score in scores]


def _ask(
    machine: Machine, heard: Heard, records: Sequence[Record], answers: list[Answers], mode: str, longest: int
) -> None:
    """Ask for the words or a reply."""
    at = [i for i, r in enumerate(records) if (r.question if mode == "words" else replies(r))]
    given = [_given(records[i]) if mode in ("told", "oracle") else [] for i in at]
    asked = [_prompt(records[i], mode, machine.tok) for i in at]
    for sequence, pieces in zip(asked, given, strict=True):
        for text, _ in pieces:
            sequence.ids += machine.tok.encode(text)
    texts = answer(machine, heard, asked, longest)
    for i, pieces, (text, cut) in zip(at, given, texts, strict=True):
        if mode == "words":
            answers[i].words = text
        else:
            answers[i].said[mode] = "".join(piece for piece, _ in pieces) + text
        if cut:
            answers[i].cut.append(mode)


def _prompt(record: Record, mode: str, tok: Tokenizer) -> layout.Sequence:
    if mode == "words":
        return layout.prompt(record, "s2t", tok, ask=prompts.read().ask(True, ()))
    if mode == "deaf":
        return layout.prompt(record, "t2t", tok)
    if mode == "oracle":  # without a clip, the layout contains the words
        silent = tuple(replace(turn, wav="") for turn in record.history)
        return layout.prompt(replace(record, wav="", history=silent), "s2t", tok, think="label")
    thought: layout.Think = "natural" if mode == "natural" else "" if mode == "plain" else "label"
    return layout.prompt(record, "s2t", tok, think=thought)


def _given(record: Record) -> list[think.Piece]:
    """Return a correct thought with words and labels, without the reply's emotion."""
    # a complete record is written as in training; otherwise missing labels get their default
    return think.label_thought(record.question, record.heard, "", random.Random(0), 0.0, complete=record.complete)[:-1]


def _speak(
    machine: Machine, records: Sequence[Record], answers: list[Answers], wanted: Wanted, modes: Sequence[str]
) -> None:
    """Ask for some replies in text and speech, after a thought if the model was trained to think. All deliveries of a
    query are answered, so that their voices can be compared."""
    at = [i for i, record in enumerate(records) if replies(record)]
    at = sorted(at, key=lambda i: _drawn(records[i].group or records[i].key))[: wanted.spoken]
    thought: layout.Think = "label" if "label" in modes else "natural" if "natural" in modes else ""
    asked = [layout.prompt(records[i], "s2s", machine.tok, think=thought) for i in at]
    waves = [[open_audio(records[i], clip.wav) for clip in x.clips] for i, x in zip(at, asked, strict=True)]
    most = wanted.token_limit(thought or "plain", machine.tok)
    speech = min(LONGEST_SPEECH, wanted.longest or LONGEST_SPEECH)
    quiet = quiet_code(machine.model.config.speech.tokens)
    how = decode.DecodeOptions(
        speak=True, thinks=bool(thought), max_text=most, max_speech=speech, quiet=quiet, seed=wanted.seed
    )
    size = 64 if machine.device.type == "cuda" else 8
    for first in range(0, len(at), size):
        some = slice(first, first + size)
        for i, decoded in zip(
            at[some], decode.respond(machine.model, machine.tok, asked[some], waves[some], how), strict=True
        ):
            answers[i].spoken, answers[i].codes = decoded.text, decoded.codes
            if decoded.cut:
                answers[i].cut.append("speech")


def _drawn(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _clips(record: Record) -> list[ClipRef]:
    return [ClipRef(wav, record.home) for wav in (*(turn.wav for turn in record.history), record.wav) if wav]
