"""The language model of a job: opened from SmolLM2's package or from a folder, with LoRA if it is large, and saved."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from overtone.echat.net import config as configs
from overtone.echat.net.backbone import open_lm
from overtone.echat.net.tokenizer import IM_END, IM_START, gguf_file, open_tokenizer
from overtone.errors import MissingExtra, UsageError, install_line
from overtone.paths import sha256, shown
from overtone.workers import model_source
from overtone.workers.causal_model import open_causal

LORA_ABOVE = 1_000_000_000  # parameters; larger models are tuned with LoRA unless told otherwise
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RANK, ALPHA = 16, 32
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass
class LanguageModel:
    """A causal language model with the functions `encode` and `chat`, which `tokens.Speaker` describes."""

    lm: Any
    encode: Callable[[str], list[int]]
    chat: Callable[[str], str]
    end: int | None  # the token that ends a reply
    save_tokenizer: Callable[[Path], None]
    sha256: str  # of its files
    lora: bool = False

    @property
    def learning(self) -> dict[str, torch.nn.Parameter]:
        """The parameters that are trained, by name."""
        return {name: p for name, p in self.lm.named_parameters() if p.requires_grad}


def open_model(
    source: str, *, lora: bool | None = None, seed: int = 0, device: torch.device | None = None
) -> LanguageModel:
    """Open `smollm2`, a folder that transformers reads, or LOADER:DIR.

    The weights are float32 or, with LoRA on a GPU, bf16. If `lora` is None, LoRA is used for models with more than a
    billion parameters. Code that comes with a model is never run. Raises UsageError or MissingExtra.
    """
    model = _smollm2() if source == "smollm2" else _folder(source)
    model.lora = sum(p.numel() for p in model.lm.parameters()) > LORA_ABOVE if lora is None else lora
    if model.lora:
        if device is not None and device.type == "cuda":
            model.lm.to(torch.bfloat16)
        model.lm = _with_lora(model.lm, seed)
    return model


def fingerprint(source: str) -> str:
    """Return the SHA-256 of a model's files, without loading it. Raises UsageError."""
    if source == "smollm2":
        return sha256(gguf_file(""))
    try:
        return model_source.fingerprint(model_source.check(source))
    except model_source.BadSource as error:
        raise UsageError(f"--model: {shown(str(error))}") from None


def _smollm2() -> LanguageModel:
    mini = configs.read("mini").model
    tokenizer = open_tokenizer(mini)
    lm = open_lm(mini.lm)
    lm.generation_config.eos_token_id = lm.config.eos_token_id = tokenizer.eos

    def save(folder: Path) -> None:
        from transformers import PreTrainedTokenizerFast

        inner = tokenizer.inner  # type: ignore[attr-defined]
        PreTrainedTokenizerFast(
            tokenizer_object=inner, eos_token=IM_END, pad_token=IM_END, chat_template=CHATML
        ).save_pretrained(folder)

    return LanguageModel(lm, tokenizer.encode, chatml, tokenizer.eos, save, fingerprint("smollm2"))


def chatml(asked: str) -> str:
    """Return a user's turn with the marks of SmolLM2, which many other models also use, without a system turn."""
    return f"{IM_START}user\n{asked}{IM_END}\n{IM_START}assistant\n"


def _folder(source: str) -> LanguageModel:
    try:
        lm, tokenizer = open_causal(source)
    except model_source.BadSource as error:
        raise UsageError(f"--model: {shown(str(error))}") from None

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    def chat(asked: str) -> str:
        turns = [{"role": "user", "content": asked}]
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))

    ends = lm.generation_config.eos_token_id
    end = tokenizer.eos_token_id if ends is None else ends[0] if isinstance(ends, list) else ends
    return LanguageModel(
        lm, encode, chat if tokenizer.chat_template else chatml, end, tokenizer.save_pretrained, fingerprint(source)
    )


def _with_lora(lm: Any, seed: int) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'peft' is not installed (LoRA); run: {install_line('train')}") from None
    there = {name.rpartition(".")[2] for name, module in lm.named_modules() if isinstance(module, torch.nn.Linear)}
    if not (targets := [name for name in TARGETS if name in there]):
        raise UsageError(
            f"--lora: the model has none of the layers {', '.join(TARGETS)}; train it whole with --no-lora"
        )
    torch.manual_seed(seed)  # the first matrices of LoRA are random
    wrapped = get_peft_model(lm, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, task_type="CAUSAL_LM"))
    wrapped.enable_input_require_grads()
    lm.gradient_checkpointing_enable({"use_reentrant": False})  # large models would not fit with all their states
    return wrapped


def save_model(model: LanguageModel, state: dict[str, Tensor], folder: Path) -> None:
    """Write a folder that transformers can read. LoRA is merged into the weights. `state` has the trained
    parameters."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    lm = model.lm
    if model.lora:
        lm.load_state_dict(state, strict=False)
        lm = lm.merge_and_unload()
        lm.save_pretrained(folder)
    else:
        tied = {name: state[first] for name, first in _tied(lm, state).items()}
        lm.save_pretrained(folder, state_dict={**state, **tied})
    model.save_tokenizer(folder)


def _tied(lm: Any, state: dict[str, Tensor]) -> dict[str, str]:
    """Return the second names of shared weights → the names under which `state` has them."""
    by_id: dict[int, list[str]] = {}
    for name, p in lm.named_parameters(remove_duplicate=False):
        by_id.setdefault(id(p), []).append(name)
    return {
        name: first for names in by_id.values() for first in names if first in state for name in names if name != first
    }


# ── logits ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def logits_at(lm: Any, ids: Tensor, at: Tensor) -> Tensor:
    """Return the logits after some positions of padded rows, (places, vocabulary), in float32.

    `at` holds the positions, counted through all rows. The logits of all positions would not fit into memory, and bf16
    logits would be off by up to 0.06.
    """
    head = lm.get_output_embeddings()
    plain = head.forward

    def few(hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            bias = None if head.bias is None else head.bias.float()
            return F.linear(hidden.flatten(0, 1)[at].float(), head.weight.float(), bias)[None]

    head.forward = few
    try:
        out: Tensor = lm(input_ids=ids, use_cache=False).logits[0]  # the model's own scaling and capping included
        return out.float()
    finally:
        head.forward = plain


def precision(device: torch.device) -> Any:
    """Return the context manager of a forward pass, which uses bf16 on a GPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()


def padded(rows: Sequence[Sequence[int]], length: int) -> Tensor:
    """Return rows as one array (rows, length). The end of a row is filled with 0, which causal attention never
    reads."""
    out = torch.zeros(len(rows), length, dtype=torch.long)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
    return out


# ── the base model's own replies ──────────────────────────────────────────────────────────────────────────────────────
@torch.no_grad()
def replies(
    model: LanguageModel, prompts: Sequence[str], device: torch.device, *, tokens: int = 80, batch: int = 48
) -> list[tuple[list[int], list[int]]]:
    """Return the model's greedy replies to general prompts: for each prompt, its tokens and those of the reply."""
    lm = model.lm.to(device).eval()
    asked = sorted((model.encode(model.chat(prompt)) for prompt in prompts), key=len)
    out: list[tuple[list[int], list[int]]] = []
    for first in range(0, len(asked), batch):
        part = asked[first : first + batch]
        longest = max(map(len, part))
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in part], device=device)
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in part], device=device)
        made = lm.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, eos_token_id=model.end,
            pad_token_id=0 if model.end is None else model.end,
        )  # fmt: skip
        for prompt, row in zip(part, made[:, longest:].tolist(), strict=True):
            out.append((prompt, row[: row.index(model.end) + 1] if model.end in row else row))
    return out
