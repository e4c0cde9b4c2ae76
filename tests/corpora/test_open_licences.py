"""Which recordings may train weights that are given away: the same answer as for a set made from them."""

from __future__ import annotations

import pytest

from overtone import corpora
from overtone.build.licence import FREE, RESEARCH, UNKNOWN, Ingredient, derive
from overtone.corpora import open_licences


def test_the_words_for_licences_are_those_of_built_sets() -> None:
    assert (open_licences.RESEARCH, open_licences.UNKNOWN) == (RESEARCH, UNKNOWN)
    assert all(corpora.is_open(licence) for licence in FREE)


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC0-1.0", True),
        ("CC-BY-4.0", True),
        ("CC-BY-3.0", True),
        ("CC-BY-SA-4.0", False),
        ("ODbL-1.0", False),
        ("GPL-3.0-only", False),
        ("CC-BY-NC-4.0", False),
        ("CC-BY-NC-ND-4.0", False),
        (RESEARCH, False),
        (UNKNOWN, False),
        ("", False),
    ],
)
def test_only_licences_that_ask_at_most_for_attribution_are_open(licence: str, expected: bool) -> None:
    assert corpora.is_open(licence) is expected
    assert (derive([Ingredient("recordings", "x", licence)]).licence == "CC-BY-4.0") is expected


def test_the_open_corpora_are_these() -> None:
    assert {kind for kind, corpus in corpora.kinds().items() if corpora.is_open(corpus.licence)} == {
        "common-voice",
        "librispeech",
        "speechocean",
    }


def test_a_set_with_a_share_alike_database_has_its_licence_or_none() -> None:
    people = Ingredient("recordings", "cremad", "ODbL-1.0")
    open_ones = Ingredient("recordings", "librispeech", "CC-BY-4.0")
    assert derive([people, open_ones]).licence == "ODbL-1.0"
    for other in ("CC-BY-SA-4.0", "GPL-3.0-only", "CC-BY-NC-4.0", RESEARCH):
        verdict = derive([people, Ingredient("recordings", "other", other)])
        assert verdict.licence == "none" and "asks for its own licence" in verdict.conflicts[-1]
