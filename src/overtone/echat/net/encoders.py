"""Speech encoders with one interface: 16 kHz waveforms in, states and their lengths out.

Padding in a batch never changes a clip's own states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from overtone.echat.net.config import HOP, RATE, SHORTEST, EncoderConfig, frames_of
from overtone.echat.net.model import Block, convolve, fill, sinusoids, within
from overtone.embedded import require
from overtone.embedded.moonshine_weights import moonshine_state
from overtone.errors import DataError, UsageError
from overtone.paths import shown, user_path

Augment = Callable[[Tensor, Tensor], Tensor]
BASE = "npm pack @usefulsensors/moonshine-js@0.1.15 && tar xzf usefulsensors-moonshine-js-0.1.15.tgz"
BASE_FOLDER = "package/dist/model/base/quantized"  # in that package: 8-bit weights, MIT


class Encoder(nn.Module):
    """Maps waveforms (C, samples) and lengths (C,) to states (C, T, dim + beside) and their numbers (C,).

    Clips have at least 0.2 s.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config, self.dim = config, config.dim
        self.checkpointing = False
        self.block = 1  # lengths are padded to a multiple of it
        self.augment: Augment | None = None  # on log-mel (C, mels, frames), frames (C,), while training

    def frames(self, samples: Tensor) -> Tensor:
        """Return the number of states of clips."""
        return frames_of(self.config.kind, samples.clamp(min=SHORTEST))

    def forward(self, wave: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Encode waveforms."""
        wave = wave * within(lengths, wave.shape[1])
        wave = F.pad(wave, (0, self._room(wave.shape[1]) - wave.shape[1]))
        lengths = lengths.clamp(min=SHORTEST)
        return self.states(wave, lengths), self.frames(lengths)

    def states(self, wave: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of padded waveforms."""
        raise NotImplementedError

    def _room(self, samples: int) -> int:
        """Return the padded number of samples: at least SHORTEST, and whole blocks."""
        samples = max(samples, SHORTEST)
        more = samples + -frames_of(self.config.kind, samples) % self.block * HOP[self.config.kind]
        return samples if self.config.kind == "whisper" and more > self.config.longest * RATE else more

    def through(self, layers: nn.ModuleList, norm: nn.Module, x: Tensor, inside: Tensor, **given: Any) -> Tensor:
        """Run the layers: (C, T, dim) → (C, T, dim + beside).

        The result has the last layer's states. For each layer in `taps`, the states' mean and spread over the clip are
        appended to every time step; `inside`, (C, T), marks the steps inside the clip. An encoder trained for words has
        dropped voices, moods and sounds by its last layer, but middle layers still represent them. A mean over the clip
        contains no words to memorise.
        """
        beside = []
        for n, layer in enumerate(layers):
            if n in self.config.taps:
                beside += [F.layer_norm(part, part.shape[-1:]) for part in _mean_and_spread(x, inside)]
            x = self._layer(layer, x, **given)
        x = norm(x)
        return torch.cat((x, *(part.to(x.dtype).expand_as(x) for part in beside)), -1) if beside else x

    def _layer(self, layer: nn.Module, x: Tensor, **given: Any) -> Tensor:
        if self.checkpointing and self.training:
            out = checkpoint(layer, x, use_reentrant=False, **given)
        else:
            out = layer(x, **given)
        return out[0] if isinstance(out, tuple) else out


class LogMel(nn.Module):
    """Whisper's log-mel spectrogram: (C, samples) → (C, mels, frames), one frame every 10 ms."""

    def __init__(self, mels: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(400), persistent=False)
        self.register_buffer("bank", mel_bank(mels), persistent=False)  # (201, mels)

    def forward(self, wave: Tensor) -> Tensor:
        """Compute the spectrogram on the waveform's device."""
        with torch.autocast(wave.device.type, enabled=False):
            wave = F.pad(wave.float(), (0, 400))  # the last frames see silence, not the clip's mirror image
            spectrum = torch.stft(wave, 400, 160, window=self.window, return_complex=True)  # (C, 201, frames)
            power = spectrum[..., : (wave.shape[1] - 400) // 160].abs().square()
            log = (self.bank.T @ power).clamp(min=1e-10).log10()
            top = log.amax((1, 2), keepdim=True)
            return (torch.maximum(log, top - 8) + 4) / 4


def mel_bank(mels: int) -> Tensor:
    """Return Slaney's triangular filters over 201 bins up to 8 kHz, with equal areas, (201, mels)."""
    step = np.log(6.4) / 27  # above 1 kHz a factor of 6.4 has 27 steps, below it a step is 200/3 Hz
    mel = np.linspace(0, 15 + np.log(RATE / 2 / 1000) / step, mels + 2)
    edges = np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * step))
    bins = np.linspace(0, RATE / 2, 201)[:, None]
    up = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    bank = np.maximum(np.minimum(up, down), 0) * 2 / (edges[2:] - edges[:-2])
    return torch.from_numpy(bank.astype(np.float32))


class MelEncoder(Encoder):
    """The common start of Whisper and the small encoder: a log-mel spectrogram and two convolutions (strides 1, 2)."""

    conv1: nn.Module
    conv2: nn.Module

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.mel = LogMel(config.mels)

    def stem(self, conv1: nn.Module, conv2: nn.Module, wave: Tensor, lengths: Tensor) -> Tensor:
        """Map (C, samples) to (C, T, dim), 50 states per second. Padding is zeroed, so a clip's result ignores its
        batch."""
        x = self.mel(wave)  # (C, mels, 2T)
        frames = lengths // 160
        if self.augment is not None and self.training:
            x = self.augment(x, frames)
        x = x.transpose(1, 2)
        inside = within(frames, x.shape[1])[..., None]
        x = F.gelu(convolve(conv1, (x * inside).to(conv1.weight.dtype))) * inside
        return F.gelu(convolve(conv2, x))


class Small(MelEncoder):
    """A small encoder for training from random weights."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.conv1 = nn.Conv1d(config.mels, config.dim, 3, padding=1)
        self.conv2 = nn.Conv1d(config.dim, config.dim, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(config.dim, config.heads, config.ffn) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)

    def states(self, wave: Tensor, lengths: Tensor) -> Tensor:
        x = self.stem(self.conv1, self.conv2, wave, lengths)
        x = x + sinusoids(x.shape[1], self.dim, x.device).to(x.dtype)
        inside = within(self.frames(lengths), x.shape[1])
        return self.through(self.blocks, self.norm, x, inside, mask=inside[:, None, None, :])


class Whisper(MelEncoder):
    """Whisper's encoder. Clips are not padded to 30 s; they use only the positions they need."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        from transformers import WhisperConfig
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        self.net = WhisperEncoder(
            WhisperConfig(
                d_model=config.dim,
                encoder_layers=config.layers,
                encoder_attention_heads=config.heads,
                encoder_ffn_dim=config.ffn,
                num_mel_bins=config.mels,
                max_source_positions=round(config.longest * 50),
                attn_implementation="sdpa",
            )
        )

    def states(self, wave: Tensor, lengths: Tensor) -> Tensor:
        x = self.stem(self.net.conv1, self.net.conv2, wave, lengths)
        if x.shape[1] > self.net.embed_positions.num_embeddings:
            raise DataError(
                f"a clip of {wave.shape[1] / RATE:.1f} s exceeds this encoder's limit of {self.config.longest:.0f} s; "
                "shorten it, or leave it out"
            )
        x = x + self.net.embed_positions.weight[: x.shape[1]].to(x.dtype)
        inside = within(self.frames(lengths), x.shape[1])
        return self.through(self.net.layers, self.net.layer_norm, x, inside, attention_mask=_square(inside))


class Moonshine(Encoder):
    """Moonshine's encoder. It reads the waveform directly and gives one state every 24 ms.

    Its first normalisation uses mean and variance over all channels and *times* of a clip. In a padded batch, silence
    after a short clip would change both values and with them every state, as it does in transformers' own forward. Here
    both are computed over the clip's own frames. The convolutions have no padding, so a clip's frames see only the
    clip, and attention is masked.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        from transformers import MoonshineConfig
        from transformers.models.moonshine.modeling_moonshine import MoonshineEncoder

        self.net = MoonshineEncoder(
            MoonshineConfig(
                hidden_size=config.dim,
                intermediate_size=config.ffn,
                encoder_num_hidden_layers=config.layers,
                encoder_num_attention_heads=config.heads,
                encoder_num_key_value_heads=config.heads,
                decoder_num_hidden_layers=1,
                decoder_num_attention_heads=config.heads,
                decoder_num_key_value_heads=config.heads,
                partial_rotary_factor=min(1.0, 32.5 * config.heads / config.dim),  # 32 rotary channels per head
                pad_head_dim_to_multiple_of=8,  # required by fast attention
                attn_implementation="sdpa",
            )
        )

    def states(self, wave: Tensor, lengths: Tensor) -> Tensor:
        net = self.net
        with torch.autocast(wave.device.type, enabled=False):  # samples need more than bf16's eight bits
            x = torch.tanh(convolve(net.conv1, wave.float()[..., None]))  # (C, samples/64, dim)
            x = self._normalise(x, (lengths - 127) // 64 + 1)
        x = F.gelu(convolve(net.conv2, x.to(net.conv2.weight.dtype)))
        x = F.gelu(convolve(net.conv3, x))  # (C, T, dim)
        inside = within(self.frames(lengths), x.shape[1])
        turn = net.rotary_emb(x, position_ids=torch.arange(x.shape[1], device=x.device)[None])
        return self.through(
            net.layers, net.layer_norm, x, inside, attention_mask=_square(inside), position_embeddings=turn
        )

    def _normalise(self, x: Tensor, frames: Tensor) -> Tensor:
        inside = within(frames, x.shape[1])[..., None]  # (C, frames, 1)
        count = (frames * x.shape[2])[:, None, None]
        mean = (x * inside).sum((1, 2), keepdim=True) / count
        variance = ((x - mean).square() * inside).sum((1, 2), keepdim=True) / count
        x = (x - mean) * torch.rsqrt(variance + self.net.groupnorm.eps)
        return x * self.net.groupnorm.weight + self.net.groupnorm.bias


def _mean_and_spread(x: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and spread over a clip's own frames: (C, T, d), (C, T) → (C, 1, d) twice."""
    x, inside = x.float(), inside[..., None]
    count = inside.sum(1, keepdim=True)
    mean = (x * inside).sum(1, keepdim=True) / count
    return mean, ((x - mean).square() * inside).sum(1, keepdim=True).div(count).add(1e-6).sqrt()


def _square(inside: Tensor) -> Tensor:
    """Expand a mask for transformers' layers: (C, T) → (C, 1, T, T) bool."""
    return inside[:, None, None, :].expand(-1, 1, inside.shape[1], -1)


KINDS: dict[str, type[Encoder]] = {"small": Small, "whisper": Whisper, "moonshine": Moonshine}


def open_encoder(config: EncoderConfig, *, empty: bool = False) -> Encoder:
    """Build the encoder with its weights, or with random ones if `empty`, to be filled from a checkpoint."""
    encoder = KINDS[config.kind](config)
    if empty or (config.source == "random" and not config.weights):
        return encoder
    fill(getattr(encoder, "net", encoder), weights(config), config.weights or f"model.encoder.source {config.source!r}")
    return encoder


def weights(config: EncoderConfig) -> dict[str, Tensor]:
    """Load the weights of the configured encoder. Raises UsageError or DataError."""
    given = user_path(config.weights) if config.weights else None
    if given and config.kind == "moonshine" and (given.is_dir() or given.suffix in (".onnx", ".ort")):
        return {name: torch.from_numpy(value) for name, value in moonshine_state(given).items()}
    if given:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        if not given.is_file():
            raise UsageError(f"model.encoder.weights: no file {shown(str(given))}; correct the path, or remove the key")
        try:
            return {name: value.float() for name, value in load_file(given).items()}
        except SafetensorError as error:
            raise DataError(f"{shown(str(given))}: not a safetensors file ({error}); create or copy it again") from None
    if config.source == "moonshine-base":
        raise UsageError(f"Moonshine base is in no Python package; run: {BASE}; then add --encoder {BASE_FOLDER}")
    if config.kind == "moonshine":
        folder = user_path(config.source)
        if config.source == "package":
            folder = require("moonshine_voice", "Moonshine's encoder") / "assets" / "tiny-en"
        return {name: torch.from_numpy(value) for name, value in moonshine_state(folder).items()}
    if config.kind == "whisper":
        from transformers import WhisperModel

        try:
            whisper = WhisperModel.from_pretrained(config.source, dtype=torch.float32)
        except (OSError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise UsageError(
                f"model.encoder.source: cannot load Whisper from {shown(config.source)!r}: {shown(first)}"
            ) from None
        return dict(whisper.encoder.state_dict())
    raise UsageError(f"model.encoder.source must be 'random' for a small encoder, not {shown(config.source)!r}")
