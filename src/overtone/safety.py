"""Safety checks: remove secrets from texts, guard keys, and find programs before they run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from overtone.errors import UsageError
from overtone.paths import user_path

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.I)  # in environment variables
INSECURE_VARIABLE = "OVERTONE_INSECURE"
SECRET_CHARS = 12  # a shorter value is often a word too
_KEYS = re.compile(r"(?i)(bearer\s+)[^\s\"',}]+|\b(sk-|AIza|hf_|xai-|gsk_|gh[oprsu]_|github_pat_|glpat-)[\w*.\-]{4,}")


def without_secrets(text: str) -> str:
    """Return a program's error output without the secrets of the environment that it inherited."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= SECRET_CHARS:
            text = text.replace(value, "…")
    return text


def without_keys(text: str, key: str) -> str:
    """Return a server's message on one line, without `key` and anything else that looks like a key."""
    if key:
        text = text.replace(key, "…")
    return _KEYS.sub(lambda m: f"{m[1] or ''}…", " ".join(text.split()))


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or address alone, without a DNS lookup."""
    import ipaddress  # here, because it would slow the start of every command

    name = host.strip("[]").lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def read_key(variable: str) -> str:
    """Return the key in the environment, or "" if unset. Raises UsageError if it is not a valid header."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"the environment variable {variable} is not a valid key: it has spaces or odd characters")
    return key


def check_key_route(url: str, who: str) -> None:
    """Raise UsageError if a key would go to another machine over plain http, unless allowed. `who` begins the error.

    Anyone on the network could read the key. Allowed by --insecure, or by OVERTONE_INSECURE=yes.
    """
    parts = urlsplit(url)
    allowed = os.environ.get(INSECURE_VARIABLE, "").lower() in ("1", "yes", "true")
    if parts.scheme not in ("https", "wss") and not is_loopback(parts.hostname or "") and not allowed:
        raise UsageError(
            f"{who}: the key would go to {parts.hostname} over plain {parts.scheme}, readable on the way; use "
            f"{parts.scheme}s, or give --insecure if you trust every network in between"
        )


@contextlib.contextmanager
def insecure(allowed: bool) -> Iterator[None]:
    """Allow keys over plain http inside this context, including in started processes."""
    before = os.environ.get(INSECURE_VARIABLE)
    if allowed:
        os.environ[INSECURE_VARIABLE] = "yes"
    try:
        yield
    finally:
        if allowed and before is None:
            del os.environ[INSECURE_VARIABLE]
        elif allowed and before is not None:
            os.environ[INSECURE_VARIABLE] = before


def executable(name: str, where: str) -> Path:
    """Find the program that a SPEC names: a name on the search path, else a path. `where` begins the error message.

    The search path comes first, so that a file in the working directory cannot replace an installed program.
    """
    if "/" not in name and (installed := shutil.which(name)):
        return Path(installed)
    path = user_path(name)
    if not path.is_file():
        raise UsageError(f"{where}: there is no program {name!r}; give the path of a script or executable")
    path = path.resolve()
    if path.suffix != ".py" and not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {path} is not executable; run 'chmod +x {path}'")
    return path
