"""A study of a corpus with a known answer, with real training of a tiny model: the verdicts find what was planted."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from overtone.cli import main
from overtone.studies.perspectives import study_analysis
from overtone.studies.perspectives.design import TOML, Study
from tests.studies.perspectives.toys import write_model

pytestmark = [pytest.mark.torch, pytest.mark.full]
SENTENCES = 180
ARMS = ("both", "merged", "shuffled", "pseudo", "matched", "reader", "writer", "permuted")


def _write_corpus(folder: Path) -> Path:
    """Write sentences that show their valence. Readers and writers agree, so that the distinction can add nothing."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    sentences, ratings = [], []
    for i in range(SENTENCES):
        split = ("train", "train", "train", "dev", "test")[(i // 5) % 5]
        genre = ("letters", "blog", "news")[i // 6 % 3]
        sentences.append((f"s{i}", f"{'~@'[i % 2] * 12} {i}", f"d{i // 6}", genre, split))
        for who in ("reader", "writer"):
            for _ in range(4):
                ratings.append((f"s{i}", who, *np.clip((1.5, 4.5)[i % 2] + rng.normal(0, 0.3, 3), 1, 5).round(2)))
    for name, header, rows in (
        ("sentences.csv", ("id", "text", "document", "genre", "split"), sentences),
        ("ratings.csv", ("id", "perspective", "V", "A", "D"), ratings),
    ):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows((header, *rows))
    return folder


def _arms(*names: str) -> str:
    return f"arms = {json.dumps(names)}"


def _write_study(path: Path) -> Path:
    text = TOML.read_text(encoding="utf-8")
    for old, new in (
        (_arms(*ARMS), _arms("both")),
        (_arms(*ARMS[:4]), _arms("both", "merged", "permuted")),
        ("seeds = [0, 1, 2, 3, 4]", "seeds = [0, 1, 2]"),
        ("steps = 750", "steps = 100"),
        ("rate = 1e-4", "rate = 1e-2"),
        ("rows = 32", "rows = 16"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    first, second = text.index('[[primary]]\noutcome = "open told"'), text.index("[tests]")
    path.write_text((text[:first] + text[second:]).replace('control = "shuffled"', 'control = "permuted"'))
    return path


def test_a_planted_study_improves_on_permuted_labels_and_equals_the_merged_ones(tmp_path: Path, capsys) -> None:
    out = tmp_path / "study"
    corpus, study = _write_corpus(tmp_path / "corpus"), _write_study(tmp_path / "study.toml")
    assert main([
        "study", "perspectives", "--data", str(corpus), "--model", str(write_model(tmp_path / "lm")),
        "--study", str(study), "--out", str(out), "--device", "cpu",
    ]) == 0  # fmt: skip
    found = study_analysis.read(out, Study.read(out / "study.toml"))
    verdicts = {test.control: test for test in found.primary}
    assert verdicts["permuted"].kind == "improves" and verdicts["permuted"].number.value > 0.5
    assert verdicts["merged"].kind == "equivalent" and verdicts["merged"].treated.value > 0.9
    assert not found.table("genre V").checked.untestable
    assert "Of 2 primary tests: 1 equivalent within the margin, 1 improved." in capsys.readouterr().out
