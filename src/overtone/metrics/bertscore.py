"""BERTScore: how well each token of a reply finds its like in the reference (precision), and the reverse (recall).

The value is F1; precision and recall are in the detail. Token states are those of one layer of the offline MiniLM,
matched greedily by cosine as the bert_score library does it for one pair at a time: [CLS] and [SEP] may be matched but
have no weight of their own, no IDF, at most 512 tokens. (In a batch the library counts a best match below 0 as 0 where
a pair was padded; a value here does not depend on its company.) An empty reply has 0, as there; an item without a
reference is unscored, and so is everything where the embedder is not installed.

`bertscore?model=FOLDER_OR_HUB_ID&layer=N` reads with another model, in the measuring environment, and `rescale=FILE`
takes a baseline off: a table of the library (LAYER,P,R,F). Values of other models, layers or baselines (EchoMind:
bert-base-uncased, rescaled) are not comparable. MiniLM and the other English models of `ENGLISH` leave items in other
languages unscored; a model that this module does not know is trusted with every language.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.errors import OvertoneError, UsageError
from overtone.metrics import Answered
from overtone.metrics._helper import Helper
from overtone.metrics._likeness import likeness
from overtone.metrics._limits import english_only
from overtone.paths import user_path
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 3
LAYER = 6  # the last of MiniLM's six
LONGEST = 512  # tokens; what the tokenizer of these weights says, and the library therefore reads
NAME = f"bertscore|v{VERSION}|f1|layer:{LAYER}|idf:no|rescaled:no|tokens:{LONGEST}"
LAYERS = {  # of models often used for it, the layer the bert_score library reads
    "bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9, "roberta-base": 10,
    "roberta-large": 17, "distilbert-base-uncased": 5, "deberta-large-mnli": 18, "deberta-xlarge-mnli": 40,
}  # fmt: skip
MULTILINGUAL = frozenset({"bert-base-multilingual-cased"})
ENGLISH = frozenset({"all-MiniLM-L6-v2", *LAYERS}) - MULTILINGUAL
SCORES = {
    "bertscore": of_replies(  # of cosines
        "BERTScore", low=None, floor=-1.0, order=14, dialogue=True, ranks=1, finding=True
    )
}

States = NDArray[np.float32]


class Match(Struct, frozen=True):
    """How the tokens of two texts match; all 0 where one of them has none. Token counts leave the markers out."""

    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    reply_tokens: int = 0
    reference_tokens: int = 0


def match(pairs: Sequence[tuple[str, str]], *, layer: int = LAYER) -> list[Match]:
    """BERTScore of each (reply, reference); a text that comes twice is read once. MissingExtra without the embedder."""
    from overtone.embedded.embedder import tokens

    texts = sorted({text for pair in pairs for text in pair})
    states = [_unit(found) for _, found in tokens(texts, layer=layer, longest=LONGEST)]
    at = {text: i for i, text in enumerate(texts)}
    return [_matched(states[at[reply]], states[at[reference]]) for reply, reference in pairs]


def _unit(states: States) -> States:
    unit: States = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit


def _matched(reply: States, reference: States) -> Match:
    """Greedy matching of unit states (T, 384). The first and last state are the markers'."""
    counts = len(reply) - 2, len(reference) - 2
    if not all(counts):
        return Match(0.0, 0.0, 0.0, *counts)
    alike = reply @ reference.T
    precision = float(alike[1:-1].max(axis=1).mean(dtype=np.float64))
    recall = float(alike[:, 1:-1].max(axis=0).mean(dtype=np.float64))
    both = precision + recall
    return Match(precision, recall, 2.0 * precision * recall / both if both else 0.0, *counts)


class Baseline(Struct, frozen=True):
    """What unrelated texts score at one layer, and which file says so."""

    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    name: str = "no"

    def rescale(self, found: Match) -> Match:
        """(value − baseline) ÷ (1 − baseline), each with its own."""
        if self.name == "no":
            return found
        return Match(
            (found.precision - self.precision) / (1 - self.precision),
            (found.recall - self.recall) / (1 - self.recall),
            (found.f1 - self.f1) / (1 - self.f1),
            found.reply_tokens,
            found.reference_tokens,
        )


def read_baseline(path: Path, layer: int) -> Baseline:
    """A layer's row of a baseline file of the bert_score library: LAYER,P,R,F (tabs will do)."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"bertscore?rescale={path}: cannot be read: {error}") from None
    rows = [line.replace("\t", ",").split(",") for line in text.splitlines() if line.strip()]
    for number, row in enumerate(rows[1:], 2):
        try:
            at, (p, r, f) = int(row[0]), map(float, row[1:])
        except ValueError:
            raise UsageError(f"{path}, line {number}: not LAYER,P,R,F: {','.join(row)[:80]!r}") from None
        if at == layer:
            if not all(-1 <= x < 1 for x in (p, r, f)):
                raise UsageError(f"{path}, line {number}: a baseline lies below 1")
            return Baseline(p, r, f, hashlib.sha256(text.encode()).hexdigest()[:8])
    raise UsageError(
        f"{path} has no row for layer {layer}; its first line is {','.join(rows[0] if rows else [])[:80]!r}"
    )


class BertScore:
    """Scores replies to conversation items: `bertscore`. With a helper its model reads, else the embedded one."""

    name = "bertscore"
    version = VERSION

    def __init__(
        self,
        layer: int = LAYER,
        baseline: Baseline | None = None,
        helper: Helper | None = None,
        model: str = "all-MiniLM-L6-v2",
    ) -> None:
        self._layer, self._baseline, self._helper, self._model = layer, baseline or Baseline(), helper, model

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        foreign = [english_only(self._model, a.language) if self._model in ENGLISH else "" for a in answered]
        pairs = [
            ("", "") if reason else (a.text.strip(), a.reference.strip())
            for a, reason in zip(answered, foreign, strict=True)
        ]
        try:
            rows, model, longest = self._match([pair for pair in pairs if pair[1]])
        except OvertoneError as problem:  # not installed, or it died: these replies' reason, not the end of the others
            signature = self._signature("missing", LONGEST)
            return [[Score("bertscore", signature, None, reason or str(problem))] for reason in foreign]
        found, signature = iter(rows), self._signature(model, longest)
        return [
            [
                Score("bertscore", signature, None, reason)
                if reason
                else _score(signature, next(found) if reference else None, self._baseline)
            ]
            for (_, reference), reason in zip(pairs, foreign, strict=True)
        ]

    def _match(self, pairs: list[tuple[str, str]]) -> tuple[list[Match], str, int]:
        """The raw matches, what read the texts, and how many tokens of each it reads at most."""
        if self._helper is None:
            from overtone.embedded.embedder import identity

            return match(pairs, layer=self._layer), identity(), LONGEST
        rows = self._helper.call({"pairs": pairs})["matches"]
        return [Match(*row) for row in rows], str(self._helper.facts["model"]), int(self._helper.facts["longest"])

    def _signature(self, model: str, longest: int) -> str:
        how = f"layer:{self._layer}|idf:no|rescaled:{self._baseline.name}|tokens:{longest}"
        return f"bertscore|v{VERSION}|f1|{how}|model:{model.replace('|', '_')}"


def _on_scale(found: Match) -> Match:
    """The match without what rounding adds to its cosines."""
    both = (likeness(found.precision), likeness(found.recall))
    return Match(*both, likeness(found.f1), found.reply_tokens, found.reference_tokens)


def _score(signature: str, found: Match | None, baseline: Baseline) -> Score:
    if found is None:
        return Score("bertscore", signature, None, "no reference")
    if not found.reference_tokens:
        return Score("bertscore", signature, None, "no token in the reference")
    value = baseline.rescale(_on_scale(found))
    detail: dict[str, float | int | str | None] = {
        "precision": value.precision,
        "recall": value.recall,
        "reply_tokens": found.reply_tokens,
        "reference_tokens": found.reference_tokens,
    }
    if not found.reply_tokens:
        detail["empty"] = 1
    return Score("bertscore", signature, value.f1, "", detail)


def load(*, model: str = "", layer: str = "", rescale: str = "") -> BertScore:
    """`model`: a folder or hub id, else MiniLM; `layer`: 1 is the first, 0 the words alone; `rescale`: a file."""
    if layer and not (layer.isascii() and layer.isdigit()):
        raise UsageError(f"bertscore?layer={layer}: not a number of a layer")
    chosen = int(layer) if layer else LAYERS.get(Path(model).name) if model else LAYER
    if chosen is None:
        known = ", ".join(sorted(LAYERS))
        raise UsageError(f"bertscore?model={model}: say which layer to read, like &layer=9 (known without: {known})")
    if not model and not 0 <= chosen <= LAYER:
        raise UsageError(f"bertscore?layer={layer}: MiniLM has layers 0 to {LAYER}")
    baseline = read_baseline(user_path(rescale), chosen) if rescale else None
    if not model:
        return BertScore(chosen, baseline)
    folder = user_path(model)
    here = folder.is_dir()
    if not here and (folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1):
        raise UsageError(f"bertscore?model={model}: no such folder")
    options = {"model": str(folder.absolute()) if here else model, "layer": chosen}
    return BertScore(chosen, baseline, Helper("bertscore", options, hub=not here), folder.name)
