"""Prompts: every kind of output has one, every question many wordings."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from overtone.echat.data import labels, prompts
from overtone.errors import DataError


def test_every_combination_of_labels_has_eight_wordings_or_more() -> None:
    dimensions = list(labels.DIMENSIONS)
    every = itertools.chain.from_iterable(itertools.combinations(dimensions, n) for n in range(6))
    seen: dict[str, tuple[bool, tuple[str, ...]]] = {}
    for asked in every:
        for words in (True, False) if asked else (True,):
            wordings = prompts.read().wordings(words, asked)
            assert len(set(wordings)) >= 8
            for wording in wordings:
                assert "{" not in wording
                assert seen.setdefault(wording, (words, asked)) == (words, asked)  # no wording asks for two things


def test_system_prompts_are_short_and_differ() -> None:
    system = prompts.read().system
    assert set(system) == set(prompts.KINDS)
    assert len(set(system.values())) == len(system)
    assert all(len(text.split()) <= 26 for text in system.values())


def test_a_wording_is_drawn_and_without_a_draw_the_first() -> None:
    told = prompts.read()
    assert told.ask(False, ["emotion", "age"]) == "Name the emotion and the age."
    drawn = {told.ask(True, [], random.Random(seed)) for seed in range(60)}
    assert drawn == set(told.understand.words)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('t2t = "You are a helpful assistant."', ""), r"\[system\] lacks t2t"),
        (('"Name {what}."', '"Name it."'), "labels needs wordings, each with {what}"),
        (('"Write down what is said."', '"Write {what}."'), "words needs wordings, none with {what}"),
        (('"the age"', "3"), r"Expected `str`.*correct the file"),
        (("[names]", "[nouns]"), "unknown field `nouns`|missing required field `names`"),
        (("[system]", "[system"), "correct the file"),
    ],
)
def test_a_broken_file_is_told(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(prompts.FILE.read_text().replace(*change))
    with pytest.raises(DataError, match=told):
        prompts.read(path)
