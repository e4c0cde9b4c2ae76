"""Sequences and clips as tensors: clips widened in place, waves from the bank, and sound that is made unsure."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack, PackWriter
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.layout import AUDIO, Sequence
from overtone.echat.learn.batches import (
    SLOT,
    Clips,
    augment_wave,
    collate,
    mel_augmenter,
    play,
    played_waves,
    widen,
)
from overtone.echat.learn.stages import Augment

SECOND = 16_000


def sequence(ids: list[int], said: int, ignore: tuple[int, ...] = ()) -> Sequence:
    """The last `said` ids are targets."""
    targets = [-100] * (len(ids) - said) + ids[len(ids) - said :]
    return Sequence("k", "s2t", ids, targets, [i in ignore for i in range(len(ids))])


def packs(tmp_path: Path) -> list[Pack]:
    """Two packs of clips whose samples tell which they are."""
    for name, sizes in (("a", (3000, 5000)), ("b", (4000, 100, 7000))):
        with PackWriter(tmp_path / name) as writer:
            for i, size in enumerate(sizes):
                sound = np.full(size, len(sizes) * 1000 + i, np.int16)
                writer.add(Record(f"{name}{i}", wav="x"), [sound])
    return [Pack(tmp_path / "a"), Pack(tmp_path / "b")]


def test_the_two_files_agree_on_what_marks_a_clip() -> None:
    assert (AUDIO, -100) == (layout.AUDIO, layout.IGNORED)


def test_a_clip_is_widened_to_its_outputs_and_targets_stay_with_their_ids() -> None:
    ids, targets, heard = widen(sequence([7, AUDIO, 8, AUDIO, 9, 10], 2, ignore=(2,)), [3, 1])
    assert ids.tolist() == [7, SLOT, SLOT, SLOT, 8, SLOT, 9, 10]
    assert targets.tolist() == [-100] * 6 + [9, 10]
    assert heard.tolist() == [True] * 4 + [False] + [True] * 3


def test_a_batch_says_where_each_clip_goes() -> None:
    rows = [sequence([7, AUDIO, 8, 5], 1), sequence([7, AUDIO, AUDIO, 9, 9, 9], 3, ignore=(3,)), sequence([1, 2], 1)]
    batch = collate(rows, [[4], [0, 2], []], [[2], [3, 1], []], [[[11, 12]], [[], [13]], []], task="s2t")
    assert batch.ids.shape == batch.targets.shape == batch.mask.shape == (3, 8)
    for (row, first), slots in zip(batch.clip_at.tolist(), (2, 3, 1), strict=True):
        assert (batch.ids[row, first : first + slots] == SLOT).all()
    assert batch.clip_at.tolist() == [[0, 1], [1, 1], [1, 4]]
    assert (batch.ids == SLOT).sum() == 6 and batch.clips.tolist() == [4, 0, 2]
    assert batch.ctc_lengths.tolist() == [2, 0, 1] and batch.ctc_ids.tolist() == [[11, 12], [0, 0], [13, 0]]
    assert batch.n_targets == 5 and batch.n_positions == 5 + 8 + 2 and batch.holes
    assert torch.equal(batch.target_at, (batch.targets.flatten() != -100).nonzero()[:, 0])
    assert batch.mask.sum() == batch.n_positions - 1  # what is ignored, and the padding


def test_a_batch_of_text_has_no_clips() -> None:
    batch = collate([sequence([1, 2, 3], 2)], [[]], [[]], [[]])
    filled = Clips([], torch.device("cpu")).fill(batch)
    assert filled.wave is not None and filled.wave.shape == (0, 0) and not batch.holes


def test_waves_come_from_their_pack_padded_with_silence(tmp_path) -> None:
    clips = Clips(packs(tmp_path), torch.device("cpu"))
    batch = collate([sequence([AUDIO, AUDIO, AUDIO], 0)], [[4, 0, 3]], [[1, 1, 1]], [[[], [], []]])
    clips.fill(batch)
    assert batch.wave is not None and batch.wave.shape == (3, 7000) and batch.wave_lengths is not None
    assert batch.wave_lengths.tolist() == [7000, 3000, 100]
    for row, (size, value) in zip(batch.wave, ((7000, 3002), (3000, 2000), (100, 3001)), strict=True):
        assert (row[:size] == value / 32768).all() and not row[size:].any()


def test_a_bank_on_the_device_gives_the_same_waves(tmp_path) -> None:
    clips = Clips(packs(tmp_path), torch.device("cpu"))
    batch = collate([sequence([AUDIO, AUDIO], 0)], [[1, 4]], [[1, 1]], [[[], []]])
    mapped = clips.fill(batch).wave
    clips.deposit()  # as on a GPU
    assert torch.equal(mapped, clips.fill(batch).wave)


def wave_batch(n: int = 64) -> SimpleNamespace:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.linspace(SECOND // 2, SECOND, n).long()
    wave = 0.1 * torch.randn(n, SECOND, generator=generator) * (torch.arange(SECOND) < lengths[:, None])
    return SimpleNamespace(wave=wave, wave_lengths=lengths)


def test_a_wave_is_masked_in_time_at_most_a_fifth_twice() -> None:
    batch = wave_batch()
    before = batch.wave.clone()
    augment_wave(batch, Augment(specaug=True), torch.Generator().manual_seed(1))
    changed = (batch.wave != before).sum(1) / batch.wave_lengths
    assert changed.max() <= 0.4 and changed.mean() > 0.1
    assert not batch.wave[batch.wave != before].any()


def test_noise_stays_inside_the_clip_and_below_the_voice() -> None:
    batch = wave_batch()
    before = batch.wave.clone()
    augment_wave(batch, Augment(noise=20.0), torch.Generator().manual_seed(1))
    added = batch.wave - before
    assert not added[torch.arange(SECOND) >= batch.wave_lengths[:, None]].any()
    ratio = 10 * torch.log10(before.square().sum(1) / added.square().sum(1))
    noisy = added.abs().sum(1) > 0
    assert 0.25 < noisy.float().mean() < 0.75
    assert ratio[noisy].min() > 19.5 and ratio[noisy].max() < 46


def test_a_gain_changes_the_level_and_nothing_else() -> None:
    batch = wave_batch()
    before = batch.wave.clone()
    augment_wave(batch, Augment(gain=6.0), torch.Generator().manual_seed(1))
    decibel = 10 * torch.log10(batch.wave.square().sum(1) / before.square().sum(1))
    assert decibel.abs().max() <= 6.001 and decibel.std() > 2
    assert torch.allclose(batch.wave / batch.wave.norm(dim=1, keepdim=True), before / before.norm(dim=1, keepdim=True))


def test_a_mel_loses_bands_and_frames_within_its_limits() -> None:
    mel = torch.rand(40, 80, 300, generator=torch.Generator().manual_seed(0)) + 1
    lengths = torch.linspace(100, 300, 40).long()
    out = mel_augmenter(Augment(specaug=True), torch.Generator().manual_seed(1))(mel, lengths)
    hidden = out != mel
    bands = hidden.all(2).sum(1)
    frames = hidden.all(1).sum(1)
    assert bands.max() <= 20 and bands.float().mean() > 4
    assert frames.max() <= 100 and frames.float().mean() > 15
    outside = torch.arange(300) >= lengths[:, None]
    assert not hidden.all(1)[outside].any()  # frames are masked where the clip is


def test_stretches_of_a_mel_are_put_in_the_place_of_later_ones() -> None:
    mel = torch.arange(300.0).expand(10, 80, 300)
    lengths = torch.full((10,), 300)
    out = mel_augmenter(Augment(specsub=True), torch.Generator().manual_seed(1))(mel, lengths)
    back = mel - out
    assert back.min() == 0 and 0 < back.max() <= 3 * 30
    assert (back == back[:, :1]).all()  # all bands alike
    assert torch.equal(mel[0, 0], torch.arange(300.0))  # the input is left as it was


def test_the_same_seed_augments_the_same() -> None:
    outs = []
    for _ in range(2):
        batch = wave_batch(4)
        augment_wave(batch, Augment(True, True, 6.0, 15.0), torch.Generator().manual_seed(3))
        outs.append(batch.wave)
    assert torch.equal(*outs)


def tone(hertz: float, samples: int) -> torch.Tensor:
    return torch.sin(2 * torch.pi * hertz * torch.arange(samples) / SECOND)


def test_a_clip_is_played_slower_or_faster_with_silence_around_it() -> None:
    wave = torch.stack([tone(200, 8_000), torch.cat((tone(300, 6_000), torch.full((2_000,), 9.0)))])
    played = torch.tensor([(10_000, 500, 11_000), (6_000, 0, 6_000)])
    out = played_waves(wave, torch.tensor([8_000, 6_000]), played)
    assert out.shape == (2, 11_000)
    assert not out[0, :500].any() and not out[0, 10_500:].any() and not out[1, 6_000:].any()
    assert torch.allclose(out[1, :6_000], wave[1, :6_000], atol=1e-5)  # at its own speed it is itself
    assert torch.allclose(out[0, 500:10_500], tone(200 * 7_999 / 9_999, 10_000), atol=0.01)  # a fifth lower


def test_how_a_clip_is_played_is_drawn_within_its_bounds() -> None:
    how, rng = Augment(speed=0.15, silence=0.8), random.Random(0)
    drawn = [play(16_000, how, rng) for _ in range(300)]
    assert all(16_000 / 1.151 < one.length < 16_000 / 0.849 for one in drawn)
    assert all(one.whole >= one.length + one.before and one.whole <= how.longest(1.0) * SECOND + 1 for one in drawn)
    assert 0.4 < sum(one.whole > one.length for one in drawn) / 300 < 0.6
    assert play(16_000, Augment(), rng) == (16_000, 0, 16_000)


def test_a_batch_has_the_waves_and_lengths_of_its_clips_as_they_are_played(tmp_path: Path) -> None:
    clips = Clips(packs(tmp_path), torch.device("cpu"))
    batch = collate([sequence([7, AUDIO, 5], 1)] * 2, [[1], [2]], [[3], [3]], [[[]], [[]]])
    batch.played = torch.tensor([(2_500, 100, 2_700), (4_000, 0, 4_000)])
    filled = clips.fill(batch)
    assert filled.wave is not None and filled.wave_lengths is not None
    assert filled.wave.shape == (2, 4_000) and filled.wave_lengths.tolist() == [2_700, 4_000]
    assert torch.allclose(filled.wave[0, 101:2_599], torch.tensor(2001 / 32768))
