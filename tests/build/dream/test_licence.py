"""A set made from texts for research is for research too, and such texts cannot join what must stay free."""

from __future__ import annotations

from overtone.build.licence import RESEARCH, Ingredient, derive

TEXTS = Ingredient("texts", "dream-test", RESEARCH)


def test_texts_for_research_decide_the_licence_of_a_set() -> None:
    assert (
        derive([TEXTS, Ingredient("voice", "espeak", "CC0-1.0"), Ingredient("sounds", "ours", "CC-BY-4.0")]).licence
        == RESEARCH
    )


def test_texts_for_research_cannot_join_a_licence_that_allows_commerce_to_all() -> None:
    verdict = derive([TEXTS, Ingredient("recording", "a.wav", "CC-BY-SA-4.0")])
    assert verdict.licence == "none" and "must stay free for commerce" in verdict.conflicts[0]
