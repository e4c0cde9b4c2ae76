"""The language model on one GPU, without waiting for the processor: the rows of a batch lie end to end, with next to no
padding and in few sizes, and the kernels of a forward and a backward pass of each size are recorded once (CUDA graphs).
A step then starts them with two calls instead of some thousands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

ATTENTION = "overtone-rows"  # by this name transformers knows attention within rows that lie end to end
LEAST, SHORTEST = 1024, 512  # positions of the smallest size; the smallest bound of a row's length


class Rows:
    """How rows of these lengths lie end to end in one of a few sizes. What is left over is made rows too: kernels leave
    what belongs to none as it was, and gradients would be made of it."""

    def __init__(self, lengths: Sequence[int], width: int) -> None:
        of = np.asarray(lengths, np.int64)
        self.total = int(of.sum())
        self.size = next_size(self.total)
        self.longest = max(SHORTEST, power(int(of.max())))
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


def power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def next_size(n: int) -> int:
    """The least of 1024, 1280, 1536, 1792, 2048, 2560 … that is no smaller: four to each power of two."""
    step = max(power(n) // 8, LEAST // 4)
    return max(LEAST, math.ceil(n / step) * step)


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
    sizes = cu_seq_lens_q.diff().tolist()
    rows = [
        F.scaled_dot_product_attention(*row, is_causal=True, scale=scaling, enable_gqa=True)
        for row in zip(*(x[0].split(sizes, 1) for x in (query, key, value)), strict=True)
        if row[0].shape[1]
    ]
    return torch.cat(rows, 1).transpose(0, 1)[None], None


class Reader:
    """Reads a batch's rows with a language model (`lm`, without its head): (B, L, d) and lengths → (B, L, d). `record`:
    by recorded kernels, which know weights by where they lie in memory and must not outlive a change of that; `most` is
    how many positions a batch may have."""

    def __init__(self, lm: Any, most: int, *, record: bool) -> None:
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, attend)
        self.lm, self.most, self.record = lm, max(most, LEAST), record
        self.recordings: dict[tuple[int, int, int], Recording] = {}
        self.pool = torch.cuda.graph_pool_handle() if record else None
        self.stream: Any = torch.cuda.Stream() if record else None
        table = lm.get_input_embeddings().weight
        learning = {name: p for name, p in lm.named_parameters() if p.requires_grad and p is not table}
        self.weights = list(learning.values())
        # What is recorded knows them by other names: a weight's own gradient may still be under way on another stream.
        self.aliases = {name: p.detach().requires_grad_() for name, p in learning.items()} if record else {}
        self.slopes = [torch.zeros_like(p) for p in self.weights] if record else []  # of all recordings, one at a time
        self.known_by = where(lm)
        self.last: object = None  # what was read last: its states are those that a backward pass can use

    def fits(self, most: int) -> bool:
        """Whether the weights are still where they were, and learn as they did; and batches are no larger."""
        return self.most >= most and self.known_by == where(self.lm)

    def __call__(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        b, n, d = x.shape
        rows = Rows(lengths, n)
        places, positions, edges = (brought(a, x.device) for a in (rows.places, rows.positions[None], rows.edges))
        packed = x.flatten(0, 1).index_select(0, places)  # (total, d)
        packed = F.pad(packed, (0, 0, 0, rows.size - rows.total))[None]  # (1, size, d)
        hidden = (self._replay if self.record else self.read)(packed, positions, edges, rows)
        return hidden.new_zeros(b * n, d).index_copy(0, places, hidden[0, : rows.total]).view(b, n, d)

    def read(self, x: Tensor, positions: Tensor, edges: Tensor, rows: Rows) -> Tensor:
        """(1, size, d) → (1, size, d)."""
        given = {"inputs_embeds": x, "position_ids": positions, "use_cache": False}
        given |= {"cu_seq_lens_q": edges, "max_length_q": rows.longest}  # for `attend`
        before, self.lm.config._attn_implementation = self.lm.config._attn_implementation, ATTENTION
        try:
            hidden: Tensor = functional_call(self.lm, self.aliases, kwargs=given)[0]
        finally:
            self.lm.config._attn_implementation = before
        return hidden

    def _replay(self, x: Tensor, positions: Tensor, edges: Tensor, rows: Rows) -> Tensor:
        if not self.recordings:  # the largest first: others find room in its memory, and it would find none in theirs
            self._recording(Rows([512] * (self.most // 512), 512), x)
        hidden: Tensor = _Replay.apply(self, self._recording(rows, x), x, positions, edges, *self.weights)
        return hidden

    def _recording(self, rows: Rows, like: Tensor) -> Recording:
        key = rows.size, rows.longest, rows.count
        if key not in self.recordings:
            self.recordings[key] = Recording(self, rows, like)
        return self.recordings[key]


class Recording:
    """The kernels of one size. Their states lie in memory that all recordings of a reader share."""

    def __init__(self, reader: Reader, rows: Rows, like: Tensor) -> None:
        self.there, self.back = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        self.x, self.positions, self.edges = blank(rows, like)
        wanted = [self.x, *reader.aliases.values()]
        how = {"pool": reader.pool, "capture_error_mode": "thread_local"}  # others bring the next batches meanwhile
        reader.stream.wait_stream(torch.cuda.current_stream())
        with (
            torch.cuda.stream(reader.stream),
            torch.enable_grad(),
            torch.autocast("cuda", torch.bfloat16, cache_enabled=False),  # a cast that is kept would not be recorded
            torch.autograd.set_multithreading_enabled(False),
        ):
            if not reader.recordings:  # what is only done once must not be recorded
                few = Rows([LEAST], LEAST)
                x, positions, edges = blank(few, like)
                torch.autograd.grad(reader.read(x, positions, edges, few).sum(), [x, *wanted[1:]])
            torch.cuda.synchronize()
            self.there.capture_begin(**how)
            out = reader.read(self.x, self.positions, self.edges, rows)
            self.there.capture_end()
            self.slope = torch.zeros_like(out)
            self.back.capture_begin(**how)
            self.slope_of_x, *slopes = torch.autograd.grad(out, wanted, self.slope)
            if slopes:
                torch._foreach_copy_(reader.slopes, slopes)
            self.back.capture_end()
            self.out = out.detach()
        torch.cuda.current_stream().wait_stream(reader.stream)


def blank(rows: Rows, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a recording reads, in its own memory: x (1, size, d) with a gradient, positions and edges."""
    x = like.new_zeros(1, rows.size, like.shape[-1]).requires_grad_()
    return x, brought(rows.positions[None], like.device), brought(rows.edges, like.device)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, reader: Reader, recording: Recording, x: Tensor, positions: Tensor, edges: Tensor, *weights: Tensor
    ) -> Tensor:
        for kept, given in ((recording.x, x), (recording.positions, positions), (recording.edges, edges)):
            kept.detach().copy_(given)
        recording.there.replay()
        ctx.reader, ctx.recording = reader, recording
        reader.last = ctx.token = object()
        return recording.out.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        if ctx.reader.last is not ctx.token:
            raise RuntimeError("another batch was read before the gradients of this one were asked for")
        ctx.recording.slope.copy_(slope)
        ctx.recording.back.replay()
        slopes = torch._foreach_add(ctx.reader.slopes, 0.0) if ctx.reader.slopes else []  # copies: they are added up
        return None, None, ctx.recording.slope_of_x.clone(), None, None, *slopes


def where(lm: nn.Module) -> list[tuple[int, bool]]:
    return [(p.data_ptr(), p.requires_grad) for p in lm.parameters()]


def brought(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on the device; nothing waits for it."""
    found = torch.from_numpy(array)
    return found.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else found
