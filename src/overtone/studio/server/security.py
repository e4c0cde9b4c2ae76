"""The headers of every answer of the studio's server, and the limits that slow guessing.

Pages load their own scripts, styles and sounds and nothing else. There are no cookies: a page sends its token in a
header that no other site can set, so requests cannot be forged across sites. Addresses of clients are neither logged
nor stored; limits are kept per connection and for the server as a whole.
"""

from __future__ import annotations

import asyncio
import time
from weakref import WeakKeyDictionary

from aiohttp import web

from overtone.server_guard import Problem

MTURK = "https://www.mturk.com https://workersandbox.mturk.com"
MTURK_PATH = "/mturk"  # the one page that may be shown in a frame: MTurk's external question
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "media-src": "'self' blob:",
    "img-src": "'self' data:",
    "worker-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
PERSON_LINK = "this link is not valid; ask the organiser for a new one"
OWNER_LINK = "this link is from an earlier start; use the one that the terminal printed last"
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": (
        "microphone=(self), autoplay=(self), camera=(), geolocation=(), display-capture=(), payment=(), usb=(), midi=()"
    ),
    "Server": "overtone",
}


def policy(path: str) -> str:
    """Return the Content-Security-Policy of a path. MTurk shows one page in its frame and takes its form."""
    rules = dict(_POLICY)
    if path == MTURK_PATH:
        rules |= {"frame-ancestors": MTURK, "form-action": MTURK}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to an answer, also to an error."""
    response.headers.update(HEADERS)
    response.headers["Content-Security-Policy"] = policy(request.path)
    if request.path == MTURK_PATH:
        del response.headers["Cross-Origin-Opener-Policy"]
    else:
        response.headers["X-Frame-Options"] = "DENY"
    response.headers.setdefault("Cache-Control", "no-store")


def check_site(request: web.Request) -> None:
    """Raise Problem for a request to the API that comes from another site's page."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Problem(403, "requests from other sites are not answered", code="cross_site")


class Bucket:
    """A rate limit: `burst` events at once, then `rate` events per second."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._left, self._at = burst, time.monotonic()

    def take(self) -> bool:
        """Return whether one more event is allowed now. If so, count it."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guesses:
    """Slows down clients that send unknown tokens. A valid token is never slowed or refused."""

    per_connection = 5
    seconds = 0.25  # that each wrong token waits

    def __init__(self) -> None:
        self._all = Bucket(burst=100, rate=5)
        self._by_connection: WeakKeyDictionary[asyncio.BaseTransport, int] = WeakKeyDictionary()

    async def wrong(self, request: web.Request) -> Problem:
        """Count an unknown token, wait, and return the error to raise: a refusal or a request to slow down."""
        transport = request.transport
        made = 1
        if transport is not None:
            made = self._by_connection.get(transport, 0) + 1
            self._by_connection[transport] = made
        if not self._all.take() or made > self.per_connection:
            if transport is not None and made > self.per_connection:
                request.protocol.close()  # after this answer
            return Problem(429, "too many wrong links; wait a minute", code="slow_down")
        await asyncio.sleep(self.seconds)
        owner = request.path.startswith("/api/owner/")
        return Problem(401, OWNER_LINK if owner else PERSON_LINK, code="token")
