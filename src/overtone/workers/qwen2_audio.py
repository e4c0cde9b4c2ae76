"""Qwen2-Audio: sound and text in, text out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from transformers import AutoProcessor, Qwen2AudioForConditionalGeneration

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol


class Qwen2Audio(_hf.HfEngine):
    """Qwen2-Audio. Its processor puts one audio token per step of the audio encoder's output into the chat template."""

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        self.processor = AutoProcessor.from_pretrained(path, **shared)
        self.model = Qwen2AudioForConditionalGeneration.from_pretrained(path, **weights)
        self.tokenizer = self.processor.tokenizer
        self.rate = int(self.processor.feature_extractor.sampling_rate)
        self.longest = self.processor.feature_extractor.n_samples / self.rate

    def inputs(self, items: list[protocol.Item]) -> tuple[Any, list[list[str]]]:
        texts: list[str] = []
        all_sounds: list[_hf.Samples] = []
        all_notes: list[list[str]] = []
        for item in items:
            messages, sounds, notes = _hf.conversation(item, self.rate, self.longest, lambda *_: {"type": "audio"})
            texts.append(self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
            all_sounds += sounds
            all_notes.append(notes)
        arguments = {"padding": True, "return_tensors": "pt", "sampling_rate": self.rate}
        return self.processor(text=texts, audio=all_sounds or None, **arguments), all_notes


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(Qwen2Audio()))
