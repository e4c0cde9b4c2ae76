"""What must not be shown and what may be started: secrets kept out of texts, programs found before they run."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from overtone.errors import UsageError

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.I)  # of an environment variable
SECRET_CHARS = 12  # a shorter value is often a word too
_KEYS = re.compile(r"(?i)(bearer\s+)[^\s\"',}]+|\b(sk-|AIza|hf_|xai-|gsk_)[\w*.\-]{4,}")


def without_secrets(text: str) -> str:
    """What a program says when it fails, without the secrets of the environment that it inherited."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= SECRET_CHARS:
            text = text.replace(value, "…")
    return text


def without_keys(text: str, key: str) -> str:
    """What a server says, on one line, without `key` and without anything that looks like a key."""
    if key:
        text = text.replace(key, "…")
    return _KEYS.sub(lambda m: f"{m[1] or ''}…", " ".join(text.split()))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, by its name or address alone: nothing is looked up."""
    import ipaddress  # not where every command starts

    name = host.strip("[]").lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def executable(name: str, where: str) -> Path:
    """The program that a SPEC names: a name on the search path, or else a path; `where` begins the error for neither.

    The search path comes first, so that a file in the working directory cannot stand in for a program of the machine.
    """
    if "/" not in name and (installed := shutil.which(name)):
        return Path(installed)
    given = Path(name).expanduser()
    if given.is_file():
        path = given.resolve()
    else:
        raise UsageError(f"{where}: there is no program {name!r}; give the path of a script or executable")
    if path.suffix != ".py" and not os.access(path, os.X_OK):
        raise UsageError(f"{where}: {path} is not executable; run 'chmod +x {path}'")
    return path
