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
LEFT_OUT = ("_name_or_path", "auto_map")  # of what a checkpoint tells: where it lay, and code that came with it
PLAIN = {"dtype": torch.float32, "attn_implementation": "sdpa", "trust_remote_code": False}  # how each is made


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
    """The language model in float32 with its weights; `empty`: of the sizes in the configuration, with random ones, for
    torch's meta device. Raises UsageError when it is not what the configuration says, or not what EChat can read."""
    if empty or config.source == "random":
        return fused(build(config))
    if config.source == "smollm2":
        model = build(config)
        path = gguf_file(config.weights)
        fill(model, smollm2_state(path, config), str(path), spare=doubles(model))
        return fused(model)
    return _hugging_face(config)


def _hugging_face(config: LMConfig) -> Any:
    """A model from a folder or by name. What is wrong with it is told now, not at the end of a stage."""
    from transformers import AutoModelForCausalLM

    where = shown(config.source)
    try:
        lm = AutoModelForCausalLM.from_pretrained(config.source, **PLAIN)
    except Exception as error:  # noqa: BLE001 - hundreds of families raise whatever they like
        raise UsageError(f"model.lm.source: no model can be read from {where!r}: {_first(error)}") from None
    try:
        table, output = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
        lm.config.tie_word_embeddings = table is output  # its weights are right where it says something else
        why = _unlike(lm) or _unread(lm) or _windowed(lm, config.context)
    except Exception as error:  # noqa: BLE001 - the same
        why = f"{type(error).__name__}: {_first(error)}"
    if why:
        raise UsageError(
            f"model.lm.source: {where} is a {type(lm).__name__}, which cannot be EChat's language model: {why}"
        )
    found = table_size(lm)
    if found != (config.hidden, config.vocab):
        raise UsageError(
            f"model.lm: {where} has hidden = {found[0]} and vocab = {found[1]}, the configuration "
            f"{config.hidden} and {config.vocab}"
        )
    room = getattr(lm.config.get_text_config(), "max_position_embeddings", None) or config.context
    if room < config.context:
        raise UsageError(
            f"model.lm: {where} has {room} positions, the configuration context = {config.context}; it can be no more"
        )
    return fused(lm)


# ── built again ─────────────────────────────────────────────────────────────────────────────────────────────────────


def told(lm: Any) -> dict[str, Any]:
    """What a checkpoint keeps of a language model besides its weights: its configuration, as transformers writes it."""
    found: dict[str, Any] = json.loads(lm.config.to_json_string())
    return {key: value for key, value in found.items() if key not in LEFT_OUT}


def rebuild(kind: Mapping[str, Any]) -> Any:
    """The language model that `told` told of, with random weights. Nothing is fetched for it, and no code is run that
    is not transformers' own. Raises ValueError for what tells of none."""
    from transformers import AutoConfig, AutoModelForCausalLM

    if "model_type" not in kind:
        raise ValueError("no family of models is named")
    known = {key: value for key, value in kind.items() if key not in LEFT_OUT}
    try:
        return fused(AutoModelForCausalLM.from_config(AutoConfig.for_model(**known), **PLAIN))
    except Exception as error:  # noqa: BLE001 - the same
        raise ValueError(_first(error)) from None


def doubles(lm: Any) -> set[str]:
    """Names of weights that are others' as well: of an output table that is the embedding."""
    every, once = ({name for name, _ in lm.named_parameters(remove_duplicate=one)} for one in (False, True))
    return every - once


def table_size(lm: Any) -> tuple[int, int]:
    """Width and rows of the embedding. What the configuration calls them differs from family to family."""
    rows, width = lm.get_input_embeddings().weight.shape
    return width, rows


def _unlike(lm: Any) -> str:
    """In what the model that a checkpoint would be read into is another one; empty when in nothing."""
    with torch.device("meta"):
        again = rebuild(told(lm))
    names = [{name: value.shape for name, value in one.state_dict().items()} for one in (lm, again)]
    if names[0] != names[1] or doubles(lm) != doubles(again):
        other = sorted({name for name, _ in names[0].items() ^ names[1].items()} | doubles(lm) ^ doubles(again))
        return f"built from its configuration it has another {other[0]}"
    return "" if told(again) == told(lm) else "its configuration is another when it is read again"


@torch.no_grad()
def _unread(lm: Any) -> str:
    """What goes wrong when three positions are read as EChat reads them: at once and one by one, hidden and not."""
    x = lm.get_input_embeddings()(torch.arange(3)[None])  # (1, 3, d)
    seen = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    hidden = lm.base_model(inputs_embeds=x, attention_mask=seen, use_cache=False).last_hidden_state
    first = lm.base_model(inputs_embeds=x[:, :2], attention_mask=None, use_cache=True)
    then = lm.base_model(
        inputs_embeds=x[:, 2:], attention_mask=seen[0, :, 2], past_key_values=first.past_key_values, use_cache=True
    )
    steps = torch.cat((first.last_hidden_state, then.last_hidden_state), 1)
    if hidden.shape != x.shape:
        return f"it reads vectors of {x.shape[2]} and makes some of {hidden.shape[2]}"
    if not _near(hidden, steps):
        return "read position by position it says something else"
    if not _near(lm.get_output_embeddings()(hidden), lm(inputs_embeds=x, use_cache=False).logits):
        return "its logits are not its output table's: they are scaled or capped"
    return ""


def _windowed(lm: Any, context: int) -> str:
    """How far back it looks, where that is not to the first position: training would let it look further, with masks of
    its own over what is hidden."""
    told = lm.config.get_text_config()
    window = getattr(told, "sliding_window", None)
    kinds = getattr(told, "layer_types", None) or ["sliding_attention"]  # a family without has one kind of layers
    used = getattr(told, "use_sliding_window", True) and "sliding_attention" in kinds
    if not used or not window or window >= context:
        return ""
    return f"it looks back over {window} positions alone, the configuration has context = {context}"


def _near(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and float((a - b).abs().max()) <= 0.01 * float(b.abs().max())


def _first(error: Exception) -> str:
    return shown((str(error).splitlines() or [type(error).__name__])[0])[:300]


# ── ours ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
