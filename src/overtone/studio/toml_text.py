"""Values as TOML. Written by hand, because Python reads TOML but does not write it."""

from __future__ import annotations

import msgspec


def toml(value: object) -> str:
    """Return a value as TOML: text, a number, true or false, a list, or a table on one line."""
    if isinstance(value, str):
        if "\n" in value:
            lines = (_quoted(line)[1:-1] for line in value.split("\n"))
            return '"""\n' + "\n".join(lines) + '"""'
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_quoted(str(key))} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return str(value)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
