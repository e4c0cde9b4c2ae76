"""Folds of speakers: whole speakers, all folds used, and rare classes spread over the folds."""

from __future__ import annotations

import numpy as np

from overtone.ear.folds import folds_of


def rows() -> tuple[list[str], list[str], list[str]]:
    speakers, classes, corpora = [], [], []
    for corpus, count in (("one", 9), ("two", 4), ("three", 2)):
        for n in range(count):
            for name in ("happy", "sad", *(["yawn"] if n < 2 else [])):
                speakers += [f"{corpus} {n}"] * 3
                classes += [name] * 3
                corpora += [corpus] * 3
    return speakers, classes, corpora


def test_a_speaker_is_in_one_fold_and_every_fold_has_speakers() -> None:
    speakers, classes, corpora = rows()
    folds = folds_of(speakers, classes, corpora, 6, 0)
    assert all(len(set(folds[[s == who for s in speakers]])) == 1 for who in set(speakers))
    assert set(folds) == set(range(6))


def test_the_speakers_of_a_corpus_and_of_a_rare_class_are_spread() -> None:
    speakers, classes, corpora = rows()
    folds = folds_of(speakers, classes, corpora, 6, 0)
    for corpus in ("two", "three"):
        own = {s: f for s, f, c in zip(speakers, folds, corpora, strict=True) if c == corpus}
        assert len(set(own.values())) == len(own)
    assert len(set(folds[np.array(classes) == "yawn"])) == 6


def test_two_speakers_are_two_folds() -> None:
    folds = folds_of(["a", "b"], ["happy", "happy"], ["one", "two"], 6, 0)
    assert sorted(folds) == [0, 1]


def test_the_same_seed_gives_the_same_folds() -> None:
    assert (folds_of(*rows(), 6, 3) == folds_of(*rows(), 6, 3)).all()
