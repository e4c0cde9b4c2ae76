"""The language model: SmolLM2 from its package's GGUF file, any causal model of Hugging Face, or a small random one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.echat.net.config import LMConfig
from overtone.echat.net.model import fill
from overtone.echat.net.tokenizer import cached_bytes, gguf_file, gguf_reader
from overtone.errors import DataError, UsageError
from overtone.paths import shown

NAMES = {  # GGUF's name → transformers' name
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
LEFT_OUT = ("_name_or_path", "auto_map")  # not stored in a checkpoint: the source path and the model's own code
PLAIN = {"dtype": torch.float32, "attn_implementation": "sdpa", "trust_remote_code": False}  # arguments for all models


class RMSNorm(nn.Module):
    """RMS normalisation as one kernel, in the input's dtype.

    transformers' version has six kernels and converts to float32, which keeps three copies of every position's state,
    twice per layer.
    """

    def __init__(self, weight: nn.Parameter, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = weight, eps

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):  # autocast would convert to float32 here too
            return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)


def fused(lm: Any) -> Any:
    """Replace the language model's RMS normalisations by fused ones if they are equivalent. Names and weights stay."""
    for name, module in list(lm.named_modules()):
        weight, eps = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
        if isinstance(weight, nn.Parameter) and isinstance(eps, float) and not weight.is_meta:
            made = RMSNorm(weight, eps)
            x = torch.linspace(-1, 2, weight.numel(), device=weight.device)[None]
            with torch.no_grad():  # some families add 1 to the weight, or normalise differently
                plain = torch.allclose(made(x), module(x), rtol=1e-4, atol=1e-6)
            if plain:
                lm.set_submodule(name, made)
    return lm


def open_lm(config: LMConfig) -> Any:
    """Load the language model in float32.

    Raises UsageError if the model differs from the configuration, or if EChat cannot use it.
    """
    if config.source == "random":
        return fused(build(config))
    if config.source == "smollm2":
        model = build(config)
        path = gguf_file(config.weights)
        fill(model, smollm2_state(path, config), str(path), spare=tied_names(model))
        return fused(model)
    return _hugging_face(config)


def _hugging_face(config: LMConfig) -> Any:
    """Load a model from a folder or by name, and check it now instead of failing at the end of a stage."""
    from transformers import AutoModelForCausalLM

    where = shown(config.source)
    try:
        lm = AutoModelForCausalLM.from_pretrained(config.source, **PLAIN)
    except Exception as error:  # noqa: BLE001 - model families raise many kinds of errors
        raise UsageError(f"model.lm.source: cannot load a model from {where!r}: {_first(error)}") from None
    try:
        table, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
        lm.config.tie_word_embeddings = table is output  # the weights are authoritative
        why = _not_rebuildable(lm) or _not_readable(lm) or _windowed(lm, config.context)
    except Exception as error:  # noqa: BLE001 - as above
        why = f"{type(error).__name__}: {_first(error)}"
    if why:
        raise UsageError(f"model.lm.source: {where} is a {type(lm).__name__}, which EChat cannot use: {why}")
    size = table_size(lm)
    if size != (config.hidden, config.vocab):
        raise UsageError(
            f"model.lm: {where} has hidden = {size[0]} and vocab = {size[1]}, but the configuration has "
            f"{config.hidden} and {config.vocab}"
        )
    room = getattr(lm.config.get_text_config(), "max_position_embeddings", None) or config.context
    if room < config.context:
        raise UsageError(f"model.lm: {where} has {room} positions, but context = {config.context}; lower context")
    return fused(lm)


# ── rebuilding ──────────────────────────────────────────────────────────────────────────────────────────────────────
def saved_config(lm: Any) -> dict[str, Any]:
    """Return the configuration of a language model that a checkpoint stores, as transformers writes it."""
    config: dict[str, Any] = json.loads(lm.config.to_json_string())
    return {key: value for key, value in config.items() if key not in LEFT_OUT}


def rebuild(kind: Mapping[str, Any]) -> Any:
    """Build the language model of a `saved_config`, with random weights.

    Nothing is downloaded, and only transformers' own code runs. Raises ValueError for an invalid configuration.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    if "model_type" not in kind:
        raise ValueError("model_type is missing")
    config = {key: value for key, value in kind.items() if key not in LEFT_OUT}
    try:
        return fused(AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), **PLAIN))
    except Exception as error:  # noqa: BLE001 - as above
        raise ValueError(_first(error)) from None


def tied_names(lm: Any) -> set[str]:
    """Return the additional names of shared weights, for example an output table that is also the embedding table."""
    every, once = ({name for name, _ in lm.named_parameters(remove_duplicate=one)} for one in (False, True))
    return every - once


def table_size(lm: Any) -> tuple[int, int]:
    """Return the embedding's width and number of rows. Model families name these differently in the configuration."""
    rows, width = lm.get_input_embeddings().weight.shape
    return width, rows


def _not_rebuildable(lm: Any) -> str:
    """Return a message if a model that is rebuilt from its configuration would differ from the original; otherwise
    ""."""
    with torch.device("meta"):
        again = rebuild(saved_config(lm))
    names = [{name: value.shape for name, value in one.state_dict().items()} for one in (lm, again)]
    if names[0] != names[1] or tied_names(lm) != tied_names(again):
        other = sorted({name for name, _ in names[0].items() ^ names[1].items()} | tied_names(lm) ^ tied_names(again))
        return f"rebuilt from its configuration, it has a different {other[0]}"
    return "" if saved_config(again) == saved_config(lm) else "its configuration changes when it is read again"


@torch.no_grad()
def _not_readable(lm: Any) -> str:
    """Return a message if EChat cannot run this language model; otherwise "".

    The test runs three positions, all at once and one by one.
    """
    x = lm.get_input_embeddings()(torch.arange(3)[None])  # (1, 3, d)
    seen = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    hidden = lm.base_model(inputs_embeds=x, attention_mask=seen, use_cache=False).last_hidden_state
    first = lm.base_model(inputs_embeds=x[:, :2], attention_mask=None, use_cache=True)
    then = lm.base_model(
        inputs_embeds=x[:, 2:], attention_mask=seen[0, :, 2], past_key_values=first.past_key_values, use_cache=True
    )
    steps = torch.cat((first.last_hidden_state, then.last_hidden_state), 1)
    if hidden.shape != x.shape:
        return f"its input width is {x.shape[2]}, but its output width {hidden.shape[2]}"
    if not _near(hidden, steps):
        return "its outputs differ when it reads step by step"
    if not _near(lm.get_output_embeddings()(hidden), lm(inputs_embeds=x, use_cache=False).logits):
        return "its logits are scaled or capped after the output table"
    return ""


def _windowed(lm: Any, context: int) -> str:
    """Return a message if the model's attention window is shorter than the context; otherwise "".

    Training uses its own masks and would exceed the window.
    """
    config = lm.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]  # families without it have one kind of layer
    used = getattr(config, "use_sliding_window", True) and "sliding_attention" in kinds
    if not used or not window or window >= context:
        return ""
    return f"its attention window has {window} positions, but context = {context}"


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and float((a - b).abs().max()) <= 0.01 * float(b.abs().max())


def _first(error: Exception) -> str:
    return shown((str(error).splitlines() or [type(error).__name__])[0])[:300]


# ── random models and SmolLM2 ───────────────────────────────────────────────────────────────────────────────────────
def build(config: LMConfig) -> Any:
    """Build a random model of the configured sizes."""
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
    """Read a Llama's 4-bit weights from a GGUF file, de-quantised and rounded to half precision."""
    from safetensors.numpy import save
    from safetensors.torch import load

    data = cached_bytes(path, "model.safetensors", lambda: save(_gguf_arrays(path, config)))
    return {name: value.float() for name, value in load(data).items()}


def _gguf_arrays(path: Path, config: LMConfig) -> dict[str, Any]:
    from gguf.quants import dequantize

    arrays = {}
    for tensor in gguf_reader(path).tensors:
        name = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.weight", tensor.name)
        if not name or name[2] not in NAMES:
            raise DataError(f"{shown(str(path))}: {shown(tensor.name)} is not a weight of a Llama")
        value = dequantize(tensor.data, tensor.tensor_type)
        if name[2] in ("attn_q", "attn_k"):  # llama.cpp interleaves the two halves of a head's rotation
            heads = config.heads if name[2] == "attn_q" else config.kv_heads
            value = value.reshape(heads, -1, 2, value.shape[-1]).swapaxes(1, 2).reshape(value.shape)
        prefix = f"model.layers.{name[1]}." if name[1] else ""
        arrays[f"{prefix}{NAMES[name[2]]}.weight"] = np.ascontiguousarray(value, np.float16)
    return arrays
