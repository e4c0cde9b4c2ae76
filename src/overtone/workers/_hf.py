"""Shared code of the workers that run Hugging Face models: sounds as samples, loading, seeds, answers."""

from __future__ import annotations

import hashlib
import io
import wave
from collections.abc import Callable, Iterable
from pathlib import Path
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
    """Return the samples of a mono 16-bit WAV, full scale ±1. Raises Refused for other formats or another rate."""
    try:
        with wave.open(io.BytesIO(wav)) as file:
            shape = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise protocol.Refused("bad_clip", f"not a WAV: {error}") from None
    if shape != (1, 2, rate):
        raise protocol.Refused("bad_clip", f"a WAV of {shape[0]} channels, {shape[1] * 8} bits, {shape[2]} Hz")
    if len(data) < rate // 10:  # 0.05 s of two bytes each: too short for one step of an audio encoder
        raise protocol.Refused("bad_clip", f"a sound of {len(data) / 2 / rate:.3f} s is too short to be heard")
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768)


def wav_of(samples: torch.Tensor, rate: int) -> bytes:
    """Return a mono 16-bit WAV of a waveform of any shape."""
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


def _device_and_dtype(options: dict[str, Any]) -> tuple[str, torch.dtype]:
    """Return device and dtype (default: bfloat16 on a GPU if there is one, otherwise float32 on the CPU)."""
    device = options.get("device") or "auto"
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    name = options.get("dtype") or "auto"
    if name == "auto":
        name = "float32" if device == "cpu" else "bfloat16"
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype={name} is not a dtype of torch; use float32, bfloat16 or float16")
    return device, dtype


def _checkpoint(options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the checkpoint's folder or hub id, and the arguments that are common to all loaders."""
    if not options.get("model"):
        raise ValueError("model=PATH (a checkpoint's folder or hub id) is missing")
    shared = {"trust_remote_code": bool(options["trust_remote_code"]), "local_files_only": not options["hub"]}
    if options.get("revision"):
        shared["revision"] = options["revision"]
    return str(options["model"]), shared


class HfEngine:
    """The base class of engines. A worker file adds `start`, which loads the model, and `inputs`."""

    speaks = False
    model: Any
    tokenizer: Any
    rate: int

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        """Load the model (with `weights`) and its processor (with `shared`); set `model`, `tokenizer` and `rate`."""
        raise NotImplementedError

    def inputs(self, items: list[protocol.Item]) -> tuple[Any, list[list[str]]]:
        """Return the model's inputs for these items, with rows padded at the left, and each item's notes."""
        raise NotImplementedError

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        """Answer the items as one batch. Either all items need speech, or none of them."""
        inputs, notes = self.inputs(items)
        inputs = self.on_device(inputs)
        rows = self.model.generate(**inputs, **self.settings())
        ends = end_tokens(self.model, self.tokenizer)
        answers = self.read(rows, inputs, ends, getattr(self.model.config, "audio_token_id", None))
        for answer, own_notes in zip(answers, notes, strict=True):
            answer.notes = own_notes
        return answers

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        self.options = options
        self.device, self.dtype = _device_and_dtype(options)
        path, shared = _checkpoint(options)
        torch.manual_seed(int(options.get("seed") or 0))
        self.start(path, shared, {**shared, "use_safetensors": True, "dtype": self.dtype})
        self.model.to(self.device)
        self.model.eval()
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.tokenizer.padding_side = "left"  # generation continues at the right end of every row
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
        """Answer the items in batches: one batch for items with text only, one for items with speech.

        An item that is sampled with a seed, or for which `alone` returns True, forms a batch of its own.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, item in enumerate(items):
            samples = self.draws or item.speech
            alone = (samples and item.seed is not None) or self.alone(item)
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
        """Return whether this item's answer would depend on the rest of its batch."""
        return False

    def recover(self) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @property
    def draws(self) -> bool:
        return bool(self.options.get("temperature"))

    def settings(self) -> dict[str, Any]:
        """Return the generation settings: greedy, or sampling if a temperature is set."""
        out: dict[str, Any] = {
            "max_new_tokens": int(self.options.get("max_tokens") or MAX_TOKENS),
            "do_sample": self.draws,
        }
        # None removes the checkpoint's sampling values from a greedy search, which would warn about them
        out |= {"temperature": self.options.get("temperature") or None, "top_p": self.options.get("top_p")}
        if not self.draws:
            out |= {"top_p": None, "top_k": None}
        elif out["top_p"] is None:
            del out["top_p"]
        out["pad_token_id"] = self.tokenizer.pad_token_id
        return out

    def on_device(self, inputs: Any) -> dict[str, Any]:
        """Return the inputs with their tensors on the device, floating-point ones in the model's dtype."""

        def moved(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)

        return {name: moved(value) for name, value in inputs.items()}

    def read(
        self, rows: torch.Tensor, inputs: dict[str, Any], ends: set[int], audio_token: int | None
    ) -> list[protocol.Answer]:
        """Return the answer in each generated row. Its usage includes the number of tokens in the prompt."""
        ids = inputs["input_ids"]
        mask = inputs.get("attention_mask", torch.ones_like(ids))
        answers = []
        for n, row in enumerate(rows[:, ids.shape[1] :]):
            usage = {"input_tokens": int(mask[n].sum())}
            if audio_token is not None:
                usage["input_audio_tokens"] = int((ids[n] == audio_token).sum())
            answers.append(self.finish(row, ends, usage))
        return answers

    def finish(self, row: torch.Tensor, ends: set[int], prompt_usage: dict[str, Any]) -> protocol.Answer:
        """Return the answer in one row of generated ids: the ids before the end token, or all if there is no end."""
        ids = [int(n) for n in row]
        stop = next((n for n, token in enumerate(ids) if token in ends), None)
        kept = ids if stop is None else ids[:stop]
        text = self.tokenizer.decode(kept, skip_special_tokens=True).strip()
        usage = {**prompt_usage, "output_tokens": len(kept)}
        return protocol.Answer(text, finish="length" if stop is None else "stop", usage=usage)


def end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the ids that end a reply, from the checkpoint's generation settings, otherwise from the tokenizer."""
    ids = model.generation_config.eos_token_id
    if ids is None:
        ids = tokenizer.eos_token_id
    return {int(n) for n in (ids if isinstance(ids, list | tuple) else [ids]) if n is not None}


def conversation(
    item: protocol.Item, rate: int, longest: float | None, sound_part: Callable[[Samples, bytes], Content]
) -> tuple[list[dict[str, Any]], list[Samples], list[str]]:
    """Return the messages for a chat template, their sounds in order, and notes about sounds that were cut.

    Adjacent texts of one message are joined by line breaks. A clip is cut after `longest` seconds, the model's limit.
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


def identity(name: str, config: Any, patterns: Iterable[str], *, names: bool = False) -> str:
    """Return a model's name with the digest of its files (a folder) or with its commit (from the hub).

    `patterns` select the files of a folder; with `names` their names are part of the digest.
    """
    folder = Path(name)
    if not folder.is_dir():
        commit = str(getattr(config, "_commit_hash", None) or "")
        return f"{name}@{commit[:8] or 'unknown'}"
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}):
        if names:
            digest.update(path.name.encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return f"{folder.resolve().name}@{digest.hexdigest()[:8]}"


def quiet() -> None:
    """Reduce the log to warnings."""
    transformers.logging.set_verbosity_warning()
    transformers.logging.disable_progress_bar()
