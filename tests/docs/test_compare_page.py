"""The worked numbers of docs/compare.md are what its script's commands print."""

from __future__ import annotations

from scripts.compare_page import PAGE, filled


def test_the_page_shows_what_the_commands_print() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "run: python scripts/compare_page.py"
