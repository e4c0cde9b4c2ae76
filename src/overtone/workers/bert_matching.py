"""BERTScore with any encoder from the Hugging Face library, run in the measuring environment: pairs in, matches out.

The options are `model` (a folder or a hub id) and `layer`. A call has `pairs` of reply and reference; the answer has
for each pair [precision, recall, F1, tokens of the reply, tokens of the reference], not rescaled, as the bert_score
library computes them for one pair at a time: no IDF, and markers may be matched but have no weight.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModel, AutoTokenizer

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol

BATCH_TOKENS = 8192  # tokens in one pass, including padding
WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "tokenizer*", "vocab*", "merges.txt", "config.json")


class BertScore:
    """A loaded encoder that answers calls."""

    def __init__(self, options: dict[str, Any]) -> None:
        name, self.layer = str(options["model"]), int(options["layer"])
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = AutoModel.from_pretrained(name, dtype=torch.float32).eval().to(self.device)
        config = self.model.config
        prefix = {"add_prefix_space": True} if config.model_type in ("roberta", "gpt2") else {}  # as the library does
        self.tokenizer = AutoTokenizer.from_pretrained(name, **prefix)
        layers = int(getattr(config, "num_hidden_layers", 0))
        if not 0 <= self.layer <= layers:
            raise ValueError(f"{name} has {layers} layers; layer={self.layer} is not one of them")
        places = int(getattr(config, "max_position_embeddings", 512)) - 2 * ("roberta" in config.model_type)
        self.longest = min(self.tokenizer.model_max_length, places)
        self.markers = {self.tokenizer.cls_token_id, self.tokenizer.sep_token_id}
        self.facts = {
            "model": _hf.identity(name, config, WEIGHTS, names=True),
            "longest": self.longest,
            "device": self.device,
            "versions": protocol.versions(("torch", "transformers", "tokenizers")),
        }

    def __call__(self, header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        pairs = [(str(reply).strip(), str(reference).strip()) for reply, reference in header["pairs"]]
        states = self.read(sorted({text for pair in pairs for text in pair}))
        return {"matches": [_matched(*states[reply], *states[reference]) for reply, reference in pairs]}, []

    def read(self, texts: list[str]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Return text → (states, weights) with one row per token. States (T, D) have length 1; weights are 0 for
        markers, else 1."""
        ids = {t: self.tokenizer(t, truncation=True, max_length=self.longest)["input_ids"] for t in texts}
        states: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        batch: list[str] = []
        for text in sorted(texts, key=lambda t: len(ids[t])):
            if batch and len(ids[text]) * (len(batch) + 1) > BATCH_TOKENS:
                states |= self.pass_through(batch, ids)
                batch = []
            batch.append(text)
        return states | self.pass_through(batch, ids) if batch else states

    def pass_through(self, texts: list[str], ids: dict[str, list[int]]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        width = max(1, *(len(ids[text]) for text in texts))
        padding = self.tokenizer.pad_token_id or 0
        rows = torch.tensor([ids[t] + [padding] * (width - len(ids[t])) for t in texts], device=self.device)
        mask = torch.tensor([[1] * len(ids[t]) + [0] * (width - len(ids[t])) for t in texts], device=self.device)
        with torch.inference_mode():
            out = self.model(input_ids=rows, attention_mask=mask, output_hidden_states=True)
        states = torch.nn.functional.normalize(out.hidden_states[self.layer], dim=-1).cpu()  # (B, T, D)
        by_text = {}
        for n, text in enumerate(texts):
            weights = torch.tensor([float(i not in self.markers) for i in ids[text]], dtype=torch.float64)
            by_text[text] = states[n, : len(ids[text])], weights
        return by_text


def _matched(
    reply: torch.Tensor, ours: torch.Tensor, reference: torch.Tensor, theirs: torch.Tensor
) -> tuple[float, float, float, int, int]:
    """Match greedily: every token takes its best match in the other text; markers can be a match but have no weight."""
    counts = int(ours.sum()), int(theirs.sum())
    if not all(counts):
        return 0.0, 0.0, 0.0, *counts
    similarity = (reply @ reference.T).double()  # (T reply, T reference)
    precision = float((similarity.max(dim=1).values * ours).sum() / ours.sum())
    recall = float((similarity.max(dim=0).values * theirs).sum() / theirs.sum())
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0, *counts


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve_calls(BertScore))
