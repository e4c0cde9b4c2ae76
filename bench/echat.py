"""How soon a trained checkpoint speaks, and how fast: first sound and real-time factor, at once and streaming.

    python -m bench.echat CHECKPOINT [--device cpu|cuda] [--replies N]
    python -m bench.echat --preset mini          # fresh, random weights: as fast as trained ones, but it says nothing

Needs torch and the speech units, no sound library and no server. Real-time factor: seconds of work for a second of
speech, over whole replies; below 1 a listener never waits. The processor's factor counts the time that all threads
computed, so that with `--threads 1` other programs on the same machine hardly change it. A reply may have at most
`--text` tokens after at most `--thought` tokens of thought, and `--speech` codes (25 a second), which a random model
uses up.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from overtone.echat.net import checkpoint, config
from overtone.echat.net.low_rank import merge
from overtone.echat.speech import open_tokens
from overtone.echat.talk.answer import Answerer, dtype_for, on_device, open_answerer
from overtone.echat.talk.dialogue import Asked, Message
from overtone.echat.talk.reply_settings import ReplySettings, Trained
from overtone.echat.talk.streaming_speech import RATE


def query(seconds: float, seed: int) -> Any:
    """A buzz with a syllable's rhythm: no words, but as long to hear as any."""
    rng = np.random.default_rng(seed)
    at = np.arange(round(16_000 * seconds)) / 16_000
    buzz = sum(np.sin(2 * np.pi * 140 * n * at) / n for n in range(1, 20))
    return (0.1 * buzz * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * at)) + 0.01 * rng.standard_normal(len(at))).astype("f4")


def opened(given: argparse.Namespace) -> tuple[Answerer, int]:
    """The model to measure, and how many weights it has."""
    if given.checkpoint:
        index, made = checkpoint.index(given.checkpoint), checkpoint.config(given.checkpoint)
        given.dtype = dtype_for(given.device, given.dtype, made.dtype)
        answerer = open_answerer(given.checkpoint, ReplySettings(), device=given.device, dtype=given.dtype)
        return answerer, index.parameters
    made = config.read(given.preset)
    given.dtype = dtype_for(given.device, given.dtype, made.dtype)
    lm = made.model.lm
    lm = msgspec.structs.replace(lm, source="random", tokenizer="bytes" if given.bytes else lm.tokenizer or lm.source)
    encoder = msgspec.structs.replace(made.model.encoder, source="random")
    made = msgspec.structs.replace(made, model=msgspec.structs.replace(made.model, lm=lm, encoder=encoder))
    torch.manual_seed(0)
    model = checkpoint.make(made)
    merge(model.lm)  # as when a checkpoint is loaded
    size = sum(p.numel() for p in model.parameters())
    model = on_device(model, given.device, given.dtype)
    return Answerer(model, made, open_tokens("units2"), ReplySettings(), Trained("label", True, True)), size


def once(answerer: Answerer, asked: Asked, streaming: bool) -> tuple[float, float, float, float, float]:
    """Seconds until the first sound and until all is there, seconds of speech, the longest a listener waits, and
    seconds of processor time."""
    began, computed = time.perf_counter(), time.process_time()
    if not streaming:
        sound = answerer.answer([asked])[0].sound
        taken = time.perf_counter() - began
        return taken, taken, 0.0 if sound is None else len(sound) / RATE, 0.0, time.process_time() - computed
    first, spoken, late = 0.0, 0.0, 0.0
    for piece in answerer.stream(asked):
        if piece.sound is not None and len(piece.sound):
            now = time.perf_counter() - began
            late = max(late, now - first - spoken) if first else 0.0  # what was given has been heard by then
            first = first or now
            spoken += len(piece.sound) / RATE
    return first, time.perf_counter() - began, spoken, late, time.process_time() - computed


def row(answerer: Answerer, name: str, manner: ReplySettings, streaming: bool, given: argparse.Namespace) -> None:
    answerer.settings = manner
    answerer.think = answerer.interleaved_think = manner.think or ""
    answerer.interleave = bool(manner.interleave)
    asks = [
        Asked((Message("user", (query(given.seconds, seed),)),), speech=True, seed=seed)
        for seed in range(given.replies + 1)
    ]
    once(answerer, asks[0], streaming)  # not counted: the first call builds kernels and caches
    found = np.array([once(answerer, asked, streaming) for asked in asks[1:]])
    if not found[:, 2].all():
        print(f"{name:<34} said nothing")
        return
    factor = found[:, 1].sum() / found[:, 2].sum()
    print(
        f"{name:<34} {1000 * np.median(found[:, 0]):>9.0f} {1000 * np.quantile(found[:, 0], 0.9):>9.0f} "
        f"{factor:>8.2f} {found[:, 4].sum() / found[:, 2].sum():>9.2f} {found[:, 2].mean():>9.1f} "
        f"{1000 * found[:, 3].max():>9.0f}",
        flush=True,
    )


def together(answerer: Answerer, manner: ReplySettings, many: int, given: argparse.Namespace) -> None:
    answerer.settings, answerer.think = manner, manner.think or ""
    asks = [
        Asked((Message("user", (query(given.seconds, seed),)),), speech=True, seed=seed) for seed in range(2 * many)
    ]
    answerer.answer(asks[:many])
    began = time.perf_counter()
    found = answerer.answer(asks[many:])
    taken = time.perf_counter() - began
    spoken = sum(len(answer.sound) / RATE for answer in found if answer.sound is not None)
    if spoken:
        print(f"{f'{many} at once, without thought':<34} {1000 * taken:>9.0f} {'':>9} {taken / spoken:>8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.echat", description=__doc__.partition("\n")[0])
    parser.add_argument("checkpoint", type=Path, nargs="?", help="a checkpoint's folder")
    parser.add_argument("--preset", default="mini", help="without a checkpoint: random weights of this size (mini)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--dtype", default="", help="float32, bfloat16 or float16 (bfloat16 on a GPU, else the preset's)"
    )
    parser.add_argument("--replies", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each query (4)")
    parser.add_argument("--text", type=int, default=40, help="tokens of a reply at most (40)")
    parser.add_argument("--thought", type=int, default=70, help="tokens of a thought at most (70)")
    parser.add_argument("--speech", type=int, default=150, help="codes of a reply at most (150: 6 s)")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--bytes", action="store_true", help="random weights that read bytes: no package is needed")
    parser.add_argument("--threads", type=int, help="CPU threads (all cores)")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    answerer, size = opened(given)
    where = f"CPU, {torch.get_num_threads()} threads"
    if given.device.startswith("cuda"):
        where = torch.cuda.get_device_name()
    name = given.checkpoint or f"preset {given.preset}, random weights"
    print(f"{name}: {size / 1e6:.0f} M parameters; {where}, {given.dtype}")
    print(f"torch {torch.__version__}; {os.cpu_count()} cores; queries of {given.seconds:g} s, {given.replies} replies")
    if given.checkpoint is None:
        print("random weights: lengths are the most allowed, not a trained model's")
    print(f"\n{'':<34} {'first sound, ms':>19} {'':>8} {'processor':>9} {'seconds':>9} {'longest':>9}")
    print(f"{'':<34} {'median':>9} {'90 %':>9} {'factor':>8} {'factor':>9} {'spoken':>9} {'wait, ms':>9}")
    plain = ReplySettings(think="", interleave=False, max_text=given.text, max_speech=given.speech)
    thinking = msgspec.structs.replace(plain, think="label", max_text=given.thought + given.text)
    in_turn = msgspec.structs.replace(plain, interleave=True)
    row(answerer, "whole, without thought", plain, False, given)
    row(answerer, "whole, with thought", thinking, False, given)
    row(answerer, "streaming, text then speech", plain, True, given)
    row(answerer, "streaming, thought, text, speech", thinking, True, given)
    row(answerer, "streaming, 6 text / 18 speech", in_turn, True, given)
    together(answerer, plain, given.batch, given)


if __name__ == "__main__":
    main()
