"""Open any causal language model and its tokenizer. The worker, training and studies all use this module.

It imports torch and transformers, and nothing of Overtone but its neighbours, so that it also runs in the workers' own
environment. Code from a checkpoint is never run.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING or __package__:
    from overtone.workers import model_source
else:
    import model_source


def open_causal(source: str, dtype: torch.dtype = torch.float32, *, hub: bool = False) -> tuple[Any, Any]:
    """Load a causal language model, in evaluation mode on the CPU, and its tokenizer.

    `source` is the folder of a transformers checkpoint, or `LOADER:DIR` (see `model_source`). With `hub`, it may also
    be the hub id of a model, owner/name, which is downloaded unless it is cached. Raises BadSource.
    """
    loader, place = model_source.split(source)
    by_id = hub and not place.exists() and source.count("/") == 1 and not source.startswith((".", "/", "~"))
    folder = source if by_id else model_source.check(source)
    if loader:
        module = importlib.import_module(f"{__package__}.{model_source.LOADERS[loader]}".lstrip("."))
        model, tokenizer = module.open_model(folder, dtype)
        return model.eval(), tokenizer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    shared = {"trust_remote_code": False, "local_files_only": not by_id}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **shared)
        model, report = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **shared
        )
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise model_source.BadSource(_reason(folder, error)) from error
    if lost := sorted(report["missing_keys"]):  # transformers would fill them with random numbers
        raise model_source.BadSource(f"{folder} lacks {len(lost)} weights, e.g. {lost[0]}; copy the checkpoint again")
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise model_source.BadSource(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, but the model knows {rows}; use the model's own"
        )
    return model.eval(), tokenizer


def _reason(folder: Any, error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0][:300]
    if "trust_remote_code" in str(error):
        return f"{folder} needs Python code of its own, which is not run; use a model that transformers knows"
    return f"{folder} cannot be loaded as a causal language model ({type(error).__name__}: {first})"
