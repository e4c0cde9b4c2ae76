"""One POST that brings a sound back, with the standard library alone: worker processes build clip after clip and need
no event loop. The key goes to the named host only; redirects are refused."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import IO, Any
from urllib.parse import urlsplit

import msgspec

from overtone.build.voices._records import VoiceError
from overtone.paths import shown
from overtone.safety import is_loopback, without_keys

MAX_BYTES = 64 * 2**20
RETRIES = 4  # after the first attempt
_LONGEST_WAIT = 120.0
_SHOWN = 300
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a redirect would carry the words, and perhaps the key, elsewhere."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def post(url: str, body: Any, *, key: str, timeout: float, who: str, wait: float = 1.0) -> bytes:
    """The bytes of a 2xx answer. Overload and time-outs are tried again, `Retry-After` kept; else VoiceError."""
    data = msgspec.json.encode(body)
    headers = {"Content-Type": "application/json", "Accept": "audio/*, application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    proxies = urllib.request.ProxyHandler({} if is_loopback(urlsplit(url).hostname or "") else None)
    opener = urllib.request.build_opener(_Stay, proxies)
    where = shown(urlsplit(url)._replace(query="", fragment="").geturl())
    for attempt in range(RETRIES + 1):
        request = urllib.request.Request(url, data, headers, method="POST")  # check_url has seen that it is http(s)
        pause = wait * 2**attempt
        try:
            with opener.open(request, timeout=timeout) as answer:
                return _body(answer, where, who, time.monotonic() + timeout)
        except urllib.error.HTTPError as error:
            with error:
                problem = f"HTTP {error.code} from {where}{_said(error, key)}"
                again = error.code in _AGAIN and "insufficient_quota" not in problem
                pause = max(pause, retry_after(error.headers) or 0.0)
            advice = _ADVICE.get(error.code, "")
        except TimeoutError:
            problem, again, advice = f"no answer from {where} in {timeout:g} s", True, "; give timeout=SECONDS"
        except urllib.error.URLError as error:
            reason = error.reason
            refused = isinstance(reason, ConnectionRefusedError)
            again = isinstance(reason, TimeoutError | ConnectionResetError)
            why = "nobody listens there" if refused else getattr(reason, "strerror", None) or str(reason)
            problem, advice = f"{where}: {why}", "; start the server, or correct base_url"
        except (ConnectionError, http.client.HTTPException) as error:
            problem = f"{where}: closed before its answer was complete ({type(error).__name__})"
            again, advice = True, ""
        if not again:
            raise VoiceError(f"{who}: {problem}{advice}")
        if attempt < RETRIES:
            time.sleep(min(pause, _LONGEST_WAIT))
    raise VoiceError(f"{who}: {problem}{advice}; tried {RETRIES + 1} times. Build again later: what is made is kept")


_ADVICE = {
    401: "; name the variable that holds the key with api_key_env=NAME",
    403: "; name the variable that holds the key with api_key_env=NAME",
    404: "; check base_url and the model's name",
}


def _body(answer: Any, where: str, who: str, until: float) -> bytes:
    """The whole body, at most MAX_BYTES of it and before `until`: a trickle would keep a worker for ever."""
    data = bytearray()
    while chunk := answer.read1(2**16):
        data += chunk
        if len(data) > MAX_BYTES:
            raise VoiceError(f"{who}: {where} sent more than {MAX_BYTES // 2**20} MB for one utterance")
        if time.monotonic() > until:
            raise TimeoutError
    if answer.length:  # read1 does not say that the connection closed too early
        raise http.client.IncompleteRead(bytes(data[:0]), answer.length)
    return bytes(data)


def _said(error: urllib.error.HTTPError, key: str) -> str:
    """What an error's body says, on one line, without anything that is or looks like a key."""
    try:
        text = error.read(2**16).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    return f": {redacted(text, key)}" if text.strip() else ""


def redacted(text: str, key: str) -> str:
    """At most 300 characters on one line, keys blacked out."""
    text = shown(without_keys(text, key))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def retry_after(headers: Message) -> float | None:
    """Seconds to wait by `Retry-After`, in seconds or as a date; None when it is not there or makes no sense."""
    value = (headers.get("Retry-After") or "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0) if value else None
    except (ValueError, OverflowError):
        return None
