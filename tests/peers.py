"""Programs of other projects that read what Overtone writes, and Ray, in a separate environment.

`make .venv-peers/.ready` installs them. They bring more than a hundred packages, so they are neither part of `dev` nor
imported by a test: `peer` runs a few lines of Python there and returns the JSON that these print.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

BIN = Path(os.environ.get("OVERTONE_PEERS") or Path(__file__).parent.parent / ".venv-peers") / "bin"


def peer(code: str, *given: str | Path) -> Any:
    """Run Python code in the peers' environment, with `given` as `sys.argv[1:]`. Return the JSON of its last line."""
    return json.loads(_run([BIN / "python", "-c", code, *given]).splitlines()[-1])


def overtone(*words: str | Path) -> str:
    """Run a command of Overtone in the peers' environment and return what it prints."""
    return _run([BIN / "python", "-m", "overtone", *words])


def _run(words: list[str | Path]) -> str:
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "offline"}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=os.environ | offline, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
