"""Write a tiny random openPangu checkpoint in the published layout, and its logits by the published equations.

Runs in the workers' environment: FOLDER. The folder gets config.json, two shards with an index, and a SentencePiece
tokenizer trained here. It prints JSON: for some texts the ids by SentencePiece, and for one row of ids the logits.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from safetensors.torch import save_file
from torch import Tensor

SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2}
MARKS = [f"[unused{n}]" for n in range(34)]
ROLES = {"system": "系统：", "user": "用户：", "assistant": "助手："}
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '[unused9]系统：[unused10]' }}{% endif %}"
    + "".join(
        f"{{% if message['role'] == '{role}' %}}"
        f"{{{{ '[unused9]{name}' + message['content'] + '[unused10]' }}}}{{% endif %}}"
        for role, name in ROLES.items()
    )
    + "{% endfor %}{% if add_generation_prompt %}{{ '[unused9]助手：' }}{% endif %}"
)
TEXTS = ["Where is she going?", "我很好，谢谢。", "café 😀 42", "  two  spaces"]


def write_tokenizer(folder: Path) -> int:
    """Train a byte-pair model with byte fallback. Return its number of pieces."""
    corpus = folder / "corpus.txt"
    corpus.write_text(
        "\n".join(["Where is she going today?", "我很好，谢谢你。", "系统：用户：助手：", "I am fine."] * 50)
    )
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(folder / "tokenizer"), model_type="bpe", vocab_size=420,
        byte_fallback=True, add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity",
        user_defined_symbols=MARKS, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    corpus.unlink()
    (folder / "tokenizer.vocab").unlink()
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    shape = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    added = {str(pieces.piece_to_id(mark)): {"content": mark, **shape} for mark in ["<unk>", "<s>", "</s>", *MARKS]}
    settings = {
        "add_bos_token": True, "added_tokens_decoder": added, "bos_token": "<s>", "eos_token": "[unused10]",
        "unk_token": "<unk>", "pad_token": "<unk>", "tokenizer_class": "PanguTokenizer", "chat_template": TEMPLATE,
        "auto_map": {"AutoTokenizer": ["tokenization_openpangu.PanguTokenizer", None]},
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return int(pieces.get_piece_size())


def write_weights(folder: Path, vocabulary: int, eos: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    config = {
        "architectures": ["PanguEmbeddedForCausalLM"], "model_type": "PanguEmbedded", "bias": True,
        "hidden_act": "silu",
        "bos_token_id": 1, "pad_token_id": 0, "eos_token_id": eos, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 16000000.0, "tie_word_embeddings": False, "vocab_size": vocabulary, **SIZES,
        "auto_map": {"AutoModelForCausalLM": "modeling_openpangu_dense.PanguEmbeddedForCausalLM"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    width, inner, head = 32, 40, 8
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, width),
        "model.norm.weight": (width,),
    }
    shapes["lm_head.weight"] = (vocabulary, width)
    for n in range(3):
        at = f"model.layers.{n}."
        for name, rows in (("q", width), ("k", 2 * head), ("v", 2 * head), ("o", width)):
            shapes |= {f"{at}self_attn.{name}_proj.weight": (rows, width), f"{at}self_attn.{name}_proj.bias": (rows,)}
        shapes |= {f"{at}mlp.{name}_proj.weight": (inner, width) for name in ("gate", "up")}
        shapes[f"{at}mlp.down_proj.weight"] = (width, inner)
        shapes |= {f"{at}{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
    torch.manual_seed(0)
    weights = {name: 0.3 * torch.randn(shape) + ("norm" in name) for name, shape in shapes.items()}
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, own in shards.items():
        save_file({name: weights[name] for name in own}, folder / file)
    index = {"metadata": {}, "weight_map": {name: file for file, own in shards.items() for name in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return config, weights


def logits(weights: dict[str, Tensor], ids: list[int]) -> Tensor:
    """Return (positions, vocabulary), written from the equations: RMSNorm, rotated grouped attention, gated MLP."""

    def norm(x: Tensor, name: str) -> Tensor:
        return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * weights[name]

    def linear(x: Tensor, name: str) -> Tensor:
        bias = weights.get(f"{name}.bias")
        out = x @ weights[f"{name}.weight"].T
        return out if bias is None else out + bias

    def rotated(x: Tensor) -> Tensor:  # (positions, heads, 8): pairs are (i, i + 4)
        angle = torch.arange(len(ids))[:, None] / 16000000.0 ** (torch.arange(4) / 4)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        low, high = x[..., :4], x[..., 4:]
        return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)

    x = weights["model.embed_tokens.weight"][ids]
    hidden = torch.full((len(ids), len(ids)), -math.inf).triu(1)
    for n in range(3):
        at = f"model.layers.{n}."
        y = norm(x, f"{at}input_layernorm.weight")
        q = rotated(linear(y, f"{at}self_attn.q_proj").view(-1, 4, 8))
        k = rotated(linear(y, f"{at}self_attn.k_proj").view(-1, 2, 8)).repeat_interleave(2, 1)
        v = linear(y, f"{at}self_attn.v_proj").view(-1, 2, 8).repeat_interleave(2, 1)
        shares = (torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(8) + hidden).softmax(-1)
        mixed = torch.einsum("hqk,khd->qhd", shares, v).reshape(len(ids), -1)
        x = x + linear(mixed, f"{at}self_attn.o_proj")
        y = norm(x, f"{at}post_attention_layernorm.weight")
        gate = linear(y, f"{at}mlp.gate_proj")
        x = x + linear(gate * gate.sigmoid() * linear(y, f"{at}mlp.up_proj"), f"{at}mlp.down_proj")
    return norm(x, "model.norm.weight") @ weights["lm_head.weight"].T


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tokenizer(folder)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    _, weights = write_weights(folder, vocabulary, pieces.piece_to_id("[unused10]"))
    ids = [1, *pieces.encode("Where is she going?")]
    out = {
        "texts": {text: pieces.encode(text) for text in TEXTS},
        "ids": ids,
        "logits": logits(weights, ids).tolist(),
        "marks": {mark: pieces.piece_to_id(mark) for mark in MARKS},
    }
    print(json.dumps(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
