"""Starting a program of this folder from Overtone: the clean environment it gets, the end of its log, how it ended.

Used by models (`worker:`) and by metrics' helpers; the only file here that runs in Overtone's own environment, beside
`protocol`.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

from overtone.safety import SECRET_NAME

WORKERS = Path(__file__).parent
TAIL_LINES = 20
_TAIL_BYTES = 8192
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|XDG_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(CUDA|NVIDIA|ROCR|HIP|HSA|NCCL|OMP|MKL|OPENBLAS|KMP|TORCH|PYTORCH|TRITON|TRANSFORMERS|HF|HUGGINGFACE)_\w+|TORCHINDUCTOR\w*"
)
_PROXIES = re.compile(r"(https?|all|no)_proxy", re.I)


def worker_environment(environ: Mapping[str, str], *, hub: bool, gpu: str | None) -> dict[str, str]:
    """What a worker may see: an allow-list, and nothing that looks like a secret. HF_TOKEN passes for a hub id only.

    `OVERTONE_WORKER_ENV=NAME,NAME` lets further variables through, secrets still excepted.
    """
    named = {n.strip() for n in environ.get("OVERTONE_WORKER_ENV", "").split(",") if n.strip()}
    out: dict[str, str] = {}
    for name, value in environ.items():
        wanted = _PASSED.fullmatch(name) or name in named or (hub and _PROXIES.fullmatch(name))
        if wanted and (not SECRET_NAME.search(name) or (hub and name == "HF_TOKEN")):
            out[name] = value
    out |= {"PYTHONPATH": str(WORKERS), "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
    out |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
    if not hub:  # a checkpoint on disk needs no network, and the token file in HOME is none of its business
        out |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
    if gpu is not None:
        out["CUDA_VISIBLE_DEVICES"] = gpu
    return out


def tail(log: Path) -> str:
    """The last lines of a log, ready to be put behind a sentence."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f" (its log cannot be read: {error.strerror})"
    kept = [line.rstrip() for line in lines if line.strip()][-TAIL_LINES:]
    return "; its log is empty" if not kept else f"; the end of its log ({log}):\n" + "\n".join(kept)


def missing_module(text: str) -> str:
    """The module that a traceback says is not installed, or ""."""
    found = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    return found[1] if found else ""


def ended_with(status: int) -> str:
    """A process's exit status in words."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name
    return f"{name} (out of memory?)" if name == "SIGKILL" else name
