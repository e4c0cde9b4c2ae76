"""A model on one GPU, without waiting for the processor: kernels are recorded once for each size of what they compute
(CUDA graphs), and a step starts them with a few calls instead of some thousands. So that sizes are few, clips and their
lengths are rounded up, and the rows of a batch lie end to end, with next to no padding."""

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

ATTENTION = "overtone-rows"  # by this name transformers knows attention within rows that lie end to end
POSITIONS, LENGTH = 1024, 512  # the smallest size of all rows together; the smallest bound of a row's length
CLIPS, SAMPLES = 8, 16_384  # the smallest number of clips, and length of the longest
MOST = 20_000_000  # samples of all clips: more keep a GPU busy anyway, and take much memory


def power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def rounded(n: int, least: int) -> int:
    """The least of 1, 1.25, 1.5, 1.75, 2, 2.5 … times `least` that is no smaller: four to each power of two."""
    step = max(power(n) // 8, least // 4)
    return max(least, math.ceil(n / step) * step)


# ── recordings ────────────────────────────────────────────────────────────────────────────────────────────────────────
class Recorder:
    """A function of a module's weights and of tensors, by recorded kernels: `run(aliases, *tensors, **given)` gives a
    tensor, with gradients for the weights that learn and for the tensors that want one. Recordings know weights by
    where they lie in memory and must not outlive a change of that."""

    def __init__(self, module: nn.Module, weights: dict[str, nn.Parameter], run: Callable[..., Tensor]) -> None:
        self.module, self.run, self.weights = module, run, weights
        # What is recorded knows them by other names: a weight's own gradient may still be under way on another stream.
        self.aliases = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        self.slopes: list[Tensor] = []  # of all recordings, one at a time
        self.known_by = where(module)
        self.recordings: dict[Any, Recording] = {}
        self.pool, self.stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self.last: object = None  # what was computed last: its states are those that a backward pass can use

    def fits(self) -> bool:
        """Whether the weights are still where they were, and learn as they did."""
        return self.known_by == where(self.module)

    def __call__(self, *tensors: Tensor, **given: Any) -> Tensor:
        recording = self.recording(*tensors, **given)
        out: Tensor = _Replay.apply(self, recording, len(tensors), *tensors, *self.weights.values())
        return out

    def recording(self, *tensors: Tensor, **given: Any) -> Recording:
        key = self.key(*tensors, **given)
        if key not in self.recordings:
            self.recordings[key] = Recording(self, tensors, given)
        return self.recordings[key]

    @staticmethod
    def key(*tensors: Tensor, **given: Any) -> tuple[Any, ...]:
        return *((tensor.shape, tensor.requires_grad) for tensor in tensors), *given.values()

    def try_out(self, *tensors: Tensor, **given: Any) -> None:
        """Compute once: what is only done the first time must not be recorded. Weights without a part in it go. What is
        drawn here is drawn again: a step that records, as a resumed run's first does, draws what others would."""
        with self.aside(), torch.random.fork_rng([tensor.device for tensor in tensors[:1] if tensor.is_cuda]):
            out = self.run(self.aliases, *tensors, **given)
            heads = [tensor for tensor in tensors if tensor.requires_grad]
            found = torch.autograd.grad(out.sum(), [*heads, *self.aliases.values()], allow_unused=True)[len(heads) :]
        used = [name for name, slope in zip(self.aliases, found, strict=True) if slope is not None]
        self.weights = {name: self.weights[name] for name in used}
        self.aliases = {name: self.aliases[name] for name in used}
        self.slopes = [torch.zeros_like(weight) for weight in self.weights.values()]

    def aside(self) -> contextlib.ExitStack:
        """Where recordings are made: on a stream of their own, and all by this thread."""
        with contextlib.ExitStack() as stack:
            self.stream.wait_stream(torch.cuda.current_stream())
            stack.callback(torch.cuda.current_stream().wait_stream, self.stream)
            stack.enter_context(torch.cuda.stream(self.stream))
            stack.enter_context(torch.enable_grad())
            # a cast that is kept would not be recorded
            stack.enter_context(torch.autocast("cuda", torch.bfloat16, cache_enabled=False))
            stack.enter_context(torch.autograd.set_multithreading_enabled(False))
            return stack.pop_all()


class Recording:
    """The kernels of one size. Their states lie in memory that all recordings of a recorder share."""

    def __init__(self, recorder: Recorder, tensors: Sequence[Tensor], given: dict[str, Any]) -> None:
        self.tensors = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]
        self.there, self.back = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        heads = [tensor for tensor in self.tensors if tensor.requires_grad]
        how = {"pool": recorder.pool, "capture_error_mode": "thread_local"}  # others bring the next batches meanwhile
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
            raise RuntimeError("another batch was read before the gradients of this one were asked for")
        recording.slope.copy_(slope)
        recording.back.replay()
        heads = iter(recording.of_heads)
        inputs = [next(heads).clone() if tensor.requires_grad else None for tensor in recording.tensors]
        slopes = torch._foreach_add(recorder.slopes, 0.0) if recorder.slopes else []  # copies: they are added up
        return None, None, None, *inputs, *slopes


def where(module: nn.Module) -> list[tuple[int, bool]]:
    return [(p.data_ptr(), p.requires_grad) for p in module.parameters()]


# ── the language model ────────────────────────────────────────────────────────────────────────────────────────────────
class Rows:
    """How rows of these lengths lie end to end in one of a few sizes. What is left over is made rows too: kernels leave
    what belongs to none as it was, and gradients would be made of it."""

    def __init__(self, lengths: Sequence[int], width: int) -> None:
        of = np.asarray(lengths, np.int64)
        self.total = int(of.sum())
        self.size = rounded(self.total, POSITIONS)
        self.longest = max(LENGTH, power(int(of.max())))
        spare = self.size - self.total
        tail = [self.longest] * (spare // self.longest) + ([spare % self.longest] if spare % self.longest else [])
        every = np.concatenate([of, np.asarray(tail, np.int64)])
        ends = np.cumsum(every)
        self.count = max(self.size // 64, power(len(every)))  # rows that a recording has room for; the others are empty
        self.edges = np.full(self.count + 1, self.size, np.int32)
        self.edges[: len(every) + 1] = [0, *ends]
        self.positions = np.arange(self.size) - np.repeat(ends - every, every)  # each in its row
        begins = np.arange(len(of)) * width - (ends - every)[: len(of)]
        self.places: NDArray[np.int64] = np.arange(self.total) + np.repeat(begins, of)  # in the padded (B·L)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None, max_length_q: int = 0, **_: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """Causal attention within rows, as transformers' models call it: (1, heads, size, d) → (1, size, heads, d)."""
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
    """Reads a batch's rows with a language model (`lm`, without its head): (B, L, d) and lengths → (B, L, d). `most` is
    how many positions a batch may have."""

    def __init__(self, lm: Any, most: int) -> None:
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, attend)
        self.most = max(most, POSITIONS)
        table = lm.get_input_embeddings().weight
        weights = {name: p for name, p in lm.named_parameters() if p.requires_grad and p is not table}
        self.recorder = Recorder(lm, weights, functools.partial(read, lm))

    def fits(self, most: int) -> bool:
        return self.most >= most and self.recorder.fits()

    def __call__(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        b, n, d = x.shape
        rows = Rows(lengths, n)
        places = brought(rows.places, x.device)
        packed = x.flatten(0, 1).index_select(0, places)  # (total, d)
        packed = F.pad(packed, (0, 0, 0, rows.size - rows.total))[None]  # (1, size, d)
        if not self.recorder.recordings:
            self._begin(packed)
        hidden = self.recorder(packed, *told(rows, x.device), longest=rows.longest)
        return hidden.new_zeros(b * n, d).index_copy(0, places, hidden[0, : rows.total]).view(b, n, d)

    def _begin(self, like: Tensor) -> None:
        """The largest size is recorded first: others find room in its memory, and it would find none in theirs."""
        for size, then in ((POSITIONS, self.recorder.try_out), (self.most, self.recorder.recording)):
            rows = Rows([LENGTH] * (size // LENGTH), LENGTH)
            x = like.new_zeros(1, rows.size, like.shape[-1]).requires_grad_()
            then(x, *told(rows, x.device), longest=rows.longest)


def told(rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
    """What `read` has to know of rows: where each position is in its own, (1, size), and where they end."""
    return brought(rows.positions[None], device), brought(rows.edges, device)


def read(
    lm: Any, aliases: dict[str, Tensor], x: Tensor, positions: Tensor, edges: Tensor, *, longest: int
) -> Tensor:  # fmt: skip
    """(1, size, d) → (1, size, d)."""
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
    """Encoder and adapter, one after the other."""

    def __init__(self, encoder: Any, adapter: Any) -> None:
        super().__init__()
        self.encoder, self.adapter = encoder, adapter

    def forward(self, wave: Tensor, lengths: Tensor) -> Tensor:
        heard: Tensor = self.adapter(*self.encoder(wave, lengths))[0]
        return heard


def hear(ears: Ears, aliases: dict[str, Tensor], wave: Tensor, lengths: Tensor) -> Tensor:
    heard: Tensor = functional_call(ears, aliases, (wave, lengths))
    return heard


class Listener:
    """Hears a batch's clips: (C, samples), (C,) → (C, T, d), (C,). They are rounded up with silence, in number and in
    length, which changes nothing in what is heard."""

    def __init__(self, encoder: Any, adapter: Any) -> None:
        self.ears = Ears(encoder, adapter)
        weights = {name: p for name, p in self.ears.named_parameters() if p.requires_grad}
        self.recorder = Recorder(self.ears, weights, functools.partial(hear, self.ears))

    def fits(self) -> bool:
        return self.recorder.fits()

    def __call__(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        clips, samples = wave.shape
        frames = adapter_length(self.ears.encoder.frames(lengths))
        if clips * samples > MOST:
            return self.ears(wave, lengths), frames
        more = rounded(clips, CLIPS) - clips
        wave = F.pad(wave, (0, rounded(samples, SAMPLES) - samples, 0, more))
        padded = F.pad(lengths, (0, more), value=SHORTEST)
        if not self.recorder.recordings:
            self.recorder.try_out(wave, padded)
        return self.recorder(wave, padded)[:clips], frames


def brought(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on the device; nothing waits for it."""
    found = torch.from_numpy(array)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found
