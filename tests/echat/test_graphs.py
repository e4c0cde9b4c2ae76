"""Rows end to end are read as padded ones are, and kernels that were recorded compute what the others do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from overtone.echat.learn import gpu_speed, graphs
from overtone.echat.learn.distributed import World
from overtone.echat.learn.graphs import Listener, Reader, Recorder, Rows, addresses_of, rounded
from overtone.echat.net.model import EChat
from tests.echat import small
from tests.echat.test_gpu_speed import ROWS, learnt, model
from tests.echat.toys import ALONE


@given(st.lists(st.integers(1, 700), min_size=1, max_size=80), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_position_lies_in_one_row_and_at_its_place_in_it(lengths: list[int], more: int) -> None:
    width = max(lengths) + more
    rows = Rows(lengths, width)
    assert rows.total == sum(lengths) <= rows.size == rounded(rows.total, 1024)
    assert rows.edges[0] == 0 and rows.edges[-1] == rows.size and len(rows.edges) == rows.count + 1
    sizes = np.diff(rows.edges)
    assert sizes[: len(lengths)].tolist() == lengths and (sizes >= 0).all() and sizes.max() <= rows.longest
    padded = [(row, at) for row, n in enumerate(lengths) for at in range(n)]
    assert [divmod(place, width) for place in rows.places.tolist()] == padded
    assert rows.positions[: rows.total].tolist() == [at for _, at in padded]
    assert (rows.positions >= 0).all() and rows.positions.max() < rows.longest


def test_sizes_are_few_and_waste_little() -> None:
    sizes = [rounded(n, 1024) for n in range(1, 40_000)]
    assert sizes == sorted(sizes) and len(set(sizes)) < 30
    assert all(n <= size < max(1025, 1.25 * n + 1) for n, size in zip(range(1, 40_000), sizes, strict=True))


class Straight(Recorder):
    """Records nothing: computes at once, with the weights themselves, and keeps what would have been recorded."""

    def __init__(self, module: nn.Module, weights: dict[str, nn.Parameter], run: Callable[..., torch.Tensor]) -> None:
        self.module, self.weights, self.run = module, weights, run
        self.addresses, self.recordings, self.tried, self.times = addresses_of(module), {}, 0, 0

    def __call__(self, *tensors: torch.Tensor, **given: Any) -> torch.Tensor:
        self.recording(*tensors, **given)
        self.times += 1
        return self.run({}, *tensors, **given)

    def recording(self, *tensors: torch.Tensor, **given: Any) -> Any:
        self.recordings[self.key(*tensors, **given)] = None

    def try_out(self, *tensors: torch.Tensor, **given: Any) -> None:
        assert not self.recordings
        self.tried += 1


@pytest.fixture
def straight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "Recorder", Straight)


def assert_same(one: EChat, other: EChat) -> None:
    for rows in ROWS:
        (a, first), (b, second) = learnt(one, rows), learnt(other, rows)
        assert abs(a - b) < 1e-5
        assert all(torch.allclose(x, y, atol=1e-5) for x, y in zip(first, second, strict=True))


@pytest.mark.parametrize("kind", ["small", "moonshine"])
def test_rows_end_to_end_and_clips_rounded_up_teach_the_same(kind: str, straight: None) -> None:
    plain, made = model(kind), model(kind)
    names = list(made.state_dict())
    gpu_speed.record(made, True, 1024)
    assert_same(plain, made)
    assert list(made.state_dict()) == names
    reader = made.reader.recorder
    assert (reader.tried, reader.times, len(reader.recordings)) == (1, 3, 1)  # all are of the smallest size
    assert (made.listener is None) == (kind == "small")  # its augmentation is drawn in between
    if made.listener:
        ears = made.listener.recorder
        assert (ears.tried, ears.times) == (1, 3) and list(ears.recordings) == [(((8, 16_384), False), ((8,), False))]
    assert made.lm.config._attn_implementation == "sdpa"


def test_what_is_hidden_within_rows_and_what_is_only_looked_at_is_read_padded(straight: None) -> None:
    made = model("moonshine")
    gpu_speed.record(made, True, 1024)
    learnt(made, ROWS[0], holes=True)
    assert (made.reader.recorder.times, made.listener.recorder.times) == (0, 1)
    made.eval()
    learnt(made, ROWS[0])
    assert (made.reader.recorder.times, made.listener.recorder.times) == (0, 1)


def test_the_largest_size_is_recorded_first(straight: None) -> None:
    made = model()
    made.reader = Reader(made.lm.base_model, 4096)
    learnt(made, ROWS[0])
    assert [key[0][0][1] for key in made.reader.recorder.recordings] == [4096, 1024]


def test_recordings_are_kept_while_weights_stay_where_they_are(straight: None) -> None:
    made = model("moonshine")
    gpu_speed.record(made, False, 2000)
    assert made.reader is made.listener is None and made.block == made.encoder.block == 1
    assert gpu_speed.sizes(made) == ""
    gpu_speed.record(made, True, 2000)
    first, ears = made.reader, made.listener
    gpu_speed.record(made, True, 1500)
    assert made.reader is first and (made.block, made.encoder.block) == (8, 32)
    gpu_speed.record(made, True, 4000)
    assert made.reader is not first  # its memory would not do
    first = made.reader
    made.lm.requires_grad_(False)
    gpu_speed.record(made, True, 2000)
    second = made.reader
    assert second is not first
    exact = gpu_speed.freeze(list(made.lm.parameters()), narrow=True)
    gpu_speed.record(made, True, 2000)
    assert made.reader not in (first, second) and made.listener is ears
    with torch.autocast("cpu", torch.bfloat16):
        learnt(made, ROWS[0])
    assert gpu_speed.sizes(made) == "; 3 sizes recorded"
    made.encoder.requires_grad_(False)
    gpu_speed.record(made, True, 2000)
    assert made.listener not in (None, ears)
    made.adapter.requires_grad_(False)
    gpu_speed.record(made, True, 2000)
    assert made.listener is None  # nothing learns there
    gpu_speed.thaw(list(made.lm.parameters()), exact)
    gpu_speed.record(made, False, 2000)
    assert made.reader is None


class Tape(TorchDispatchMode):
    """A CUDA graph on a CPU: operations between begin and end are kept, with the very tensors they read and wrote, and
    computed again into these."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Callable[[], None]] = []

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        self.__enter__()

    def capture_end(self) -> None:
        self.__exit__(None, None, None)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asks = ("local_scalar", "nonzero", "unique", "masked_select", "lift")  # the device, or bring it something
        assert not any(word in str(func) for word in asks), f"{func} cannot be recorded"
        out = func(*args, **(kwargs or {}))
        written = any(a.alias_info and a.alias_info.is_write for a in func._schema.arguments)
        if written or not any(r.alias_info for r in func._schema.returns):  # others are views

            def again() -> None:
                for old, new in zip(tree_leaves(out), tree_leaves(func(*args, **(kwargs or {}))), strict=True):
                    if isinstance(old, torch.Tensor) and old is not new:
                        old.copy_(new)

            self.kept.append(again)
        return out

    def replay(self) -> None:
        with torch.no_grad():
            for again in self.kept:
                again()


class NoStream(contextlib.nullcontext[None]):
    def wait_stream(self, other: object) -> None: ...


@pytest.fixture
def taped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Tape)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    monkeypatch.setattr(torch.cuda, "Stream", NoStream)
    monkeypatch.setattr(torch.cuda, "current_stream", NoStream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "autocast", lambda *how, **more: contextlib.nullcontext())


@pytest.mark.parametrize("frozen", [(), ("lm",), ("lm", "encoder")])
def test_a_recording_computes_anew_from_what_it_is_given(frozen: tuple[str, ...], taped: None) -> None:
    """Batches of one size after another, in and out of the order in which sizes came; gradients are added up, and
    weights that changed in place count."""
    plain, made = model("moonshine"), model("moonshine")
    for one in (plain, made):
        one.ctc = 0.3
        for name in frozen:
            getattr(one, name).requires_grad_(False)
    made.reader = Reader(made.lm.base_model, 2048)
    made.listener = Listener(made.encoder, made.adapter)
    for rows in (ROWS[0], ROWS[1], ROWS[0] * 6, ROWS[2] * 12, ROWS[1], ROWS[0] * 6):
        losses = []
        for one in (plain, made):
            batch = small.batch(one.config, rows)
            batch.holes = False  # type: ignore[attr-defined]
            loss = one(batch).loss
            loss.backward()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], abs=1e-4)
        slopes = [[p.grad for p in one.parameters()] for one in (plain, made)]
        for a, b in zip(*slopes, strict=True):
            assert (a is None) == (b is None) and (a is None or torch.allclose(a, b, atol=1e-4))
        with torch.no_grad():
            for one in (plain, made):
                for p in one.parameters():
                    p -= 0.05 * p.grad if p.grad is not None else 0.0
    assert [key[0][0][1] for key in made.reader.recorder.recordings] == [2048, 1024, 1024]  # few rows, and many
    assert len(made.listener.recorder.recordings) == 3
    assert not any("helpers" in name for name in made.listener.recorder.weights)  # no part of what is recorded
    with pytest.raises(RuntimeError, match="another forward pass ran before"):
        loss = made(batch).loss
        made(batch)
        loss.backward()


def test_kernels_are_recorded_where_one_gpu_trains() -> None:
    gpu, many = World(0, 1, torch.device("cuda", 0)), World(0, 8, torch.device("cuda", 0))
    assert [gpu_speed.alone_on_gpu(world) for world in (gpu, ALONE, many)] == [True, False, False]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("frozen", [False, True])
def test_recorded_kernels_teach_what_others_do(frozen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of several batches are added up, in and out of the order in which their sizes were recorded."""
    found = {}
    for name, recorder in {"padded": None, "rows": Straight, "recorded": Recorder}.items():
        made = model("moonshine").cuda()
        made.lm.requires_grad_(not frozen)
        exact = gpu_speed.freeze(list(made.lm.parameters()), narrow=True) if frozen else []
        if recorder:
            monkeypatch.setattr(graphs, "Recorder", recorder)
            made.reader = Reader(made.lm.base_model, 4096)
            made.listener = Listener(made.encoder, made.adapter)
        made.ctc = 0.3
        losses = []
        for rows in (ROWS[0] * 30, ROWS[1] * 40, ROWS[2] * 10, ROWS[0] * 30):
            batch = small.batch(made.config, rows)
            for field in fields(batch):
                setattr(batch, field.name, getattr(batch, field.name).cuda())
            batch.holes = False  # type: ignore[attr-defined]
            with torch.autocast("cuda", torch.bfloat16):
                loss = made(batch).loss
            loss.backward()
            losses.append(loss.item())
        found[name] = losses, torch.cat([p.grad.flatten() for p in made.parameters() if p.grad is not None])
        if recorder:
            assert len(made.reader.recorder.recordings) == 4  # and the largest, which came first
            assert len(made.listener.recorder.recordings) == 3
        assert len(exact) == (len(list(made.lm.parameters())) if frozen else 0)
    losses, slopes = found["padded"]
    for name in ("rows", "recorded"):
        assert found[name][0] == pytest.approx(losses, abs=0.02), name
        assert torch.nn.functional.cosine_similarity(found[name][1], slopes, dim=0) > 0.995, name
        assert float(found[name][1].norm() / slopes.norm()) == pytest.approx(1, abs=0.02), name
    assert torch.allclose(found["rows"][1], found["recorded"][1], rtol=0.1, atol=2e-3 * float(slopes.abs().max()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_is_dropped_is_drawn_anew_each_time_and_by_the_seed() -> None:
    """The same clips again: another draw, as far from what is heard without any as draws that are not recorded."""
    found = {}
    for name in ("plain", "recorded"):
        made = model("moonshine", dropout=0.1).cuda()
        batch = small.batch(made.config, ROWS[2] * 4)
        wave, lengths = batch.wave.cuda(), batch.wave_lengths.cuda()
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            whole, frames = made.eval().encode_audio(wave, lengths)
        inside = torch.arange(int(frames.max()), device="cuda") < frames[:, None]
        whole = whole[:, : inside.shape[1]][inside].float()
        made.train()
        if name == "recorded":
            made.listener = Listener(made.encoder, made.adapter)
        heard = []
        for seed in (0, 1, 2, 3, 0):
            torch.manual_seed(seed)
            for _ in range(2):  # of one step
                with torch.autocast("cuda", torch.bfloat16):
                    out = made.encode_audio(wave, lengths)[0]
                out.sum().backward()
                heard.append(out.detach()[:, : inside.shape[1]][inside].float())
        draws = heard[:8]
        assert all(not torch.equal(a, b) for i, a in enumerate(draws) for b in draws[:i]), name
        assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(draws[:2], heard[8:], strict=True)), name
        away = [float((one - whole).norm() / whole.norm()) for one in draws]
        among = [float((a - b).norm() / whole.norm()) for i, a in enumerate(draws) for b in draws[:i]]
        found[name] = sum(away) / len(away), sum(among) / len(among)
    assert found["recorded"] == pytest.approx(found["plain"], rel=0.1)
