"""BERTScore with a model of one's own: parity with the bert_score library on a tiny BERT, baselines, and refusals."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.metrics._helper import measures_python
from overtone.metrics.bertscore import BertScore, load, read_baseline
from overtone.schema import Score
from tests.metrics.answers import answered, item

HERE = Path(__file__).parent
EXPECTED: dict[str, Any] = msgspec.json.decode((HERE / "bertscore_tiny.json").read_bytes())


def scored(metric: BertScore, pairs: list[list[str]]) -> list[Score]:
    rows = metric.score([answered(item("converse", references=(reference,)), reply) for reply, reference in pairs])
    return [row[0] for row in rows]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = Path(__file__).parents[2] / ".venv-worker/bin/python"
    folder = tmp_path_factory.mktemp("model") / "tiny-bert"
    done = subprocess.run([python, HERE / "make_tiny_bert.py", folder], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    (folder / "baseline.tsv").write_text(EXPECTED["baseline"])
    return folder


@pytest.mark.worker
@pytest.mark.timeout(120)
def test_any_model_gives_the_librarys_numbers_raw_and_rescaled(tiny: Path) -> None:
    rescaled = load(model=str(tiny), layer=str(EXPECTED["layer"]), rescale=str(tiny / "baseline.tsv"))
    raw = BertScore(EXPECTED["layer"], None, rescaled._helper)  # the same process: starting torch takes its time
    for kind, metric in (("raw", raw), ("rescaled", rescaled)):
        found = scored(metric, EXPECTED["pairs"])
        assert all(s.value is not None for s in found), {s.reason for s in found}
        ours = np.array([(s.detail["precision"], s.detail["recall"], s.value) for s in found], dtype=np.float64)
        theirs = np.array(EXPECTED[kind])
        assert len(theirs) == 90 and theirs.std() > 0.1
        assert np.abs(ours - theirs).max() < 1e-4
        (signature,) = {s.signature for s in found}
        assert signature.startswith("bertscore|v3|f1|layer:2|idf:no|rescaled:")
        assert "|tokens:48|model:tiny-bert@" in signature
        assert ("rescaled:no" in signature) == (kind == "raw")


@pytest.mark.worker
@pytest.mark.timeout(120)
def test_a_layer_the_model_does_not_have_is_a_reason(tiny: Path) -> None:
    (score,) = scored(load(model=str(tiny), layer="4"), [["a", "b"]])
    assert score.value is None and "has 3 layers" in score.reason and score.signature.endswith("model:missing")


def test_without_the_measuring_environment_the_reason_is_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "none"))
    (score,) = scored(load(model="bert-base-uncased"), [["a", "b"]])
    assert score.value is None and "overtone setup measures" in score.reason and "layer:9|" in score.signature
    with pytest.raises(Exception, match="overtone setup measures"):
        measures_python()


def test_a_baseline_is_read_by_layer_with_commas_or_tabs(tmp_path: Path) -> None:
    file = tmp_path / "b.tsv"
    for text in ("LAYER,P,R,F\n0,0.1,0.2,0.3\n5,0.5,0.6,0.7\n", "LAYER\tP\tR\tF\n5\t0.5\t0.6\t0.7\n"):
        file.write_text(text)
        found = read_baseline(file, 5)
        assert (found.precision, found.recall, found.f1) == (0.5, 0.6, 0.7) and len(found.name) == 8


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("LAYER,P,R,F\n0,1,2\n", "line 2: not LAYER,P,R,F"),
        ("LAYER,P,R,F\nzero,0,0,0\n", "line 2"),
        ("LAYER,P,R,F\n6,0.1,0.1,1.0\n", "below 1"),
        ("LAYER,P,R,F\n1,0.1,0.1,0.1\n", "no row for layer 6"),
        ("", "no row for layer 6"),
    ],
)
def test_a_wrong_baseline_is_refused_before_anything_is_scored(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "b.tsv").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        load(rescale=str(tmp_path / "b.tsv"))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"layer": "seven"}, "not a layer number"),
        ({"layer": "7"}, "layers 0 to 6"),
        ({"model": "someone/unknown-model"}, "name the layer"),
        ({"model": "/no/such/folder", "layer": "3"}, "no such folder"),
        ({"rescale": "/no/such/file.tsv"}, "cannot be read"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        load(**options)
