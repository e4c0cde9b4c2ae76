"""Decoding, phase by phase: a thought and a reply in text, then speech; or, streaming, text and speech in turn.

Several sequences are answered at once. In the text phase only text ids can be said, in the speech phase only speech
tokens; what a row may say next depends on its own past alone.
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
_TAG = re.compile(r"<[^<>]{0,32}>?")  # of a reply's emotion, whole or begun
COLDEST, HOTTEST = 0.01, 1e6  # temperatures: below the first nothing but the likeliest would be drawn anyway
_FIELDS = {"age": "Age", "gender": "Gender"}  # closed sets: nothing else may be said there, but nothing of a gender


class Sampling(Struct, frozen=True):
    """How the next token is drawn. Temperatures below COLDEST take the likeliest; `top_k` 0 and `top_p` 1 leave all."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition: float = 1.0  # what was said before is that much less likely


LIKELIEST = Sampling(temperature=0.0)
SPEECH = Sampling(1.2, 10, 0.9)  # as the released inference code draws a reply's speech


class How(Struct, frozen=True):
    """How to answer: whether to speak, in turns or after the text, and how tokens are drawn."""

    write: bool = True  # False: the text is given, and only spoken
    speak: bool = False
    streaming: bool = False
    thinks: bool = False  # the text begins with a thought, which is not interleaved
    text: Sampling = LIKELIEST
    speech: Sampling = SPEECH
    max_text: int = 220
    max_speech: int = 1000  # tokens: 40 s
    quiet: int | None = None  # the code of silence, which may last
    opening: tuple[int, ...] = ()  # text ids that every answer begins with
    seed: int = 0  # of each row's draws, which do not depend on the other rows


class Said(Struct, frozen=True):
    """What a model answered: its text ids and codes, the text with its thought, and the thought read."""

    text: str
    thought: think.Thought
    codes: tuple[int, ...]
    text_ids: tuple[int, ...]
    cut: str = ""  # "text" or "speech" where it did not end by itself


def respond(
    model: EChat,
    tok: Tokenizer,
    asked: Sequence[layout.Sequence],
    waves: Sequence[Sequence[Wave]],
    how: How,
    *,
    seeds: Sequence[int] = (),
    go_on: Callable[[int], bool] = lambda row: True,
) -> list[Said]:
    """Answer sequences made by `layout.prompt`, each with the waves of its clips and, where given, a seed of its own.
    Where `go_on` says no of one, by its number, what it has said so far is its answer."""
    rows = [_Row.of(how, tok, seed) for seed in seeds or [how.seed] * len(asked)]
    for _ in _tokens(model, tok, asked, waves, how, rows):
        for i, row in enumerate(rows):
            if row.phase != "done" and not go_on(i):
                row.phase = "done"
    return [row.said(tok) for row in rows]


def stream(
    model: EChat, tok: Tokenizer, asked: layout.Sequence, waves: Sequence[Wave], how: How
) -> Iterator[tuple[str, int]]:
    """Answer one, token by token: ("text", id) or ("speech", code); its end is the end."""
    row = _Row.of(how, tok, how.seed)
    for tokens in _tokens(model, tok, [asked], [waves], how, [row]):
        token = tokens[0]
        if token < tok.vocab and token != tok.im_end:
            yield "text", token
        elif tok.vocab <= token < tok.edge:
            yield "speech", token - tok.vocab


@dataclass
class _Row:
    """One answer on its way."""

    text: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    phase: str = "text"  # text, speech, done
    forced: list[int] = field(default_factory=list)  # tokens that come next whatever the model would say
    thinking: bool = False
    front: bool = True  # what stands before the reply, a thought or the tag of its emotion, is not over
    block: int = 0  # tokens of this turn of the phases, in streaming
    ended: bool = False  # the text has
    cut: str = ""
    dice: random.Random = field(default_factory=random.Random)

    @classmethod
    def of(cls, how: How, tok: Tokenizer, seed: int) -> _Row:
        row = cls(forced=list(how.opening), thinking=how.thinks, dice=random.Random(seed))
        if not how.write:
            row.phase, row.ended, row.forced = "speech", True, [tok.edge]
        return row

    def take(self, token: int, tok: Tokenizer, how: How) -> None:
        if self.phase == "text":
            self._take_text(token, tok, how)
        elif self.phase == "speech":
            self._take_speech(token, tok, how)

    def _take_text(self, token: int, tok: Tokenizer, how: How) -> None:
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

    def _take_speech(self, token: int, tok: Tokenizer, how: How) -> None:
        if token == tok.edge:
            if self.codes:  # else it begins
                self.phase = "done"
            return
        self.codes.append(token - tok.vocab)
        self.block += 1
        if how.streaming and not self.ended and self.block == layout.SPEECH_BLOCK:
            self.phase, self.block = "text", 0
        if len(self.codes) >= how.max_speech:
            self.cut, self.phase = "speech", "done"

    def banned(self, quiet: int | None) -> list[int]:
        """Codes that went on for too long: five times in a row, or five of the last eight; silence may last longer."""
        last = self.codes[-13:]
        out = []
        if last:
            run = next((i for i, code in enumerate(reversed(last)) if code != last[-1]), len(last))
            if run >= (10 if last[-1] == quiet else 5):
                out.append(last[-1])
        out += [code for code, n in Counter(last[-8:]).items() if n >= 5 and code != quiet]
        out += [code for code, n in Counter(last).items() if n >= 10 and code == quiet]
        return out

    def said(self, tok: Tokenizer) -> Said:
        text = tok.decode(self.text)
        return Said(text, think.parse(text), tuple(self.codes), tuple(self.text), self.cut)


@torch.inference_mode()
def _tokens(
    model: EChat,
    tok: Tokenizer,
    asked: Sequence[layout.Sequence],
    waves: Sequence[Sequence[Wave]],
    how: How,
    rows: list[_Row],
) -> Iterator[list[int]]:
    """All rows one token further, again and again, until the last is done."""
    if how.streaming and not how.speak:
        raise ValueError("streaming is for answers that are spoken")
    was_training = model.training
    model.eval()
    device = next(model.parameters()).device
    held = _held(tok) if how.thinks else []
    autocast = torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda")
    try:
        with autocast:
            heard = iter(_hear(model, [wave for row in waves for wave in row], device))
            x, mask = read_in(model, asked, [[next(heard) for _ in row] for row in waves])  # (B, L, d), (B, L)
            logits, cache = model.step(x, mask)
        while True:
            tokens = _choose(logits.float(), rows, tok, how, held)
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
    how: How,
    held: list[tuple[str, list[int]]],
) -> list[int]:
    """The next token of each row, from joint logits (B, V+K+1)."""
    device = logits.device
    speaks = torch.tensor([row.phase != "text" for row in rows], device=device)
    logits[~speaks, tok.vocab :] = -torch.inf
    logits[speaks, : tok.vocab] = -torch.inf
    for i, row in enumerate(rows):
        if row.phase == "speech":
            banned = [tok.vocab + code for code in row.banned(how.quiet)]
            if not row.codes or (how.streaming and not row.ended):
                banned.append(tok.edge)  # speech does not end before it has begun, nor before its text
            if banned:
                logits[i, banned] = -torch.inf
        elif row.phase == "text":
            if how.text.repetition != 1 and row.text:
                past = torch.tensor(sorted(set(row.text)), device=device)
                told = logits[i, past]
                logits[i, past] = torch.where(told > 0, told / how.text.repetition, told * how.text.repetition)
            if row.thinking and held:
                ends = tok.decode(row.text[-12:])
                for field_end, allowed in held:
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
    """(B, n) and a number between 0 and 1 for each row → (B,). Whatever `how` holds, it is one of the likely ones."""
    if not how.temperature >= COLDEST:
        return logits.argmax(-1)
    k = how.top_k if how.top_k > 0 else 1000
    best, at = logits.topk(min(k, logits.shape[-1]), -1)  # (B, k), best first
    # Below the best, which is 0, nothing becomes too large; and −∞, what is forbidden, is not divided by another one.
    shares = ((best - best[:, :1]) / min(how.temperature, HOTTEST)).softmax(-1)
    left = shares.cumsum(-1) - shares < how.top_p
    left[:, 0] = True  # the likeliest
    shares = torch.where(left, shares, 0.0)
    upto = shares.cumsum(-1)
    drawn = (upto <= dice[:, None] * upto[:, -1:]).sum(-1, keepdim=True)  # (B, 1)
    drawn = torch.minimum(drawn, (shares > 0).sum(-1, keepdim=True) - 1)  # rounding must not fall off the end
    return at.gather(-1, drawn)[:, 0]


def read_in(model: EChat, asked: Sequence[layout.Sequence], heard: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
    """Prompts, each with what the adapter made of its clips (T, d), as the language model's inputs (B, L, d), padded on
    the left, so that all go on at the same place; and what may be attended to (B, L)."""
    device = next(model.parameters()).device
    every = model.embed_ids(torch.tensor([token for sequence in asked for token in sequence.ids], device=device))
    parts: list[Tensor] = []
    for sequence, x, clips in zip(asked, every.split([len(s.ids) for s in asked]), heard, strict=True):
        if sequence.ids.count(AUDIO) != len(clips):
            raise DataError(f"{sequence.key}: its prompt has {sequence.ids.count(AUDIO)} clips, {len(clips)} are given")
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
    """What the adapter makes of each wave, (T, d)."""
    if not waves:
        return []
    sizes = [len(wave) for wave in waves]
    wave = np.zeros((len(waves), max(sizes)), np.float32)
    for row, samples in zip(wave, waves, strict=True):
        row[: len(samples)] = samples
    heard, lengths = model.encode_audio(torch.from_numpy(wave).to(device), torch.tensor(sizes, device=device))
    return [states[:n] for states, n in zip(heard, lengths.tolist(), strict=True)]


def _held(tok: Tokenizer) -> list[tuple[str, list[int]]]:
    """Where a thought names a label of a closed set: how the text ends there, and the ids that may come next."""
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
            firsts.add(tok.encode(">")[0])  # of a child nobody can tell
        if firsts:
            out.append((start, sorted(firsts)))
    return out
