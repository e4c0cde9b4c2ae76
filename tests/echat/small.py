"""A model small enough to build in a moment, and a batch for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from overtone.echat.data.labels import numbers
from overtone.echat.net import config
from overtone.echat.net.backbone import open_lm
from overtone.echat.net.config import ModelConfig, convert
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import EChat


@dataclass
class Batch:
    ids: Tensor
    targets: Tensor
    mask: Tensor
    wave: Tensor
    wave_lengths: Tensor
    clip_at: Tensor
    ctc_ids: Tensor
    ctc_lengths: Tensor
    labels: Tensor

    @property
    def rows(self) -> list[int]:
        return self.mask.sum(1).tolist()


def model_config(voice: int = 0, **lm: Any) -> ModelConfig:
    sizes = {"hidden": 32, "layers": 2, "heads": 2, "kv_heads": 1, "ffn": 64, "vocab": 260}
    table: dict[str, dict[str, Any]] = {
        "encoder": {"kind": "small", "dim": 16, "layers": 1, "heads": 2, "ffn": 32},
        "adapter": {"dim": 16, "ffn": 32, "layers": 1, "heads": 2, "dropout": 0.0},
        "lm": {"source": "random", "tokenizer": "bytes", **sizes, **lm},
        "speech": {"codes": 20},
    }
    if voice:
        table["encoder"]["taps"], table["adapter"]["voice"] = [0], voice
    return convert(table, ModelConfig, "test")


def model(seed: int = 0, voice: int = 0, **lm: Any) -> EChat:
    torch.manual_seed(seed)
    made = model_config(voice, **lm)
    return EChat(made, open_encoder(made.encoder), open_lm(made.lm))


def batch(made: ModelConfig, rows: tuple[tuple[float, str, int], ...] = ((0.8, "hello", 6), (0.5, "yes", 0))) -> Batch:
    """One sequence a row: (seconds of a clip, text to answer, speech codes to answer)."""
    generator = torch.Generator().manual_seed(3)
    edge = made.lm.vocab + made.speech.codes
    sequences, places, lengths = [], [], []
    for row, (seconds, text, codes) in enumerate(rows):
        samples = round(seconds * 16_000)
        heard = config.positions(made, samples)
        before = [256, 10, edge + 1]
        answer = [*text.encode(), 257]
        speech = [made.lm.vocab + k % made.speech.codes for k in range(codes)]
        answer += [edge, *speech, edge] if codes else []
        ids = [*before, *[-1] * heard, edge + 2, *answer]
        sequences.append((ids, [-100] * (len(ids) - len(answer)) + answer))
        places.append((row, len(before)))
        lengths.append(samples)
    longest = max(len(ids) for ids, _ in sequences)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in sequences])
    targets = torch.tensor([goal + [-100] * (longest - len(goal)) for _, goal in sequences])
    mask = torch.tensor([[True] * len(ids) + [False] * (longest - len(ids)) for ids, _ in sequences])
    wave = torch.zeros(len(rows), max(lengths))
    for row, n in enumerate(lengths):
        wave[row, :n] = torch.randn(n, generator=generator) * 0.1
    words = [list(text.encode()) for _, text, _ in rows]
    most = max(map(len, words))
    ctc = torch.tensor([w + [0] * (most - len(w)) for w in words])
    return Batch(
        ids,
        targets,
        mask,
        wave,
        torch.tensor(lengths),
        torch.tensor(places),
        ctc,
        torch.tensor([len(w) for w in words]),
        torch.tensor([numbers({"emotion": "sad", "gender": "male"}) for _ in rows]),
    )


def with_row(whole: Batch, row: int) -> Batch:
    """One row of a batch by itself, without its padding."""
    n, size = int(whole.mask[row].sum()), int(whole.wave_lengths[row])
    clip_at = whole.clip_at[row : row + 1].clone()
    clip_at[:, 0] = 0
    return replace(
        whole,
        ids=whole.ids[row : row + 1, :n],
        targets=whole.targets[row : row + 1, :n],
        mask=whole.mask[row : row + 1, :n],
        wave=whole.wave[row : row + 1, :size],
        wave_lengths=whole.wave_lengths[row : row + 1],
        clip_at=clip_at,
        ctc_ids=whole.ctc_ids[row : row + 1],
        ctc_lengths=whole.ctc_lengths[row : row + 1],
        labels=whole.labels[row : row + 1],
    )
