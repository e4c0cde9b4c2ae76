"""The example notebook runs from top to bottom in a real kernel, and its cells show what they promise."""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "examples" / "first_steps.ipynb"


@pytest.mark.local
@pytest.mark.timeout(600)
def test_the_example_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(KernelSpecManager, "ensure_native_kernel", True)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # committed without outputs
    nbclient.NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"]
    run, scores, compared, findings = shown[1], shown[2], shown[3], shown[4]
    page = run[-1]["data"]["text/html"]
    assert page.count("<audio") == 3
    assert "<table" in page
    assert any("0 failed" in str(output.get("data", {}).get("text/plain")) for output in run)  # the line of progress
    assert "score_asks_back" in scores[-1]["data"]["text/html"]
    assert "<li>" in compared[-1]["data"]["text/html"]
    assert "<ul>" in findings[-1]["data"]["text/html"]
    assert (tmp_path / "report.html").is_file()
