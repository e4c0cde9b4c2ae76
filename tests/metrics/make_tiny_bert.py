"""Write a tiny BERT with seeded random weights to FOLDER: `make_tiny_bert.py FOLDER`, in the workers' environment.

With `--expect`, in an environment that has bert-score 0.3.13 (see make_bertscore.py), also write bertscore_tiny.json
anew: what the library says of pairs read by this model, raw and rescaled with the baseline in that file.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

FILE = Path(__file__).with_name("bertscore_tiny.json")
LAYERS, LAYER, LONGEST = 3, 2, 48
BASELINE = "LAYER,P,R,F\n0,0.1,0.2,0.15\n1,0.21,0.22,0.23\n2,0.31,0.32,0.33\n3,0.41,0.42,0.43\n"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-$%+="


def make(folder: Path) -> None:
    """Letters and pairs of letters are its pieces. NumPy draws the weights, so that they are the same everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = [*LETTERS, *(a + b for a in "aeiou" for b in LETTERS[:26])]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *(f"##{p}" for p in pieces)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True, model_max_length=LONGEST)
    sizes = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "intermediate_size": 48}
    model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=LONGEST, **sizes))
    rng = np.random.default_rng(7)
    with torch.no_grad():
        for name, weights in sorted(model.named_parameters()):
            drawn = rng.normal(0.0, 0.3, size=tuple(weights.shape)) + ("LayerNorm.weight" in name)
            weights.copy_(torch.from_numpy(drawn))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def expect(folder: Path) -> None:
    import bert_score
    from transformers import PreTrainedTokenizerFast

    if not hasattr(PreTrainedTokenizerFast, "build_inputs_with_special_tokens"):
        # The library asks this of empty text only; newer transformers no longer have it.
        PreTrainedTokenizerFast.build_inputs_with_special_tokens = lambda self, ids: (
            [self.cls_token_id, *ids, self.sep_token_id]
        )
    known = json.loads(FILE.with_name("bertscore.json").read_text("utf-8"))["pairs"]
    pairs = [pair for pair in known if pair[1].strip() and max(map(len, pair)) < 400][:90]
    (folder / "baseline.tsv").write_text(BASELINE)
    replies, references = zip(*pairs, strict=True)
    told = {"model_type": str(folder), "num_layers": LAYER, "device": "cpu", "batch_size": 1, "lang": "en"}
    raw = bert_score.score(list(replies), list(references), **told)
    path = str(folder / "baseline.tsv")
    scaled = bert_score.score(list(replies), list(references), **told, rescale_with_baseline=True, baseline_path=path)
    values = [[[round(float(x), 7) for x in row] for row in zip(*s, strict=True)] for s in (raw, scaled)]
    made = ", ".join(f"{name} {metadata.version(name)}" for name in ("bert-score", "transformers", "torch"))
    out = {"made": made, "layer": LAYER, "baseline": BASELINE, "pairs": pairs, "raw": values[0], "rescaled": values[1]}
    FILE.write_text(json.dumps(out, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    if "--expect" in sys.argv[2:]:
        expect(Path(sys.argv[1]))
