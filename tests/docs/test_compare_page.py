"""The worked numbers of docs/how-to are what their script's commands print."""

from __future__ import annotations

from scripts.compare_page import PAGES, blocks, filled


def test_the_pages_show_what_the_commands_print() -> None:
    made = blocks()
    for path, names in PAGES.items():
        page = path.read_text(encoding="utf-8")
        assert filled(page, {name: made[name] for name in names}) == page, "run: python scripts/compare_page.py"
