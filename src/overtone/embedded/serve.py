"""Serves the offline language model as an OpenAI-compatible endpoint: `python -m overtone.embedded.serve`.

For trying a judge, a cascade or any other client without a key and without a network. It is a small model: what it says
as a judge is worth nothing (docs/judges.md has the measurement).
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import threading
from typing import Any

from overtone.embedded.language import NAME, engine
from overtone.errors import OvertoneError, UsageError


def start(port: int = 0) -> tuple[Any, str]:
    """A server that answers as long as it is held, and its base URL. Port 0 picks a free one.

    It listens on this machine only and answers one request at a time, each from the start, so that the same request
    gets the same text.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen on port {port} ({error}); choose another with --port") from None
    server = engine(["127.0.0.1"], port)
    return server, f"{server.listening_address}/v1"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m overtone.embedded.serve", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="where to listen on 127.0.0.1; 0 picks a free port")
    given = parser.parse_args(arguments)
    try:
        server, url = start(given.port)
    except OvertoneError as error:
        print(f"overtone: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{NAME} answers at {url}; stop it with Ctrl-C. For example:", flush=True)
    print(f'  overtone score RUN --judge "openai:{NAME}?base_url={url}"', flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
