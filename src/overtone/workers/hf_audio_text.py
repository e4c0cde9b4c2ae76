"""Any Hugging Face model that hears sound and writes text, through the auto classes."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, AutoModelForMultimodalLM, AutoModelForSeq2SeqLM, AutoProcessor

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol


class HfAudioText(_hf.HfEngine):
    """A model of an auto class, with its AutoProcessor. The chat template must support parts of type audio."""

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        self.processor = AutoProcessor.from_pretrained(path, **shared)
        self.model = _auto_class(path, shared).from_pretrained(path, **weights)
        self.tokenizer = self.processor.tokenizer
        extractor = getattr(self.processor, "feature_extractor", None) or getattr(
            self.processor, "audio_processor", None
        )
        self.rate = int(getattr(extractor, "sampling_rate", 16_000))
        # Mistral's tokenizer decodes sounds itself; every other processor takes samples
        self.encoded = type(self.processor).__name__.startswith("Voxtral")

    def inputs(self, items: list[protocol.Item]) -> tuple[Any, list[list[str]]]:
        read = [_hf.conversation(item, self.rate, None, self.part) for item in items]
        conversations, notes = [messages for messages, _, _ in read], [notes for _, _, notes in read]
        arguments = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
        # only the text: the processor decides how to pad sounds
        padding = (
            {} if self.encoded else {"processor_kwargs": {"text_kwargs": {"padding": True, "padding_side": "left"}}}
        )
        return self.processor.apply_chat_template(conversations, **arguments, **padding), notes

    def part(self, samples: _hf.Samples, wav: bytes) -> dict[str, Any]:
        if self.encoded:
            return {"type": "audio", "base64": base64.b64encode(wav).decode()}
        return {"type": "audio", "audio": samples}


def _auto_class(path: str, shared: dict[str, Any]) -> Any:
    """Return the auto class for a checkpoint: AutoModelForMultimodalLM or, for a few models, AutoModelForSeq2SeqLM."""
    kind = type(AutoConfig.from_pretrained(path, **shared))
    known = [c for c in (AutoModelForMultimodalLM, AutoModelForSeq2SeqLM) if kind in c._model_mapping]
    return known[0] if known else AutoModelForMultimodalLM


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(HfAudioText()))
