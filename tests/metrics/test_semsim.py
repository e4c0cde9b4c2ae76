"""Semantic similarity: the cosine of two embeddings, with every way of having none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

import overtone.embedded
from overtone.errors import MissingExtra
from overtone.metrics.semsim import load
from tests.metrics.answers import answered, item

VECTORS = {"same": [1.0, 0.0], "near": [3.0, 4.0], "far": [0.0, 2.0]}


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An embedder of known vectors, none of them of length one but the first."""
    module = ModuleType("overtone.embedded.embedder")

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([VECTORS[t] for t in texts], dtype=np.float32)

    module.__dict__.update(embed=embed, identity=lambda: "known-vectors")
    monkeypatch.setitem(sys.modules, "overtone.embedded.embedder", module)
    monkeypatch.setattr(overtone.embedded, "embedder", module, raising=False)
    return module


def test_the_value_is_the_cosine_with_the_first_reference(embedder: ModuleType) -> None:
    of = item("converse", references=("same", "far"))
    rows = load().score([answered(of, text) for text in ("same", "near", "far", " near\n")])
    assert [row[0].value for row in rows] == pytest.approx([1.0, 0.6, 0.0, 0.6])
    assert rows[0][0].signature == "semsim|v3|cosine|lang:en|embedder:known-vectors"


def test_equal_texts_score_exactly_one_and_nothing_leaves_the_scale(
    embedder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    rows = {f"text {n}": row for n, row in enumerate(rng.normal(size=(60, 384)).astype(np.float32))}
    rows |= {f"again {n}": rows[f"text {n}"] * np.float32(1 + 1e-7) for n in range(30)}
    rows |= {f"opposite {n}": -rows[f"text {n}"] for n in range(30)}
    monkeypatch.setattr(embedder, "embed", lambda texts: np.array([rows[t] for t in texts]))
    of = [item("converse", references=(f"text {n}",)) for n in range(30)]
    same = load().score([answered(of[n], f"text {n}") for n in range(30)])
    near = load().score([answered(of[n], f"again {n}") for n in range(30)])
    assert {row[0].value for row in (*same, *near)} == {1.0}
    opposite = load().score([answered(of[n], f"opposite {n}") for n in range(30)])
    assert all(row[0].value is not None and -1.0 <= row[0].value < -0.999 for row in opposite)


def test_an_empty_reply_has_zero_and_no_reference_is_unscored(embedder: ModuleType) -> None:
    empty, without = load().score(
        [answered(item("transcribe", references=("same",)), " "), answered(item("transcribe"), "same")]
    )
    assert (empty[0].value, empty[0].detail) == (0.0, {"empty": 1})
    assert (without[0].value, without[0].reason) == (None, "no reference")


def test_a_missing_embedder_is_a_reason_and_no_crash(embedder: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def embed(texts: Sequence[str]) -> np.ndarray:
        raise MissingExtra("the embedder is not installed; run 'overtone setup local'")

    monkeypatch.setattr(embedder, "embed", embed)
    score = load().score([answered(item("converse", references=("same",)), "near")])[0][0]
    assert score.value is None
    assert "overtone setup local" in score.reason


def test_it_scores_transcripts_and_conversation_only() -> None:
    assert load().applies(item("transcribe")) and load().applies(item("converse"))
    assert not load().applies(item("choose"))


@pytest.mark.local
def test_a_paraphrase_is_nearer_than_another_topic() -> None:
    of = item("converse", references=("I am so sorry to hear that you are ill.",))
    near, far = load().score([answered(of, "Sorry you are feeling sick."), answered(of, "The train leaves at nine.")])
    assert near[0].value is not None and far[0].value is not None
    assert near[0].value > far[0].value + 0.2
