"""The pages of the perspectives study show the published results, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone.display.drawing import svg
from scripts.perspectives_page import EXPERIMENT, IMAGES, drawings, filled, made

FOUND, PAGES = made()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_shows_the_published_numbers(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert filled(page, PAGES[path]) == page, "run: python -m scripts.perspectives_page"


def test_the_pictures_are_those_of_the_published_numbers() -> None:
    for name, drawing in drawings(FOUND).items():
        assert (IMAGES / name).read_text(encoding="utf-8") == svg(drawing), "run: python -m scripts.perspectives_page"


def test_a_page_without_a_place_for_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="no place, or several, for answer"):
        filled("nothing", {"answer": "no"})


def test_the_estimate_of_the_cost_is_of_the_published_seconds() -> None:
    cost = json.loads((EXPERIMENT / "cost.json").read_text(encoding="utf-8"))
    seconds = {block.split: block.seconds for block in FOUND.blocks if not block.tuned}
    for split, measured in cost["small"]["measured"].items():
        assert measured["seconds"] == pytest.approx(seconds[split], abs=0.05), "run: experiments.perspectives.cost"
