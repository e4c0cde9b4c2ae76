"""Markdown for generated pages: tables, code blocks, and text from the code made safe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_<\[\]])")
_CODE = re.compile(r"(`[^`]+`)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Cells are Markdown; line breaks and bars in them are made safe."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    parts = _CODE.split(re.sub(r"\s+", " ", text).strip())
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def bars_in_code(text: str) -> str:
    """Return a page without backslashes before bars in code. GitHub needs them in tables; Zensical would show them."""
    return _CODE.sub(lambda span: span[0].replace("\\|", "|"), text)


def plain(text: str) -> str:
    """Return text from the code as Markdown that shows the same characters. Code spans stay code spans."""
    parts = _CODE.split(text)
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text: str) -> str:
    """Return a code span."""
    return f"`{text}`"


def block(text: str, language: str = "") -> str:
    """Return a fenced code block."""
    return f"```{language}\n{text.strip(chr(10))}\n```\n"
