"""OSUM-EChat: an encoder hears, an adapter brings what was heard into a language model, and that answers in text and in
speech tokens, out of one joint vocabulary.

    wave ─ encoder ─ adapter ─┐
                              ├─ language model ─┬─ lm head      text ids        0 … V-1
    text and speech ids ──────┘                  └─ speech head  codes and end   V … V+K

Joint ids: below V text; V+k is speech code k; V+K begins and ends speech; V+K+1 and V+K+2 stand around a clip that is
heard and are never predicted.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from overtone.echat.net.config import AdapterConfig, ModelConfig, adapter_length
from overtone.echat.net.helpers import WORDS, Helpers
from overtone.errors import DataError
from overtone.paths import shown

IGNORE = -100  # a target without loss
CHUNK = 4096  # positions whose logits are held at once: of 50,000 words, 0.8 GB in float32


class Batch(Protocol):
    """What `forward` reads. C clips are heard in B sequences of at most L positions."""

    ids: Tensor  # (B, L) joint ids; -1 where an adapter output stands
    targets: Tensor  # (B, L) the id that stands here, -100 where it need not be predicted
    mask: Tensor  # (B, L) bool: may be attended to
    wave: Tensor  # (C, samples) float32, 16 kHz
    wave_lengths: Tensor  # (C,) samples
    clip_at: Tensor  # (C, 2) row and position of a clip's first output
    ctc_ids: Tensor  # (C, U) text ids of what is said
    ctc_lengths: Tensor  # (C,) 0 = not known
    labels: Tensor  # (C, dimensions) numbers of what is heard besides, -1 = not known
    # and, where a batch has them, so that nothing waits for the device to count: target_at (N,), the flat places of its
    # targets; holes, whether anything but padding at the end is masked; rows, how long each is; slots (C,), how many
    # outputs each clip has. Of these and of ctc_ids and ctc_lengths all but target_at may be where the processor is.


@dataclass
class Out:
    """The losses of a batch: means over their targets. `loss` is what to go down on; the rest is detached, for logs."""

    loss: Tensor
    text_loss: Tensor
    speech_loss: Tensor
    ctc_loss: Tensor
    cue_loss: Tensor
    n_text: Tensor
    n_speech: Tensor


class Block(nn.Module):
    """A transformer layer, normalised before each half."""

    def __init__(self, dim: int, heads: int, ffn: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, ffn)
        self.down = nn.Linear(ffn, dim)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (C, T, d); mask (C, 1, 1, T) bool: may be attended to."""
        drop = self.dropout if self.training else 0.0
        c, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(c, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (C, heads, T, d/heads)
        heard = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + F.dropout(self.out(heard.transpose(1, 2).reshape(c, t, d)), drop)
        return x + F.dropout(self.down(F.dropout(F.gelu(self.up(self.norm2(x))), drop)), drop)


def sinusoids(length: int, dim: int, device: Any) -> Tensor:
    """Absolute positions, (length, dim): sines and cosines of slower and slower waves."""
    rates = torch.exp(-math.log(10_000) * torch.arange(0, dim, 2, device=device) / dim)
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).view(length, -1)[:, :dim]


def convolve(conv: Any, x: Tensor) -> Tensor:
    """What a Conv1d does, (C, T, in) → (C, T', out), as one matrix product: cuDNN plans anew for every shape, for a
    millisecond or two, and no two batches have the same."""
    padding = conv.padding[0]
    x = F.pad(x, (0, 0, padding, padding)) if padding else x
    windows = x.unfold(1, conv.kernel_size[0], conv.stride[0]).transpose(2, 3)  # (C, T', k, in), as it lies in memory
    return F.linear(windows.flatten(2), conv.weight.to(x.dtype).transpose(1, 2).flatten(1), conv.bias)


def within(lengths: Tensor, size: int) -> Tensor:
    """(C,) lengths → (C, size) bool: this position is inside."""
    return torch.arange(size, device=lengths.device)[None, :] < lengths[:, None]


def places(mask: Tensor, new: int) -> Tensor:
    """(B, all positions) bool → (B, new): where the last ones are in their rows, what pads these on the left not
    counted. Models that turn what they read by its place do not mind where a row begins; others would."""
    return (mask.cumsum(1) - 1).clamp(min=0)[:, -new:]


class Adapter(nn.Module):
    """Encoder states → a quarter as many vectors of the language model's width. Its convolutions look back only. What
    an encoder tells of a clip as a whole, in `beside` more channels, is added to each of them."""

    strides = (1, 2, 2)

    def __init__(self, config: AdapterConfig, heard: int, beside: int, width: int) -> None:
        super().__init__()
        self.heard = heard
        widths = (heard, config.dim, config.dim)
        self.convs = nn.ModuleList(nn.Conv1d(w, config.dim, 3, s) for w, s in zip(widths, self.strides, strict=True))
        self.linear, self.norm = nn.Linear(config.dim, config.dim), nn.LayerNorm(config.dim)
        self.beside = nn.Linear(beside, config.dim, bias=False) if beside else None
        if self.beside is not None:
            nn.init.zeros_(self.beside.weight)  # words come first: they would not be heard beside it
        self.blocks = nn.ModuleList(
            Block(config.dim, config.heads, config.ffn, config.dropout) for _ in range(config.layers)
        )
        self.last = nn.LayerNorm(config.dim)
        self.out = nn.Linear(config.dim, width)
        self.gain = nn.Parameter(torch.ones(1)) if config.level else None
        self.dropout = config.dropout
        self.checkpointing = False
        self.helpers = Helpers(width)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """x (C, T, heard + beside), lengths (C,) → (C, T/4, width), lengths."""
        clip = x[:, :1, self.heard :]  # the same at all times
        x = x[..., : self.heard]
        for conv in self.convs:
            x = F.gelu(convolve(conv, F.pad(x, (0, 0, 2, 0))))  # (C, T, dim), then T/2, then T/4
        lengths = adapter_length(lengths)
        drop = self.dropout if self.training else 0.0
        x = self.norm(self.linear(x))
        if self.beside is not None:
            x = x + self.beside(clip)
        x = F.dropout(x + sinusoids(x.shape[1], x.shape[2], x.device).to(x.dtype), drop)
        mask = within(lengths, x.shape[1])[:, None, None, :]
        for block in self.blocks:
            x = _run(block, self.checkpointing and self.training, x, mask)
        x = self.out(self.last(x))
        if self.gain is not None:  # not published: with a high rate and few clips they grow to ten times the size
            x = (F.rms_norm(x.float(), x.shape[-1:]) * self.gain).to(x.dtype)
        return x, lengths


class EChat(nn.Module):
    """The whole model. `encoder` maps waves to states (encoders.py), `lm` is a Hugging Face causal LM (backbone.py)."""

    def __init__(self, config: ModelConfig, encoder: nn.Module, lm: nn.Module) -> None:
        super().__init__()
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every shape, and no two batches have the same
        self.config = config
        self.vocab, self.codes = config.lm.vocab, config.speech.codes  # V, K
        self.edge = self.vocab + self.codes  # begins and ends speech
        width = config.lm.hidden
        self.encoder = encoder
        self.adapter = Adapter(config.adapter, config.encoder.dim, config.encoder.beside, width)
        self.speech = nn.ModuleDict(
            {"embed": nn.Embedding(self.codes + 3, width), "head": nn.Linear(width, self.codes + 1)}
        )
        self.lm = lm
        self.ctc = self.cues = 0.0  # weights of the helper losses; a stage sets them
        self.listen = False  # these alone: the language model is not asked
        self.block = 1  # the language model is given lengths that are a multiple of it
        self.listener: Any = None  # while training, in the place of encoder and adapter
        self.reader: Any = None  # and of the language model: reads rows (B, L, d) of these lengths
        self._start()

    def _start(self) -> None:
        """New parts start at the size of what the language model is used to: its own embeddings."""
        table = self.lm.get_input_embeddings().weight
        if table.shape[0] != self.vocab:
            raise ValueError(f"the language model has {table.shape[0]} text ids, the configuration {self.vocab}")
        if table.is_meta:
            return
        rms, width = float(table.detach().float().square().mean().sqrt()), table.shape[1]
        nn.init.normal_(self.speech["embed"].weight, std=rms)
        nn.init.normal_(self.speech["head"].weight, std=0.02)
        nn.init.zeros_(self.speech["head"].bias)
        nn.init.normal_(self.adapter.out.weight, std=rms / math.sqrt(self.config.adapter.dim))
        nn.init.zeros_(self.adapter.out.bias)
        if self.adapter.gain is not None:
            nn.init.constant_(self.adapter.gain, rms)
        blank = self.adapter.helpers.blank  # at first as likely as all words of a batch together
        nn.init.zeros_(blank.weight)
        nn.init.constant_(blank.bias, math.log(WORDS) + width * rms**2 / 2)

    def checkpointing(self, on: bool = True) -> None:
        """Keep no activations inside the layers: less memory, a third more time."""
        self.adapter.checkpointing = self.encoder.checkpointing = on
        if on:
            self.lm.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            self.lm.gradient_checkpointing_disable()

    # hearing

    def encode_audio(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(C, samples), (C,) → (C, T, d) in the language model's space, (C,) how many of T are the clip's."""
        if self.listener is not None and self.training:
            return self.listener(wave, lengths)  # type: ignore[no-any-return]
        states, frames = self.encoder(wave, lengths)
        return self.adapter(states, frames)  # type: ignore[no-any-return]

    def embed_ids(self, ids: Tensor) -> Tensor:
        """Joint ids (…) → (…, d). What stands at a negative id means nothing."""
        text = self.lm.get_input_embeddings()(ids.clamp(0, self.vocab - 1))
        speech = self.speech["embed"]((ids - self.vocab).clamp(0, self.codes + 2))
        return torch.where((ids >= self.vocab)[..., None], speech.to(text.dtype), text)

    def embed(self, batch: Batch) -> Tensor:
        """The input of the language model, (B, L, d): ids looked up, adapter outputs in their places."""
        return self._embed(batch)[0]

    def _embed(self, batch: Batch) -> tuple[Tensor, Tensor | None, Tensor | None]:
        x = self.embed_ids(batch.ids)  # (B, L, d)
        if batch.wave.shape[0] == 0:
            return x, None, None
        heard, lengths = self.encode_audio(batch.wave, batch.wave_lengths)  # (C, T, d)
        b, n, d = x.shape
        steps = torch.arange(heard.shape[1], device=x.device)[None, :]  # (1, T)
        place = batch.clip_at[:, :1] * n + batch.clip_at[:, 1:] + steps  # (C, T) in the flat (B·L)
        place = torch.where(steps < lengths[:, None], place, b * n)  # what is padding goes to a row that is dropped
        flat = torch.cat((x.reshape(b * n, d), x.new_zeros(1, d)))
        flat = flat.index_copy(0, place.reshape(-1), heard.reshape(-1, d).to(x.dtype))
        return flat[:-1].view(b, n, d), heard, lengths

    # answering

    def forward(self, batch: Batch) -> Out:
        """Cross-entropy over the joint vocabulary, a mean over the targets."""
        if self.listen:
            heard, lengths = self.encode_audio(batch.wave, batch.wave_lengths)
            ctc, cue = self._helpers(batch, heard, lengths)
            none = torch.zeros((), device=heard.device)
            return Out(self.ctc * ctc + self.cues * cue, none, none, ctc.detach(), cue.detach(), none, none)
        loss, goal, heard, lengths = self.costs(batch)
        spoken = goal >= self.vocab
        n_speech = spoken.sum()
        n_text = goal.numel() - n_speech
        whole = loss.sum() / max(goal.numel(), 1)
        with torch.no_grad():
            speech = (loss * spoken).sum() / n_speech.clamp(min=1)
            text = (loss * ~spoken).sum() / n_text.clamp(min=1)
        ctc, cue = self._helpers(batch, heard, lengths)
        whole = whole + self.ctc * ctc + self.cues * cue
        return Out(whole, text, speech, ctc.detach(), cue.detach(), n_text, n_speech)

    def _helpers(self, batch: Batch, heard: Tensor | None, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """The helper losses on what was heard, where a stage wants them."""
        ctc = cue = torch.zeros((), device=batch.ids.device)
        if heard is not None and lengths is not None and self.ctc:
            table = self.lm.get_input_embeddings().weight.detach()
            slots = getattr(batch, "slots", lengths)
            ctc = self.adapter.helpers.words(heard, slots, batch.ctc_ids, batch.ctc_lengths, table)
        if heard is not None and lengths is not None and self.cues:
            cue = self.adapter.helpers.cues(heard, lengths, batch.labels)
        return ctc, cue

    def costs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """What each target costs, in nats, (N,), and which id it is, in the order of the flat (B·L); what was heard and
        how long it is. At the targets only: V·L·B logits would not fit."""
        x, heard, lengths = self._embed(batch)
        mask = batch.mask if getattr(batch, "holes", True) else None
        hidden = self._read(x, mask, getattr(batch, "rows", ()))  # (B, L, d)
        at = getattr(batch, "target_at", None)  # flat places of the targets, where the batch has counted them before
        if at is None:
            at = (batch.targets != IGNORE).view(-1).nonzero()[:, 0]
        goal = batch.targets.reshape(-1)[at]  # (N,)
        told = hidden.flatten(0, 1).index_select(0, at - 1)  # (N, d): each is predicted by the position before it
        loss = torch.cat(
            [
                _run(self._cross_entropy, self.training and len(goal) > CHUNK, h, g)
                for h, g in zip(told.split(CHUNK), goal.split(CHUNK), strict=True)
            ]
        )  # (N,)
        return loss, goal, heard, lengths

    def _read(self, x: Tensor, mask: Tensor | None, rows: Sequence[int] = ()) -> Tensor:
        """What the language model makes of its input, (B, L, d). `mask` (B, L) only where something before a row's end
        is hidden: behind padding nothing is read, so that causal attention alone, which is faster, will do."""
        if torch.is_autocast_enabled(x.device.type):  # half as much to keep for the backward pass, and nothing to cast
            x = x.to(torch.get_autocast_dtype(x.device.type))
        if self.reader is not None and mask is None and rows and self.training:
            return self.reader(x, rows)
        n = x.shape[1]
        more = -n % self.block
        if more:
            x = F.pad(x, (0, 0, 0, more))
        if mask is not None:  # whole, (B, 1, L, L): of one for a row each, the device would be asked if it is needed
            seen = F.pad(mask, (0, more))[:, None, None, :]
            mask = seen & torch.ones(n + more, n + more, dtype=torch.bool, device=x.device).tril()
        hidden: Tensor = self.lm.base_model(inputs_embeds=x, attention_mask=mask, use_cache=False).last_hidden_state
        return hidden[:, :n]

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, d) → (…, V+K+1), one joint vocabulary."""
        return torch.cat((self.lm.get_output_embeddings()(hidden), self.speech["head"](hidden)), -1)

    def _cross_entropy(self, hidden: Tensor, goal: Tensor) -> Tensor:
        return F.cross_entropy(self.logits(hidden).float(), goal, reduction="none")

    # decoding

    def step(
        self, embeds: Tensor, mask: Tensor | None = None, cache: Any = None, *, speech: bool = False
    ) -> tuple[Tensor, Any]:
        """One step of decoding: (B, n, d) new inputs after what `cache` holds → joint logits at the last, new cache.

        `mask` (B, all positions so far) marks what may be attended to; None = everything. `speech`: text is out of the
        question, so that its logits, a fifth of the work in a small model, are not computed but -inf.
        """
        at = None if mask is None else places(mask, embeds.shape[1])
        out = self.lm.base_model(
            inputs_embeds=embeds, attention_mask=mask, position_ids=at, past_key_values=cache, use_cache=True
        )
        hidden = out.last_hidden_state[:, -1]  # (B, d)
        if not speech:
            return self.logits(hidden), out.past_key_values
        told = self.speech["head"](hidden)  # (B, K+1)
        return torch.cat((told.new_full((len(told), self.vocab), -torch.inf), told), -1), out.past_key_values


def fill(module: nn.Module, state: Mapping[str, Tensor], where: str, spare: Container[str] = ()) -> None:
    """Load weights into a part. Raises DataError for names or sizes that do not fit; `spare` names may be missing."""
    try:
        wrong = module.load_state_dict(dict(state), strict=False)
    except RuntimeError as error:  # torch tells all that is wrong, a line each
        first = str(error).splitlines()[1].strip()
        raise DataError(f"{shown(where)}: does not fit the configured model: {first}") from None
    strange = [f"it has {name}" for name in wrong.unexpected_keys]
    strange += [f"it has no {name}" for name in wrong.missing_keys if name not in spare]
    if strange:
        raise DataError(f"{shown(where)}: does not fit the configured model: {strange[0]}")


def _run(function: Any, again: bool, *inputs: Tensor) -> Tensor:
    """Call it; `again`: keep nothing inside it, compute it once more in the backward pass."""
    return checkpoint(function, *inputs, use_reentrant=False) if again else function(*inputs)
