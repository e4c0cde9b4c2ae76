"""A helper program without heavy libraries: it answers with what it was told, and misbehaves when told to."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import protocol


def load(options: dict[str, Any]) -> protocol.Call:
    print("garbage on stdout", flush=True)
    if options.get("do") == "import":
        import a_library_nobody_has  # type: ignore[import-not-found]  # noqa: F401
    if options.get("do") == "refuse":
        raise ValueError("no such weights")

    def call(header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        match header.get("do"):
            case "die":
                print("the last words", file=sys.stderr, flush=True)
                os._exit(9)
            case "fail":
                raise RuntimeError("not this one")
            case "hang":
                time.sleep(60)
            case "environment":
                return {"environment": sorted(os.environ)}, []
        return {"pid": os.getpid(), "told": header.get("text"), "options": options}, [b[::-1] for b in blobs]

    return call


sys.exit(protocol.serve_calls(load))
