"""Open openPangu-Embedded (1B, 7B) without its remote code, which transformers 5 cannot run.

The network is Llama's with biases on the four attention projections, so the published weights are read into
transformers' own Llama. The tokenizer is the checkpoint's SentencePiece model. Imports torch and transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AddedToken, LlamaConfig, LlamaForCausalLM
from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

if TYPE_CHECKING or __package__:
    from overtone.workers import model_source
else:
    import model_source

MODEL_TYPE = "PanguEmbedded"
THOUGHT = ("[unused16]", "[unused17]")  # begin and end of a thought
SWITCHES = {"off": " /no_think", "auto": " /auto_think", "slow": ""}  # at the end of the last user turn
_SAME = (  # fields of config.json that mean the same in LlamaConfig
    "attention_dropout", "bos_token_id", "eos_token_id", "head_dim", "hidden_act", "hidden_size", "initializer_range",
    "intermediate_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
    "pad_token_id", "rms_norm_eps", "tie_word_embeddings", "vocab_size",
)  # fmt: skip
_BUFFER = "rotary_emb.inv_freq"  # some copies store it; it follows from the configuration


class PanguTokenizer(SentencePieceBackend):  # type: ignore[misc]
    """The published SentencePiece model with its special tokens. Bytes of rare characters are joined when decoding."""

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return str(self.sp_model.decode(tokens))


def open_model(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """Return the model and the tokenizer of a published checkpoint, or of one trained from it. Raises BadSource."""
    config = model_source.read_config(folder)
    tokenizer = _open_tokenizer(folder)
    if config["model_type"] == "llama" and config.get("attention_bias"):  # written by training
        model = LlamaForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True, local_files_only=True)
    elif config["model_type"] == MODEL_TYPE:
        model = _read_weights(folder, _llama(folder, config), dtype)
    else:
        raise model_source.BadSource(
            f"{folder} is a {config['model_type']!r} model, not {MODEL_TYPE!r}; give it without 'openpangu:'"
        )
    if len(tokenizer) > config["vocab_size"]:
        raise model_source.BadSource(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, but the model knows {config['vocab_size']}"
        )
    # The published settings sample and stop at [unused10] only because the tokenizer says so.
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.do_sample = False
    return model, tokenizer


def _llama(folder: Path, config: dict[str, Any]) -> LlamaConfig:
    """Return the Llama configuration that corresponds to a published one. Raises BadSource if a field is missing."""
    needed = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "num_key_value_heads",
              "rope_theta", "vocab_size")  # fmt: skip
    if lost := [name for name in needed if name not in config]:
        raise model_source.BadSource(f"{folder}/config.json has no {lost[0]}; copy the checkpoint again")
    same = {name: config[name] for name in _SAME if name in config}
    rope = {"rope_type": "default", "rope_theta": float(config["rope_theta"])}
    return LlamaConfig(attention_bias=bool(config.get("bias", True)), mlp_bias=False, rope_parameters=rope, **same)


def _read_weights(folder: Path, config: LlamaConfig, dtype: torch.dtype) -> Any:
    """Build the model and fill it shard by shard, so that no second copy is in memory. Raises BadSource."""
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    state: dict[str, torch.Tensor] = {}
    for shard in _shards(folder):
        try:
            with safe_open(shard, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - the file is not a mapping
                    if not name.endswith(_BUFFER):
                        state[name] = file.get_tensor(name).to(dtype)
        except (OSError, SafetensorError) as error:
            raise model_source.BadSource(f"{shard} cannot be read ({error}); copy the checkpoint again") from None
    if config.tie_word_embeddings and "lm_head.weight" not in state and "model.embed_tokens.weight" in state:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    for name, shape in wanted.items():
        if name not in state:
            raise model_source.BadSource(f"{folder} lacks the weight {name}; copy the checkpoint again")
        if tuple(state[name].shape) != shape:
            have = tuple(state[name].shape)
            raise model_source.BadSource(f"{folder}: {name} has the shape {have}; config.json asks for {shape}")
    if unknown := sorted(state.keys() - wanted.keys()):
        raise model_source.BadSource(f"{folder} has a weight that this network does not have: {unknown[0]}")
    model.load_state_dict(state, strict=True, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its values are computed, not stored
    return model


def _shards(folder: Path) -> list[Path]:
    """Return the files of weights, in the order of the index. Raises BadSource for one that is missing."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return [folder / "model.safetensors"]
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise model_source.BadSource(f"{index} cannot be read ({error!r}); copy the checkpoint again") from None
    paths = [folder / str(name) for name in names]
    for path in paths:
        if path.parent != folder or not path.is_file():
            raise model_source.BadSource(f"{path} is missing; copy all shards that {index.name} names")
    return paths


def _open_tokenizer(folder: Path) -> PanguTokenizer:
    """Read the tokenizer. Its chat template writes the begin token exactly once, at the start. Raises BadSource."""
    path = folder / "tokenizer_config.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        added = {int(n): AddedToken(**token) for n, token in settings.get("added_tokens_decoder", {}).items()}
        named = {name: settings[name] for name in ("bos_token", "eos_token", "unk_token", "pad_token")}
        template = settings.get("chat_template") or (folder / "chat_template.jinja").read_text(encoding="utf-8")
        tokenizer = PanguTokenizer(
            vocab_file=str(folder / "tokenizer.model"), legacy=True, added_tokens_decoder=added,
            extra_special_tokens=[str(token) for token in added.values() if token.special],
            clean_up_tokenization_spaces=False, **named,
        )  # fmt: skip
    except ImportError:
        raise model_source.BadSource(
            "openPangu's tokenizer needs sentencepiece; run: pip install sentencepiece"
        ) from None
    except Exception as error:  # noqa: BLE001 - SentencePiece raises several kinds for a damaged file
        raise model_source.BadSource(f"{path} or tokenizer.model cannot be read ({error!r}); copy them again") from None
    # One of the two published templates writes <s> itself; the other leaves it to the tokenizer.
    begins = str(tokenizer.bos_token) in template or "bos_token" in template
    tokenizer.chat_template = template if begins else "{{ bos_token }}" + template
    tokenizer.thought_ids = tuple(tokenizer.convert_tokens_to_ids(mark) for mark in THOUGHT)
    tokenizer.thinking_switches = SWITCHES
    return tokenizer
