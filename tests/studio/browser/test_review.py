"""The review desk in a real browser, by keyboard, over two rounds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from overtone.cli import main
from overtone.studio import review_verdicts
from tests.studio.browser import site
from tests.studio.browser.conftest import MakeRater
from tests.studio.desk_helpers import desk, some_scripts

SCRIPTS = some_scripts("sad", "rain")


def review(person: Any, keys: tuple[str, ...], *, note: str = "", words: str = "") -> str:
    """Review one screen by keys; return the heading of the next page."""
    before = person.heading
    person.press(*keys)
    if note:
        person.page.keyboard.type(note)
        person.press("Escape")
    if words:
        person.press("e", "Control+a")
        person.page.keyboard.type(words)
        assert person.page.locator(".diff ins").count() >= 1
    person.press("Control+Enter")
    return person.await_heading(before)


@pytest.mark.browser
def test_two_rounds_of_a_review_become_verdicts_that_build_review_reads(
    enter: MakeRater, tmp_path: Path, capsys: pytest.CaptureFixture[str], desk_url: str
) -> None:
    first = desk(tmp_path, "review", SCRIPTS, name="round1", url=desk_url)
    with site.served(first) as at:
        one, two = enter(), enter()
        one.arrive(at.invite())
        assert one.agree() == "Review 1"
        one.press("x", "Control+Enter")
        assert "Please say why" in one.text
        one.press("Escape")
        review(one, ("r",), note="Too long.", words="Short words.")
        assert "Too long" not in one.text
        assert review(one, ("a",)) == "Thank you"
        two.arrive(at.invite())
        two.agree()
        assert "What reviewers said" not in two.text and "Short words" not in two.text  # blind within a round
        review(two, ("a",))
        assert review(two, ("x",), note="Not <b>clear</b>.") == "Thank you"
    verdicts = review_verdicts.read(first.path)
    assert sorted((r.verdict, r.note) for r in verdicts.reviews) == [
        ("accept", ""), ("accept", ""), ("reject", "Not <b>clear</b>."), ("revise", "Too long."),
    ]  # fmt: skip
    (proposal,) = verdicts.proposals
    assert proposal.text == "words" and proposal.after == "Short words."

    capsys.readouterr()
    scripts = str(tmp_path / "round1-scripts.jsonl")
    assert main(["build", "review", scripts, "--studio", str(first.path)]) == 0
    said = capsys.readouterr().out
    assert "round 1: 2 reviewers" in said and "Short words." in said

    second = desk(
        tmp_path, "review", SCRIPTS, "--round", "2", "--after", os.fspath(first.path), name="round2", url=desk_url
    )
    with site.served(second) as at:
        three = enter()
        three.arrive(at.invite())
        three.agree()
        seen = three.text
        review(three, ("a",))
        seen += three.text
        assert "What reviewers said in round 1" in seen and "revise: Too long." in seen and "Not <b>clear</b>." in seen
