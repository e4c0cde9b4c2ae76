"""The numbers of the worked example, and of the paper's table, are what the findings say, to the last digit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.worked_example import LEVELS, PAGE, PAGES, SECOND, filled, published
from tests.docs.markdown import prose

# Across models, from the paper's printed table: r and ρ over its 14 rows, then over one row for each of 12 models.
SPEC = {
    "Voice accuracy – reasoning accuracy": "0.719 / 0.710 | 14 | 0.857 / 0.923 | 12",
    "Voice accuracy – C4": "−0.027 / 0.020 | 14 | −0.082 / −0.032 | 12",
    "Reasoning accuracy – C4": "0.020 / −0.015 | 14 | 0.041 / 0.074 | 12",
    "Voice accuracy – VES": "0.518 / 0.685 | 10 | 0.518 / 0.685 | 10",
    "Reasoning accuracy – VES": "0.301 / 0.576 | 10 | 0.301 / 0.576 | 10",
    "C4 – VES": "0.591 / 0.419 | 10 | 0.591 / 0.419 | 10",
    "C1 – C4": "0.711 / 0.779 | 14 | 0.893 / 0.858 | 12",
    "EmoAlign – VES": "−0.093 / −0.042 | 10 | −0.093 / −0.042 | 10",
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_shows_what_the_script_finds(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert filled(page, PAGES[path]()) == page, "run: python -m scripts.worked_example"


@pytest.mark.parametrize("path", [PAGE, SECOND], ids=lambda path: path.name)
def test_no_number_of_the_worked_example_is_written_by_hand(path: Path) -> None:
    by_hand = re.sub(r"<!-- [\w ]+: scripts/worked_example\.py -->.*?<!-- end -->", "", prose(path), flags=re.S)
    assert not re.findall(r"\b\d+(?:[.,]\d+)*\b", by_hand)


def test_the_papers_coefficients_are_reproduced() -> None:
    table = published()["published"]
    for pair, numbers in SPEC.items():
        assert f"| {pair} | {numbers} |" in table
    assert table in LEVELS.read_text(encoding="utf-8")
