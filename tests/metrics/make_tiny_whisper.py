"""Write a tiny Whisper with seeded random weights: `make_tiny_whisper.py FOLDER`, in the workers' environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizer,
)


def make(folder: Path) -> None:
    """Single bytes are its pieces; it writes at most twelve of them."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(c) for c in range(33, 127)] + [chr(c) for c in range(161, 173)] + [chr(c) for c in range(174, 324)]
    words = {letter: n for n, letter in enumerate(letters[:256])}
    words["<|endoftext|>"] = len(words)
    (folder / "vocab.json").write_text(json.dumps(words))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = WhisperTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    end = words["<|endoftext|>"]
    torch.manual_seed(5)
    config = WhisperConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=80, max_target_positions=24,
        decoder_start_token_id=end, bos_token_id=end, eos_token_id=end, pad_token_id=end, suppress_tokens=None,
        begin_suppress_tokens=None,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        decoder_start_token_id=end, bos_token_id=end, eos_token_id=end, pad_token_id=end, max_length=12
    )
    model.save_pretrained(folder)
    WhisperProcessor(WhisperFeatureExtractor(feature_size=80), tokenizer).save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
