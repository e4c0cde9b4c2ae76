"""A Chromium whose microphone plays a WAV file again and again, and a server for a folder of static files."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.report.browser import CHROMIUM, FLAGS

PAGES = Path(__file__).parents[3] / "src" / "overtone" / "studio" / "pages"
ELSEWHERE = "desk.test"  # a host name that the browser finds here but does not count as this machine: no secure context


@contextmanager
def microphone_browser(chromium: Any, wav: Path) -> Iterator[Any]:
    """Yield another Chromium, whose microphone plays `wav`. A page may use it only in a context with that permission.

    `chromium` is a browser of the same Playwright: a process can have only one of these at a time.
    """
    fake = ("--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={wav}")
    names = f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, *fake, names])
    try:
        yield browser
    finally:
        browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path == "/":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>test</title>")
        else:
            super().do_GET()


@contextmanager
def static(folder: Path = PAGES) -> Iterator[int]:
    """Serve a folder, and an empty page at /; yield the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
