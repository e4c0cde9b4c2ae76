"""Any Hugging Face model that hears sound and writes text, through the auto classes."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoModelForMultimodalLM, AutoModelForSeq2SeqLM, AutoProcessor

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol


class HfAudioText(_hf.HfEngine):
    """An auto class with AutoProcessor, whose chat template must know parts of type audio."""

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        self.processor = AutoProcessor.from_pretrained(path, **shared)
        self.model = _auto_class(path, shared).from_pretrained(path, **weights)
        self.tokenizer = self.processor.tokenizer
        extractor = getattr(self.processor, "feature_extractor", None) or getattr(
            self.processor, "audio_processor", None
        )
        self.rate = int(getattr(extractor, "sampling_rate", 16_000))
        # Mistral's own tokenizer reads sounds itself and takes them encoded; every other processor takes samples
        self.encoded = type(self.processor).__name__.startswith("Voxtral")

    def inputs(self, items: list[protocol.Item]) -> tuple[Any, list[list[str]]]:
        """The model's inputs for these items, rows padded at the left, and each item's notes."""
        conversations: list[list[dict[str, Any]]] = []
        notes: list[list[str]] = []
        for item in items:
            messages, _, said = _hf.conversation(item, self.rate, None, self.part)
            conversations.append(messages)
            notes.append(said)
        told = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
        # the text alone: how sounds are padded is the processor's own affair
        padding = (
            {} if self.encoded else {"processor_kwargs": {"text_kwargs": {"padding": True, "padding_side": "left"}}}
        )
        return self.processor.apply_chat_template(conversations, **told, **padding), notes

    def part(self, samples: _hf.Samples, wav: bytes) -> dict[str, Any]:
        if self.encoded:
            return {"type": "audio", "base64": base64.b64encode(wav).decode()}
        return {"type": "audio", "audio": samples}

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        inputs, notes = self.inputs(items)
        moved = {k: self.moved(v) for k, v in inputs.items()}
        rows = self.model.generate(**moved, **self.settings())
        width = moved["input_ids"].shape[1]
        ends = _hf.end_tokens(self.model, self.tokenizer)
        token = getattr(self.model.config, "audio_token_id", None)
        mask = moved.get("attention_mask", torch.ones_like(moved["input_ids"]))
        out: list[protocol.Answer] = []
        for n, row in enumerate(rows[:, width:]):
            asked = {"input_tokens": int(mask[n].sum())}
            if token is not None:
                asked["input_audio_tokens"] = int((moved["input_ids"][n] == token).sum())
            out.append(self.finish(row, ends, asked))
            out[-1].notes = notes[n]
        return out

    def moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)


def _auto_class(path: str, shared: dict[str, Any]) -> Any:
    """Models that hear and write are filed under multimodal language models; a few only under sequence to sequence."""
    kind = type(AutoConfig.from_pretrained(path, **shared))
    known = [c for c in (AutoModelForMultimodalLM, AutoModelForSeq2SeqLM) if kind in c._model_mapping]
    return known[0] if known else AutoModelForMultimodalLM


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(HfAudioText()))
