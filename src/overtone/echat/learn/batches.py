"""Convert sequences and clips to tensors.

The placeholder of a clip is widened to the number of adapter outputs. All clips are in one buffer, on the GPU if there
is one, and a batch refers to its clips by index.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from overtone.echat.data.labels import DIMENSIONS
from overtone.echat.data.layout import AUDIO, IGNORED
from overtone.echat.learn.stages import Augment
from overtone.echat.net.config import RATE

__all__ = [
    "IGNORED", "RATE", "SLOT", "Batch", "Clips", "Played", "augment_wave", "collate", "mel_augmenter", "play", "widen",
]  # fmt: skip

SLOT = -1  # placeholder for an adapter output
_PIECE = 1 << 25  # samples that are copied to the device at a time
HERE = ("clips", "played", "slots", "ctc_ids", "ctc_lengths")  # fields of a batch that stay on the CPU


class Laid(Protocol):
    """The fields of layout.Sequence that this module uses."""

    ids: list[int]
    targets: list[int]
    ignore: list[bool]


@dataclass
class Batch:
    """B sequences of at most L positions, with C clips in total."""

    ids: torch.Tensor  # (B, L) joint ids; SLOT for adapter outputs
    targets: torch.Tensor  # (B, L) the id at this position if it has to be predicted, else IGNORED
    target_at: torch.Tensor  # (N,) flat indices of the targets, precomputed to avoid a device synchronisation
    mask: torch.Tensor  # (B, L) bool: visible to attention
    clip_at: torch.Tensor  # (C, 2) row and first position of each clip's outputs
    ctc_ids: torch.Tensor  # (C, U) text ids of each clip's words
    ctc_lengths: torch.Tensor  # (C,) 0 = unknown
    labels: torch.Tensor  # (C, dimensions) label indices, -1 = unknown
    slots: torch.Tensor  # (C,) adapter outputs of each clip
    clips: torch.Tensor  # (C,) indices in the bank of clips
    played: torch.Tensor | None = None  # (C, 3) how each clip is played; None: as it is
    wave: torch.Tensor | None = None  # (C, samples) float32 at 16 kHz; from the bank, see Clips.fill
    wave_lengths: torch.Tensor | None = None  # (C,)
    numbers: torch.Tensor | None = None  # (B, n) regression targets of each row
    # counts for the loop, known without a device synchronisation
    task: str = ""
    index: int = 0  # index of the batch in its stage
    n_targets: int = 0
    n_positions: int = 0  # without padding
    rows: Sequence[int] = ()  # length of each row
    holes: bool = False  # whether positions before a row's end are masked, so that causal attention does not suffice

    def to(self, device: torch.device) -> Batch:
        """Return the batch with its tensors on a device, except those that stay on the CPU."""
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in moved.items():
            if isinstance(value, torch.Tensor) and name not in HERE:
                moved[name] = value.to(device, non_blocking=True)
        return Batch(**moved)

    def pin_memory(self) -> Batch:
        """Return the batch in pinned memory, for the DataLoader."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        return Batch(**{k: v.pin_memory() if isinstance(v, torch.Tensor) else v for k, v in held.items()})


def collate(
    sequences: Sequence[Laid],
    clips: Sequence[Sequence[int]],  # per sequence: the indices of its clips, in the order of AUDIO
    slots: Sequence[Sequence[int]],  # per clip: the number of adapter outputs
    word_ids: Sequence[Sequence[Sequence[int]]],  # per clip: the text ids of its words, [] = unknown
    labels: Sequence[Sequence[Sequence[int]]] = (),  # per clip: its label indices; () = unknown
    task: str = "",
    index: int = 0,
) -> Batch:
    """Build a batch, padded on the right."""
    rows = [widen(sequence, counts) for sequence, counts in zip(sequences, slots, strict=True)]
    width = max(len(row[0]) for row in rows)
    size = (len(rows), width)
    ids, targets, mask = np.zeros(size, np.int64), np.full(size, IGNORED, np.int64), np.zeros(size, bool)
    holes = False
    for i, (row, row_targets, heard) in enumerate(rows):
        ids[i, : len(row)], targets[i, : len(row)], mask[i, : len(row)] = row, row_targets, heard
        holes = holes or not heard.all()
    at = [(i, first) for i, counts in enumerate(slots) for first in _firsts(sequences[i], counts)]
    words = [text for texts in word_ids for text in texts]
    ctc = np.zeros((len(words), max(map(len, words), default=0)), np.int64)
    for i, text in enumerate(words):
        ctc[i, : len(text)] = text
    return Batch(
        ids=torch.from_numpy(ids),
        targets=torch.from_numpy(targets),
        target_at=torch.from_numpy(np.flatnonzero(targets != IGNORED)),
        mask=torch.from_numpy(mask),
        clip_at=torch.tensor(at, dtype=torch.int64).reshape(-1, 2),
        ctc_ids=torch.from_numpy(ctc),
        ctc_lengths=torch.tensor([len(text) for text in words], dtype=torch.int64),
        labels=torch.tensor([clip for row in labels for clip in row], dtype=torch.int64).reshape(-1, len(DIMENSIONS)),
        slots=torch.tensor([count for row in slots for count in row], dtype=torch.int64),
        clips=torch.tensor([clip for row in clips for clip in row], dtype=torch.int64),
        task=task,
        index=index,
        n_targets=int((targets != IGNORED).sum()),
        n_positions=sum(len(row[0]) for row in rows),
        rows=[len(row[0]) for row in rows],
        holes=holes,
    )


def widen(sequence: Laid, counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return a sequence's ids, targets and attention mask, with each AUDIO repeated as SLOTs."""
    ids = np.asarray(sequence.ids, np.int64)
    times = np.ones(len(ids), np.int64)
    times[ids == AUDIO] = counts
    return (
        np.repeat(np.where(ids == AUDIO, SLOT, ids), times),
        np.repeat(np.asarray(sequence.targets, np.int64), times),
        np.repeat(~np.asarray(sequence.ignore, bool), times),
    )


def _firsts(sequence: Laid, counts: Sequence[int]) -> list[int]:
    """Return the first position of each clip's outputs."""
    firsts, shift = [], 0
    for at, id_ in enumerate(sequence.ids):
        if id_ == AUDIO:
            firsts.append(at + shift)
            shift += counts[len(firsts) - 1] - 1
    return firsts


class Clips:
    """The clips of all packs, with one index over all.

    They are copied to a GPU once, as int16, if they take less than `share` of its free memory (1 GB is nine hours).
    Otherwise they stay memory-mapped.
    """

    def __init__(self, packs: Sequence[Any], device: torch.device, share: float = 0.3) -> None:
        self.device = device
        self.packs = packs
        counts = [len(pack.offsets) - 1 for pack in packs]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # index of each pack's first clip
        self.sizes = np.concatenate([np.diff(pack.offsets) for pack in packs] or [np.zeros(0, np.int64)])
        self.bank: torch.Tensor | None = None
        if packs and device.type == "cuda" and 2 * self.sizes.sum() < share * torch.cuda.mem_get_info(device)[0]:
            self.deposit()

    def deposit(self) -> None:
        """Copy all clips to the device."""
        self.bank, at = torch.empty(int(self.sizes.sum()), dtype=torch.int16, device=self.device), 0
        for pack in self.packs:
            for first in range(0, len(pack.samples), _PIECE):
                piece = torch.from_numpy(np.array(pack.samples[first : first + _PIECE]))
                self.bank[at : at + len(piece)] = piece
                at += len(piece)
        self.starts = torch.from_numpy(np.concatenate([[0], np.cumsum(self.sizes)])[:-1])

    def clip(self, number: int) -> NDArray[np.int16]:
        """Return the samples of a clip."""
        at = int(np.searchsorted(self.first, number, side="right")) - 1
        clip: NDArray[np.int16] = self.packs[at].clip(number - int(self.first[at]))
        return clip

    def fill(self, batch: Batch) -> Batch:
        """Add the waveforms of its clips to a batch that is on the device."""
        numbers = batch.clips
        lengths = torch.from_numpy(self.sizes)[numbers]
        longest = int(lengths.max()) if len(lengths) else 0
        if self.bank is None:
            waves = np.zeros((len(numbers), longest), np.int16)
            for i, number in enumerate(numbers.tolist()):
                clip = self.clip(number)
                waves[i, : len(clip)] = clip
            short = torch.from_numpy(waves).to(self.device)
            batch.wave_lengths = lengths.to(self.device)
        else:  # (C, samples): gathered on the device
            starts = self.starts[numbers].to(self.device, non_blocking=True)
            batch.wave_lengths = lengths.to(self.device, non_blocking=True)
            at = torch.arange(longest, device=self.device)
            short = self.bank[(starts[:, None] + at).clamp_(max=len(self.bank) - 1)]
            short.masked_fill_(at >= batch.wave_lengths[:, None], 0)
        batch.wave = short.float() / 32768.0
        if batch.played is not None and len(numbers):
            batch.wave = played_waves(batch.wave, batch.wave_lengths, batch.played)
            batch.wave_lengths = batch.played[:, 2].to(self.device, non_blocking=True)
        return batch


class Played(NamedTuple):
    """How an augmented clip is played, in samples: its length at its speed, the silence before it, and the whole."""

    length: int
    before: int
    whole: int


def play(samples: int, how: Augment, rng: random.Random) -> Played:
    """Draw the speed of a clip and the silence around it."""
    length = max(1, round(samples / rng.uniform(1 - how.speed, 1 + how.speed)))
    silent = how.silence if rng.random() < 0.5 else 0.0
    before, after = (round(rng.uniform(0, silent) * RATE) for _ in range(2))
    return Played(length, before, before + length + after)


def played_waves(wave: torch.Tensor, lengths: torch.Tensor, played: torch.Tensor) -> torch.Tensor:
    """Return clips (C, n) of `lengths` samples (C,) as they are played (C, 3).

    A clip is stretched by a cubic through four samples, so its pitch changes with its speed, as that of a record.
    """
    count, before, _ = (part[:, None] for part in played.to(wave.device, non_blocking=True).unbind(1))
    last = (lengths - 1).clamp(min=0)[:, None]
    at = torch.arange(int(played[:, 2].max()), device=wave.device)[None] - before  # (C, whole)
    place = at.double() * (last.double() / (count - 1).clamp(min=1))
    place = place.clamp(min=0).minimum(last.double())
    first = place.floor().long()
    t = (place - first).to(wave.dtype)
    a, b, c, d = (wave.gather(1, (first + k).clamp(min=0).minimum(last)) for k in (-1, 0, 1, 2))
    out = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))  # Catmull–Rom
    return out * ((at >= 0) & (at < count))


# ── augmentation ────────────────────────────────────────────────────────────────────────────────────────────────────
def augment_wave(batch: Batch, how: Augment, generator: torch.Generator) -> None:
    """Augment waveforms in place, for an encoder that reads waveforms.

    SpecAug's time masks (two, of at most 0.5 s and a fifth of the clip) become silence. Its frequency masks would need
    a spectrum; a random gain and white noise replace them. Random numbers are drawn on the CPU, so they are the same on
    every device and need no synchronisation.
    """
    wave, lengths = batch.wave, batch.wave_lengths
    if wave is None or lengths is None or not len(wave):
        return
    device, n = wave.device, len(wave)
    if how.specaug:
        at = torch.arange(wave.shape[1], device=device)
        for _ in range(2):
            draw = torch.rand(2, n, generator=generator).to(device, non_blocking=True)
            width = (draw[0] * (0.2 * lengths).clamp(max=0.5 * RATE)).floor()  # (C,)
            start = (draw[1] * (lengths - width)).floor()
            wave.masked_fill_((at >= start[:, None]) & (at < (start + width)[:, None]), 0.0)
    if how.noise:
        draw = torch.rand(2, n, generator=generator).to(device, non_blocking=True)
        power = wave.square().sum(1) / lengths.clamp(min=1)  # (C,)
        level = torch.sqrt(power * 10 ** (-(how.noise + 25 * draw[0]) / 10)) * (draw[1] < 0.5)  # half of the clips
        own = torch.Generator(device).manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
        noise = torch.randn(wave.shape, generator=own, device=device)
        inside = torch.arange(wave.shape[1], device=device) < lengths[:, None]
        wave += noise * level[:, None] * inside
    if how.gain:
        decibel = (2 * torch.rand(n, generator=generator) - 1) * how.gain
        wave *= (10 ** (decibel / 20)).to(device, non_blocking=True)[:, None]


def mel_augmenter(how: Augment, generator: torch.Generator) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return an augmentation of log-mel spectrograms (C, bands, frames), given each clip's number of frames.

    SpecAug applies two masks of up to 10 bands and two of up to 50 frames (at most a fifth of the clip). Spec-sub
    replaces three sections of up to 30 frames by earlier frames, up to 30 frames before.
    """

    def augment(mel: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        device, (n, bands, frames) = mel.device, mel.shape
        at = torch.arange(frames, device=device)
        mel = mel.clone()
        if how.specsub:
            for _ in range(3):
                draw = torch.rand(3, n, generator=generator).to(device)
                width = (draw[0] * (0.2 * lengths).clamp(max=30.0)).floor()  # (C,)
                start = (draw[1] * (lengths - width)).floor()
                back = torch.minimum((draw[2] * 30).floor(), start)
                moved = (at >= start[:, None]) & (at < (start + width)[:, None])  # (C, frames)
                source = torch.where(moved, at - back[:, None], at).long()
                mel = mel.gather(2, source[:, None].expand_as(mel))
        if how.specaug:
            blank = mel.amin((1, 2), keepdim=True)  # the value of silence in this log-mel
            band = torch.arange(bands, device=device)
            of_bands = (band, torch.full_like(lengths, bands), torch.full_like(lengths, 10))
            of_frames = (at, lengths, (0.2 * lengths).clamp(max=50.0).floor())
            for axis, room, most in (of_bands, of_frames):
                for _ in range(2):
                    draw = torch.rand(2, n, generator=generator).to(device)
                    width = (draw[0] * (most + 1)).floor()
                    start = (draw[1] * (room - width)).floor()
                    hidden = (axis >= start[:, None]) & (axis < (start + width)[:, None])  # (C, bands or frames)
                    mel = torch.where(hidden[:, :, None] if axis is band else hidden[:, None, :], blank, mel)
        return mel

    return augment
