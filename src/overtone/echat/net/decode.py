"""Decode answers in phases: a thought and a reply in text, then speech; or, in streaming, text and speech alternating.

Several sequences are decoded in one batch. The text phase allows only text ids, the speech phase only speech tokens. A
row's next token depends only on that row.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from numpy.typing import NDArray
from torch import Tensor

from overtone.echat.data import layout, think
from overtone.echat.data.labels import DIMENSIONS, tag
from overtone.echat.data.layout import AUDIO
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import Tokenizer
from overtone.errors import DataError

Wave = NDArray[np.float32]  # 16 kHz, -1 … 1
_TAG = re.compile(r"<[^<>]{0,32}>?")  # the tag of a reply's emotion, complete or partial
COLDEST, HOTTEST = 0.01, 1e6  # temperature limits; below the first, decoding is greedy
_FIELDS = {"age": "Age", "gender": "Gender"}  # only their labels may follow; gender may be empty


class Sampling(Struct, frozen=True):
    """Sampling of the next token. A temperature below COLDEST is greedy; `top_k` 0 and `top_p` 1 do not filter."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition: float = 1.0  # penalty on earlier tokens


GREEDY = Sampling(temperature=0.0)
SPEECH = Sampling(1.2, 10, 0.9)  # as in the released inference code


class DecodeOptions(Struct, frozen=True):
    """Options of decoding: whether to speak, whether text and speech alternate, and how to sample."""

    write: bool = True  # False: the text is given and only spoken
    speak: bool = False
    streaming: bool = False
    thinks: bool = False  # the text begins with a thought, which is never interleaved
    text: Sampling = GREEDY
    speech: Sampling = SPEECH
    max_text: int = 220
    max_speech: int = 1000  # tokens: 40 s
    quiet: int | None = None  # the code of silence, which may repeat
    opening: tuple[int, ...] = ()  # text ids with which every answer begins
    seed: int = 0  # per row; rows are independent of each other


class DecodedReply(Struct, frozen=True):
    """A decoded answer: its text with the thought, the parsed thought, its codes and text ids."""

    text: str
    thought: think.Thought
    codes: tuple[int, ...]
    text_ids: tuple[int, ...]
    cut: str = ""  # "text" or "speech" if it reached its limit


def respond(
    model: EChat,
    tok: Tokenizer,
    asked: Sequence[layout.Sequence],
    waves: Sequence[Sequence[Wave]],
    how: DecodeOptions,
    *,
    seeds: Sequence[int] = (),
    go_on: Callable[[int], bool] = lambda row: True,
) -> list[DecodedReply]:
    """Decode the answers to prompts made by `layout.prompt`, each with the waveforms of its clips and optionally a
    seed.

    If `go_on(index)` returns False, that row stops, and its partial answer is returned.
    """
    rows = [_Row.start(how, tok, seed) for seed in seeds or [how.seed] * len(asked)]
    for _ in _tokens(model, tok, asked, waves, how, rows):
        for i, row in enumerate(rows):
            if row.phase != "done" and not go_on(i):
                row.phase = "done"
    return [row.reply(tok) for row in rows]


def stream(
    model: EChat, tok: Tokenizer, asked: layout.Sequence, waves: Sequence[Wave], how: DecodeOptions
) -> Iterator[tuple[str, int]]:
    """Decode one sequence and yield its tokens: ("text", id) or ("speech", code)."""
    row = _Row.start(how, tok, how.seed)
    for tokens in _tokens(model, tok, [asked], [waves], how, [row]):
        token = tokens[0]
        if token < tok.vocab and token != tok.im_end:
            yield "text", token
        elif tok.vocab <= token < tok.edge:
            yield "speech", token - tok.vocab


@dataclass
class _Row:
    """The state of one answer during decoding."""

    text: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    phase: str = "text"  # text, speech, done
    forced: list[int] = field(default_factory=list)  # tokens that come next regardless of the model
    thinking: bool = False
    front: bool = True  # still before the reply: in a thought or in the tag of its emotion
    block: int = 0  # tokens in the current block, in streaming
    ended: bool = False  # whether the text has ended
    cut: str = ""
    dice: random.Random = field(default_factory=random.Random)

    @classmethod
    def start(cls, how: DecodeOptions, tok: Tokenizer, seed: int) -> _Row:
        """Return the initial state."""
        row = cls(forced=list(how.opening), thinking=how.thinks, dice=random.Random(seed))
        if not how.write:
            row.phase, row.ended, row.forced = "speech", True, [tok.edge]
        return row

    def take(self, token: int, tok: Tokenizer, how: DecodeOptions) -> None:
        """Add the next token, and update the phase."""
        if self.phase == "text":
            self._take_text(token, tok, how)
        elif self.phase == "speech":
            self._take_speech(token, tok, how)

    def _take_text(self, token: int, tok: Tokenizer, how: DecodeOptions) -> None:
        if token == tok.im_end:
            self.ended = True
            self.phase, self.block = ("speech", 0) if how.speak else ("done", 0)
            if how.speak and not how.streaming:
                self.forced.append(tok.edge)  # speech begins
            return
        self.text.append(token)
        thought = self.thinking
        if thought:
            self.thinking = think.CLOSE not in tok.decode(self.text[-12:])
        if self.front and not self.thinking:
            reply = tok.decode(self.text).rpartition(think.CLOSE)[2] if how.thinks else tok.decode(self.text)
            self.front = _TAG.fullmatch(reply) is not None or (thought and not reply)
        if how.streaming and not self.front:
            self.block += 1
            if self.block == layout.TEXT_BLOCK:
                self.phase, self.block = "speech", 0
        if len(self.text) >= how.max_text:
            self.cut, self.phase, self.forced = "text", "text", [tok.im_end]

    def _take_speech(self, token: int, tok: Tokenizer, how: DecodeOptions) -> None:
        if token == tok.edge:
            if self.codes:  # otherwise speech begins
                self.phase = "done"
            return
        self.codes.append(token - tok.vocab)
        self.block += 1
        if how.streaming and not self.ended and self.block == tok.speech_block:
            self.phase, self.block = "text", 0
        if len(self.codes) >= how.max_speech:
            self.cut, self.phase = "speech", "done"

    def banned(self, quiet: int | None) -> list[int]:
        """Return codes that repeat too often: five in a row, or five of the last eight. Silence may repeat longer."""
        last = self.codes[-13:]
        out = []
        if last:
            run = next((i for i, code in enumerate(reversed(last)) if code != last[-1]), len(last))
            if run >= (10 if last[-1] == quiet else 5):
                out.append(last[-1])
        out += [code for code, n in Counter(last[-8:]).items() if n >= 5 and code != quiet]
        out += [code for code, n in Counter(last).items() if n >= 10 and code == quiet]
        return out

    def reply(self, tok: Tokenizer) -> DecodedReply:
        """Return the answer so far."""
        text = tok.decode(self.text)
        return DecodedReply(text, think.parse(text), tuple(self.codes), tuple(self.text), self.cut)


@torch.inference_mode()
def _tokens(
    model: EChat,
    tok: Tokenizer,
    asked: Sequence[layout.Sequence],
    waves: Sequence[Sequence[Wave]],
    how: DecodeOptions,
    rows: list[_Row],
) -> Iterator[list[int]]:
    """Yield the next token of every row until all rows are done."""
    if how.streaming and not how.speak:
        raise ValueError("streaming needs speak=True")
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    closed = _closed_fields(tok) if how.thinks else []
    autocast = torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda")
    try:
        with autocast:
            heard = iter(_hear(model, [wave for row in waves for wave in row], device))
            x, mask = read_in(model, asked, [[next(heard) for _ in row] for row in waves])  # (B, L, d), (B, L)
            logits, cache = model.step(x, mask)
        while True:
            tokens = _choose(logits.float(), rows, tok, how, closed)
            for row, token in zip(rows, tokens, strict=True):
                row.take(token, tok, how)
            yield tokens
            if all(row.phase == "done" for row in rows):
                return
            mask = torch.cat((mask, mask.new_ones(len(rows), 1)), 1)
            with autocast:
                embeds = model.embed_ids(torch.tensor(tokens, device=device)[:, None])  # (B, 1, d)
                logits, cache = model.step(embeds, mask, cache, speech=all(row.phase != "text" for row in rows))
    finally:
        model.train(was_training)


def _choose(
    logits: Tensor,
    rows: list[_Row],
    tok: Tokenizer,
    how: DecodeOptions,
    closed: list[tuple[str, list[int]]],
) -> list[int]:
    """Return the next token of each row, from joint logits (B, V+K+1)."""
    device = logits.device
    speaks = torch.tensor([row.phase != "text" for row in rows], device=device)
    logits[~speaks, tok.vocab :] = -torch.inf
    logits[speaks, : tok.vocab] = -torch.inf
    for i, row in enumerate(rows):
        if row.phase == "speech":
            banned = [tok.vocab + code for code in row.banned(how.quiet)]
            if not row.codes or (how.streaming and not row.ended):
                banned.append(tok.edge)  # speech must not end before it begins, or before its text ends
            if banned:
                logits[i, banned] = -torch.inf
        elif row.phase == "text":
            if how.text.repetition != 1 and row.text:
                past = torch.tensor(sorted(set(row.text)), device=device)
                earlier = logits[i, past]
                penalty = how.text.repetition
                logits[i, past] = torch.where(earlier > 0, earlier / penalty, earlier * penalty)
            if row.thinking and closed:
                ends = tok.decode(row.text[-12:])
                for field_end, allowed in closed:
                    if ends.endswith(field_end):
                        kept = logits[i, allowed].clone()
                        logits[i] = -torch.inf
                        logits[i, allowed] = kept
    dice = torch.tensor([row.dice.random() for row in rows], device=device)
    text, speech = _draw(logits, how.text, dice), _draw(logits, how.speech, dice)
    tokens: list[int] = torch.where(speaks, speech, text).tolist()
    return [
        row.forced.pop(0) if row.forced else tok.im_end if row.phase == "done" else token
        for row, token in zip(rows, tokens, strict=True)
    ]


def _draw(logits: Tensor, how: Sampling, dice: Tensor) -> Tensor:
    """Sample from logits (B, n) with a random number per row → (B,). The result is always a likely token."""
    if not how.temperature >= COLDEST:
        return logits.argmax(-1)
    k = how.top_k if how.top_k > 0 else 1000
    best, at = logits.topk(min(k, logits.shape[-1]), -1)  # (B, k), best first
    # Relative to the best logit, no value overflows, and the −∞ of forbidden tokens stays −∞.
    shares = ((best - best[:, :1]) / min(how.temperature, HOTTEST)).softmax(-1)
    left = shares.cumsum(-1) - shares < how.top_p
    left[:, 0] = True  # always keep the most likely
    shares = torch.where(left, shares, 0.0)
    upto = shares.cumsum(-1)
    drawn = (upto <= dice[:, None] * upto[:, -1:]).sum(-1, keepdim=True)  # (B, 1)
    drawn = torch.minimum(drawn, (shares > 0).sum(-1, keepdim=True) - 1)  # rounding must not exceed the last index
    return at.gather(-1, drawn)[:, 0]


def read_in(model: EChat, asked: Sequence[layout.Sequence], heard: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
    """Return prompts with their clips' adapter outputs (T, d) as inputs (B, L, d), and the attention mask (B, L).

    Rows are padded on the left, so that all continue at the same position.
    """
    device = next(model.parameters()).device
    every = model.embed_ids(torch.tensor([token for sequence in asked for token in sequence.ids], device=device))
    parts: list[Tensor] = []
    for sequence, x, clips in zip(asked, every.split([len(s.ids) for s in asked]), heard, strict=True):
        if sequence.ids.count(AUDIO) != len(clips):
            raise DataError(
                f"{sequence.key}: its prompt has {sequence.ids.count(AUDIO)} clips, but {len(clips)} were given"
            )
        pieces: list[Tensor] = []
        first = 0
        for at, states in zip([i for i, token in enumerate(sequence.ids) if token == AUDIO], clips, strict=True):
            pieces += [x[first:at], states.to(x.dtype)]
            first = at + 1
        parts.append(torch.cat([*pieces, x[first:]]))
    longest = max(len(part) for part in parts)
    x = parts[0].new_zeros(len(parts), longest, parts[0].shape[-1])
    mask = torch.zeros(len(parts), longest, dtype=torch.bool, device=device)
    for i, part in enumerate(parts):
        x[i, longest - len(part) :] = part
        mask[i, longest - len(part) :] = True
    return x, mask


def _hear(model: EChat, waves: Sequence[Wave], device: Any) -> list[Tensor]:
    """Return the adapter's outputs of each waveform, (T, d)."""
    if not waves:
        return []
    sizes = [len(wave) for wave in waves]
    wave = np.zeros((len(waves), max(sizes)), np.float32)
    for row, samples in zip(wave, waves, strict=True):
        row[: len(samples)] = samples
    heard, lengths = model.encode_audio(torch.from_numpy(wave).to(device), torch.tensor(sizes, device=device))
    return [states[:n] for states, n in zip(heard, lengths.tolist(), strict=True)]


def _closed_fields(tok: Tokenizer) -> list[tuple[str, list[int]]]:
    """Return (prefix, token ids) for each field whose labels form a closed set.

    When the text so far ends with the prefix, a label follows, and its first token must be one of the ids.
    """
    out = []
    for dimension, name in _FIELDS.items():
        start = f", {name}: <"
        known = tok.encode(start)
        firsts = set()
        for label in DIMENSIONS[dimension]:
            ids = tok.encode(f", {name}: {tag(label)}")
            if ids[: len(known)] == known:
                firsts.add(ids[len(known)])
        if dimension == "gender":
            firsts.add(tok.encode(">")[0])  # unknown for a child
        if firsts:
            out.append((start, sorted(firsts)))
    return out
