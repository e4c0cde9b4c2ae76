"""A tiny model with a tokenizer of letters, and a corpus of sentences whose labels follow from their words."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from overtone.studies.perspectives.design import TOML

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


def write_emobank(folder: Path, count: int = 36) -> Path:
    """Write EmoBank's files: whole ratings, three genres, six documents of each, and every fifth sentence in test."""
    rng = np.random.default_rng(1)
    folder.mkdir(exist_ok=True)
    ids = [f"s{i}" for i in range(count)]
    words = [list(WORDS)[i % 5] for i in range(count)]
    means: dict[str, np.ndarray] = {}
    for who, more in (("reader", 0.0), ("writer", 0.4)):
        level = np.array([WORDS[word] + more for word in words])[:, None, None]
        single = np.clip(np.rint(level + rng.normal(0, 0.6, (count, 4, 3))), 1, 5).astype(int)
        single[:, 0, 0] = np.maximum(single[:, 0, 0], 2)  # the authors dropped ratings of 1, 1, 1
        single = np.where((single == 1).all(2, keepdims=True), 2, single)
        means[who] = single.mean(1)
        rated = [[name, *row] for name, rows in zip(ids, single.tolist(), strict=True) for row in rows]
        _write(folder / f"individual_{who}_ratings.csv", [["id", "V", "A", "D"], *rated])
        lines = [[name, *mean, 0, 0, 0, 4] for name, mean in zip(ids, means[who].round(2).tolist(), strict=True)]
        _write(folder / f"{who}.csv", [["id", "V", "A", "D", "stdV", "stdA", "stdD", "N"], *lines])
    both = ((means["reader"] + means["writer"]) / 2).round(2).tolist()
    splits = [("train", "train", "dev", "train", "test")[i % 5] for i in range(count)]
    rows = [[ids[i], splits[i], *both[i], f"{words[i]} {i}"] for i in range(count)]
    _write(folder / "emobank.csv", [["id", "split", "V", "A", "D", "text"], *rows])
    genres = ("letters", "blog", "news")
    meta = [[ids[i], f"{genres[i % 3]} {i // 6}", genres[i % 3], "x"] for i in range(count)]
    lines = ["\t".join(row) + "\n" for row in (["id", "document", "category", "subcategory"], *meta)]
    (folder / "meta.tsv").write_text("".join(lines), encoding="utf-8")
    return folder


def write_dream(folder: Path, dialogues: int = 4) -> Path:
    """Write DREAM's three files, a question or two about each of a few dialogues."""
    folder.mkdir(exist_ok=True)
    for number, split in enumerate(("train", "dev", "test")):
        found = []
        for i in range(dialogues + 4 * (split == "train")):
            word = list(WORDS)[i % 5]
            asked = {"question": "How is it?", "choice": ["good", "bad", word + " it is"], "answer": word + " it is"}
            more = {"question": "Who asks?", "choice": ["M", "W", "no one"], "answer": "M"}
            found.append([[f"M: Is it {word}?", f"W: It is {word}."], [asked, more][: 1 + i % 2], f"{number}-{i}"])
        (folder / f"{split}.json").write_text(json.dumps(found), encoding="utf-8")
    return folder


def write_open(path: Path, scripts: int = 8) -> Path:
    """Write questions of Overtone-Open, two to a script, one of each level."""
    rows = [
        {
            "id": f"q{i}", "group": f"script {i // 2}", "level": 1 + i % 2, "category": "emotion", "cue": "male",
            "style": "target", "status": "core", "words": f"well {i}", "heard": f"wel {i}", "question": "Who?",
            "options": ["a man", "a woman", "a child", "no one"][: 4 - i % 2], "gold": i % 3,
        }
        for i in range(2 * scripts)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_study(path: Path, *changes: tuple[str, str]) -> Path:
    """Write the published study file with few steps and two seeds."""
    text = TOML.read_text(encoding="utf-8")
    few = (("steps = 750", "steps = 3"), ("steps = 400", "steps = 3"), ("rows = 32", "rows = 8"))
    for old, new in (*few, ("rows = 16", "rows = 4"), ("seeds = [0, 1, 2, 3, 4]", "seeds = [0, 1]"), *changes):
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def _write(path: Path, rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
