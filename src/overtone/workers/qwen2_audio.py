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
    """Its processor renders the chat template and puts one audio token for each step of the encoder's output."""

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        self.processor = AutoProcessor.from_pretrained(path, **shared)
        self.model = Qwen2AudioForConditionalGeneration.from_pretrained(path, **weights)
        self.tokenizer = self.processor.tokenizer
        self.rate = int(self.processor.feature_extractor.sampling_rate)
        self.longest = self.processor.feature_extractor.n_samples / self.rate

    def inputs(self, items: list[protocol.Item]) -> tuple[Any, list[list[str]]]:
        """The model's inputs for these items, rows padded at the left, and each item's notes."""
        texts: list[str] = []
        sounds: list[_hf.Samples] = []
        notes: list[list[str]] = []
        for item in items:
            messages, heard, said = _hf.conversation(item, self.rate, self.longest, lambda *_: {"type": "audio"})
            texts.append(self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
            sounds += heard
            notes.append(said)
        told = {"padding": True, "return_tensors": "pt", "sampling_rate": self.rate}
        return self.processor(text=texts, audio=sounds or None, **told), notes

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        inputs, notes = self.inputs(items)
        inputs = inputs.to(self.device)
        if "input_features" in inputs:
            inputs["input_features"] = inputs["input_features"].to(self.dtype)
        rows = self.model.generate(**inputs, **self.settings())[:, inputs["input_ids"].shape[1] :]
        ends = _hf.end_tokens(self.model, self.tokenizer)
        audio_tokens = (inputs["input_ids"] == self.model.config.audio_token_id).sum(-1)
        out: list[protocol.Answer] = []
        for n, row in enumerate(rows):
            asked = {"input_tokens": int(inputs["attention_mask"][n].sum()), "input_audio_tokens": int(audio_tokens[n])}
            out.append(self.finish(row, ends, asked))
            out[-1].notes = notes[n]
        return out


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(Qwen2Audio()))
