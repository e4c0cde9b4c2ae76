"""Runs made in tests: settings from flags, against a local server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from overtone.runs.asker import Outcome, Policy
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import Settings, resolve

QUICK = Policy(attempts=3, base=0.01, longest=0.05)


def settings(data: Path, base_url: str, out: Path, **flags: Any) -> Settings:
    spec = f"openai:any?base_url={base_url}" + "".join(f"&{k}={v}" for k, v in flags.pop("keys", {}).items())
    given = {"benchmark": "echomind", "data": str(data), "model": [spec], "out": str(out), **flags}
    (found,) = resolve(given, None, {})
    return found


def run(data: Path, base_url: str, out: Path, **flags: Any) -> Outcome:
    policy = flags.pop("policy", QUICK)
    return asyncio.run(execute(settings(data, base_url, out, **flags), Hooks(policy=policy)))
