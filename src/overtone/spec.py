"""The only parser of SPECs, `kind:name?key=value&key=value`, which name a model, a judge or a voice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from overtone.errors import UsageError

GENERATION_KEYS: dict[str, type] = {
    "temperature": float,
    "max_tokens": int,
    "seed": int,
    "top_p": float,
    "timeout": float,
}
COMMON_KEYS: dict[str, type] = {**GENERATION_KEYS, "speech": str, "audio_rate": int}
AUDIO_RATES = 4_000, 192_000
# Keys of SPECs and of descriptions that do not identify a model's answers, so they may change when a run is resumed.
NOT_IDENTITY = (
    "facts", "timeout", "base_url", "api_key_env", "slots", "threads", "python", "device", "batch", "gpus", "stream",
)  # fmt: skip
_SECRET = re.compile(
    r"(key|token|secret|password|passwd|passphrase|credential)s?([_-]?id)?$"
    r"|(^|[_-])(auth|authorization|pass|pwd|sig|signature)$",
    re.I,
)
_USER_INFO = re.compile(r"//[^/\s]*@")
_SECRET_VALUE = re.compile(r"^(sk-|AIza|ghp_|hf_|xai-|Bearer )")

_KEY = re.compile(  # a vendor's key by its prefix, or a long sequence of mixed letters and digits
    r"(?<![A-Za-z0-9])(?:(?:sk-|AIza|xai-|gsk_|gh[oprsu]_|github_pat_|glpat-|xox[bp]-)[\w-]{8}|AKIA[A-Z0-9]{16}"
    r"|hf_[A-Za-z0-9]{20}|eyJ[\w-]{10,}\.[\w-]|(?=[A-Za-z]*[0-9])(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{32})"
)


class Spec(Struct, frozen=True):
    """A parsed SPEC. `options` holds every key as text, percent-decoded; `typed()` checks and converts them."""

    kind: str
    name: str
    options: dict[str, str]

    def __str__(self) -> str:
        query = "&".join(f"{k}={quote(v, safe='/:,@+')}" for k, v in sorted(self.options.items()))
        head = f"{self.kind}:{self.name}" if self.name else self.kind
        return f"{head}?{query}" if query else head

    def typed(self, keys: Mapping[str, type]) -> dict[str, Any]:
        """Convert the options to the types in `keys` and COMMON_KEYS. Raises UsageError for an unknown key."""
        allowed = {**COMMON_KEYS, **keys}
        out: dict[str, Any] = {}
        for key, value in self.options.items():
            if key not in allowed:
                head = str(Spec(self.kind, self.name, {}))  # not the values: a misspelt key may hold a secret
                raise UsageError(
                    f"{head}: unknown key {key!r}{suggest(key, allowed)}; known: {', '.join(sorted(allowed))}"
                )
            out[key] = _convert(self, key, value, allowed[key])
        self.typed_speech()
        self.typed_audio_rate()
        return out

    def typed_speech(self) -> str:
        """Return whether speech is wanted in replies of conversations: auto, yes or no."""
        wanted = self.options.get("speech", "auto")
        if wanted not in ("auto", "yes", "no"):
            raise UsageError(f"{self}: speech must be auto, yes or no, not {wanted!r}")
        return wanted

    def typed_audio_rate(self) -> int | None:
        """Return the rate in Hz that sounds are resampled to before they are sent; None to keep their rate."""
        if "audio_rate" not in self.options:
            return None
        rate: int = _convert(self, "audio_rate", self.options["audio_rate"], int)
        low, high = AUDIO_RATES
        if not low <= rate <= high:
            raise UsageError(f"{self}: audio_rate must be between {low} and {high} Hz, not {rate}")
        return rate


def _convert(spec: Spec, key: str, value: str, to: type) -> Any:
    if to is bool:
        if value.lower() in ("1", "true", "yes", "on"):
            return True
        if value.lower() in ("0", "false", "no", "off"):
            return False
        raise UsageError(f"{spec}: {key} must be yes or no, not {value!r}")
    try:
        return to(value)
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(to, to.__name__)
        raise UsageError(f"{spec}: {key} must be {kind}, not {value!r}") from None


def parse_spec(text: str) -> Spec:
    """Parse a SPEC, which is split at the first `:` and the last `?`. The query is percent-decoded.

    Raises UsageError, also for a SPEC that contains a secret, because SPECs are stored.
    """
    head, mark, query = text.rpartition("?")
    if not mark:
        head, query = text, ""
    kind, _, name = head.partition(":")
    kind = kind.strip().lower()
    if _KEY.search(unquote(text)):
        whose = f"this SPEC of kind {kind!r}" if re.fullmatch("[a-z]{1,12}", kind) and ":" in head else "this SPEC"
        raise UsageError(
            f"a part of {whose} looks like a secret, so it is not shown; put the key into an environment variable and "
            "name that with api_key_env=NAME"
        )
    if "\0" in text:
        raise UsageError(f"not a SPEC: {_redact(text)!r} contains a NUL character; remove it")
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", kind):
        raise UsageError(
            f"not a SPEC: {_redact(text)!r}; write kind:name?key=value, e.g. openai:gpt-4o-audio-preview"
            f"{kind_hint(head) if ':' not in head else ''}"
        )
    if _USER_INFO.search(name):
        raise UsageError(f"{_redact(text)!r}: a SPEC must not contain a user name or password; use api_key_env=NAME")
    if re.search(r"\?\w+=", name):
        raise UsageError(f"{_redact(text)!r} has options after two question marks; write %3F for one inside a value")
    options: dict[str, str] = {}
    for pair in query.split("&") if query else []:
        key, eq, value = pair.partition("=")
        key, value = unquote(key), unquote(value)
        if "\0" in key + value:
            raise UsageError(f"{_redact(text)!r}: {key!r} contains a NUL character (%00); remove it")
        if not eq or not key:
            raise UsageError(f"{_redact(text)!r}: {key!r} is not key=value")
        if key in options:
            raise UsageError(f"{_redact(text)!r}: {key!r} is given twice")
        if (_SECRET.search(key) and key not in COMMON_KEYS) or _SECRET_VALUE.match(value):
            raise UsageError(
                f"{kind}:{name}: {key!r} looks like a secret; put the key into an environment variable and name that "
                "with api_key_env=NAME"
            )
        if key.endswith("url"):
            check_url(value, f"{kind}:{name}", ("http", "https", "ws", "wss"))
        elif _USER_INFO.search(value):
            raise UsageError(f"{kind}:{name}: {key!r} contains a user name or password; use api_key_env=NAME instead")
        options[key] = value
    return Spec(kind, name, options)


def kind_hint(name: str) -> str:
    """Return advice on how to write a model's SPEC if its kind is missing: for the vendor's server, or for a local
    server."""
    if not re.fullmatch(r"[A-Za-z0-9][\w./-]{0,80}", name):
        return ""
    kind = "gemini" if name.lower().startswith("gemini") else "openai"
    own = "" if re.match("gpt-|gemini|o[1-9]", name.lower()) else "?base_url=http://localhost:8000/v1"
    return f"; a model needs its kind before its name: {kind}:{name}{own}"


def check_url(url: str, where: str, schemes: Sequence[str] = ("http", "https")) -> None:
    """Raise UsageError for a base URL of another scheme, or one that contains user info or a key."""
    if problem := _url_problem(url, schemes):
        raise UsageError(f"{where}: not an {'http' if 'http' in schemes else schemes[0]}(s) URL: {problem}")
    parts = urlsplit(url)
    if "@" in unquote(unquote(parts.netloc)):
        raise UsageError(f"{where}: the URL contains a user name or password; use api_key_env=NAME instead")
    for pair in re.split("[&;]", f"{parts.query}&{parts.fragment}"):
        if _SECRET.search(unquote(pair.partition("=")[0])):
            raise UsageError(f"{where}: the URL contains a key; use api_key_env=NAME instead")


def _with_scheme(url: str) -> str:
    """Return advice on how to write an address without a scheme, such as localhost:8000; "" if it may contain a
    secret."""
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9._-]+)*/?", url):
        return ""
    local = re.match(r"(localhost|\d+\.\d+\.\d+\.\d+|[^.]+)(:|/|$)", url)
    path = "" if "/" in url.rstrip("/") else "/v1"  # most servers need it
    return f"; write {'http' if local else 'https'}://{url.rstrip('/')}{path}"


def _url_problem(url: str, schemes: Sequence[str]) -> str:
    """Return why a URL is invalid, or "". The text does not quote a possible user name or password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its address in brackets is not an IPv6 address"
    if parts.scheme not in schemes:
        return f"it must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}" + _with_scheme(url)
    if not url.isprintable() or " " in url:
        return "it contains a space or a control character"
    if not parts.hostname:
        return f"it has no host; write {parts.scheme}://HOST:PORT/v1"
    try:
        wrong = parts.port == 0
    except ValueError:  # not a number, or too large
        wrong = True
    return f"the port after {parts.hostname} must be a number from 1 to 65535" if wrong else ""


def _redact(text: str) -> str:
    return re.sub(r"(?i)((?:key|token|secret|password)[^=&]*=)[^&]+", r"\1…", re.sub(r"//[^/@]*@", "//…@", text))


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'` for the most similar known name, ignoring case; "" if none is similar."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return f"; did you mean {by_lower[near[0]]!r}" if near else ""
