"""Make the two inputs of `prepare.py` that take long to make. They are in the repository, so nobody has to run this.

    overtone build open --out OPEN
    python -m experiments.perspectives.inputs --open OPEN

`inputs/open.jsonl.xz` has Overtone-Open's core questions of levels 1 and 2 with the words that the recogniser heard in
the clips (ours, CC BY 4.0; building and transcribing the set takes 24 minutes). `inputs/replies.json.xz` has the base
model's replies to general prompts as tokens; on another machine its greedy choices could differ. Needs torch,
transformers, tokenizers and gguf (the environment of `overtone train`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from overtone.benchmarks import Selection, selected
from overtone.benchmarks.open import Open
from overtone.echat.net import config as configs
from overtone.echat.net.tokenizer import IM_END

from .prepare import INPUTS, Encoder

PLAIN = Path(configs.__file__).parents[1] / "making/texts/plain.toml"
REPLY_TOKENS = 80


def open_questions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the questions on target and alternative clips: the item's own fields, the true words, those heard."""
    facts = [json.loads(line) for line in (folder / "facts.jsonl").read_text(encoding="utf-8").splitlines()]
    transcripts = {fact["sha256"]: fact["transcript"] for fact in facts}
    for item in selected(Open(folder), Selection(frozenset({1, 2}), frozenset({"target", "alternative"}))):
        if item.task != "choose" or item.part:
            continue
        said = item.turns[-1]
        clip = (folder / said.clip.path).read_bytes() if said.clip else b""
        yield {
            "id": item.id, "group": item.group, "level": item.level, "category": item.category, "cue": item.cue,
            "style": item.style, "status": item.status, "words": said.words,
            "heard": transcripts[hashlib.sha256(clip).hexdigest()], "question": item.question,
            "options": [option.text for option in item.options],
            "gold": [option.letter for option in item.options].index(item.gold),
        }  # fmt: skip


def replies(encode: Encoder, batch: int = 48) -> list[tuple[list[int], list[int]]]:
    """Return the base model's own greedy replies to general prompts."""
    import torch

    from overtone.echat.net.backbone import open_lm

    lm = open_lm(configs.read("mini").model.lm).eval()
    questions = [pair["question"] for pair in tomllib.loads(PLAIN.read_text(encoding="utf-8"))["plain"]]
    asked = sorted((encode.chat(q) for q in questions), key=len)
    end = encode(IM_END)[0]
    out: list[tuple[list[int], list[int]]] = []
    for first in range(0, len(asked), batch):
        part = asked[first : first + batch]
        longest = max(map(len, part))
        ids = torch.tensor([[end] * (longest - len(row)) + row for row in part])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in part])
        with torch.no_grad():
            made = lm.generate(
                ids,
                attention_mask=mask,
                max_new_tokens=REPLY_TOKENS,
                do_sample=False,
                eos_token_id=end,
                pad_token_id=end,
            )
        for prompt, row in zip(part, made[:, longest:].tolist(), strict=True):
            reply = row[: row.index(end) + 1] if end in row else row
            out.append((prompt, reply))
        print(f"replies: {len(out)}/{len(asked)}", flush=True)
    return out


def write(name: str, text: str) -> None:
    INPUTS.mkdir(exist_ok=True)
    (INPUTS / name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the inputs that take long.")
    parser.add_argument("--open", type=Path, required=True, help="folder that `overtone build open` made")
    args = parser.parse_args()
    lines = [json.dumps(row, ensure_ascii=False) for row in open_questions(args.open)]
    write("open.jsonl.xz", "\n".join(lines) + "\n")
    write("replies.json.xz", json.dumps(replies(Encoder())))


if __name__ == "__main__":
    main()
