"""States of speech in plain NumPy: the encoder of Moonshine tiny, whose weights come with the offline recogniser.

The recogniser's C library gives words only. Its encoder also represents how something is said, most clearly in its
middle layers, so a small classifier over these states hears more than measures of pitch and level do. Written by hand
because the core has neither torch nor ONNX Runtime.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overtone.embedded import require
from overtone.embedded.embedder import gelu
from overtone.embedded.moonshine_weights import moonshine_state
from overtone.embedded.one_thread import one_thread
from overtone.errors import DataError
from overtone.paths import sha256

Array = NDArray[np.float32]

RATE = 16_000
WIDTH, LAYERS, HEADS = 288, 6, 8
SHORTEST = RATE // 5  # samples; the convolutions need 0.1 s
_TURNED = 32  # channels of each head that are rotated by their position
_EPSILON = 1e-5
_load_lock = threading.Lock()


class SpeechEncoder:
    """The loaded encoder. It holds no state between calls, so threads may share it."""

    def __init__(self, folder: Path) -> None:
        weights = folder / "encoder_model.ort"
        state = moonshine_state(folder)
        self.identity = f"moonshine-tiny-encoder@{sha256(weights)[:12]}"
        try:
            self._stem = [_kernel(state[f"conv{k}.weight"]) for k in (1, 2, 3)]
            self._stem_bias = [state["conv2.bias"], state["conv3.bias"]]
            self._norm = state["groupnorm.weight"], state["groupnorm.bias"]
            self._layers = [self._layer(state, f"layers.{n}.") for n in range(LAYERS)]
            self._last = state["layer_norm.weight"]
        except KeyError as error:
            raise DataError(f"{weights}: {error} is missing; run 'overtone setup local' again") from error
        if self._last.shape != (WIDTH,):
            raise DataError(f"{weights}: its states have {self._last.size} numbers, not {WIDTH}")

    @staticmethod
    def _layer(state: dict[str, Array], prefix: str) -> dict[str, Array]:
        attention = [state[f"{prefix}self_attn.{name}_proj.weight"] for name in "qkv"]
        return {
            "norm": state[f"{prefix}input_layernorm.weight"],
            "qkv": np.ascontiguousarray(np.concatenate(attention).T),
            "mixed": np.ascontiguousarray(state[f"{prefix}self_attn.o_proj.weight"].T),
            "mixed_norm": state[f"{prefix}post_attention_layernorm.weight"],
            "up": np.ascontiguousarray(state[f"{prefix}mlp.fc1.weight"].T),
            "up_bias": state[f"{prefix}mlp.fc1.bias"],
            "down": np.ascontiguousarray(state[f"{prefix}mlp.fc2.weight"].T),
            "down_bias": state[f"{prefix}mlp.fc2.bias"],
        }

    def states(self, samples: Array, layers: int = LAYERS) -> Array:
        """Return the states (layers + 1, T, WIDTH) of 16 kHz samples, one every 24 ms.

        The first are the input of the first layer. Those after the last of all layers are the encoder's normalised
        output. Samples shorter than 0.2 s are padded with silence.
        """
        if not 0 <= layers <= LAYERS:
            raise ValueError(f"layers must be 0 to {LAYERS}, not {layers}")
        samples = np.pad(samples, (0, max(0, SHORTEST - len(samples))))
        with one_thread():
            x = np.tanh(_convolved(samples[:, None], self._stem[0], 127, 64))
            x -= x.mean()
            x /= np.sqrt(np.square(x).mean() + np.float32(_EPSILON))
            x *= self._norm[0]
            x += self._norm[1]
            x = gelu(_convolved(x, self._stem[1], 7, 3) + self._stem_bias[0])
            x = gelu(_convolved(x, self._stem[2], 3, 2) + self._stem_bias[1])
            turn = _turn(len(x))
            out = [x]
            for layer in self._layers[:layers]:
                x = x + _attended(_normed(x, layer["norm"]) @ layer["qkv"], turn) @ layer["mixed"]
                raised = gelu(_normed(x, layer["mixed_norm"]) @ layer["up"] + layer["up_bias"])
                x = x + raised @ layer["down"] + layer["down_bias"]
                out.append(x)
            if layers == LAYERS:
                out[-1] = _normed(x, self._last)
        return np.stack(out)


def _kernel(weight: Array) -> Array:
    """Turn a convolution's weights (out, in, size) into a matrix (size · in, out)."""
    return np.ascontiguousarray(weight.transpose(2, 1, 0).reshape(-1, len(weight)))


def _convolved(x: Array, kernel: Array, size: int, stride: int) -> Array:
    """Convolve (T, in) without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=0)[::stride]  # (T', in, size)
    return np.asarray(np.ascontiguousarray(windows.swapaxes(1, 2)).reshape(len(windows), -1) @ kernel)


def _normed(x: Array, weight: Array) -> Array:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(_EPSILON))
    x *= weight
    return x


def _turn(length: int) -> tuple[Array, Array]:
    """Return cosines and sines (length, 1, channels / 2) of the rotary positions."""
    slowness = 1 / 10_000 ** (np.arange(0, _TURNED, 2) / _TURNED)
    angle = np.arange(length)[:, None, None] * slowness
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def _turned(x: Array, turn: tuple[Array, Array]) -> Array:
    """Rotate each pair of neighbouring channels of (T, heads, channels) by its position, in place."""
    even, odd = x[..., 0:_TURNED:2].copy(), x[..., 1:_TURNED:2].copy()
    cosine, sine = turn
    x[..., 0:_TURNED:2] = even * cosine - odd * sine
    x[..., 1:_TURNED:2] = odd * cosine + even * sine
    return x


def _attended(qkv: Array, turn: tuple[Array, Array]) -> Array:
    """Apply attention to queries, keys and values (T, 3 · WIDTH)."""
    length, size = len(qkv), WIDTH // HEADS
    query, key, value = (qkv[:, k * WIDTH : (k + 1) * WIDTH].reshape(length, HEADS, size) for k in range(3))
    query, key = (_turned(part, turn).transpose(1, 0, 2) for part in (query, key))  # (heads, T, channels)
    weights = query @ key.transpose(0, 2, 1)
    weights *= np.float32(size**-0.5)
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    return np.asarray((weights @ value.transpose(1, 0, 2)).transpose(1, 0, 2).reshape(length, WIDTH))


@functools.cache
def _loaded() -> SpeechEncoder:
    return SpeechEncoder(require("moonshine_voice", "Moonshine's encoder") / "assets" / "tiny-en")


def load() -> SpeechEncoder:
    """Return the encoder, loaded once per process."""
    with _load_lock:
        return _loaded()


def identity() -> str:
    """Return the name of the encoder and the start of its weights' SHA-256."""
    return load().identity
