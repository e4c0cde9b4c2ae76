"""The coverage table is what the benchmarks' own files say."""

from __future__ import annotations

from overtone import registry
from overtone.suite import find_suite
from scripts.coverage_page import FOLDER, page


def test_the_coverage_page_is_up_to_date() -> None:
    written = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert written == page(), "write it again: python -m scripts.coverage_page"


def test_every_built_in_benchmark_says_what_it_covers() -> None:
    assert [name for name in registry.builtins("benchmarks") if find_suite(name) is None] == []
