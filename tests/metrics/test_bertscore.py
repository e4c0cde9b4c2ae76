"""BERTScore: the library's numbers on the same weights, and every way of having none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

import overtone.embedded
from overtone.errors import MissingExtra
from overtone.metrics.bertscore import LAYER, Match, load, match
from overtone.schema import Score
from tests.metrics.answers import answered, item

EXPECTED: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("bertscore.json").read_bytes())
PAIRS = [(reply, reference) for reply, reference in EXPECTED["pairs"]]
VECTORS = {"[": (0.0, 0.0, 2.0), "]": (0.0, 0.0, 3.0), "a": (1.0, 0.0, 0.0), "b": (3.0, 4.0, 0.0), "c": (0.0, 1.0, 0.0)}


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An embedder that gives each letter a known state, between two markers."""
    module = ModuleType("overtone.embedded.embedder")

    def tokens(texts: Sequence[str], *, layer: int, longest: int) -> list[tuple[list[str], np.ndarray]]:
        pieces = [["[", *text, "]"] for text in texts]
        return [(p, np.array([VECTORS[piece] for piece in p], np.float32)) for p in pieces]

    module.__dict__.update(tokens=tokens, identity=lambda: "known-states")
    monkeypatch.setitem(sys.modules, "overtone.embedded.embedder", module)
    monkeypatch.setattr(overtone.embedded, "embedder", module, raising=False)
    return module


def one(text: str, reference: str) -> Score:
    ((score,),) = load().score([answered(item("converse", references=(reference,)), text)])
    return score


def test_each_token_takes_its_best_match_and_markers_have_no_weight(embedder: ModuleType) -> None:
    score = one("ab", "acc")
    precision, recall = (1.0 + 0.8) / 2, (1.0 + 0.8 + 0.8) / 3
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall))
    assert score.detail == {
        "precision": pytest.approx(precision),
        "recall": pytest.approx(recall),
        "reply_tokens": 2,
        "reference_tokens": 3,
    }


def test_the_signature_says_which_layer_and_that_values_are_raw(embedder: ModuleType) -> None:
    expected = f"bertscore|v3|f1|layer:{LAYER}|idf:no|rescaled:no|tokens:512|model:known-states"
    assert one("a", "b").signature == expected


def test_equal_texts_score_exactly_one(embedder: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    states = {letter: tuple(rng.normal(size=384)) for letter in "[]abc"}
    monkeypatch.setitem(globals(), "VECTORS", states)
    for text in ("a", "ab", "abc", "cabbac"):
        score = one(text, text)
        assert (score.value, score.detail["precision"], score.detail["recall"]) == (1.0, 1.0, 1.0)


def test_an_empty_reply_has_zero_and_no_reference_is_unscored(embedder: ModuleType) -> None:
    empty, without, full = load().score(
        [
            answered(item("converse", references=("ab",)), " \n"),
            answered(item("converse"), "a"),
            answered(item("converse", references=("ab",)), "ab"),
        ]
    )
    assert (empty[0].value, empty[0].detail["empty"]) == (0.0, 1)
    assert (without[0].value, without[0].reason) == (None, "no reference")
    assert full[0].value == pytest.approx(1.0), "scores stay with their replies"


def test_a_missing_embedder_is_a_reason_and_no_crash(embedder: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def tokens(texts: Sequence[str], **_: int) -> None:
        raise MissingExtra("the embedder is not installed; run 'overtone setup local'")

    monkeypatch.setattr(embedder, "tokens", tokens)
    score = one("a", "b")
    assert score.value is None and "overtone setup local" in score.reason and score.signature.endswith("model:missing")


def test_it_scores_conversation_only() -> None:
    assert load().applies(item("converse"))
    assert not load().applies(item("transcribe")) and not load().applies(item("choose"))


@pytest.mark.local
@pytest.mark.parametrize(("layer", "longest", "least"), [("6", 4_000, 200), ("3", 300, 150)])
def test_it_agrees_with_the_library_on_the_same_weights(layer: str, longest: int, least: int) -> None:
    chosen = [i for i, pair in enumerate(PAIRS) if max(map(len, pair)) <= longest]
    found = match([PAIRS[i] for i in chosen], layer=int(layer))
    ours = np.array([(m.precision, m.recall, m.f1) for m in found])
    theirs = np.array(EXPECTED["values"][layer])[chosen]
    assert len(chosen) >= least and theirs.std() > 0.1
    assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.local
def test_a_value_does_not_depend_on_its_company() -> None:
    pairs = [pair for pair in PAIRS if max(map(len, pair)) < 200][::20]
    for together, pair in zip(match(pairs), pairs, strict=True):
        assert together.f1 == pytest.approx(match([pair])[0].f1, abs=1e-5)


@pytest.mark.local
def test_a_paraphrase_scores_above_another_topic_and_markers_written_as_text_are_text() -> None:
    said = "I am so sorry to hear that you are ill."
    same, near, far, typed = match(
        [(said, said), ("Sorry you are feeling sick.", said), ("The train leaves at nine.", said), ("[SEP]", said)]
    )
    assert same.f1 == pytest.approx(1.0, abs=1e-5) and same.f1 > near.f1 > far.f1 + 0.2
    assert typed.reply_tokens == 3 and match([("", said)]) == [Match(reference_tokens=same.reference_tokens)]
