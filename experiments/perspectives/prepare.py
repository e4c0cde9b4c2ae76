"""Write the files that the study's runs read, so that a machine with torch and numpy alone can run them.

    python -m experiments.perspectives.prepare --emobank DIR --dream DIR --out DIR

`data.json.gz` holds EmoBank, DREAM, Overtone-Open and the base model's replies (from `inputs`) as tokens, `weights.npz`
SmolLM2 in its GGUF's own blocks. Neither may be published: DREAM is for research only. The same sources give the same
bytes, which the results name by their SHA-256. `key.npz` has the labels, right options and baselines, with which
`overtone study report` analyses the results. Needs tokenizers and gguf (the environment of `overtone train`).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overtone.benchmarks.emobank.rating_questions import asked
from overtone.echat.net import config as configs
from overtone.echat.net.tokenizer import gguf_file, gguf_reader, open_tokenizer
from overtone.rated_sentences import PERSPECTIVES, Bank
from overtone.studies.perspectives.answers import KEY_FILE, Key
from overtone.studies.perspectives.inputs import read_inputs
from overtone.studies.perspectives.tokens import tokenise

from .data import Data

CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
INPUTS = Path(__file__).with_name("inputs")


class Encoder:
    """SmolLM2's tokenizer and its chat form, without a system turn."""

    def __init__(self) -> None:
        self.tokenizer = open_tokenizer(configs.read("mini").model)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def chat(self, asked: str) -> str:
        return CHAT.format(asked)


# ── EmoBank ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def bank_fields(bank: Bank) -> dict[str, Any]:
    """Return the fields of EmoBank that the study reads, as plain lists; its prompts hold the sentences."""
    return {
        "ids": bank.ids,
        "documents": bank.documents,
        "genres": bank.genres,
        "splits": bank.splits,
        "means": {who: bank.means[who].tolist() for who in PERSPECTIVES},
        "ratings": {who: [ratings.tolist() for ratings in bank.ratings[who]] for who in PERSPECTIVES},
    }


def cut(encoder: Encoder, prompts: Mapping[str, Sequence[list[int]]]) -> tuple[dict[str, list[int]], list[list[int]]]:
    """Return the first tokens of each prompt, and per sentence the rest, which all prompts share."""
    heads = {who: encoder.encode(encoder.chat(asked(who, "")).split("\nSentence:")[0]) for who in prompts}
    length = len(heads["reader"])
    if any(len(head) != length or prompts[who][0][:length] != head for who, head in heads.items()):
        raise ValueError("the prompts must have the same number of tokens")
    tails = [prompt[length:] for prompt in prompts["reader"]]
    for who, own in prompts.items():
        for number, (prompt, tail) in enumerate(zip(own, tails, strict=True)):
            if prompt[length:] != tail:
                raise ValueError(f"the prompts for {who} and reader split sentence {number} differently")
    return heads, tails


def restore_spaces(questions: Mapping[str, Sequence[dict[str, Any]]], folder: Path) -> None:
    """Put back the spaces around 36 turns that DREAM's reader removes: the results' data has them."""
    for name, split in (("dream", "test"), ("dream-train", "train")):
        dialogues = json.loads((folder / f"{split}.json").read_text(encoding="utf-8"))
        texts = {of: "\n".join(turns) for turns, _, of in dialogues}
        for row in questions[name]:
            row["dialogue"] = texts[row["about"]["cluster"]]


# ── the base model ────────────────────────────────────────────────────────────────────────────────────────────────────
def weights(heads: int = 9, kv_heads: int = 3, layers: int = 30) -> dict[str, np.ndarray]:
    """Return SmolLM2's weights under `model.Sizes`' names, quantised as they are: (out, blocks, bytes)."""
    found = {t.name: _blocks(t) for t in gguf_reader(gguf_file("")).tensors}

    def rotated(name: str, count: int) -> np.ndarray:  # llama.cpp interleaves the two halves of a head's rotation
        rows = found[name]
        return rows.reshape(count, -1, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)

    norms = [found[f"blk.{i}.{name}_norm.weight"] for i in range(layers) for name in ("attn", "ffn")]
    out = {"embed": found["token_embd.weight"], "norms": np.stack([*norms, found["output_norm.weight"]])}
    for i in range(layers):
        at = f"blk.{i}."
        q, k = rotated(f"{at}attn_q.weight", heads), rotated(f"{at}attn_k.weight", kv_heads)
        out |= {
            f"{i}.qkv": np.concatenate((q, k, found[f"{at}attn_v.weight"])),
            f"{i}.o": found[f"{at}attn_output.weight"],
            f"{i}.gate_up": np.concatenate((found[f"{at}ffn_gate.weight"], found[f"{at}ffn_up.weight"])),
            f"{i}.down": found[f"{at}ffn_down.weight"],
        }
    return out


def _blocks(tensor: Any) -> np.ndarray:
    size = {"F32": 0, "Q4_1": 20, "Q8_0": 34}[tensor.tensor_type.name]
    data = np.array(tensor.data)
    return data.reshape(len(data), -1, size) if size else data


def answer_key(folder: Path, baselines: Mapping[str, Mapping[str, Sequence[int]]]) -> Key:
    """Return the answer key of the data in a folder, with what the baselines without understanding answer."""
    key = Data.read(folder).key
    for name, right in baselines.items():
        key.answers[name].baselines.update({of: np.asarray(values, float) for of, values in right.items()})
    return key


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the files that the study's runs read.")
    for name in ("emobank", "dream", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    encoder = Encoder()
    inputs = read_inputs(args.emobank, args.dream, INPUTS / "open.jsonl.xz")
    restore_spaces(inputs.questions, args.dream)
    tokens = tokenise(inputs, encoder)
    heads, tails = cut(encoder, tokens.prompts)
    data = {
        "bank": bank_fields(inputs.bank),
        "heads": heads,
        "tails": tails,
        "digits": tokens.answer.digits[0],
        "space": tokens.answer.tokens[1],
        "replies": json.loads(lzma.decompress((INPUTS / "replies.json.xz").read_bytes())),
        "questions": {
            name: {"prompts": q.prompts, "options": q.options, "gold": q.gold, "about": q.about}
            for name, q in tokens.questions.items()
        },
        "windows": tokens.windows,
    }
    packed = gzip.compress(msgspec.json.encode(data), 9, mtime=0)
    (args.out / "data.json.gz").write_bytes(packed)
    np.savez(args.out / "weights.npz", **weights())
    answer_key(args.out, inputs.baselines).write(args.out / KEY_FILE)
    print(f"data.json.gz: SHA-256 {hashlib.sha256(packed).hexdigest()}")
    print(f"{len(packed) / 1e6:.1f} MB of data, {(args.out / 'weights.npz').stat().st_size / 1e6:.1f} MB of weights")


if __name__ == "__main__":
    main()
