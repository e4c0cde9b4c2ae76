"""Where in Moonshine's encoder voices and sounds can be heard: a linear probe on every layer, tested on other voices.

    python -m experiments.echat.encoder_layers --train data/echat/pack/train --test data/echat/pack/seen \\
        --test out/real/ravdess
    python -m experiments.echat.encoder_layers --preset people --encoder FOLDER --train out/people/ravdess-0 \\
        --train out/people/ravdess-1 --test out/people/test/ravdess-5

A clip is its mean and spread over time after so many layers (0: before the first); the last row is what the encoder
gives. `--encoder` is as for `overtone train`. The probe is a logistic regression in which every label weighs the same.
Unweighted recall / chance.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from overtone.echat.data.containers import Pack, clip_index
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import DIMENSIONS
from overtone.echat.net import config
from overtone.echat.net.encoders import open_encoder


def heard(paths: Sequence[Path], count: int, preset: str, weights: str) -> tuple[list[Record], Tensor]:
    """Some records of packs, and what each layer gives for them: (clips, layers + 1, 2·dim)."""
    made = config.read(preset).model.encoder
    made = msgspec.structs.replace(made, taps=tuple(range(made.layers)), weights=weights)
    encoder = open_encoder(made).eval()
    packs = {str(path): Pack(path) for path in paths}
    records = [record for pack in packs.values() for record in pack.records if record.wav]
    records = random.Random(0).sample(records, min(count, len(records)))
    rows = []
    with torch.inference_mode():
        for record in records:
            clip = packs[record.home].clip(clip_index(record.wav))
            wave = torch.from_numpy(clip.astype(np.float32) / 32768)[None]
            states = encoder(wave, torch.tensor([wave.shape[1]]))[0][0]  # (T, width)
            last, taps = states[:, : made.dim], states[0, made.dim :].view(made.layers, 2 * made.dim)
            spread = F.layer_norm(last.std(0, correction=0), (made.dim,))
            rows.append(torch.cat((taps, torch.cat((last.mean(0), spread))[None])))
    return records, torch.stack(rows)


def probe(x: Tensor, y: Tensor, labels: int) -> torch.nn.Linear:
    """A logistic regression on standardised x, its weights held small."""
    layer = torch.nn.Linear(x.shape[1], labels)
    torch.nn.init.zeros_(layer.weight)
    counts = torch.bincount(y, minlength=labels).float()
    weight = torch.where(counts > 0, len(y) / counts.clamp(min=1), 0.0)
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(layer(x), y, weight=weight) + 0.01 * layer.weight.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return layer


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.echat.encoder_layers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--train", metavar="PACK", type=Path, action="append", required=True)
    parser.add_argument("--test", metavar="PACK", type=Path, action="append", required=True)
    parser.add_argument("--clips", metavar="N", type=int, default=3000, help="to fit on (3000)")
    parser.add_argument("--preset", default="mini", help="whose encoder (mini)")
    parser.add_argument("--encoder", metavar="FILE", default="", help="its weights, if no package has them")
    given = parser.parse_args()
    torch.manual_seed(0)
    records, x = heard(given.train, given.clips, given.preset, given.encoder)
    tests = {path.name: heard([path], 400, given.preset, given.encoder) for path in given.test}
    for dimension, labels in DIMENSIONS.items():
        at = [i for i, record in enumerate(records) if getattr(record.heard, dimension)]
        y = torch.tensor([labels.index(getattr(records[i].heard, dimension)) for i in at])
        if len(set(y.tolist())) < 2:
            continue
        print(f"\n{dimension}, {len(at)} clips to fit on")
        for layer in range(x.shape[1]):
            mean, spread = x[at, layer].mean(0), x[at, layer].std(0) + 1e-6
            fitted = probe((x[at, layer] - mean) / spread, y, len(labels))
            told = [f"after {layer} layers" if layer < x.shape[1] - 1 else "the last states"]
            for name, (rows, z) in tests.items():
                some = [i for i, record in enumerate(rows) if getattr(record.heard, dimension)]
                true = [labels.index(getattr(rows[i].heard, dimension)) for i in some]
                if len(set(true)) > 1:
                    told.append(f"{name} {recall(fitted((z[some, layer] - mean) / spread), true)}")
            print("  ".join(told), flush=True)


def recall(scores: Tensor, true: list[int]) -> str:
    """Averaged over the labels that a corpus has, among which is chosen."""
    among = sorted(set(true))
    said = [among[i] for i in scores[:, among].argmax(1).tolist()]
    shares = [np.mean([s == label for s, t in zip(said, true, strict=True) if t == label]) for label in among]
    return f"{np.mean(shares):.2f} / {1 / len(among):.2f}"


if __name__ == "__main__":
    main()
