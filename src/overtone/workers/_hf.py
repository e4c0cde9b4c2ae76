"""What the workers that run Hugging Face models share: sounds as samples, loading without surprises, seeded draws."""

from __future__ import annotations

import io
import wave
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

if TYPE_CHECKING:
    from overtone.workers import protocol
else:
    import protocol

Samples = npt.NDArray[np.float32]
Content = dict[str, Any]
MAX_TOKENS = 1024
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


def samples_of(wav: bytes, rate: int) -> Samples:
    """The samples of a mono 16-bit WAV, full scale ±1. Overtone sends sounds at the rate the worker asked for."""
    try:
        with wave.open(io.BytesIO(wav)) as file:
            shape = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise protocol.Refused("bad_clip", f"not a WAV: {error}") from None
    if shape != (1, 2, rate):
        raise protocol.Refused("bad_clip", f"a WAV of {shape[0]} channels, {shape[1] * 8} bits, {shape[2]} Hz")
    if len(data) < rate // 10:  # 0.05 s of two bytes each: less makes no step of an audio encoder
        raise protocol.Refused("bad_clip", f"a sound of {len(data) / 2 / rate:.3f} s is too short to be heard")
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768)


def wav_of(samples: torch.Tensor, rate: int) -> bytes:
    """A mono 16-bit WAV of a waveform of any shape."""
    flat = samples.detach().float().cpu().reshape(-1).numpy()
    if not np.isfinite(flat).all():
        raise RuntimeError("the waveform has values that are not finite")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(flat, -1, 1) * 32767).round().astype("<i2").tobytes())
    return out.getvalue()


def where(options: dict[str, Any]) -> tuple[str, torch.dtype]:
    """Device and dtype: bfloat16 on a GPU where there is one, else float32 on the CPU, unless told otherwise."""
    device = options.get("device") or "auto"
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    name = options.get("dtype") or "auto"
    if name == "auto":
        name = "float32" if device == "cpu" else "bfloat16"
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype={name} is no dtype of torch; use float32, bfloat16 or float16")
    return device, dtype


def source(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The checkpoint and what every loader is told about it."""
    if not options.get("model"):
        raise ValueError("model=PATH (a checkpoint's folder or hub id) is missing")
    shared = {"trust_remote_code": bool(options["trust_remote_code"]), "local_files_only": not options["hub"]}
    if options.get("revision"):
        shared["revision"] = options["revision"]
    return str(options["model"]), shared


class HfEngine:
    """The common part of an engine. A worker file adds `start`, which loads, and `answer`, which generates."""

    speaks = False
    model: Any
    tokenizer: Any
    rate: int

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        """Load the model (with `weights`) and its processor (with `shared`); set `model`, `tokenizer` and `rate`."""
        raise NotImplementedError

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        """Answer these as one batch. All of them want speech, or none does."""
        raise NotImplementedError

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        self.options = options
        self.device, self.dtype = where(options)
        path, shared = source(options)
        torch.manual_seed(int(options.get("seed") or 0))
        self.start(path, shared, {**shared, "use_safetensors": True, "dtype": self.dtype})
        self.model.to(self.device)
        self.model.eval()
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.tokenizer.padding_side = "left"  # generation goes on at the right end of every row
        return {
            "rate": self.rate,
            "speech": self.speaks,
            "class": type(self.model).__name__,
            "device": torch.cuda.get_device_name(self.device) if self.device.startswith("cuda") else self.device,
            "dtype": str(self.dtype).removeprefix("torch."),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "versions": protocol.versions(PACKAGES),
        }

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        """Text and speech apart; an item with a seed of its own alone, so that its draws do not hang on its company."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, item in enumerate(items):
            draws = self.draws or item.speech
            alone = (draws and item.seed is not None) or self.alone(item)
            key = (item.speech, number if alone else None)
            groups.setdefault(key, []).append(number)
        out: dict[int, protocol.Answer] = {}
        for numbers in groups.values():
            chosen = [items[n] for n in numbers]
            if len(chosen) == 1 and chosen[0].seed is not None:
                torch.manual_seed(chosen[0].seed)
            with torch.inference_mode():
                out.update(zip(numbers, self.answer(chosen), strict=True))
        return [out[n] for n in range(len(items))]

    def alone(self, item: protocol.Item) -> bool:
        """Whether this item's answer would hang on what else is in its batch."""
        return False

    def recover(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @property
    def draws(self) -> bool:
        return bool(self.options.get("temperature"))

    def settings(self) -> dict[str, Any]:
        """Generation settings: greedy unless a temperature is given."""
        out: dict[str, Any] = {
            "max_new_tokens": int(self.options.get("max_tokens") or MAX_TOKENS),
            "do_sample": self.draws,
        }
        # None takes the checkpoint's own sampling values out of a greedy search, which would only warn about them
        out |= {"temperature": self.options.get("temperature") or None, "top_p": self.options.get("top_p")}
        if not self.draws:
            out |= {"top_p": None, "top_k": None}
        elif out["top_p"] is None:
            del out["top_p"]
        out["pad_token_id"] = self.tokenizer.pad_token_id
        return out

    def finish(self, row: torch.Tensor, ends: set[int], asked: dict[str, Any]) -> protocol.Answer:
        """The answer in one row of generated ids: up to its end token, or cut by the limit."""
        ids = [int(n) for n in row]
        stop = next((n for n, token in enumerate(ids) if token in ends), None)
        kept = ids if stop is None else ids[:stop]
        text = self.tokenizer.decode(kept, skip_special_tokens=True).strip()
        usage = {**asked, "output_tokens": len(kept)}
        return protocol.Answer(text, finish="length" if stop is None else "stop", usage=usage)


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """The ids that end a reply: what the checkpoint's generation settings name, else the tokenizer's."""
    found = model.generation_config.eos_token_id
    if found is None:
        found = tokenizer.eos_token_id
    return {int(n) for n in (found if isinstance(found, list | tuple) else [found]) if n is not None}


def conversation(
    item: protocol.Item, rate: int, longest: float | None, sound_part: Callable[[Samples, bytes], Content]
) -> tuple[list[dict[str, Any]], list[Samples], list[str]]:
    """The messages as a chat template takes them, their sounds in order, and notes on what was cut.

    Neighbouring texts of one message become one, a line each. `longest` is the most seconds the model hears of a clip.
    """
    messages: list[dict[str, Any]] = []
    sounds: list[Samples] = []
    notes: list[str] = []
    for role, parts in item.messages:
        content: list[Content] = []
        for part in parts:
            if isinstance(part, bytes):
                samples = samples_of(part, rate)
                sounds.append(samples)
                if longest is not None and len(samples) > longest * rate:
                    given = len(samples) / rate
                    notes.append(f"sound {len(sounds)} cut from {given:.1f} s to the {longest:.1f} s this model hears")
                content.append(sound_part(samples, part))
            elif content and content[-1]["type"] == "text":
                content[-1]["text"] += "\n" + part
            else:
                content.append({"type": "text", "text": part})
        messages.append({"role": role, "content": content})
    return messages, sounds, notes


def quiet() -> None:
    """Only what matters in the log."""
    transformers.logging.set_verbosity_warning()
    transformers.logging.disable_progress_bar()
