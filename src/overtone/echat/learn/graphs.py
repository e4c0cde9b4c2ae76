"""Record a model's kernels as CUDA graphs, so that one GPU does not wait for the processor.

Kernels are recorded once per input size, and a step replays them with a few calls instead of thousands. On one H200,
where starting a kernel takes 11.5 µs, the language model's forward and backward pass over 7,366 positions takes 33.6 ms
instead of 109.7 ms, and the whole `short` recipe takes 148 s. A whole step of stage 3 without the optimiser takes
88.2 ms instead of 131.9 ms and 11.6 GB instead of 19.3 GB (`experiments/echat/compile_against_graphs.py`). In the same
comparison `torch.compile(mode="reduce-overhead")` was stopped after 85 s, before its first steps had ended, so its step
time is not known. An earlier trial of plain `torch.compile` saved a quarter of the GPU time and compiled for 12–36 s.

To limit the number of sizes, clips and their lengths are rounded up, and the rows of a batch are concatenated with
little padding.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from overtone.echat.net.config import SHORTEST, adapter_length

ATTENTION = "overtone-rows"  # the name in transformers of attention within concatenated rows
POSITIONS, LENGTH = 1024, 512  # minimum total size, and minimum bound of a row's length
CLIPS, SAMPLES = 8, 16_384  # minimum number of clips, and minimum length of the longest
MOST = 20_000_000  # maximum samples of all clips; larger batches keep a GPU busy anyway and need much memory


def power(n: int) -> int:
    """Round up to a power of two."""
    return 1 << (n - 1).bit_length()


def rounded(n: int, least: int) -> int:
    """Round up to 1, 1.25, 1.5, 1.75, 2, 2.5 … times `least`: four sizes per power of two."""
    step = max(power(n) // 8, least // 4)
    return max(least, math.ceil(n / step) * step)


# ── recordings ────────────────────────────────────────────────────────────────────────────────────────────────────────
class Recorder:
    """Calls the function `run` with a module's weights by replaying kernels, which are recorded once per input size.

    `run(aliases, *tensors, **given)` returns a tensor, with gradients for the trained weights and for tensors that
    require one. Recordings refer to weights by memory address, so they become invalid when weights move.
    """

    def __init__(self, module: nn.Module, weights: dict[str, nn.Parameter], run: Callable[..., Tensor]) -> None:
        self.module, self.run, self.weights = module, run, weights
        # Recordings use aliases, because a weight's own gradient may still be in flight on another stream.
        self.aliases = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        self.slopes: list[Tensor] = []  # gradients, shared by all recordings
        self.addresses = addresses_of(module)
        self.recordings: dict[Any, Recording] = {}
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self.last: object = None  # the last forward pass, whose states a backward pass can use

    def fits(self) -> bool:
        """Return whether recordings are valid: no weight has moved, and the same weights are trained."""
        return self.addresses == addresses_of(self.module)

    def __call__(self, *tensors: Tensor, **given: Any) -> Tensor:
        recording = self.recording(*tensors, **given)
        out: Tensor = _Replay.apply(self, recording, len(tensors), *tensors, *self.weights.values())
        return out

    def recording(self, *tensors: Tensor, **given: Any) -> Recording:
        """Return the recording for these sizes, making it if necessary."""
        key = self.key(*tensors, **given)
        if key not in self.recordings:
            self.recordings[key] = Recording(self, tensors, given)
        return self.recordings[key]

    @staticmethod
    def key(*tensors: Tensor, **given: Any) -> tuple[Any, ...]:
        """Return the key of a recording: each tensor's shape and need of a gradient, and the options."""
        return *((tensor.shape, tensor.requires_grad) for tensor in tensors), *given.values()

    def try_out(self, *tensors: Tensor, **given: Any) -> None:
        """Run once without recording, so that first-time work is not recorded. Drop weights that are not used.

        Random numbers are restored afterwards, so that a step draws the same numbers whether it records or not.
        """
        with self.aside(), torch.random.fork_rng([tensor.device for tensor in tensors[:1] if tensor.is_cuda]):
            out = self.run(self.aliases, *tensors, **given)
            heads = [tensor for tensor in tensors if tensor.requires_grad]
            slopes = torch.autograd.grad(out.sum(), [*heads, *self.aliases.values()], allow_unused=True)[len(heads) :]
        used = [name for name, slope in zip(self.aliases, slopes, strict=True) if slope is not None]
        self.weights = {name: self.weights[name] for name in used}
        self.aliases = {name: self.aliases[name] for name in used}
        self.slopes = [torch.zeros_like(weight) for weight in self.weights.values()]

    def aside(self) -> contextlib.ExitStack:
        """Return an entered context for recording: a separate CUDA stream, and autograd in this thread only."""
        with contextlib.ExitStack() as stack:
            self.stream.wait_stream(torch.cuda.current_stream())
            stack.callback(torch.cuda.current_stream().wait_stream, self.stream)
            stack.enter_context(torch.cuda.stream(self.stream))
            stack.enter_context(torch.enable_grad())
            # a cached cast would not be recorded
            stack.enter_context(torch.autocast("cuda", torch.bfloat16, cache_enabled=False))
            stack.enter_context(torch.autograd.set_multithreading_enabled(False))
            return stack.pop_all()


class Recording:
    """The kernels of one size. All recordings of a recorder share memory for their states."""

    def __init__(self, recorder: Recorder, tensors: Sequence[Tensor], given: dict[str, Any]) -> None:
        self.tensors = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]
        self.there, self.back = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        heads = [tensor for tensor in self.tensors if tensor.requires_grad]
        how = {"pool": recorder.pool, "capture_error_mode": "thread_local"}  # other threads load batches meanwhile
        with recorder.aside():
            torch.cuda.synchronize()
            self.there.capture_begin(**how)
            out = recorder.run(recorder.aliases, *self.tensors, **given)
            self.there.capture_end()
            self.slope = torch.zeros_like(out)
            self.back.capture_begin(**how)
            slopes = torch.autograd.grad(out, [*heads, *recorder.aliases.values()], self.slope)
            self.of_heads = slopes[: len(heads)]
            if recorder.slopes:
                torch._foreach_copy_(recorder.slopes, slopes[len(heads) :])
            self.back.capture_end()
            self.out = out.detach()


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recorder: Recorder, recording: Recording, count: int, *given: Tensor) -> Tensor:
        for kept, tensor in zip(recording.tensors, given[:count], strict=True):
            kept.detach().copy_(tensor)
        recording.there.replay()
        ctx.recorder, ctx.recording = recorder, recording
        recorder.last = ctx.token = object()
        return recording.out.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        recorder, recording = ctx.recorder, ctx.recording
        if recorder.last is not ctx.token:
            raise RuntimeError("another forward pass ran before the backward pass of this one")
        recording.slope.copy_(slope)
        recording.back.replay()
        heads = iter(recording.of_heads)
        inputs = [next(heads).clone() if tensor.requires_grad else None for tensor in recording.tensors]
        slopes = torch._foreach_add(recorder.slopes, 0.0) if recorder.slopes else []  # copies, to be accumulated
        return None, None, None, *inputs, *slopes


def addresses_of(module: nn.Module) -> list[tuple[int, bool]]:
    """Return the address of each weight, and whether it is trained."""
    return [(p.data_ptr(), p.requires_grad) for p in module.parameters()]


# ── the language model ────────────────────────────────────────────────────────────────────────────────────────────────
class Rows:
    """The layout of concatenated rows, with the total length rounded up to one of a few sizes.

    The added positions form rows too: kernels do not write positions outside rows, and stale values there would get
    gradients.
    """

    def __init__(self, lengths: Sequence[int], width: int) -> None:
        of = np.asarray(lengths, np.int64)
        self.total = int(of.sum())
        self.size = rounded(self.total, POSITIONS)
        self.longest = max(LENGTH, power(int(of.max())))
        spare = self.size - self.total
        tail = [self.longest] * (spare // self.longest) + ([spare % self.longest] if spare % self.longest else [])
        every = np.concatenate([of, np.asarray(tail, np.int64)])
        ends = np.cumsum(every)
        self.count = max(self.size // 64, power(len(every)))  # maximum rows of a recording; unused ones are empty
        self.edges = np.full(self.count + 1, self.size, np.int32)
        self.edges[: len(every) + 1] = [0, *ends]
        self.positions = np.arange(self.size) - np.repeat(ends - every, every)  # position within the row
        begins = np.arange(len(of)) * width - (ends - every)[: len(of)]
        self.places: NDArray[np.int64] = np.arange(self.total) + np.repeat(begins, of)  # in the padded (B·L)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None, max_length_q: int = 0, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Apply causal attention within rows, for transformers' models: (1, heads, size, d) → (1, size, heads, d)."""
    assert cu_seq_lens_q is not None
    if query.is_cuda:
        q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))  # (size, heads, d)
        edges, longest = cu_seq_lens_q, max_length_q
        flash = torch.ops.aten._flash_attention_forward
        out = flash(q, k, v, edges, edges, longest, longest, 0.0, True, False, scale=scaling)[0]
        return out[None], None
    at = torch.arange(query.shape[2], device=query.device)
    row = torch.searchsorted(cu_seq_lens_q[1:], at, right=True)
    mask = (row[:, None] == row) & (at[:, None] >= at)
    heard = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling, enable_gqa=True)
    return heard.transpose(1, 2), None


class Reader:
    """Runs a language model without its head on a batch's rows: (B, L, d) and lengths → (B, L, d).

    `most` is the maximum number of positions of a batch.
    """

    def __init__(self, lm: Any, most: int) -> None:
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, attend)
        self.most = max(most, POSITIONS)
        table = lm.get_input_embeddings().weight
        weights = {name: p for name, p in lm.named_parameters() if p.requires_grad and p is not table}
        self.recorder = Recorder(lm, weights, functools.partial(read, lm))

    def fits(self, most: int) -> bool:
        """Return whether the recordings are valid and large enough."""
        return self.most >= most and self.recorder.fits()

    def __call__(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        b, n, d = x.shape
        rows = Rows(lengths, n)
        places = to_device(rows.places, x.device)
        packed = x.flatten(0, 1).index_select(0, places)  # (total, d)
        packed = F.pad(packed, (0, 0, 0, rows.size - rows.total))[None]  # (1, size, d)
        if not self.recorder.recordings:
            self._begin(packed)
        hidden = self.recorder(packed, *row_tensors(rows, x.device), longest=rows.longest)
        return hidden.new_zeros(b * n, d).index_copy(0, places, hidden[0, : rows.total]).view(b, n, d)

    def _begin(self, like: Tensor) -> None:
        """Record the largest size first, because smaller ones can then reuse its memory."""
        for size, then in ((POSITIONS, self.recorder.try_out), (self.most, self.recorder.recording)):
            rows = Rows([LENGTH] * (size // LENGTH), LENGTH)
            x = like.new_zeros(1, rows.size, like.shape[-1]).requires_grad_()
            then(x, *row_tensors(rows, x.device), longest=rows.longest)


def row_tensors(rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return each position's index in its row, (1, size), and the rows' edges, on the device."""
    return to_device(rows.positions[None], device), to_device(rows.edges, device)


def read(
    lm: Any, aliases: dict[str, Tensor], x: Tensor, positions: Tensor, edges: Tensor, *, longest: int
) -> Tensor:  # fmt: skip
    """Run the language model on concatenated rows: (1, size, d) → (1, size, d)."""
    given = {"inputs_embeds": x, "position_ids": positions, "use_cache": False}
    given |= {"cu_seq_lens_q": edges, "max_length_q": longest}  # for `attend`
    before, lm.config._attn_implementation = lm.config._attn_implementation, ATTENTION
    try:
        hidden: Tensor = functional_call(lm, aliases, kwargs=given)[0]
    finally:
        lm.config._attn_implementation = before
    return hidden


# ── encoder and adapter ───────────────────────────────────────────────────────────────────────────────────────────────
class Ears(nn.Module):
    """Encoder and adapter as one module: waveforms in, adapter outputs out."""

    def __init__(self, encoder: Any, adapter: Any) -> None:
        super().__init__()
        self.encoder, self.adapter = encoder, adapter

    def forward(self, wave: Tensor, lengths: Tensor) -> Tensor:
        """Return the adapter's outputs."""
        heard: Tensor = self.adapter(*self.encoder(wave, lengths))[0]
        return heard


def hear(ears: Ears, aliases: dict[str, Tensor], wave: Tensor, lengths: Tensor) -> Tensor:
    """Run encoder and adapter with aliased weights."""
    heard: Tensor = functional_call(ears, aliases, (wave, lengths))
    return heard


class Listener:
    """Encodes a batch's clips: (C, samples), (C,) → (C, T, d), (C,).

    The number of clips and their length are padded with silence, which does not change the outputs of a clip.
    """

    def __init__(self, encoder: Any, adapter: Any) -> None:
        self.ears = Ears(encoder, adapter)
        weights = {name: p for name, p in self.ears.named_parameters() if p.requires_grad}
        self.recorder = Recorder(self.ears, weights, functools.partial(hear, self.ears))

    def fits(self) -> bool:
        """Return whether the recordings are valid."""
        return self.recorder.fits()

    def __call__(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        clips, samples = wave.shape
        frames = adapter_length(self.ears.encoder.frames(lengths)) + self.ears.adapter.config.voice
        if clips * samples > MOST:
            return self.ears(wave, lengths), frames
        more = rounded(clips, CLIPS) - clips
        wave = F.pad(wave, (0, rounded(samples, SAMPLES) - samples, 0, more))
        padded = F.pad(lengths, (0, more), value=SHORTEST)
        if not self.recorder.recordings:
            self.recorder.try_out(wave, padded)
        return self.recorder(wave, padded)[:clips], frames


def to_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Copy an array to the device without blocking."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
