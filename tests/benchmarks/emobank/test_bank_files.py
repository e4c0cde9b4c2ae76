from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from overtone.benchmarks.emobank.bank_files import read_bank
from overtone.errors import DataError
from overtone.rated_sentences import PERSPECTIVES


def test_small_bank_has_the_sentences_with_both_perspectives(small: Path) -> None:
    bank = read_bank(small)
    assert bank.ids == [f"s{i}" for i in range(30)]
    assert bank.texts[2] == "Sentence s2."
    assert bank.genres[:3] == ["letters", "blog", "SemEval"]
    for who in PERSPECTIVES:
        assert bank.means[who].shape == (30, 3)
        assert [len(r) for r in bank.ratings[who]] == [4] * 30  # the ratings of 1, 1, 1 are dropped


def test_documents_are_whole_within_a_fold_and_splits_are_disjoint(small: Path) -> None:
    bank = read_bank(small)
    folds = bank.folds()
    for cluster in set(bank.clusters):
        assert len({fold for fold, c in zip(folds, bank.clusters, strict=True) if c == cluster}) == 1
    for split, part in (("official", ""), ("document", "3"), ("genre", "blog")):
        learnt, held = bank.rows(split, part)
        assert len(held) and not set(learnt) & set(held)
    assert {bank.genres[i] for i in bank.rows("genre", "blog")[1]} == {"blog"}


@pytest.mark.parametrize(("split", "part"), [("other", ""), ("document", "5"), ("document", "x"), ("genre", "poems")])
def test_unknown_splits_and_parts_are_refused(small: Path, split: str, part: str) -> None:
    with pytest.raises(ValueError, match=r"there is no (split|fold|genre)"):
        read_bank(small).rows(split, part)


DAMAGE = [  # file, what is replaced, by what, the message
    ("emobank.csv", "id,split,", "id,part,", "emobank.csv: has no column split"),
    ("emobank.csv", "s3,train", "s3,eval", "line 5: the split is 'eval', not train, dev or test"),
    ("emobank.csv", "Sentence s4.", "", "line 6: the text is empty"),
    ("emobank.csv", "s4,", "s3,", "line 6: the id s3 is duplicated"),
    ("emobank.csv", "Sentence s4.", "One, two", "line 6: the number of cells differs"),
    ("meta.tsv", "s7\t", "x7\t", "emobank.csv, line 9: s7 is not in meta.tsv"),
    ("meta.tsv", "s7\t", "s6\t", "meta.tsv, line 9: the id s6 is duplicated"),
    ("individual_reader_ratings.csv", "s2,", "s2,6", "individual_reader_ratings.csv, line 10: V is 6"),
    ("individual_writer_ratings.csv", "s2,", "s2,x", "individual_writer_ratings.csv, line 10: V is 'x"),
    ("individual_writer_ratings.csv", "s2,", "s2,1.5", "line 10: a single rating must be a whole number"),
    ("individual_writer_ratings.csv", "s2,", "s9,", "N is 4 for s2, but individual_writer_ratings.csv has 3 ratings"),
    ("individual_writer_ratings.csv", "s2,1", "s2,5", "the mean of its ratings in individual_writer_ratings.csv"),
    ("writer.csv", "s2,", "s30,", "has 0 ratings of it"),
    ("writer.csv", ",4\r\n", ",many\r\n", "writer.csv, line 2: N is 'many'"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), DAMAGE, ids=[d[3] for d in DAMAGE])
def test_damaged_files_are_refused_with_file_and_line(small: Path, name: str, old: str, new: str, message: str) -> None:
    path = small / name
    text = path.read_bytes().decode()
    if name.startswith("individual") and old == "s2,":  # the rating itself is replaced
        line = next(line for line in text.split("\r\n") if line.startswith(old))
        rest = line.split(",", 2)[2]
        changed = f"{new}{line[3:]}" if new.startswith("s9") else f"{new},{rest}"
        text = text.replace(line, changed, 1)
    elif name.startswith("individual"):
        line = next(line for line in text.split("\r\n") if line.startswith("s2,") and line[3] in "123")
        text = text.replace(line, f"s2,5{line[4:]}", 1)
    else:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_bytes(text.encode())
    with pytest.raises(DataError) as error:
        read_bank(small)
    assert message in str(error.value)
    assert "fetch" in str(error.value)


def test_a_sentence_without_one_perspective_is_refused(small: Path) -> None:
    for name in ("writer.csv", "individual_writer_ratings.csv"):
        lines = (small / name).read_text().splitlines()
        (small / name).write_text("\n".join(line for line in lines if not line.startswith("s5,")) + "\n")
    with pytest.raises(DataError, match=r"emobank\.csv, line 7: s5 has no writer's rating in writer\.csv"):
        read_bank(small)


def test_a_sentence_with_both_perspectives_must_be_in_the_bank(small: Path) -> None:
    lines = (small / "emobank.csv").read_text().splitlines()
    (small / "emobank.csv").write_text("\n".join(line for line in lines if not line.startswith("s5,")) + "\n")
    with pytest.raises(DataError, match=r"reader\.csv, line 7: s5 has both perspectives but is missing"):
        read_bank(small)


def test_combined_ratings_of_another_version_are_refused(small: Path) -> None:
    lines = (small / "emobank.csv").read_text().splitlines()
    cells = lines[3].split(",")
    cells[3] = "1.00" if float(cells[3]) > 2 else "5.00"
    lines[3] = ",".join(cells)
    (small / "emobank.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"line 4: A is .* but the weighted mean of reader\.csv and writer\.csv is"):
        read_bank(small)


@pytest.mark.parametrize("name", ["meta.tsv", "writer.csv", "individual_reader_ratings.csv"])
def test_a_missing_file_is_named(small: Path, name: str) -> None:
    (small / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing; give the folder with emobank.csv"):
        read_bank(small)


@pytest.mark.shared
def test_released_rows_folds_and_order_never_change(released: Path) -> None:
    """Stored results of the study of two perspectives name rows by their place."""
    bank = read_bank(released)
    assert hashlib.sha256("\n".join(bank.ids).encode()).hexdigest().startswith("bc92ef51de37fbcd")
    assert hashlib.sha256("\n".join(bank.texts).encode()).hexdigest().startswith("2ddcb7af46024019")
    assert hashlib.sha256(bytes(bank.folds().astype(np.uint8))).hexdigest().startswith("929419b24407dbf2")
    assert np.bincount(bank.folds()).tolist() == [2222, 1899, 1948, 2014, 1979]
