"""Every HTML page: texts are escaped, nothing foreign may load, and a page is complete or not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from overtone.html_page import visible, write_page

SAMPLES = ("overtone.echat.learn", "training_report.html.j2")
EMPTY: dict[str, object] = {"summary": {"rows": ()}, "stages": (), "settings": ""}


def cells() -> Iterator[tuple[list[str], str]]:
    yield ["a name from a disk \udcff", "<b>"], ""


def test_a_page_escapes_texts_and_forbids_everything_but_its_own_style(tmp_path: Path) -> None:
    page = write_page(
        tmp_path / "new" / "page.html", *SAMPLES, EMPTY | {"title": "<i>", "samples": cells()}
    ).read_text()
    assert "<title>&lt;i&gt; · Overtone</title>" in page
    assert "&lt;b&gt;" in page and "a name from a disk \\udcff" in page
    assert "default-src 'none'" in page and "unsafe" not in page


def test_a_page_that_fails_half_way_leaves_the_older_one(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[list[str], str]]:
        yield from cells()
        raise ValueError("no more samples")

    (tmp_path / "page.html").write_text("older")
    with pytest.raises(ValueError, match="no more"):
        write_page(tmp_path / "page.html", *SAMPLES, EMPTY | {"title": "t", "samples": failing()})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("page.html", "older")]


def test_characters_that_change_how_a_text_reads_are_written_out() -> None:
    assert visible("a\u202eb\x1b[2J\n\tc") == "a\\u202eb\\u001b[2J\n\tc"
