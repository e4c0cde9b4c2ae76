"""Train the embedded speech tokens of `overtone.echat.speech.units`: speak, deliver, learn, write the weights.

    python -m scripts.train_units speech     the voice says every text in drawn emotions: what is heard, what is meant
    python -m scripts.train_units fit        both networks and the codes between them; minutes on a core, or CUDA

Work lies in out/units. The encoder hears an emotional delivery; the decoder must give back the *plain* speech at the
same moments, so that a code has no reason to carry the emotion. Codes are moving averages of what falls to them
(van den Oord et al. 2017); one that nothing falls to is put where something does.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from overtone import audio
from overtone.build import delivery
from overtone.build.recipes import NEUTRAL, Recipe, recipe_of
from overtone.echat.speech import units as u

WORK = Path("out/units")
TEXTS = Path("src/overtone/build")
UNSEEN = Path(
    "src/overtone/echat/making/texts/plain.toml"
)  # nothing is trained on these: `bench.units` listens to them
DELIVERIES = 2  # of each text
SEED = 7
MANNERS = ("", "happy", "sad", "surprise", "angry", "fear", "disgust", "sobbing", "tired", "slow", "fast")

WIDTH, CODE, CODES = 128, 64, 1024
SAID = 160  # width of the decoder
CROP, BATCH = 64, 8  # units; crops
PLAIN_STEPS = 0.12  # share of the steps before codes come between the networks
DECAY, COMMIT, LEARN = 0.985, 0.25, 2e-3


# ---- speech ----------------------------------------------------------------------------------------------------------


def texts(place: Path) -> list[str]:
    """Every text of six words or more in a data file, or in those below a folder, in a drawn order."""
    found: set[str] = set()
    for path in sorted(place.rglob("*.toml")) if place.is_dir() else [place]:
        if path.name != "lexicon.toml":
            found.update(_strings(tomllib.loads(path.read_text())))
    ordered = sorted(found)
    np.random.default_rng(SEED).shuffle(ordered)
    return ordered


def _strings(held: Any) -> Iterator[str]:
    if isinstance(held, dict):
        for value in held.values():
            yield from _strings(value)
    elif isinstance(held, list):
        for value in held:
            yield from _strings(value)
    elif isinstance(held, str) and 6 <= len(held.split()) <= 45 and "{" not in held and "|" not in held:
        yield held


def drawn(rng: np.random.Generator) -> Recipe:
    """A manner at a drawn strength and pace, without sounds between the words."""
    slug = MANNERS[rng.integers(len(MANNERS))]
    recipe = recipe_of(slug).at(float(rng.uniform(0.4, 1.25))) if slug else NEUTRAL
    return replace(recipe, rate=recipe.rate * float(rng.uniform(0.92, 1.1)), events=())


def heard_and_meant(plain: delivery.Voiced, recipe: Recipe, rng: np.random.Generator) -> tuple[u.Floats, u.Floats]:
    """What the encoder hears of a delivery (frames, MELS), and the plain speech at those moments (frames, OUT)."""
    sound = audio.resample(delivery.deliver(plain, recipe, rng).astype(np.float32), delivery.RATE, u.HEARD)
    first, _ = u.span(sound)
    heard = u.mel(u.trim_silence(sound))
    at, held = delivery._timing(plain, recipe)  # where each moment of the plain speech went
    rows = u.parameters(plain)
    silent = np.zeros(u.OUT)
    silent[: u.BANDS] = rows[:, : u.BANDS].min()
    silent[-1] = np.log2(plain.pitch)
    left = np.floor(at).astype(int)
    right, part = np.minimum(left + 1, len(rows) - 1), (at - left)[:, None]
    moved = rows[left] * (1 - part) + rows[right] * part
    moved[held] = silent
    when = (first / u.HEARD - delivery.EDGE + 0.01 * np.arange(len(heard))) / 0.005  # frames of `moved`
    near = np.round(when).astype(int)
    meant = np.where(((near >= 0) & (near < len(moved)))[:, None], moved[np.clip(near, 0, len(moved) - 1)], silent)
    return heard, meant.astype(np.float32)


def _made(job: tuple[int, str]) -> list[tuple[u.Floats, u.Floats]]:
    number, text = job
    rng = np.random.default_rng((SEED, number))
    plain = u.plain_speech(text)
    return [heard_and_meant(plain, drawn(rng), rng) for _ in range(DELIVERIES)]


def make_speech(hours: float, jobs: int) -> None:
    """Write out/units/speech.npz: all frames one after the other, and where each clip ends."""
    heard, meant, ends, frames = [], [], [0], 0
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        for clips in pool.map(_made, enumerate(texts(TEXTS)), chunksize=4):
            for one, other in clips:
                heard.append(one.astype(np.float16))
                meant.append(other.astype(np.float16))
                frames += len(one)
                ends.append(frames)
            if frames > hours * 360_000:
                pool.shutdown(cancel_futures=True)
                break
    WORK.mkdir(parents=True, exist_ok=True)
    np.savez(WORK / "speech.npz", heard=np.concatenate(heard), meant=np.concatenate(meant), ends=np.array(ends))
    print(f"{frames / 360_000:.2f} h of speech in {time.monotonic() - began:.0f} s")


# ---- networks --------------------------------------------------------------------------------------------------------


def fit(minutes: float, steps: int, out: Path) -> None:
    """Train and write the weights."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    class Block(nn.Module):
        """x + back(silu(wide(norm(x))))."""

        def __init__(self, width: int, apart: int) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.wide = nn.Conv1d(width, width, 5, padding=2 * apart, dilation=apart)
            self.back = nn.Conv1d(width, width, 1)
            self.register_buffer("apart", torch.tensor(float(apart)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, C, T)
            y = self.norm(x.transpose(1, 2)).transpose(1, 2)
            return x + self.back(F.silu(self.wide(y)))

    enc = nn.ModuleDict({
        "ear": nn.Conv1d(u.MELS, 96, 5, padding=2),
        "two": nn.Conv1d(96, WIDTH, 4, stride=2, padding=1),
        "four": nn.Conv1d(WIDTH, WIDTH, 4, stride=2, padding=1),
        "blocks": nn.Sequential(Block(WIDTH, 1), Block(WIDTH, 1), Block(WIDTH, 2)),
        "out": nn.Conv1d(WIDTH, CODE, 1),
    })  # fmt: skip
    dec = nn.ModuleDict({
        "in": nn.Conv1d(CODE, SAID, 1),
        "blocks": nn.Sequential(Block(SAID, 1), Block(SAID, 1), Block(SAID, 2), Block(SAID, 3)),
        "up": nn.Conv1d(SAID, u.STRIDE * 96, 1),
        "fine": nn.Sequential(Block(96, 1), Block(96, 1)),
        "out": nn.Conv1d(96, u.OUT, 1),
    })  # fmt: skip
    model = nn.ModuleDict({"enc": enc, "dec": dec}).to(device)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}")

    def encode(x: torch.Tensor) -> torch.Tensor:  # (B, T, MELS) → (B, T / 4, CODE)
        x = F.silu(enc["ear"](x.transpose(1, 2)))
        x = F.silu(enc["four"](F.silu(enc["two"](x))))
        x = enc["out"](enc["blocks"](x)).transpose(1, 2)
        return F.layer_norm(x, (CODE,))

    def decode(z: torch.Tensor) -> torch.Tensor:  # (B, T / 4, CODE) → (B, T, OUT)
        x = dec["up"](dec["blocks"](dec["in"](z.transpose(1, 2))))
        x = x.transpose(1, 2).reshape(len(z), -1, 96).transpose(1, 2)
        return dec["out"](dec["fine"](x)).transpose(1, 2)

    held = np.load(WORK / "speech.npz")
    heard, meant, ends = held["heard"], held["meant"], held["ends"]
    mean, scale = meant[::7].astype(np.float64).mean(0), meant[::7].astype(np.float64).std(0)
    voiced = meant[::7, -2] > 0.5
    pitch = float(np.median(meant[::7, -1][voiced]))
    mean[-2:], scale[-2:] = (0.5, pitch), (1.0, 0.15)
    scale[: u.BANDS] = scale[: u.BANDS].mean()
    mean_t, scale_t = (torch.tensor(a, dtype=torch.float32, device=device) for a in (mean, scale))

    span = CROP * u.STRIDE
    long = np.flatnonzero(np.diff(ends) > span)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        starts = [int(rng.integers(ends[c], ends[c + 1] - span)) for c in rng.choice(long, BATCH)]
        cut = np.array([np.arange(s, s + span) for s in starts])
        x, y = (torch.from_numpy(a[cut].astype(np.float32)).to(device) for a in (heard, meant))
        return x, (y - mean_t) / scale_t

    codes = torch.randn(CODES, CODE, device=device)
    counts, sums = torch.ones(CODES, device=device), codes.clone()
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARN, betas=(0.8, 0.99), weight_decay=0.01)
    began = time.monotonic()
    seen: list[torch.Tensor] = []
    step, progress, quantised = 0, 0.0, False
    while progress < 1:
        progress = step / steps if steps else (time.monotonic() - began) / (60 * minutes)
        for group in optimiser.param_groups:
            group["lr"] = LEARN * min(1, (step + 1) / 50) * (0.5 + 0.5 * np.cos(np.pi * min(progress, 1))) + 1e-5
        x, y = batch()
        z = encode(x)
        flat = z.detach().reshape(-1, CODE)
        if progress < PLAIN_STEPS:
            said, commit = decode(z), torch.zeros((), device=device)
            seen = [*seen[-40:], flat]
        else:
            if not quantised:
                codes = _means(torch.cat(seen), CODES, np.random.default_rng(SEED))
                counts, sums, quantised = torch.ones(CODES, device=device) * 2, codes * 2, True
            near = (flat @ codes.T - 0.5 * codes.square().sum(1)).argmax(1)
            q = codes[near].view_as(z)
            hot = torch.bincount(near, minlength=CODES).float()
            counts = DECAY * counts + (1 - DECAY) * hot
            sums = DECAY * sums + (1 - DECAY) * torch.zeros_like(sums).index_add_(0, near, flat)
            codes = sums / counts[:, None].clamp_min(1e-4)
            if step % 20 == 0 and progress < 0.8:  # codes nothing falls to are put where something does
                dead = counts < 0.1 * counts.mean()
                fresh = flat[torch.randint(len(flat), (int(dead.sum()),), device=device)]
                codes[dead], sums[dead], counts[dead] = fresh, fresh * counts.mean(), counts.mean()
            commit = F.mse_loss(z, q)
            said = decode(z + (q - z).detach())
        loud = torch.sigmoid(3 * y[..., : u.BANDS].mean(-1, keepdim=True) + 2) + 0.25  # what is heard counts more
        spectrum = (loud * (said - y)[..., : u.BANDS].abs()).mean()
        moves = (loud[:, 1:] * (said - y)[..., : u.BANDS].diff(dim=1).abs()).mean()
        noise = (said - y)[..., u.BANDS : u.BANDS + u.NOISES].abs().mean()
        has = (y[..., -2] + 0.5).clamp(0, 1)
        voice = F.binary_cross_entropy_with_logits(said[..., -2], has)
        tone = ((said - y)[..., -1].abs() * has).sum() / has.sum().clamp_min(1)
        loss = spectrum + 0.5 * moves + 0.1 * noise + 0.2 * voice + 0.15 * tone + COMMIT * commit
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or progress >= 1:
            share = counts / counts.sum()
            entropy = float(-(share * share.clamp_min(1e-9).log2()).sum())
            print(
                f"{step:5d} {time.monotonic() - began:5.0f} s  spectrum {spectrum.item():.3f} moves {moves.item():.3f} "
                f"voice {voice.item():.3f} tone {tone.item():.3f} commit {commit.item():.3f} entropy {entropy:.2f}",
                flush=True,
            )
        step += 1
    weights = {k: v.detach().cpu().numpy().astype(np.float16) for k, v in model.state_dict().items()}
    weights["codes"] = codes.cpu().numpy().astype(np.float16)
    weights |= {"mean": mean.astype(np.float32), "scale": scale.astype(np.float32), "pitch": np.float32(2**pitch)}
    np.savez_compressed(out, **weights)
    with torch.inference_mode():
        z, ours = encode(x[:1]), u.read_weights(out)
        _same("encoder", u.encoder(ours, x[0].cpu().numpy()), z[0].cpu().numpy())
        _same("decoder", u.decoder(ours, z[0].cpu().numpy()), decode(z)[0].cpu().numpy())
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB after {step} steps, {time.monotonic() - began:.0f} s")


def _same(name: str, ours: u.Floats, theirs: u.Floats) -> None:
    """The network in NumPy, with weights in half precision, must do what the trained one does."""
    off = float(np.abs(ours - theirs).max() / theirs.std())
    if off > 0.05:
        raise RuntimeError(f"the {name} in NumPy is not the one that was trained: off by {off:.3f}")


def _means(x: Any, count: int, rng: np.random.Generator) -> Any:
    """Where the codes start: a few rounds of k-means."""
    import torch

    codes = x[torch.from_numpy(rng.choice(len(x), count, replace=False)).to(x.device)].clone()
    for _ in range(8):
        near = (x @ codes.T - 0.5 * codes.square().sum(1)).argmax(1)
        hot = torch.bincount(near, minlength=count).float()
        moved = torch.zeros_like(codes).index_add_(0, near, x) / hot[:, None].clamp_min(1)
        codes = torch.where(hot[:, None] > 0, moved, codes)
    return codes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speech", "fit"))
    parser.add_argument("--hours", type=float, default=2.0, help="of speech")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=15.0, help="of training, with --steps 0")
    parser.add_argument("--steps", type=int, default=2600, help="of training: the same number gives the same weights")
    parser.add_argument("--out", type=Path, default=u.WEIGHTS)
    told = parser.parse_args()
    if told.what == "speech":
        make_speech(told.hours, told.jobs)
    else:
        fit(told.minutes, told.steps, told.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
