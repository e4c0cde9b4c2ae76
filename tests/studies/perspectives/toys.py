"""A tiny model with a tokenizer of letters, and a corpus of sentences whose labels follow from their words."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

WORDS = {"awful": 1.2, "sad": 2.0, "plain": 3.0, "good": 4.0, "great": 4.8}


def write_model(folder: Path) -> Path:
    import tokenizers
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    marks = ["<|im_start|>", "<|im_end|>"]
    letters = {letter: i for i, letter in enumerate(["§", *marks, *(chr(c) for c in range(32, 127)), "\n"])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(letters, unk_token="§"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    inner.add_special_tokens([tokenizers.AddedToken(mark, special=True) for mark in marks])
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="§", eos_token=marks[1]).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = LlamaConfig(
        vocab_size=len(letters), hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=1, bos_token_id=None, eos_token_id=2, tie_word_embeddings=True, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0}, max_position_embeddings=512,
    )  # fmt: skip
    LlamaForCausalLM(sizes).save_pretrained(folder)
    return folder


def write_corpus(folder: Path, count: int = 60) -> Path:
    """Write a corpus in the stated format: writers rate a point higher than readers where they can."""
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    sentences, ratings = [], []
    for i in range(count):
        word = list(WORDS)[i % 5]
        split = ("train", "train", "train", "dev", "test")[(i // 5) % 5]
        sentences.append((f"s{i}", f"{word} {i}", f"d{i // 4}", ("letters", "blog", "news")[i // 4 % 3], split))
        for who, more in (("reader", 0.0), ("writer", 0.6)):
            for _ in range(rng.integers(3, 6)):
                value = np.clip(WORDS[word] + more + rng.normal(0, 0.2, 3), 1, 5).round(2)
                ratings.append((f"s{i}", who, *value))
    for name, header, rows in (
        ("sentences.csv", ("id", "text", "document", "genre", "split"), sentences),
        ("ratings.csv", ("id", "perspective", "V", "A", "D"), ratings),
    ):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows((header, *rows))
    return folder
