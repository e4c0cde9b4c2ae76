"""Write the two files that the study's runs read, so that a machine with torch and numpy alone can run them.

    python -m experiments.perspectives.prepare --emobank DIR --dream DIR --out DIR

`data.json.gz` holds EmoBank, DREAM, Overtone-Open and the base model's replies (from `inputs`) as tokens, `weights.npz`
SmolLM2 in its GGUF's own blocks. Neither may be published: DREAM is for research only. The same sources give the same
bytes, which the results name by their SHA-256. Needs tokenizers and gguf (the environment of `overtone train`).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overtone.benchmarks.emobank.files import read_bank
from overtone.benchmarks.emobank.prompts import ASK, WHO
from overtone.cues import BY_SLUG
from overtone.echat.net import config as configs
from overtone.echat.net.tokenizer import gguf_file, gguf_reader, open_tokenizer
from overtone.rated_sentences import PERSPECTIVES, Bank

CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
INPUTS = Path(__file__).with_name("inputs")
WINDOW, WINDOWS = 256, 96  # of the plain text


class Encoder:
    """SmolLM2's tokenizer and its chat form, without a system turn."""

    def __init__(self) -> None:
        self.tokenizer = open_tokenizer(configs.read("mini").model)

    def __call__(self, text: str) -> list[int]:
        return self.tokenizer.encode(text)

    def chat(self, asked: str) -> list[int]:
        return self(CHAT.format(asked))


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


def prompts(encode: Encoder, texts: list[str]) -> tuple[dict[str, list[int]], list[list[int]]]:
    """Return the first tokens of each prompt, and per sentence the rest, which all prompts share."""
    whole = {who: encode.chat(ASK.format(who=asked, text=texts[0])) for who, asked in WHO.items()}
    common = re.escape("\nSentence:")
    heads = {
        who: encode(re.split(common, CHAT.format(ASK.format(who=asked, text="")))[0]) for who, asked in WHO.items()
    }
    length = len(heads["reader"])
    if any(len(head) != length or whole[who][:length] != head for who, head in heads.items()):
        raise ValueError("the prompts must have the same number of tokens")
    tails = []
    for text in texts:
        tail, *others = (encode.chat(ASK.format(who=asked, text=text))[length:] for asked in WHO.values())
        if any(other != tail for other in others):
            raise ValueError(f"the prompts split this sentence differently: {text}")
        tails.append(tail)
    return heads, tails


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def dream(encode: Encoder, path: Path) -> dict[str, Any]:
    """Return DREAM's questions as the fields of `data.Questions`, with and without their dialogues."""
    out: dict[str, Any] = {"prompts": {"words": [], "none": []}, "options": [], "gold": [], "about": []}
    for turns, questions, name in json.loads(path.read_text(encoding="utf-8")):
        for q in questions:
            asked = f"Question: {q['question']}"
            out["prompts"]["words"].append(encode.chat("\n".join(turns) + f"\n\n{asked}"))
            out["prompts"]["none"].append(encode.chat(asked))
            out["options"].append([encode(option) for option in q["choice"]])
            out["gold"].append(q["choice"].index(q["answer"]))
            out["about"].append({"cluster": name})
    return out


def open_questions(encode: Encoder, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return Overtone-Open's questions as the fields of `data.Questions`.

    A question has four conditions: the true words, the recogniser's, the true words with the cue told, and neither.
    """
    out: dict[str, Any] = {
        "prompts": {c: [] for c in ("words", "heard", "told", "none")}, "options": [], "gold": [], "about": [],
    }  # fmt: skip
    for row in rows:
        for condition, lead in leads(row).items():
            out["prompts"][condition].append(encode.chat(f"{lead}Question: {row['question']}"))
        out["options"].append([encode(option) for option in row["options"]])
        out["gold"].append(row["gold"])
        about = {name: row[name] for name in ("level", "category", "cue", "style", "status")}
        out["about"].append({"id": row["id"], "cluster": row["group"], **about})
    return out


def leads(row: dict[str, Any]) -> dict[str, str]:
    """Return what comes before the question in each condition."""
    return {
        "words": f'A person says: "{row["words"]}"\n\n',
        "heard": f'A person says: "{row["heard"]}"\n\n',
        "told": f'A person says: "{row["words"]}"\n{BY_SLUG[row["cue"]].option}\n\n',
        "none": "",
    }


def windows(encode: Encoder, path: Path) -> list[list[int]]:
    """Return pieces of DREAM's dev dialogues as plain text."""
    dialogues = ["\n".join(turns) for turns, _, _ in json.loads(path.read_text(encoding="utf-8"))]
    ids = encode("\n\n".join(dialogues[:600]))
    return [ids[i : i + WINDOW] for i in range(0, WINDOW * WINDOWS, WINDOW)]


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the files that the study's runs read.")
    for name in ("emobank", "dream", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    encode = Encoder()
    bank = read_bank(args.emobank)
    heads, tails = prompts(encode, bank.texts)
    rows = [json.loads(line) for line in lzma.decompress((INPUTS / "open.jsonl.xz").read_bytes()).splitlines()]
    data = {
        "bank": bank_fields(bank),
        "heads": heads,
        "tails": tails,
        "digits": [encode(str(d))[0] for d in range(10)],
        "space": encode("5 5")[1],
        "replies": json.loads(lzma.decompress((INPUTS / "replies.json.xz").read_bytes())),
        "questions": {
            "open": open_questions(encode, rows),
            "dream": dream(encode, args.dream / "test.json"),
            "dream-train": dream(encode, args.dream / "train.json"),
        },
        "windows": windows(encode, args.dream / "dev.json"),
    }
    packed = gzip.compress(msgspec.json.encode(data), 9, mtime=0)
    (args.out / "data.json.gz").write_bytes(packed)
    np.savez(args.out / "weights.npz", **weights())
    print(f"data.json.gz: SHA-256 {hashlib.sha256(packed).hexdigest()}")
    print(f"{len(packed) / 1e6:.1f} MB of data, {(args.out / 'weights.npz').stat().st_size / 1e6:.1f} MB of weights")


if __name__ == "__main__":
    main()
