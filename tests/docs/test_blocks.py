"""Every Python block of the pages runs, in a folder that holds what its page speaks of."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.data import make
from scripts.compare_page import make_runs
from tests.conftest import REPOSITORY
from tests.docs.markdown import blocks

DOCS = REPOSITORY / "docs"
REQUEST = {"id": "1", "messages": [{"role": "user", "parts": [{"text": "How are you?"}]}]}


def clips(folder: Path) -> None:
    """Make a small benchmark in EchoMind's layout, which `open` reads as well."""
    make(folder / "clips", scripts=3, questions=6, seconds=0.2)


def one_run(folder: Path) -> None:
    """Make a run in runs/mine."""
    make_runs(folder)
    (folder / "runs" / "monday").rename(folder / "runs" / "mine")


def nothing(folder: Path) -> None:
    """Make nothing: the page's code needs no file."""


PREPARED: dict[str, Callable[[Path], None]] = {
    "how-to/compare.md": make_runs,
    "how-to/extend/model.md": nothing,
    "how-to/heard.md": nothing,
    "how-to/models.md": nothing,
    "how-to/python.md": clips,
    "how-to/report.md": one_run,
    "how-to/scenes.md": nothing,
    "tutorial/notebook.md": clips,
}
LOCAL: dict[str, Callable[[Path], None]] = {"explanation/speech-tokens.md": nothing, "reference/delivery.md": nothing}
ELSEWHERE = {
    "how-to/read-a-run.md": "tests/docs/test_examples.py runs it",
    "how-to/workers.md": "an outline with a placeholder for the model",
}


def code(page: str) -> list[str]:
    """Return the Python blocks of a page that are not files of examples/, which have tests of their own."""
    found = [block.text for block in blocks(DOCS / page) if block.language == "python"]
    return [text for text in found if not text.startswith("# examples/")]


def execute(page: str, folder: Path) -> None:
    """Run the blocks of a page one after the other, as a reader would paste them into one session."""
    given = json.dumps(REQUEST) + "\n"
    command = [sys.executable, "-c", "\n".join(code(page))]
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{page}: {done.stderr}"
    assert "the run stopped" not in done.stderr, f"{page}: {done.stderr}"


def test_every_page_with_python_is_run() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {page for page in pages if code(page)} == {*PREPARED, *LOCAL, *ELSEWHERE}


@pytest.mark.parametrize("page", PREPARED)
def test_python_on_a_page_runs(page: str, tmp_path: Path) -> None:
    PREPARED[page](tmp_path)
    execute(page, tmp_path)


@pytest.mark.local
@pytest.mark.parametrize("page", LOCAL)
def test_python_that_speaks_runs(page: str, tmp_path: Path) -> None:
    LOCAL[page](tmp_path)
    execute(page, tmp_path)
