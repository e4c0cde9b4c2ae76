"""The language model: SmolLM2 from its package's GGUF file, any causal model of Hugging Face, or a small random one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.echat.net.config import LMConfig
from overtone.echat.net.model import fill
from overtone.echat.net.tokenizer import gguf_file, gguf_reader, kept
from overtone.errors import DataError, UsageError
from overtone.paths import shown

NAMES = {  # of GGUF → of transformers
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class RMSNorm(nn.Module):
    """A normalisation by the root of the mean square as one kernel, in the width of what it is given. transformers' has
    six, and widens to float32: three copies of every position's state, twice a layer."""

    def __init__(self, weight: nn.Parameter, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = weight, eps

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # it would widen here too
            return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


def fused(lm: Any) -> Any:
    """The language model with its normalisations fused, where they are plain ones; names and weights stay."""
    for name, module in list(lm.named_modules()):
        weight, eps = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
        if isinstance(weight, nn.Parameter) and isinstance(eps, float) and not weight.is_meta:
            made = RMSNorm(weight, eps)
            x = torch.linspace(-1, 2, weight.numel(), device=weight.device)[None]
            with torch.no_grad():  # some families add 1 to the weight, or do without its mean
                plain = torch.allclose(made(x), module(x), rtol=1e-4, atol=1e-6)
            if plain:
                lm.set_submodule(name, made)
    return lm


def open_lm(config: LMConfig, *, empty: bool = False) -> Any:
    """The language model in float32 with its weights; `empty`: only its sizes, with random ones, for a checkpoint to
    fill or for torch's meta device. Raises UsageError when it is not what the configuration says."""
    return fused(_opened(config, empty))


def _opened(config: LMConfig, empty: bool) -> Any:
    if empty or config.source == "random":
        return build(config)
    if config.source == "smollm2":
        model = build(config)
        path = gguf_file(config.weights)
        fill(model, smollm2_state(path, config), str(path), spare={"lm_head.weight"} if config.tied else ())
        return model
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(config.source, dtype=torch.float32)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"model.lm.source: no model can be read from {shown(config.source)!r}: {first}") from None
    found = (model.config.hidden_size, model.get_input_embeddings().weight.shape[0])
    if found != (config.hidden, config.vocab):
        raise UsageError(
            f"model.lm: {shown(config.source)} has hidden = {found[0]} and vocab = {found[1]}, the configuration "
            f"{config.hidden} and {config.vocab}"
        )
    return model


def build(config: LMConfig) -> Any:
    """A model of these sizes, random."""
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

    kind = {"llama": LlamaConfig, "qwen2": Qwen2Config}[config.family]
    sizes = kind(
        vocab_size=config.vocab,
        hidden_size=config.hidden,
        intermediate_size=config.ffn,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        max_position_embeddings=config.context,
        rope_parameters={"rope_type": "default", "rope_theta": config.theta},
        rms_norm_eps=1e-5 if config.family == "llama" else 1e-6,
        tie_word_embeddings=config.tied,
        attn_implementation="sdpa",
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return AutoModelForCausalLM.from_config(sizes, dtype=torch.float32)


def smollm2_state(path: Path, config: LMConfig) -> dict[str, Tensor]:
    """A Llama's weights out of a GGUF file, de-quantised and rounded to half precision (of 4 bits each)."""
    from safetensors.numpy import save
    from safetensors.torch import load

    data = kept(path, "model.safetensors", lambda: save(_gguf_arrays(path, config)))
    return {name: value.float() for name, value in load(data).items()}


def _gguf_arrays(path: Path, config: LMConfig) -> dict[str, Any]:
    from gguf.quants import dequantize

    found = {}
    for tensor in gguf_reader(path).tensors:
        name = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name)
        if not name or name[2] not in NAMES:
            raise DataError(f"{shown(str(path))}: holds {shown(tensor.name)}, which no Llama has")
        value = dequantize(tensor.data, tensor.tensor_type)
        if name[2] in ("attn_q", "attn_k"):  # llama.cpp interleaves the two halves of a head's rotation
            heads = config.heads if name[2] == "attn_q" else config.kv_heads
            value = value.reshape(heads, -1, 2, value.shape[-1]).swapaxes(1, 2).reshape(value.shape)
        prefix = f"model.layers.{name[1]}." if name[1] else ""
        found[f"{prefix}{NAMES[name[2]]}.weight"] = np.ascontiguousarray(value, np.float16)
    return found
