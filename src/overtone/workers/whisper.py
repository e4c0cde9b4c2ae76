"""Whisper from the Hugging Face library, run in the measuring environment: sounds in, transcripts out.

The option `model` is a folder or a hub id. The blobs of a call are mono float32 sounds at 16 kHz; `language` is their
language, or "" to detect it. Sounds longer than thirty seconds, Whisper's limit, are cut into pieces. Decoding is
greedy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import transformers
from transformers import WhisperForConditionalGeneration, WhisperProcessor

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol

RATE = 16_000


class Whisper:
    """A loaded model that answers calls."""

    def __init__(self, options: dict[str, Any]) -> None:
        name = str(options["model"])
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.float16 if self.device == "cuda" else torch.float32
        model: Any = WhisperForConditionalGeneration.from_pretrained(name, dtype=dtype, use_safetensors=True)
        self.model = model.eval().to(self.device)
        self.processor: Any = WhisperProcessor.from_pretrained(name)
        self.piece = int(self.processor.feature_extractor.n_samples)
        self.facts = {
            "rate": RATE,
            "model": _hf.identity(name, model.config, ("*.safetensors",)),
            "device": self.device,
            "versions": protocol.versions(("torch", "transformers")),
        }

    def __call__(self, header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        return {"texts": [self.text(np.frombuffer(b, np.float32), str(header.get("language", ""))) for b in blobs]}, []

    def text(self, sound: np.ndarray[Any, Any], language: str) -> str:
        multilingual = bool(getattr(self.model.generation_config, "is_multilingual", False))
        arguments = {"task": "transcribe", **({"language": language} if language else {})} if multilingual else {}
        texts = []
        for start in range(0, len(sound), self.piece):
            inputs = self.processor(sound[start : start + self.piece], sampling_rate=RATE, return_tensors="pt")
            features = inputs.input_features.to(self.device, self.model.dtype)
            with torch.inference_mode():
                tokens = self.model.generate(features, do_sample=False, num_beams=1, **arguments)
            texts.append(self.processor.batch_decode(tokens, skip_special_tokens=True)[0].strip())
        return " ".join(filter(None, texts))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    sys.exit(protocol.serve_calls(Whisper))
