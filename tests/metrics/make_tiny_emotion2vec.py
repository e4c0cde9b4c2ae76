"""Write a tiny emotion2vec+ with random weights, for FunASR to load: make_tiny_emotion2vec.py FOLDER. Needs FunASR.

The layout, the token file and the keys of the configuration are those of the published models; sizes are not.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import yaml
from funasr.models.emotion2vec.model import Emotion2vec

TOKENS = (
    "生气/angry", "厌恶/disgusted", "恐惧/fearful", "开心/happy", "中立/neutral", "其他/other", "难过/sad",
    "吃惊/surprised", "<unk>",
)  # fmt: skip
AUDIO = {
    "type": "AUDIO", "prenet_depth": 1, "prenet_layerdrop": 0.0, "prenet_dropout": 0.0, "start_drop_path_rate": 0.0,
    "end_drop_path_rate": 0.0, "num_extra_tokens": 2, "init_extra_token_zero": True, "mask_noise_std": 0.01,
    "mask_prob_min": None, "mask_prob": 0.5, "inverse_mask": False, "mask_prob_adjust": 0.05, "keep_masked_pct": 0.0,
    "mask_length": 5, "add_masks": False, "remove_masks": False, "mask_dropout": 0.0, "encoder_zero_mask": True,
    "mask_channel_prob": 0.0, "mask_channel_length": 64, "ema_local_encoder": False, "local_grad_mult": 1.0,
    "use_alibi_encoder": True, "alibi_scale": 1.0, "learned_alibi": False, "alibi_max_pos": None,
    "learned_alibi_scale": True, "learned_alibi_scale_per_head": True, "learned_alibi_scale_per_layer": False,
    "num_alibi_heads": 4, "model_depth": 1, "decoder": None, "extractor_mode": "layer_norm", "conv_pos_width": 9,
    "feature_encoder_spec": "[(16, 10, 5)] + [(16, 3, 2)] * 4 + [(16, 2, 2)] + [(16, 2, 2)]", "conv_pos_groups": 4,
    "conv_pos_depth": 2, "conv_pos_pre_ln": False,
}  # fmt: skip
MODEL = {
    "loss_beta": 0.0, "loss_scale": None, "depth": 1, "start_drop_path_rate": 0.0, "end_drop_path_rate": 0.0,
    "num_heads": 4, "norm_eps": 1e-5, "norm_affine": True, "encoder_dropout": 0.1, "post_mlp_drop": 0.1,
    "attention_dropout": 0.1, "activation_dropout": 0.0, "dropout_input": 0.0, "layerdrop": 0.0, "embed_dim": 32,
    "mlp_ratio": 2.0, "layer_norm_first": False, "average_top_k_layers": 1, "end_of_block_targets": False,
    "clone_batch": 1, "normalize": True, "modalities": {"audio": AUDIO},
}  # fmt: skip

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = {"tokenizer": "CharTokenizer", "tokenizer_conf": {"unk_symbol": "<unk>", "split_with_space": True}}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": "Emotion2vec", "model_conf": MODEL, **tokenizer}))
    (folder / "tokens.txt").write_text("\n".join(TOKENS) + "\n", "utf-8")
    torch.manual_seed(0)
    torch.save({"model": Emotion2vec(model_conf=MODEL, vocab_size=len(TOKENS)).state_dict()}, folder / "model.pt")
