"""Print, as JSON, what a worker gives its model against what the model's own code would.

Runs in the workers' environment. Usage: probe_inputs.py tokens|processor KIND FOLDER [KIND FOLDER …]. `tokens` lists,
for sounds of many lengths, how many audio tokens the prompt has and how many steps the audio encoder makes.
`processor` compares all inputs with AutoProcessor's.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import _hf
import numpy as np
import protocol
import torch

SECONDS = (0.06, 0.3, 0.99, 1.0, 1.013, 2.0, 2.5, 3.7, 4.99, 5.0, 6.0)
CLASSES = {"qwen2_audio": "Qwen2Audio", "qwen2_5_omni": "Qwen25Omni", "qwen3_omni": "Qwen3Omni"}


def engine_of(kind: str, folder: str) -> Any:
    engine = getattr(importlib.import_module(kind), CLASSES[kind])()
    engine.load({"model": folder, "trust_remote_code": False, "hub": False, "speech": "no"})
    return engine


def sound(seconds: float) -> bytes:
    noise = np.random.default_rng(int(seconds * 1000)).normal(0, 0.1, round(seconds * 16000))
    return _hf.wav_of(torch.from_numpy(noise), 16000)


def tokens(kind: str, folder: str) -> dict[str, Any]:
    engine = engine_of(kind, folder)
    token = engine.model.config.audio_token_id if kind == "qwen2_audio" else engine.audio_token_id()
    out: dict[str, Any] = {}
    for seconds in SECONDS:
        inputs, notes = engine.inputs([protocol.Item(0, [("user", [sound(seconds), "What?"])])])
        counted = int((inputs["input_ids"] == token).sum())
        out[str(seconds)] = {"tokens": counted, "steps": steps(engine, kind, inputs), "notes": notes[0]}
    return out


def steps(engine: Any, kind: str, inputs: Any) -> int:
    features, mask = inputs["input_features"], inputs["feature_attention_mask"]
    with torch.inference_mode():
        if kind == "qwen2_audio":
            lengths = engine.model.model.audio_tower._get_feat_extract_output_lengths(mask.sum(-1))
            return int(lengths[1].sum())
        heard = engine.model.thinker.get_audio_features(features, feature_attention_mask=mask)
        return int(heard.last_hidden_state.shape[0])


def processor(kind: str, folder: str) -> dict[str, Any]:
    from transformers import (
        AutoProcessor,
        Qwen2_5OmniProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3OmniMoeProcessor,
    )

    engine = engine_of(kind, folder)
    full = Path(folder).with_name(kind + "-full")
    made = {"qwen2_5_omni": Qwen2_5OmniProcessor, "qwen3_omni": Qwen3OmniMoeProcessor}[kind]
    engine.model.config.save_pretrained(full)
    made(
        Qwen2VLImageProcessor(),
        Qwen2VLVideoProcessor(),
        engine.extractor,
        engine.tokenizer,
        chat_template=engine.template,
    ).save_pretrained(full)
    theirs = AutoProcessor.from_pretrained(full)
    theirs.tokenizer.padding_side = "left"
    wavs = [sound(s) for s in (1.3, 2.55)]
    items = [protocol.Item(n, [("user", [wav, "What?" * (n + 1)])]) for n, wav in enumerate(wavs)]
    ours, _ = engine.inputs(items)
    chats = [
        [{"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": "What?" * (n + 1)}]}] for n in (0, 1)
    ]
    texts = [theirs.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in chats]
    heard = [_hf.samples_of(wav, 16000) for wav in wavs]
    reference = theirs(text=texts, audio=heard, return_tensors="pt", padding=True)
    gaps: list[float] = []
    for n in range(len(wavs)):
        single = theirs(text=texts[n : n + 1], audio=heard[n : n + 1], return_tensors="pt")  # the batch as if alone
        mine = ours["input_features"][n][:, ours["feature_attention_mask"][n].bool()]
        other = single["input_features"][0][:, single["feature_attention_mask"][0].bool()]
        gaps.append(float((mine - other).abs().max()) if mine.shape == other.shape else float("inf"))
    same = {k: bool(torch.equal(ours[k], reference[k])) for k in ("input_ids", "attention_mask")}
    return {"class": type(theirs).__name__, "gaps": gaps, **same}


if __name__ == "__main__":
    _hf.quiet()
    probe = {"tokens": tokens, "processor": processor}[sys.argv[1]]
    print(json.dumps({kind: probe(kind, place) for kind, place in zip(sys.argv[2::2], sys.argv[3::2], strict=True)}))
