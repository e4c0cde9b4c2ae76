"""The same work done by inspect_ai, for comparison. Run by the other benches with an interpreter that has it installed:

python -m venv peers && peers/bin/pip install inspect_ai openai
python -m bench.throughput --inspect peers/bin/python
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import types
from pathlib import Path


def rate(python: str, *, items: int, logs: Path, base_url: str = "", clip: str = "", connections: int = 64) -> float:
    """Items per second of inspect_ai: against an endpoint with a clip, or with its own model that answers at once."""
    command = [python, __file__, str(items), str(logs), str(connections), base_url, clip]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"RESULT ([\d.]+)", done.stdout)
    if not found:
        sys.exit(f"inspect_ai did not finish: {done.stdout[-300:]} {done.stderr[-300:]}")
    return float(found[1])


def main(items: int, logs: str, connections: int, base_url: str, clip: str) -> None:
    # It counts tokens with a vocabulary it would fetch from the network; words will do for this work.
    words = types.SimpleNamespace(encode=lambda text, **_: text.split())
    tiktoken = types.ModuleType("tiktoken")
    vars(tiktoken).update(get_encoding=lambda *_: words, encoding_for_model=lambda *_: words)
    sys.modules["tiktoken"] = tiktoken
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, ContentAudio, ContentText
    from inspect_ai.scorer import match

    os.environ.setdefault("OPENAI_API_KEY", "none")
    parts = [ContentText(text="How does the speaker feel?")]
    if clip:
        parts.append(ContentAudio(audio=clip, format="wav"))
    task = Task(
        dataset=[Sample(id=n, input=[ChatMessageUser(content=parts)], target="C") for n in range(items)], scorer=match()
    )
    model = {"model": "mockllm/model"}
    if base_url:
        model = {"model": "openai/any", "model_base_url": base_url, "model_args": {"responses_api": False}}
    began = time.perf_counter()
    (log,) = eval(task, display="none", log_dir=logs, max_connections=connections, max_samples=connections, **model)
    if log.status != "success":
        sys.exit(str(log.error))
    print(f"RESULT {items / (time.perf_counter() - began):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
