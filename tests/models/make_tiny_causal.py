"""Write a tiny random Llama and reference likelihoods. Runs in the workers' environment: FOLDER [PROMPT OPTION …].

With texts, it prints the summed log-probability of each option after the prompt as JSON, each computed alone, from the
logits of a forward pass over the whole text. Without a template, the tokenizer has none.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from make_tiny import SPECIAL, tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}<|im_end|>\n{% endfor %}assistant: "
)


def write(folder: Path, template: bool) -> None:
    torch.manual_seed(0)
    made = tokenizer()
    made.chat_template = TEMPLATE if template else None
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        vocab_size=len(made) + len(SPECIAL), initializer_range=0.4, max_position_embeddings=512,
        bos_token_id=None, eos_token_id=made.convert_tokens_to_ids("<|im_end|>"), **sizes,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    made.save_pretrained(folder)


def likelihoods(folder: Path, prompt: str, options: list[str]) -> list[float]:
    model, made = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    before = made.encode(prompt, add_special_tokens=False)
    found = []
    for option in options:
        ids = made.encode(option, add_special_tokens=False)
        with torch.no_grad():
            chances = model(input_ids=torch.tensor([before + ids])).logits[0].log_softmax(-1)
        found.append(float(sum(chances[len(before) + at - 1, token] for at, token in enumerate(ids))))
    return found


if __name__ == "__main__":
    place, *texts = sys.argv[1:]
    if texts in (["template"], ["plain"]):
        write(Path(place), texts == ["template"])
    else:
        print(json.dumps(likelihoods(Path(place), texts[0], texts[1:])))
