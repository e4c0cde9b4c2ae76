"""OSUM-EChat: an encoder and an adapter feed speech into a language model that answers in text and speech tokens.

    wave ─ encoder ─ adapter ─┐
                              ├─ language model ─┬─ lm head      text ids        0 … V-1
    text and speech ids ──────┘                  └─ speech head  codes and end   V … V+K

Joint ids: text is below V; V+k is speech code k; V+K begins and ends speech; V+K+1 and V+K+2 enclose an input clip and
are never predicted.
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
from overtone.echat.net.low_rank import adapt, learned
from overtone.errors import DataError
from overtone.paths import shown

IGNORE = -100  # a target without loss
ALIGNED = 8  # masked attention on a GPU needs rows that are multiples of 16 bytes
CHUNK = 4096  # positions whose logits are in memory at once: 0.8 GB in float32 for 50,000 tokens


class Batch(Protocol):
    """The input of `forward`: B sequences of at most L positions, with C clips in total."""

    ids: Tensor  # (B, L) joint ids; -1 for adapter outputs
    targets: Tensor  # (B, L) the id at this position if it has to be predicted, else -100
    mask: Tensor  # (B, L) bool: visible to attention
    wave: Tensor  # (C, samples) float32, 16 kHz
    wave_lengths: Tensor  # (C,) samples
    clip_at: Tensor  # (C, 2) row and position of a clip's first output
    ctc_ids: Tensor  # (C, U) text ids of the words
    ctc_lengths: Tensor  # (C,) 0 = unknown
    labels: Tensor  # (C, dimensions) label indices, -1 = unknown
    # Optional, to avoid waiting for the device: target_at (N,), the flat indices of the targets; holes, whether
    # anything but final padding is masked; rows, the length of each row; slots (C,), the number of outputs of each
    # clip. All of these except target_at, and ctc_ids and ctc_lengths, may be on the CPU.


@dataclass
class Out:
    """The losses of a batch, as means over their targets. `loss` is to be minimised; the rest is detached, for logs."""

    loss: Tensor
    text_loss: Tensor
    speech_loss: Tensor
    ctc_loss: Tensor
    cue_loss: Tensor
    n_text: Tensor
    n_speech: Tensor


class Block(nn.Module):
    """A pre-norm transformer layer."""

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
        """Apply the layer to x (C, T, d); mask (C, 1, 1, T) is True for visible positions."""
        drop = self.dropout if self.training else 0.0
        c, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(c, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (C, heads, T, d/heads)
        heard = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + F.dropout(self.out(heard.transpose(1, 2).reshape(c, t, d)), drop)
        return x + F.dropout(self.down(F.dropout(F.gelu(self.up(self.norm2(x))), drop)), drop)


def sinusoids(length: int, dim: int, device: Any) -> Tensor:
    """Return sinusoidal position embeddings, (length, dim)."""
    rates = torch.exp(-math.log(10_000) * torch.arange(0, dim, 2, device=device) / dim)
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).view(length, -1)[:, :dim]


def convolve(conv: Any, x: Tensor) -> Tensor:
    """Apply a Conv1d as one matrix product, (C, T, in) → (C, T', out).

    cuDNN needs a millisecond or two to plan for every new shape, and shapes differ between batches.
    """
    padding = conv.padding[0]
    x = F.pad(x, (0, 0, padding, padding)) if padding else x
    windows = x.unfold(1, conv.kernel_size[0], conv.stride[0]).transpose(2, 3)  # (C, T', k, in), a view
    return F.linear(windows.flatten(2), conv.weight.to(x.dtype).transpose(1, 2).flatten(1), conv.bias)


def within(lengths: Tensor, size: int) -> Tensor:
    """Return a mask of the positions below each length: lengths (C,) → (C, size) bool."""
    return torch.arange(size, device=lengths.device)[None, :] < lengths[:, None]


def places(mask: Tensor, new: int) -> Tensor:
    """Return the position ids of the last `new` columns, not counting left padding: (B, all) bool → (B, new).

    Models with rotary positions would not need this; models with absolute positions do.
    """
    return (mask.cumsum(1) - 1).clamp(min=0)[:, -new:]


class Adapter(nn.Module):
    """Maps encoder states to a quarter as many vectors of the language model's width, with causal convolutions.

    The `beside` extra channels describe the whole clip; they are added to every vector. With `config.voice`, that many
    vectors before the others also come from them. The helper loss for labels reads these vectors, so they learn to name
    the voice as directly as a classifier on the encoder would.
    """

    strides = (1, 2, 2)

    def __init__(self, config: AdapterConfig, heard: int, beside: int, width: int) -> None:
        super().__init__()
        self.config, self.heard = config, heard
        widths = (heard, config.dim, config.dim)
        self.convs = nn.ModuleList(nn.Conv1d(w, config.dim, 3, s) for w, s in zip(widths, self.strides, strict=True))
        self.linear, self.norm = nn.Linear(config.dim, config.dim), nn.LayerNorm(config.dim)
        self.beside = nn.Linear(beside, config.dim, bias=False) if beside else None
        if self.beside is not None:
            nn.init.zeros_(self.beside.weight)  # start at 0, so that the words are learnt first
        self.voice = Voice(beside, config.voice, config.dim, config.dropout) if config.voice else None
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
        """Map x (C, T, heard + beside) and lengths (C,) to (C, voice + T/4, width) and lengths."""
        clip = x[:, :1, self.heard :]  # constant over time
        x = x[..., : self.heard]
        for conv in self.convs:
            x = F.gelu(convolve(conv, F.pad(x, (0, 0, 2, 0))))  # (C, T, dim), then T/2, then T/4
        lengths = adapter_length(lengths)
        drop = self.dropout if self.training else 0.0
        x = self.norm(self.linear(x))
        if self.beside is not None:
            x = x + self.beside(clip)
        x = F.dropout(x + sinusoids(x.shape[1], x.shape[2], x.device).to(x.dtype), drop)
        if self.voice is not None:
            x = torch.cat((self.voice(clip).to(x.dtype), x), 1)
            x = F.pad(x, (0, 0, 0, -x.shape[1] % ALIGNED))
            lengths = lengths + self.voice.count
        mask = within(lengths, x.shape[1])[:, None, None, :]
        for block in self.blocks:
            x = _run(block, self.checkpointing and self.training, x, mask)
        x = self.out(self.last(x))
        if self.gain is not None:  # our addition: with a high rate and few clips, outputs grew tenfold
            x = (F.rms_norm(x.float(), x.shape[-1:]) * self.gain).to(x.dtype)
        return x, lengths


class Voice(nn.Module):
    """Maps the description of a clip (C, 1, beside) to `count` vectors (C, count, dim)."""

    def __init__(self, beside: int, count: int, dim: int, dropout: float) -> None:
        super().__init__()
        self.count, self.dropout = count, dropout
        self.hidden, self.out = nn.Linear(beside, 2 * dim), nn.Linear(2 * dim, count * dim)

    def forward(self, clip: Tensor) -> Tensor:
        """Describe each clip by a few vectors."""
        hidden = F.dropout(F.gelu(self.hidden(clip)), self.dropout if self.training else 0.0)
        return self.out(hidden).view(len(clip), self.count, -1)


class EChat(nn.Module):
    """The whole model. `encoder` maps waveforms to states (encoders.py), `lm` is a Hugging Face causal LM
    (backbone.py)."""

    def __init__(self, config: ModelConfig, encoder: nn.Module, lm: nn.Module) -> None:
        super().__init__()
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans for every new shape, and shapes differ between batches
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
        if config.lm.lora:
            adapt(lm, config.lm.lora)
        self.ctc = self.cues = 0.0  # weights of the helper losses; a stage sets them
        self.listen = False  # only the helper losses: the language model is not run
        self.block = 1  # lengths are padded to a multiple of it
        self.listener: Any = None  # replaces encoder and adapter in training
        self.reader: Any = None  # replaces the language model in training: reads rows (B, L, d) of given lengths
        self.decoder: Any = None  # replaces the language model's transformer in decoding (half_decoder.py)
        self._start()

    def _start(self) -> None:
        """Initialise new parts to the magnitude of the language model's embeddings."""
        table = self.lm.get_input_embeddings().weight
        if table.shape[0] != self.vocab:
            raise ValueError(f"the language model has {table.shape[0]} text ids, but the configuration {self.vocab}")
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
        blank = self.adapter.helpers.blank  # initially as likely as all words of a batch together
        nn.init.zeros_(blank.weight)
        nn.init.constant_(blank.bias, math.log(WORDS) + width * rms**2 / 2)

    def learned(self, part: str) -> list[nn.Parameter]:
        """Return the weights of a part that stages can train."""
        return list(learned(self.lm).values() if part == "lm" else getattr(self, part).parameters())

    def checkpointing(self) -> None:
        """Recompute activations in the backward pass: less memory, a third more time."""
        self.adapter.checkpointing = self.encoder.checkpointing = True
        self.lm.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    # input

    def encode_audio(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode waveforms (C, samples) with lengths (C,) to the language model's space (C, T, d), with lengths
        (C,)."""
        if self.listener is not None and self.training:
            return self.listener(wave, lengths)  # type: ignore[no-any-return]
        states, frames = self.encoder(wave, lengths)
        return self.adapter(states, frames)  # type: ignore[no-any-return]

    def embed_ids(self, ids: Tensor) -> Tensor:
        """Look up the embeddings of joint ids: (…) → (…, d). The rows of negative ids are meaningless."""
        text = self.lm.get_input_embeddings()(ids.clamp(0, self.vocab - 1))
        speech = self.speech["embed"]((ids - self.vocab).clamp(0, self.codes + 2))
        return torch.where((ids >= self.vocab)[..., None], speech.to(text.dtype), text)

    def embed(self, batch: Batch) -> Tensor:
        """Return the language model's input (B, L, d): embedded ids, with adapter outputs inserted."""
        return self._embed(batch)[0]

    def _embed(self, batch: Batch) -> tuple[Tensor, Tensor | None, Tensor | None]:
        x = self.embed_ids(batch.ids)  # (B, L, d)
        if batch.wave.shape[0] == 0:
            return x, None, None
        heard, lengths = self.encode_audio(batch.wave, batch.wave_lengths)  # (C, T, d)
        b, n, d = x.shape
        steps = torch.arange(heard.shape[1], device=x.device)[None, :]  # (1, T)
        place = batch.clip_at[:, :1] * n + batch.clip_at[:, 1:] + steps  # (C, T) in the flat (B·L)
        place = torch.where(steps < lengths[:, None], place, b * n)  # padding goes to a row that is dropped
        flat = torch.cat((x.reshape(b * n, d), x.new_zeros(1, d)))
        flat = flat.index_copy(0, place.reshape(-1), heard.reshape(-1, d).to(x.dtype))
        return flat[:-1].view(b, n, d), heard, lengths

    # losses

    def forward(self, batch: Batch) -> Out:
        """Compute the cross-entropy over the joint vocabulary, as a mean over the targets, and the auxiliary losses."""
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
        """Compute the auxiliary losses that the stage uses."""
        ctc = cue = torch.zeros((), device=batch.ids.device)
        voice = self.config.adapter.voice
        if heard is not None and lengths is not None and self.ctc:
            table = self.lm.get_input_embeddings().weight.detach()
            slots = getattr(batch, "slots", lengths) - voice
            ctc = self.adapter.helpers.words(heard[:, voice:], slots, batch.ctc_ids, batch.ctc_lengths, table)
        if heard is not None and lengths is not None and self.cues:
            if voice:
                heard, lengths = heard[:, :voice], torch.full_like(lengths, voice)
            cue = self.adapter.helpers.cues(heard, lengths, batch.labels)
        return ctc, cue

    def costs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return the loss of each target in nats (N,), the id of each target, and the adapter's outputs with their
        lengths.

        Targets are in the order of the flattened batch (B·L). Logits are computed only at the targets, because V·L·B
        logits would not fit into memory.
        """
        x, heard, lengths = self._embed(batch)
        mask = batch.mask if getattr(batch, "holes", True) else None
        hidden = self._read(x, mask, getattr(batch, "rows", ()))  # (B, L, d)
        at = getattr(batch, "target_at", None)  # flat indices of the targets, if precomputed
        if at is None:
            at = (batch.targets != IGNORE).view(-1).nonzero()[:, 0]
        goal = batch.targets.reshape(-1)[at]  # (N,)
        before = hidden.flatten(0, 1).index_select(0, at - 1)  # (N, d): the position before a target predicts it
        loss = torch.cat(
            [
                _run(self._cross_entropy, self.training and len(goal) > CHUNK, h, g)
                for h, g in zip(before.split(CHUNK), goal.split(CHUNK), strict=True)
            ]
        )  # (N,)
        return loss, goal, heard, lengths

    def _read(self, x: Tensor, mask: Tensor | None, rows: Sequence[int] = ()) -> Tensor:
        """Return the language model's hidden states (B, L, d).

        `mask` (B, L) is needed only if something before a row's end is hidden. Otherwise causal attention alone
        suffices, which is faster.
        """
        if torch.is_autocast_enabled(x.device.type):  # half the memory for the backward pass, and no casts
            x = x.to(torch.get_autocast_dtype(x.device.type))
        if self.reader is not None and mask is None and rows and self.training:
            return self.reader(x, rows)
        n = x.shape[1]
        more = -n % self.block
        if more:
            x = F.pad(x, (0, 0, 0, more))
        if mask is not None:  # the full (B, 1, L, L); a mask per row would need a device synchronisation
            seen = F.pad(mask, (0, more))[:, None, None, :]
            mask = seen & torch.ones(n + more, n + more, dtype=torch.bool, device=x.device).tril()
        hidden: Tensor = self.lm.base_model(inputs_embeds=x, attention_mask=mask, use_cache=False).last_hidden_state
        return hidden[:, :n]

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the joint logits: (…, d) → (…, V+K+1)."""
        return torch.cat((self.lm.get_output_embeddings()(hidden), self.speech["head"](hidden)), -1)

    def _cross_entropy(self, hidden: Tensor, goal: Tensor) -> Tensor:
        return F.cross_entropy(self.logits(hidden).float(), goal, reduction="none")

    # decoding

    def step(
        self, embeds: Tensor, mask: Tensor | None = None, cache: Any = None, *, speech: bool = False
    ) -> tuple[Tensor, Any]:
        """Decode one step: map new inputs (B, n, d) after `cache` to the joint logits of the last input, and the new
        cache.

        `mask` (B, all positions so far) marks visible positions; None means all. With `speech`, the next token cannot
        be text, so the text logits, a fifth of the work in a small model, are set to -inf instead of being computed.
        """
        at = None if mask is None else places(mask, embeds.shape[1])
        if self.decoder is None:
            out = self.lm.base_model(
                inputs_embeds=embeds, attention_mask=mask, position_ids=at, past_key_values=cache, use_cache=True
            )
            states, cache = out.last_hidden_state, out.past_key_values
        else:
            states, cache = self.decoder(embeds, mask, at, cache)
        hidden = states[:, -1]  # (B, d)
        if not speech:
            return self.logits(hidden), cache
        logits = self.speech["head"](hidden)  # (B, K+1)
        return torch.cat((logits.new_full((len(logits), self.vocab), -torch.inf), logits), -1), cache


def fill(module: nn.Module, state: Mapping[str, Tensor], where: str, spare: Container[str] = ()) -> None:
    """Load weights into a part. Names in `spare` may be missing. Raises DataError for other names or sizes."""
    try:
        wrong = module.load_state_dict(dict(state), strict=False)
    except RuntimeError as error:  # torch reports all problems, one per line
        first = str(error).splitlines()[1].strip()
        raise DataError(f"{shown(where)}: does not fit the configured model: {first}") from None
    problems = [f"unexpected {name}" for name in wrong.unexpected_keys]
    problems += [f"missing {name}" for name in wrong.missing_keys if name not in spare]
    if problems:
        raise DataError(f"{shown(where)}: does not fit the configured model: {problems[0]}")


def _run(function: Any, again: bool, *inputs: Tensor) -> Tensor:
    """Call a function. With `again`, its activations are not stored but recomputed in the backward pass."""
    return checkpoint(function, *inputs, use_reentrant=False) if again else function(*inputs)
