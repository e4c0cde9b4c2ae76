"""A worker program without heavy libraries: it answers with what it was asked, and misbehaves when told to."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from typing import Any

import protocol


class Echo:
    """Understands commands in the last text part: die, hang, fail, oom-above-N, environment, pid, big, child."""

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        print("\x00\x00\x00\x05garbage on stdout", flush=True)
        if "die-at-start" in str(options.get("model", "")):
            print("the checkpoint is broken", file=sys.stderr, flush=True)
            os._exit(3)
        if "needs-library" in str(options.get("model", "")):
            import a_library_nobody_has  # type: ignore[import-not-found]  # noqa: F401
        if "slow-start" in str(options.get("model", "")):
            time.sleep(60)
        self.options = options
        rate = int(options["voice"]) if str(options.get("voice", "")).isdigit() else 16000
        return {
            "rate": rate,
            "speech": options.get("speech") == "auto",
            "class": "Echo",
            **protocol.versions(["pytest"]),
        }

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        return [self._one(item, len(items)) for item in items]

    def recover(self) -> None:
        print("recovered", flush=True)

    def _one(self, item: protocol.Item, together: int) -> protocol.Answer:
        words = [p for _, parts in item.messages for p in parts if isinstance(p, str)]
        command, _, value = (words[-1] if words else "").partition("=")
        if command == "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        if command == "hang":
            # PyDLL keeps the interpreter lock while it sleeps, as a stuck extension would: no thread can beat
            ctypes.PyDLL(None).sleep(int(value))
        if command == "sleep":
            time.sleep(float(value))
        if command == "fail":
            raise ValueError(f"cannot answer {value}")
        if command == "refuse":
            raise protocol.Refused("bad_clip", "too short")
        if command == "oom" and together > int(value):
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
        if command == "big":
            return protocol.Answer("x" * int(value))
        text = {
            "environment": lambda: json.dumps(dict(os.environ)),
            "pid": lambda: str(os.getpid()),
            "child": lambda: str(subprocess.Popen(["sleep", "60"]).pid),
        }.get(command, lambda: " ".join(words))()
        usage = {"input_tokens": len(words), "input_audio_tokens": len(item.sounds), "unknown_count": 1}
        sound = item.sounds[0] if item.speech and item.sounds else b""
        return protocol.Answer(text, sound, usage=usage, notes=[f"together={together}", f"seed={item.seed}"])


if __name__ == "__main__":
    sys.exit(protocol.serve(Echo()))
