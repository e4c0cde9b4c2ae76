"""Write a tiny checkpoint with random weights of one of the workers' model classes. Runs in the workers' environment.

Usage: make_tiny.py KIND FOLDER [KIND FOLDER …]. Everything a real checkpoint has is there: configuration, safetensors,
tokenizer, feature extractor, chat template, voices. Weights are drawn wide, so that replies depend on what is heard.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    AudioFlamingo3Config,
    AudioFlamingo3ForConditionalGeneration,
    AudioFlamingo3Processor,
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    Qwen2Tokenizer,
    Qwen3OmniMoeConfig,
    Qwen3OmniMoeForConditionalGeneration,
    WhisperFeatureExtractor,
)

WIDE = 0.4  # standard deviation of the weights
BINS = 16
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|IMAGE|>"]
SPECIAL += ["<|VIDEO|>", "<|vision_bos|>", "<|vision_eos|>", "<tts_pad>", "<tts_bos>", "<tts_eos>", "<sound>"]

TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou help.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|audio_bos|>AUDIO_TOKEN<|audio_eos|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> Qwen2Tokenizer:
    """Bytes, the role names as one token each (Qwen3-Omni looks for them), and the special tokens."""
    vocab = {c: n for n, c in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in ("user", "assistant", "system"):
        for n in range(1, len(word)):
            merges.append((word[:n], word[n]))
            vocab.setdefault(word[: n + 1], len(vocab))
    names = {"audio_token": "<|AUDIO|>", "audio_bos_token": "<|audio_bos|>", "audio_eos_token": "<|audio_eos|>"}
    names |= {"image_token": "<|IMAGE|>", "video_token": "<|VIDEO|>"}
    names |= {"vision_bos_token": "<|vision_bos|>", "vision_eos_token": "<|vision_eos|>"}
    made = Qwen2Tokenizer(vocab=vocab, merges=merges, eos_token="<|im_end|>", extra_special_tokens=names)
    made.add_special_tokens({"additional_special_tokens": SPECIAL})
    return made


def extractor() -> WhisperFeatureExtractor:
    return WhisperFeatureExtractor(feature_size=BINS, chunk_length=5)


def text_part(vocab: int, **more: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return {
        **sizes,
        "num_key_value_heads": 2,
        "vocab_size": vocab,
        "rope_parameters": rope,
        "initializer_range": WIDE,
        **more,
    }


def audio_part(**more: Any) -> dict[str, Any]:
    sizes = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    return {**sizes, "num_mel_bins": BINS, "initializer_range": WIDE, "max_source_positions": 250, **more}


def mrope() -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}


def qwen2_audio(folder: Path) -> None:
    words = tokenizer()
    ids = words.convert_tokens_to_ids
    text = text_part(len(words), model_type="qwen2")
    config = Qwen2AudioConfig(text_config=text, audio_config=audio_part(), audio_token_index=ids("<|AUDIO|>"))
    save(Qwen2AudioForConditionalGeneration(config), folder, ids("<|im_end|>"))
    template = TEMPLATE.replace("AUDIO_TOKEN", "<|AUDIO|>")
    Qwen2AudioProcessor(extractor(), words, chat_template=template).save_pretrained(folder)


def audio_flamingo(folder: Path) -> None:
    words = tokenizer()
    ids = words.convert_tokens_to_ids
    audio = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    audio |= {"num_mel_bins": BINS, "max_source_positions": 250, "initializer_range": WIDE}
    text = text_part(len(words), model_type="qwen2")
    config = AudioFlamingo3Config(text_config=text, audio_config=audio, audio_token_id=ids("<sound>"))
    save(AudioFlamingo3ForConditionalGeneration(config), folder, ids("<|im_end|>"))
    template = TEMPLATE.replace("AUDIO_TOKEN", "<sound>")
    AudioFlamingo3Processor(extractor(), words, chat_template=template).save_pretrained(folder)


def qwen2_5_omni(folder: Path) -> None:
    words = tokenizer()
    ids = words.convert_tokens_to_ids
    places = {"audio_token_index": ids("<|AUDIO|>"), "image_token_index": ids("<|IMAGE|>")}
    places |= {"video_token_index": ids("<|VIDEO|>")}
    edges = {"audio_start_token_id": ids("<|audio_bos|>"), "audio_end_token_id": ids("<|audio_eos|>")}
    edges |= {"vision_start_token_id": ids("<|vision_bos|>"), "vision_end_token_id": ids("<|vision_eos|>")}
    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 32}
    thinker = {
        "audio_config": audio_part(output_dim=32, n_window=50),
        "vision_config": {**vision, "fullatt_block_indexes": [0]},
        "text_config": text_part(len(words), rope_parameters=mrope(), tie_word_embeddings=False),
        "eos_token_id": ids("<|im_end|>"),
        "initializer_range": WIDE,
        **places,
        **edges,
    }
    talker = {
        **text_part(8448, rope_parameters=mrope(), num_hidden_layers=1),
        "head_dim": 8,
        "embedding_size": 32,
        "tts_text_start_token_id": ids("<tts_bos>"),
        "tts_text_end_token_id": ids("<tts_eos>"),
        "tts_text_pad_token_id": ids("<tts_pad>"),
        **places,
        **edges,
    }
    dit = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16, "emb_dim": 16}
    # random weights draw any code, so every code of the talker gets an embedding; a trained one keeps to the first 8193
    dit |= {"num_embeds": 8448, "mel_dim": BINS, "enc_emb_dim": 8, "enc_dim": 8, "enc_channels": [8, 8, 8, 8, 24]}
    dit |= {"enc_attention_channels": 8, "enc_se_channels": 8, "look_ahead_layers": [0], "look_backward_layers": [0]}
    wave = {
        "mel_dim": BINS,
        "upsample_initial_channel": 64,
        "resblock_kernel_sizes": [3],
        "resblock_dilation_sizes": [[1, 3, 5]],
    }
    config = Qwen2_5OmniConfig(
        thinker_config=thinker, talker_config=talker, token2wav_config={"dit_config": dit, "bigvgan_config": wave}
    )
    save(Qwen2_5OmniForConditionalGeneration(config), folder, ids("<|im_end|>"))
    voice = {"bos_token": ids("<tts_bos>"), "cond": torch.randn(1, 8), "ref_mel": torch.randn(1, 40, BINS)}
    torch.save({"Chelsie": voice, "Ethan": voice}, folder / "spk_dict.pt")
    save_parts(words, folder)


def qwen3_omni(folder: Path) -> None:
    words = tokenizer()
    ids = words.convert_tokens_to_ids
    places = {
        "audio_token_id": ids("<|AUDIO|>"),
        "image_token_id": ids("<|IMAGE|>"),
        "video_token_id": ids("<|VIDEO|>"),
    }
    vision = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 32}
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    thinker = {
        "audio_config": audio_part(output_dim=32, downsample_hidden_size=8),
        "vision_config": {**vision, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
        "text_config": text_part(len(words), rope_parameters=mrope(), head_dim=8, **experts),
        "audio_start_token_id": ids("<|audio_bos|>"),
        "vision_start_token_id": ids("<|vision_bos|>"),
        "user_token_id": ids("user"),
        "initializer_range": WIDE,
        **places,
    }
    talker_text = text_part(3072, rope_parameters=mrope(), head_dim=8, **experts)
    talker_text |= {"shared_expert_intermediate_size": 16}
    predictor = {**text_part(2048), "head_dim": 8, "num_hidden_layers": 1, "num_code_groups": 4}
    talker = {
        "text_config": talker_text,
        "code_predictor_config": predictor,
        "num_code_groups": 4,
        "thinker_hidden_size": 32,
        "accept_hidden_layer": 1,
        "codec_eos_token_id": 2150,
        "codec_nothink_id": 2155,
        "codec_think_bos_id": 2156,
        "codec_think_eos_id": 2157,
        "codec_pad_id": 2148,
        "codec_bos_id": 2149,
        "vision_start_token_id": ids("<|vision_bos|>"),
        "audio_start_token_id": ids("<|audio_bos|>"),
        "speaker_id": {"ethan": 2302, "chelsie": 2301},
        "spatial_merge_size": 2,
        **places,
    }
    wave = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 32}
    wave |= {"num_hidden_layers": 1, "num_quantizers": 4, "decoder_dim": 32}
    roles = {f"{role}_token_id": ids(role) for role in ("system", "user", "assistant")}
    spoken = {f"tts_{name}_token_id": ids(f"<tts_{name}>") for name in ("pad", "bos", "eos")}
    config = Qwen3OmniMoeConfig(
        thinker_config=thinker,
        talker_config=talker,
        code2wav_config=wave,
        im_start_token_id=ids("<|im_start|>"),
        im_end_token_id=ids("<|im_end|>"),
        **roles,
        **spoken,
    )
    save(Qwen3OmniMoeForConditionalGeneration(config), folder, ids("<|im_end|>"))
    save_parts(words, folder)


def save(model: Any, folder: Path, end: int) -> None:
    writer = model.thinker if hasattr(model, "thinker") else model
    with torch.no_grad():
        if writer is not model:  # some layers of the Omni models leave theirs as they find the memory, at times NaN
            for parameter in model.parameters():
                if parameter.dim() > 1 or not parameter.isfinite().all():
                    parameter.normal_(std=0.05)
        writer.lm_head.weight[end] = 0  # a reply that ends at once would show nothing
        for name, module in model.named_modules():
            if "2wav" in name and isinstance(module, torch.nn.Conv1d | torch.nn.ConvTranspose1d):
                torch.nn.init.kaiming_normal_(module.weight)  # the usual small weights would make silence
    model.generation_config.eos_token_id = end
    model.save_pretrained(folder)


def save_parts(words: Qwen2Tokenizer, folder: Path) -> None:
    words.save_pretrained(folder)
    extractor().save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE.replace("AUDIO_TOKEN", "<|AUDIO|>"))


MAKERS = {f.__name__: f for f in (qwen2_audio, audio_flamingo, qwen2_5_omni, qwen3_omni)}

if __name__ == "__main__":
    for kind, place in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        torch.manual_seed(0)
        Path(place).mkdir(parents=True, exist_ok=True)
        MAKERS[kind](Path(place))
