"""Train the embedded speech tokens of `overtone.echat.speech.units`: speak, deliver, learn, write the weights.

    python -m scripts.train_units alphabet   new codes: phonemes with lengths, as texts have them
    python -m scripts.train_units speech     the voice says every text in drawn emotions: what is heard, what is meant
    python -m scripts.train_units fit        both networks; minutes on a core, or CUDA

Without `alphabet`, the codes stay those of the package, so that speech encoded before can still be decoded. Work lies
in out/units. espeak-ng says which phoneme is spoken when. The encoder hears an emotional delivery and learns
its phonemes; the decoder gets phonemes and their lengths and learns the *plain* speech at the same moments. A code is a
phoneme with a length. The lengths are chosen so that the squared error of the logarithm is least over all speech.
"""

from __future__ import annotations

import argparse
import heapq
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from overtone import audio
from overtone.build import delivery
from overtone.build.recipes import NEUTRAL, Recipe, recipe_of
from overtone.echat.speech import phoneme_times
from overtone.echat.speech import units as u

WORK = Path("out/units")
TEXTS = Path("src/overtone/build")
UNSEEN = Path(
    "src/overtone/echat/making/texts/plain.toml"
)  # nothing is trained on these: `bench.units` listens to them
DELIVERIES = 1  # of each text
SEED = 7
MANNERS = ("", "happy", "sad", "surprise", "angry", "fear", "disgust", "sobbing", "tired", "slow", "fast")

CODES = 384
ALPHABET_TEXTS = 1500
RARE = 0.0008  # share of all phonemes; one that is spoken less often counts as the nearest other one
HEARS, SAYS, FINE = 96, 128, 96  # widths of the encoder and of the decoder, per phoneme and per frame
CROP, BATCH = 32, 8  # phonemes; crops
LEARN = 3e-3
LENGTH_NOISE = 0.06  # of the lengths that the decoder is given, because codes round them


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


def heard_and_meant(
    text: str, recipe: Recipe, rng: np.random.Generator, plain: delivery.Voiced | None = None
) -> tuple[u.Floats, u.Floats, list[str], u.Ints]:
    """What the encoder hears of a delivery (frames, MELS), the plain speech at those moments (frames, OUT), and the
    phonemes with their numbers of frames."""
    said = phoneme_times.spoken(text)
    plain = plain or delivery.analyse(said.samples)
    sound = audio.resample(delivery.deliver(plain, recipe, rng).astype(np.float32), delivery.RATE, u.HEARD)
    first, _ = u.span(sound)
    heard = u.mel(u.trim_silence(sound))
    at, held = delivery.timing(plain, recipe)  # where each moment of the plain speech went
    rows = u.parameters(plain)
    silent = np.zeros(u.OUT)
    silent[: u.BANDS] = rows[:, : u.BANDS].min()
    silent[-1] = np.log2(plain.pitch)
    left = np.floor(at).astype(int)
    right, part = np.minimum(left + 1, len(rows) - 1), (at - left)[:, None]
    moved = rows[left] * (1 - part) + rows[right] * part
    moved[held] = silent
    when = (first / u.HEARD - delivery.EDGE + 0.01 * np.arange(len(heard))) / delivery.FRAME  # frames of `moved`
    near = np.round(when).astype(int)
    inside = (near >= 0) & (near < len(moved))
    meant = np.where(inside[:, None], moved[np.clip(near, 0, len(moved) - 1)], silent)
    index = np.where(inside, phoneme_times.delivered(said, recipe, plain)[np.clip(near, 0, len(moved) - 1)], -1)
    starts = np.flatnonzero(np.r_[True, np.diff(index) != 0])
    names = [phoneme_times.PAUSE if at < 0 else said.names[at] for at in index[starts]]
    kept = [
        n for n in range(len(names)) if not n or names[n] != phoneme_times.PAUSE or names[n - 1] != phoneme_times.PAUSE
    ]
    frames = np.add.reduceat(np.diff(np.r_[starts, len(index)]), kept)
    return heard, meant.astype(np.float32), [names[n] for n in kept], frames


def _made(job: tuple[int, str]) -> list[tuple[u.Floats, u.Floats, list[str], u.Ints]]:
    number, text = job
    rng = np.random.default_rng((SEED, number))
    plain = u.plain_speech(text)
    return [heard_and_meant(text, drawn(rng), rng, plain) for _ in range(DELIVERIES)]


def make_speech(hours: float, jobs: int) -> None:
    """Write out/units/speech.npz: all frames and phonemes one after the other, and where each clip's phonemes end."""
    heard, meant, names, lengths, ends, frames = [], [], [], [], [0], 0
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        for clips in pool.map(_made, enumerate(texts(TEXTS)), chunksize=4):
            for one, other, phonemes, sizes in clips:
                heard.append(one.astype(np.float16))
                meant.append(other.astype(np.float16))
                names += phonemes
                lengths.append(sizes)
                frames += len(one)
                ends.append(len(names))
            if frames > hours * 360_000:
                pool.shutdown(cancel_futures=True)
                break
    WORK.mkdir(parents=True, exist_ok=True)
    np.savez(
        WORK / "speech.npz", heard=np.concatenate(heard), meant=np.concatenate(meant), names=np.array(names),
        lengths=np.concatenate(lengths), ends=np.array(ends),
    )  # fmt: skip
    print(f"{frames / 360_000:.2f} h of speech in {time.monotonic() - began:.0f} s")


# ---- codes -----------------------------------------------------------------------------------------------------------


def codes(phonemes: u.Ints, lengths: u.Ints, count: int, most: int) -> tuple[u.Ints, u.Ints]:
    """Return the phoneme and the number of frames of each code, given all phonemes spoken and their lengths.

    Every phoneme begins with one code. The code whose split reduces the squared error of the log length most is split,
    until there are `most`.
    """
    queue: list[tuple[float, int, int, u.Ints]] = []
    done: list[tuple[int, u.Ints]] = []

    def put(phoneme: int, sizes: u.Ints) -> None:
        gain, at = _split(sizes)
        if at:
            heapq.heappush(queue, (-gain, len(queue) + len(done), phoneme, sizes))
        else:
            done.append((phoneme, sizes))

    for phoneme in range(count):
        put(phoneme, np.sort(lengths[phonemes == phoneme]))
    while queue and len(queue) + len(done) < most:
        _, _, phoneme, sizes = heapq.heappop(queue)
        at = _split(sizes)[1]
        put(phoneme, sizes[:at])
        put(phoneme, sizes[at:])
    rows = done + [(phoneme, sizes) for _, _, phoneme, sizes in queue]
    chosen = sorted({(phoneme, round(float(np.exp(np.log(sizes).mean())))) for phoneme, sizes in rows})
    return np.array([p for p, _ in chosen]), np.array([n for _, n in chosen])


def _split(sizes: u.Ints) -> tuple[float, int]:
    """The best place to split sorted lengths, and what that reduces the squared error of their logarithms by."""
    log = np.log(sizes)
    places = np.flatnonzero(np.diff(sizes)) + 1
    if not len(places):
        return 0.0, 0
    total, first = log.sum(), np.cumsum(log)[places - 1]
    gain = first**2 / places + (total - first) ** 2 / (len(log) - places) - total**2 / len(log)
    return float(gain.max()), int(places[gain.argmax()])


def inventory(names: Sequence[str]) -> list[str]:
    """The phonemes that are spoken often enough."""
    return sorted(name for name, n in Counter(names).items() if n >= RARE * len(names))


def make_alphabet() -> None:
    """Write out/units/alphabet.npz: the phonemes, and the phoneme and length of each code."""
    names: list[str] = []
    lengths: list[int] = []
    for number, text in enumerate(texts(TEXTS)[:ALPHABET_TEXTS]):
        said, recipe = phoneme_times.spoken(text), drawn(np.random.default_rng((SEED, number)))
        index, frames = phoneme_times.runs(phoneme_times.delivered(said, recipe, phoneme_times.outline(said)))
        names += [phoneme_times.PAUSE if at < 0 else said.names[at] for at in index]
        lengths += frames.tolist()
    kept = inventory(names)
    nearest = u.nearest_names(kept)
    which, long = np.array([nearest(name) for name in names]), np.array(lengths)
    of, frames_of = codes(which, long, len(kept), CODES)
    nearest_frames = [np.abs(np.log(frames_of[of == p] / n)).min() for p, n in zip(which, long, strict=True)]
    WORK.mkdir(parents=True, exist_ok=True)
    spelt = np.frombuffer(" ".join(kept).encode(), np.uint8)
    arrays = {"phonemes": spelt, "code.phoneme": of.astype(np.uint16), "code.frames": frames_of.astype(np.uint16)}
    np.savez(WORK / "alphabet.npz", **arrays)
    error = float(np.sqrt(np.square(nearest_frames).mean()))
    print(f"{len(of)} codes of {len(kept)} phonemes; rounding a length changes it by {error:.1%} (root mean square)")


def following(phonemes: u.Ints, lengths: u.Ints, ends: u.Ints, count: int) -> u.Floats:
    """The log probability of each phoneme in the next frame, given the one in this frame."""
    pairs = np.full((count, count), 0.02)
    inner = np.ones(len(phonemes), bool)
    inner[ends[1:] - 1] = False
    at = np.flatnonzero(inner)
    np.add.at(pairs, (phonemes[at], phonemes[at + 1]), 1)
    np.fill_diagonal(pairs, 0)
    heard = np.bincount(phonemes, minlength=count)
    frames = np.bincount(phonemes, weights=lengths, minlength=count)
    leave = np.clip(heard / frames, 0.01, 0.5)[:, None]
    table = leave * pairs / pairs.sum(1, keepdims=True)
    np.fill_diagonal(table, 1 - leave[:, 0])
    return np.log(table).astype(np.float32)


# ---- networks --------------------------------------------------------------------------------------------------------


def fit(minutes: float, steps: int, out: Path) -> None:
    """Train and write the weights."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    held = np.load(WORK / "speech.npz")
    heard, meant, lengths, ends = held["heard"], held["meant"], held["lengths"], held["ends"]
    alphabet = np.load(WORK / "alphabet.npz" if (WORK / "alphabet.npz").exists() else u.WEIGHTS)
    names = bytes(alphabet["phonemes"]).decode().split()
    known = u.nearest_names(names)
    phonemes = np.array([known(name) for name in held["names"].tolist()])
    begins = np.r_[0, np.cumsum(lengths)]  # the first frame of each phoneme

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
        "ear": nn.Conv1d(u.MELS, HEARS, 5, padding=2),
        "blocks": nn.Sequential(*(Block(HEARS, apart) for apart in (1, 2, 3, 2))),
        "out": nn.Conv1d(HEARS, len(names), 1),
    })  # fmt: skip
    dec = nn.ModuleDict({
        "phoneme": nn.Embedding(len(names), SAYS),
        "length": nn.Linear(1, SAYS, bias=False),
        "blocks": nn.Sequential(*(Block(SAYS, apart) for apart in (1, 1, 2, 4))),
        "up": nn.Conv1d(SAYS, FINE, 1),
        "place": nn.Linear(3, FINE, bias=False),
        "fine": nn.Sequential(*(Block(FINE, apart) for apart in (1, 2, 4, 1))),
        "out": nn.Conv1d(FINE, u.OUT, 1),
    })  # fmt: skip
    model = nn.ModuleDict({"enc": enc, "dec": dec}).to(device)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters on {device}, {len(names)} phonemes")

    def encode(x: torch.Tensor) -> torch.Tensor:  # (B, T, MELS) → (B, T, phonemes)
        x = enc["blocks"](F.silu(enc["ear"](x.transpose(1, 2)))).transpose(1, 2)
        return enc["out"](F.layer_norm(x, (HEARS,)).transpose(1, 2)).transpose(1, 2)

    def decode(which: torch.Tensor, long: torch.Tensor, at: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """(B, N) phonemes, (B, N, 1) log lengths, (B, T) the phoneme of each frame, (B, T, 3) → (B, T, OUT)"""
        x = dec["phoneme"](which) + dec["length"](long)
        x = dec["up"](dec["blocks"](x.transpose(1, 2)))  # (B, C, N)
        x = x.gather(2, at[:, None].expand(-1, FINE, -1)) + dec["place"](place).transpose(1, 2)
        return dec["out"](dec["fine"](x)).transpose(1, 2)

    mean, scale = meant[::7].astype(np.float64).mean(0), meant[::7].astype(np.float64).std(0)
    voiced = meant[::7, -2] > 0.5
    pitch = float(np.median(meant[::7, -1][voiced]))
    mean[-2:], scale[-2:] = (0.5, pitch), (1.0, 0.15)
    scale[: u.BANDS] = scale[: u.BANDS].mean()
    mean_t, scale_t = (torch.tensor(a, dtype=torch.float32, device=device) for a in (mean, scale))
    enough = np.flatnonzero(np.diff(ends) >= min(CROP, int(np.diff(ends).max())))
    size = min(CROP, int(np.diff(ends).max()))

    def batch() -> tuple[torch.Tensor, ...]:
        """Crops of a number of phonemes, padded to the frames of the longest."""
        firsts = [int(rng.integers(ends[c], ends[c + 1] - size + 1)) for c in rng.choice(enough, BATCH)]
        crops = [slice(begins[f], begins[f + size]) for f in firsts]
        most = max(c.stop - c.start for c in crops)
        x = np.full((BATCH, most, u.MELS), u.SILENT, np.float32)
        y, at = np.zeros((BATCH, most, u.OUT), np.float32), np.zeros((BATCH, most), np.int64)
        place, there = np.zeros((BATCH, most, 3), np.float32), np.zeros((BATCH, most), bool)
        for row, (f, crop) in enumerate(zip(firsts, crops, strict=True)):
            n, sizes = crop.stop - crop.start, lengths[f : f + size]
            x[row, :n], y[row, :n], there[row, :n] = heard[crop], meant[crop], True
            at[row, :n], place[row, :n] = np.repeat(np.arange(size), sizes), u.progress(sizes)
        which = np.array([phonemes[f : f + size] for f in firsts])
        long = np.log(np.array([lengths[f : f + size] for f in firsts]) / 8)
        long = (long + rng.normal(0, LENGTH_NOISE, long.shape)).astype(np.float32)[..., None]
        x_, y_, w_, l_, a_, p_, t_ = (torch.from_numpy(a).to(device) for a in (x, y, which, long, at, place, there))
        return x_, (y_ - mean_t) / scale_t, w_, l_, a_, p_, t_

    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARN, betas=(0.8, 0.99), weight_decay=0.01)
    began = time.monotonic()
    step, progress = 0, 0.0
    while progress < 1:
        progress = step / steps if steps else (time.monotonic() - began) / (60 * minutes)
        for group in optimiser.param_groups:
            group["lr"] = LEARN * min(1, (step + 1) / 50) * (0.5 + 0.5 * np.cos(np.pi * min(progress, 1))) + 1e-5
        x, y, which, long, at, place, there = batch()
        some = slice(0, max(BATCH // 2, 1))  # hearing is learnt sooner than speaking
        right = which.gather(1, at)[some][there[some]]
        phoneme = F.cross_entropy(encode(x[some])[there[some]], right)
        said = decode(which, long, at, place)
        loud = torch.sigmoid(3 * y[..., : u.BANDS].mean(-1, keepdim=True) + 2) + 0.25  # what is heard counts more
        kept = there[..., None]
        off = (said - y) * kept
        cells = there.sum()
        spectrum = (loud * off[..., : u.BANDS].abs()).sum() / cells / u.BANDS
        moves = (loud[:, 1:] * off[..., : u.BANDS].diff(dim=1).abs()).sum() / cells / u.BANDS
        noise = off[..., u.BANDS : u.BANDS + u.NOISES].abs().sum() / cells / u.NOISES
        has = (y[..., -2] + 0.5).clamp(0, 1)
        voice = F.binary_cross_entropy_with_logits(said[..., -2][there], has[there])
        tone = (off[..., -1].abs() * has).sum() / (has * there).sum().clamp_min(1)
        loss = phoneme + spectrum + 0.5 * moves + 0.1 * noise + 0.2 * voice + 0.15 * tone
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(enc.parameters(), 1.0)
        nn.utils.clip_grad_norm_(dec.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or progress >= 1:
            print(
                f"{step:5d} {time.monotonic() - began:5.0f} s  phoneme {phoneme.item():.3f} "
                f"spectrum {spectrum.item():.3f} moves {moves.item():.3f} voice {voice.item():.3f} "
                f"tone {tone.item():.3f}",
                flush=True,
            )
        step += 1
    heard_of = set(phonemes.tolist())
    other = u.nearest_names([name for number, name in enumerate(names) if number in heard_of])
    with torch.inference_mode():  # what was never spoken is said like the nearest phoneme that was
        spoken_as = torch.tensor(sorted(heard_of), device=device)[[other(name) for name in names]]
        dec["phoneme"].weight.copy_(dec["phoneme"].weight[spoken_as].clone())
    weights = {k: v.detach().cpu().numpy().astype(np.float16) for k, v in model.state_dict().items()}
    weights |= {"mean": mean.astype(np.float32), "scale": scale.astype(np.float32), "pitch": np.float32(2**pitch)}
    weights |= {
        "format": np.float32(u.FORMAT), **{name: alphabet[name] for name in u.ALPHABET},
        "next": following(phonemes, lengths, ends, len(names)).astype(np.float16),
    }  # fmt: skip
    np.savez_compressed(out, **weights)
    with torch.inference_mode():
        ours, n = u.read_weights(out), int(there[0].sum())
        sizes = np.bincount(at[0, :n].cpu().numpy(), minlength=size)
        exact = torch.log(torch.from_numpy(sizes).to(device) / 8).float()[None, :, None]
        _same("encoder", u.encoder(ours, x[0, :n].cpu().numpy()), encode(x[:1, :n]).log_softmax(-1)[0].cpu().numpy())
        theirs = decode(which[:1], exact, at[:1, :n], place[:1, :n])[0].cpu().numpy()
        _same("decoder", u.decoder(ours, which[0].cpu().numpy(), sizes), theirs)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB after {step} steps, {time.monotonic() - began:.0f} s")


def _same(name: str, ours: u.Floats, theirs: u.Floats) -> None:
    """The network in NumPy, with weights in half precision, must do what the trained one does."""
    off = float(np.abs(ours - theirs).max() / theirs.std())
    if off > 0.05:
        raise RuntimeError(f"the {name} in NumPy is not the one that was trained: off by {off:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("alphabet", "speech", "fit"))
    parser.add_argument("--hours", type=float, default=2.0, help="of speech")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=15.0, help="of training, with --steps 0")
    parser.add_argument("--steps", type=int, default=800, help="of training: the same number gives the same weights")
    parser.add_argument("--out", type=Path, default=u.WEIGHTS)
    told = parser.parse_args()
    if told.what == "alphabet":
        make_alphabet()
    elif told.what == "speech":
        make_speech(told.hours, told.jobs)
    else:
        fit(told.minutes, told.steps, told.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
