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
import json
import lzma
from pathlib import Path

import torch

from overtone.studies.perspectives.inputs import general_prompts, read_open
from overtone.studies.perspectives.language_model import open_model, replies

from .prepare import INPUTS


def write(name: str, text: str) -> None:
    INPUTS.mkdir(exist_ok=True)
    (INPUTS / name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the inputs that take long.")
    parser.add_argument("--open", type=Path, required=True, help="folder that `overtone build open` made")
    args = parser.parse_args()
    rows = [{name: value for name, value in row.items() if name != "about"} for row in read_open(args.open)]
    write("open.jsonl.xz", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write("replies.json.xz", json.dumps(replies(open_model("smollm2"), general_prompts(), torch.device("cpu"))))


if __name__ == "__main__":
    main()
