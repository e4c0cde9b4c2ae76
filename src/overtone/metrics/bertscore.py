"""BERTScore: how similar each token of a reply is to its best match in the reference (precision), and the reverse
(recall).

The value is F1; precision and recall are in the detail. Token states come from one layer of the offline MiniLM and are
matched greedily by cosine, like the bert_score library with one pair at a time: [CLS] and [SEP] may be matched but have
no weight, no IDF, at most 512 tokens. (In a batch, the library counts a best match below 0 as 0 if a pair was padded;
here, a value does not depend on the batch.) An empty reply scores 0; an item without a reference is unscored, and so is
everything if the embedder is not installed.

`bertscore?model=FOLDER_OR_HUB_ID&layer=N` uses another model in the measuring environment, and `rescale=FILE` subtracts
a baseline: a table of the library (LAYER,P,R,F). Values of different models, layers or baselines (EchoMind:
bert-base-uncased, rescaled) are not comparable. MiniLM and the other English models in `ENGLISH` leave items in other
languages unscored; a model that is not listed here is used for every language.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.errors import OvertoneError, UsageError
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._helper import Helper
from overtone.metrics._limits import english_only
from overtone.metrics._similarity import PAGE, SHARES, similarity
from overtone.paths import user_path
from overtone.schema import Score
from overtone.scores import of_replies

VERSION = 3
LAYER = 6  # the last of MiniLM's six
LONGEST = 512  # tokens; the limit of the tokenizer of these weights, which the library uses too
NAME = f"bertscore|v{VERSION}|f1|layer:{LAYER}|idf:no|rescaled:no|tokens:{LONGEST}"
HELPER_PAGE = 256  # replies
LAYERS = {  # model → layer that the bert_score library uses
    "bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9, "roberta-base": 10,
    "roberta-large": 17, "distilbert-base-uncased": 5, "deberta-large-mnli": 18, "deberta-xlarge-mnli": 40,
}  # fmt: skip
MULTILINGUAL = frozenset({"bert-base-multilingual-cased"})
ENGLISH = frozenset({"all-MiniLM-L6-v2", *LAYERS}) - MULTILINGUAL
SCORES = {"bertscore": of_replies("BERTScore", low=None, floor=-1.0, order=14, dialogue=True, ranks=1, finding=True)}

States = NDArray[np.float32]


class Match(Struct, frozen=True):
    """The BERTScore of two texts. All values are 0 if a text has no tokens. Token counts exclude [CLS] and [SEP]."""

    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    reply_tokens: int = 0
    reference_tokens: int = 0


def match(pairs: Sequence[tuple[str, str]], *, layer: int = LAYER) -> list[Match]:
    """Return the BERTScore of each (reply, reference). Raises MissingExtra without the embedder."""
    from overtone.embedded.embedder import tokens
    from overtone.embedded.one_thread import one_thread

    texts = sorted({text for pair in pairs for text in pair})
    states = [_unit(vectors) for _, vectors in tokens(texts, layer=layer, longest=LONGEST)]
    at = {text: i for i, text in enumerate(texts)}
    with one_thread():
        return [_matched(states[at[reply]], states[at[reference]]) for reply, reference in pairs]


def _unit(states: States) -> States:
    unit: States = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit


def _matched(reply: States, reference: States) -> Match:
    """Match states of length 1 (T, 384) greedily. The first and last states belong to [CLS] and [SEP]."""
    counts = len(reply) - 2, len(reference) - 2
    if not all(counts):
        return Match(0.0, 0.0, 0.0, *counts)
    cosines = reply @ reference.T
    precision = float(cosines[1:-1].max(axis=1).mean(dtype=np.float64))
    recall = float(cosines[:, 1:-1].max(axis=0).mean(dtype=np.float64))
    both = precision + recall
    return Match(precision, recall, 2.0 * precision * recall / both if both else 0.0, *counts)


class Baseline(Struct, frozen=True):
    """The scores of unrelated texts at one layer, and the hash of the baseline file."""

    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    name: str = "no"

    def rescale(self, match: Match) -> Match:
        """Return (value − baseline) ÷ (1 − baseline) for precision, recall and F1."""
        if self.name == "no":
            return match
        return msgspec.structs.replace(
            match,
            precision=(match.precision - self.precision) / (1 - self.precision),
            recall=(match.recall - self.recall) / (1 - self.recall),
            f1=(match.f1 - self.f1) / (1 - self.f1),
        )


def read_baseline(path: Path, layer: int) -> Baseline:
    """Read a layer's row from a baseline file of the bert_score library: LAYER,P,R,F, with commas or tabs."""
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
                raise UsageError(f"{path}, line {number}: a baseline must be at least −1 and below 1")
            return Baseline(p, r, f, hashlib.sha256(text.encode()).hexdigest()[:8])
    raise UsageError(
        f"{path} has no row for layer {layer}; its first line is {','.join(rows[0] if rows else [])[:80]!r}"
    )


class BertScore(ReplyMetric):
    """Scores replies to conversation items: `bertscore`. Uses the helper's model, or MiniLM if there is no helper."""

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
        self.slow = helper is None  # a helper's process is not copied
        self.shares, self.page = (SHARES, PAGE) if self.slow else ("", HELPER_PAGE)

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        foreign = [english_only(self._model, a.language) if self._model in ENGLISH else "" for a in answered]
        pairs = [
            ("", "") if reason else (a.text.strip(), a.reference.strip())
            for a, reason in zip(answered, foreign, strict=True)
        ]
        try:
            rows, model, longest = self._match([pair for pair in pairs if pair[1]])
        except OvertoneError as problem:  # not installed, or crashed: the reason for these replies; scoring continues
            signature = self._signature("missing", LONGEST)
            return [[Score("bertscore", signature, None, reason or str(problem))] for reason in foreign]
        matches, signature = iter(rows), self._signature(model, longest)
        return [
            [
                Score("bertscore", signature, None, reason)
                if reason
                else _score(signature, next(matches) if reference else None, self._baseline)
            ]
            for (_, reference), reason in zip(pairs, foreign, strict=True)
        ]

    def _match(self, pairs: list[tuple[str, str]]) -> tuple[list[Match], str, int]:
        """Return the matches before rescaling, the model's name, and its maximum number of tokens per text."""
        if self._helper is None:
            from overtone.embedded.embedder import identity

            return match(pairs, layer=self._layer), identity(), LONGEST
        rows = self._helper.call({"pairs": pairs})["matches"]
        return [Match(*row) for row in rows], str(self._helper.facts["model"]), int(self._helper.facts["longest"])

    def _signature(self, model: str, longest: int) -> str:
        how = f"layer:{self._layer}|idf:no|rescaled:{self._baseline.name}|tokens:{longest}"
        return f"bertscore|v{VERSION}|f1|{how}|model:{model.replace('|', '_')}"


def _score(signature: str, raw: Match | None, baseline: Baseline) -> Score:
    if raw is None:
        return Score("bertscore", signature, None, "no reference")
    if not raw.reference_tokens:
        return Score("bertscore", signature, None, "no token in the reference")
    cosines = {name: similarity(getattr(raw, name)) for name in ("precision", "recall", "f1")}
    value = baseline.rescale(msgspec.structs.replace(raw, **cosines))
    detail: dict[str, float | int | str | None] = {
        "precision": value.precision,
        "recall": value.recall,
        "reply_tokens": raw.reply_tokens,
        "reference_tokens": raw.reference_tokens,
    }
    if not raw.reply_tokens:
        detail["empty"] = 1
    return Score("bertscore", signature, value.f1, "", detail)


def load(*, model: str = "", layer: str = "", rescale: str = "") -> BertScore:
    """Load the metric. `model`: folder or hub id (default: MiniLM); `layer`: 0 is the embeddings, 1 the first layer;
    `rescale`: a baseline file."""
    if layer and not (layer.isascii() and layer.isdigit()):
        raise UsageError(f"bertscore?layer={layer}: not a layer number")
    chosen = int(layer) if layer else LAYERS.get(Path(model).name) if model else LAYER
    if chosen is None:
        known = ", ".join(sorted(LAYERS))
        raise UsageError(f"bertscore?model={model}: name the layer to use, e.g. &layer=9 (not needed for {known})")
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
    return BertScore(chosen, baseline, Helper("bert_matching", options, hub=not here), folder.name)
