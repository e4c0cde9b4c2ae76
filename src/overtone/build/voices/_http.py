"""Send one POST that returns a sound: a blocking wrapper around the models' HTTP client.

Redirects are refused, because they would send the words elsewhere.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from yarl import URL

from overtone.blocking import wait as wait_for
from overtone.build.voices._records import VoiceError
from overtone.errors import ModelFailure
from overtone.models.http import Endpoint

RETRIES = 4  # after the first attempt
_LONGEST_WAIT = 120.0
_ADVICE = {
    "auth": "; name the variable that holds the key with api_key_env=NAME",
    "not_found": "; check base_url and the model's name",
    "timeout": "; give timeout=SECONDS",
}


def post(endpoint: Endpoint, body: Any, *, who: str, wait: float = 1.0) -> bytes:
    """Return the bytes of a 2xx answer. Overload and time-outs are retried after `Retry-After`; other failures raise
    VoiceError."""
    data = msgspec.json.encode(body)
    for attempt in range(RETRIES + 1):
        try:
            return bytes(wait_for(_once(endpoint, data)))
        except ModelFailure as error:
            failure = error
        start = "; start the server, or correct base_url" if failure.reason == "connection" and failure.fatal else ""
        problem = f"{who}: {failure.detail}{_ADVICE.get(failure.reason, start)}"
        if failure.fatal or not failure.retry:
            raise VoiceError(problem)
        if attempt < RETRIES:
            time.sleep(min(max(wait * 2**attempt, failure.retry_after or 0.0), _LONGEST_WAIT))
    raise VoiceError(f"{problem}; tried {RETRIES + 1} times. Build again later: finished clips are kept")


async def _once(endpoint: Endpoint, data: bytes) -> bytes:
    await endpoint.open()
    try:
        return await endpoint.post(data)
    finally:
        await endpoint.close()


def speech_endpoint(url: str, key: str, timeout: float) -> Endpoint:
    """Return the HTTP client for a server that answers with sound."""
    header = ("Authorization", f"Bearer {key}") if key else None
    accept = "audio/*, application/json"
    return Endpoint(URL(url), key_header=header, secret=key, timeout=timeout, accept=accept, redirects=0)
