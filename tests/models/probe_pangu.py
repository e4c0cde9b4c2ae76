"""Open an openPangu folder in the workers' environment and print what a test compares, as JSON: FOLDER AGAIN."""

from __future__ import annotations

import json
import sys

import torch
from causal_model import open_causal
from model_source import BadSource

CHAT = [{"role": "user", "content": "I am fine."}]


def seen(source: str, ids: list[int], texts: list[str]) -> dict[str, object]:
    try:
        model, tokenizer = open_causal(source)
    except BadSource as error:
        return {"error": str(error)}
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0]
    written = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    encoded = {text: tokenizer.encode(text, add_special_tokens=False) for text in texts}
    if len(sys.argv) > 2 and source.endswith(sys.argv[1]):
        model.save_pretrained(sys.argv[2])
        tokenizer.save_pretrained(sys.argv[2])
    return {
        "logits": logits.tolist(), "chat": written, "ids": tokenizer.encode(written, add_special_tokens=False),
        "texts": encoded, "decoded": [tokenizer.decode(ids) for ids in encoded.values()],
        "eos": tokenizer.eos_token_id, "pad": tokenizer.pad_token_id, "class": type(model).__name__,
        "greedy": not model.generation_config.do_sample, "ends": model.generation_config.eos_token_id,
    }  # fmt: skip


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    folders = [f"openpangu:{name}" for name in sys.argv[1:]]
    print(json.dumps([seen(folder, asked["ids"], asked["texts"]) for folder in folders]))
