"""A model, data and a stage that are small enough to train in a moment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from overtone.echat.data.containers import PackWriter
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import Labels
from overtone.echat.learn.distributed import World
from overtone.echat.learn.stages import Feed, Rates, Stage, StageRun
from overtone.echat.learn.training_loop import train

ALONE = World(0, 1, torch.device("cpu"))
STAGE = Stage("toy", 30, 100, Rates(adapter=3e-2, lm=1e-2), (Feed("t2t"),), warmup=3)
RUN = StageRun("1", STAGE, 30, 3000)


class Toy(nn.Module):
    """Three layers under the names of a model's parts."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.adapter, self.lm = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.dropout = nn.Dropout(0.1)

    def forward(self, batch: Any) -> Any:
        loss = (self.lm(self.dropout(self.adapter(self.encoder(batch.x)))) - batch.y).square().mean()
        none = torch.zeros(())
        return SimpleNamespace(
            loss=loss,
            text_loss=loss.detach(),
            speech_loss=none,
            ctc_loss=none,
            cue_loss=none,
            n_text=batch.n_targets,
            n_speech=0,
        )

    def parts(self) -> dict[str, list[nn.Parameter]]:
        return {name: list(getattr(self, name).parameters()) for name in ("encoder", "adapter", "lm")}


class Numbers:
    """Batches of noise whose answer is known; `wait` makes each take a while."""

    def __init__(self, wait: float = 0.0, broken: int = -1) -> None:
        self.wait, self.broken = wait, broken

    def batches(self, start: int) -> Iterator[tuple[int, Any]]:
        index = start
        while True:
            x = torch.randn(16, 8, generator=torch.Generator().manual_seed(index))
            time.sleep(self.wait)
            y = x[:, :4] * (float("nan") if index == self.broken else 2)
            yield index, SimpleNamespace(x=x, y=y, n_targets=30 + index % 7, n_positions=50, task="t2t")
            index += 1

    def ready(self, batch: Any, step: int) -> Any:
        return batch


def learn(out: Path, data: Any = None, run: StageRun = RUN, **settings: Any) -> tuple[bool, Toy]:
    model = Toy()
    done = train(model, model.parts(), data or Numbers(), run, out, ALONE, **{"log_every": 5, **settings})
    return done, model


WORDS = ("I lost my keys", "The train was late", "We won the game", "My cat is ill")


def make_pack(folder: Path, count: int = 24, codes: int = 1024, seconds: float = 0.5) -> Path:
    """Exchanges over tones: an angry one is low and a happy one high; one in six is held out."""
    at = np.arange(round(seconds * 16_000)) / 16_000
    with PackWriter(folder) as writer:
        for i in range(count):
            angry = i % 2 == 0
            sound = 0.2 * np.sin(2 * np.pi * (180 if angry else 420) * at) * (1 + 0.1 * (i % 5))
            record = Record(
                key=f"r{i}",
                txt="I am sorry to hear that." if angry else "How nice for you!",
                wav="x",
                question=WORDS[i % len(WORDS)],
                labels=Labels(emotion="anger" if angry else "happy"),
                reply_emotion="apologetic" if angry else "happy",
                think_str="The voice is low." if angry else "The voice is high.",
                speech_token=tuple((7 * i + k) % min(codes, 40) for k in range(30 + i % 5)),
                dataset="tones",
                task="<S2TCHAT> <TEXT2TOKEN>",
                extra={"part": "dev" if i % 6 == 5 else "train"},
            )
            writer.add(record, [sound.astype(np.float32)])
    return folder
