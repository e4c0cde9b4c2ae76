"""A test that lacks something skips and says how to get it; where skips are counted, an unlisted reason fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import NEEDS, REPOSITORY, missing

HIDE = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
"""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with no variable of ours but these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OVERTONE_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", *arguments, "-q"]
    return subprocess.run(
        command, cwd=REPOSITORY, env=plain | variables, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("marker", NEEDS)
def test_each_reason_holds_the_line_to_run(marker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, marker, (lambda: False, NEEDS[marker][1]))
    assert re.search(r"; run '(apt|export|make|overtone|OVERTONE_NETWORK=1) \S.*'", missing(marker))
    monkeypatch.setitem(NEEDS, marker, (lambda: True, NEEDS[marker][1]))
    assert missing(marker) == ""


def test_a_marked_test_skips_unless_what_it_needs_is_here() -> None:
    done = run("tests/test_house.py", "-k", "weigh or pinned")
    assert done.returncode == 0 and "1 skipped" in done.stdout and "OVERTONE_NETWORK=1 pytest" in done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_unlisted_skip_fails_where_skips_are_counted(workers: str) -> None:
    done = run("tests/test_house.py", "-k", "pinned", "-n", workers, OVERTONE_STRICT_SKIPS="1")
    assert done.returncode == 1 and "not on allowed_skips.txt: tests/test_house.py::" in done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_file_that_needs_torch_skips_as_one_entry_and_counts(workers: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDE)  # which every process imports as it starts
    hidden = {"PYTHONPATH": str(tmp_path)}
    file = "tests/echat/test_train_text.py"
    done = run(file, "-n", workers, **hidden)
    assert done.returncode == 0 and "1 skipped" in done.stdout and "make .venv-worker/.ready" in done.stdout
    done = run(file, "-n", workers, OVERTONE_STRICT_SKIPS="1", **hidden)
    assert done.returncode == 1 and f"not on allowed_skips.txt: {file}::needs_torch" in done.stdout
