"""Read an output of the command line as blocks of rows with numbers, whatever its format.

A block is a table, a section or a paragraph; a row is a table's row, a sentence or a JSON value. See
`scripts/reference_compare.py`.
"""

from __future__ import annotations

import csv
import functools
import html
import html.parser
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VOLATILE = (  # may differ between two calls of the same code, or between versions: pattern, replacement
    (r"Overtone \d+\.\d+[\w.]*", "Overtone VERSION"),
    (r"(\"version\": ?)\"\d+\.\d+[\w.]*\"", r'\1"VERSION"'),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "TIME"),  # when a page was written
    (r"(?<![\w.])/[\w./-]*/(?=runs/|run/|group/|arena/|again/)", ""),  # the folder of the outputs
    (r"(preferences.jsonl\": ?)\"[0-9a-f]{64}\"", r'\1"HASH"'),  # of a file that names that folder
    (r"(sha256|sha384)-[\w+/=]+", "HASH"),  # of the script and style of a page
)
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w\])}])[-−+±])?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[  ]?(?:%|ms|s|Hz|dB)(?!\w))?(?![\w])"
)


@functools.lru_cache(1 << 18)
def numbers(text: str) -> tuple[str, ...]:
    """Return the numbers of a text with sign and unit, to nine digits: the order of additions may change the rest."""
    return tuple(_plain(found) for found in NUMBER.findall(text))


def _plain(token: str) -> str:
    token = re.sub(r"[,  ]", "", token.replace("−", "-"))
    if len(token) < 10 or not (match := re.match(r"[-+±]?\d+\.\d+(?:[eE][-+]?\d+)?", token)):
        return token
    return f"{float(match[0].lstrip('±')):.9g}{token[match.end() :]}"


@dataclass
class Row:
    key: str
    cells: Sequence[str]
    prose: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(n for cell in self.cells for n in numbers(cell))


@dataclass
class Block:
    key: str
    rows: list[Row] = field(default_factory=list)

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(n for row in self.rows for n in row.numbers)


def prose(text: str) -> Row:
    return Row(" ".join(NUMBER.sub("#", text).split()), [text], prose=True)


def read(path: Path) -> list[Block]:
    text = stable(path.read_text(encoding="utf-8", errors="replace"))
    return READERS.get(path.suffix, from_text)(text)


def stable(text: str) -> str:
    for pattern, instead in VOLATILE:
        text = re.sub(pattern, instead, text)
    return text


def from_text(text: str) -> list[Block]:
    """Paragraphs. The numbers of one set in columns keep their order; a sentence may be turned round."""
    rows = [prose(part) for part in re.split(r"\n\s*\n", text) if part.strip()]
    for row in rows:
        lines = row.cells[0].splitlines()
        row.prose = 2 * sum(bool(re.search(r"\S {2,}\S", line)) for line in lines) < len(lines)
    return [Block("text", rows)]


def from_csv(text: str) -> list[Block]:
    """A block for each value of the column `table`; a row is known by its `key` and `column`, else by its words."""
    blocks: dict[str, Block] = {}
    head, *rows = list(csv.reader(text.splitlines())) or [[]]
    for row in rows:
        by_name = dict(zip(head, row, strict=False))
        table = by_name.get("table", "")
        words = [cell for cell in row if not numbers(cell)]
        key = "|".join((by_name.get("run", ""), by_name.get("key", ""), by_name.get("column", "")))
        known = key if by_name.get("key") else "|".join(words)
        blocks.setdefault(table, Block(table)).rows.append(Row(known, row))
    return [Block("columns", [Row(name, [name]) for name in head]), *blocks.values()]


def from_json(text: str) -> list[Block]:
    blocks: dict[str, Block] = {}
    for path, value in _leaves(json.loads(text), ()):
        name = "/".join(path[:2])
        shown = value if isinstance(value, str) else json.dumps(value)
        blocks.setdefault(name, Block(name)).rows.append(Row("/".join(path), [shown], isinstance(value, str)))
    return list(blocks.values())


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, str(name)))
    elif isinstance(value, list):
        seen: Counter[str] = Counter()
        for place, inner in enumerate(value):
            named = (
                next((str(inner[k]) for k in ("key", "name", "id") if inner.get(k)), "")
                if isinstance(inner, dict)
                else ""
            )
            seen[named] += 1
            yield from _leaves(inner, (*path, f"{named}~{seen[named]}" if named else str(place)))
    else:
        yield path, value


def from_lines(text: str) -> list[Block]:
    """Tables in Markdown or LaTeX, each under its heading or label, and the sentences between them."""
    blocks = [Block("top")]
    for line in text.splitlines():
        if heading := re.match(r"#+ (.*)|\\begin\{table\*?\}", line):
            blocks.append(Block(heading[1] or f"table {len(blocks)}"))
        elif label := re.match(r"\\label\{(.*)\}", line):
            blocks[-1].key = label[1]
        elif line.startswith("|") or " & " in line:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|| & ", line.strip("|"))]
            blocks[-1].rows.append(Row(cells[0], cells))
        elif line.strip():
            blocks[-1].rows.append(prose(line))
    return blocks


def from_svg(text: str) -> list[Block]:
    """The words of a picture; where its lines are is the block `drawing`, known by its key alone."""
    words = re.findall(r"<(?:text|title|desc|tspan)\b[^>]*>([^<]+)", text)
    lines = re.sub(r">[^<]+<", "><", text)
    return [Block("words", [prose(html.unescape(word)) for word in words]), Block("drawing", [Row(lines, [])])]


def _resolved(text: str) -> str:
    """Data of a page. A set of cases has a number that only depends on the order of links: show a digest instead."""
    data = json.loads(text)
    if not (isinstance(data, dict) and data.keys() == {"sets", "behind"}):
        return text
    digests = [zlib.crc32(one.encode()) for one in data["sets"]]
    return json.dumps({"behind": {key: digests[place] for key, place in data["behind"].items()}})


class _Page(html.parser.HTMLParser):
    HEADINGS = ("h1", "h2", "h3", "h4")
    SVG_WORDS = ("text", "title", "desc")
    FLUSH = (
        *HEADINGS, *SVG_WORDS, "p", "li", "dt", "dd", "div", "section", "article", "details", "summary", "option",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Block("top")]
        self.prose = self.blocks[0]
        self.table: Block | None = None
        self.words: list[str] = []
        self.script = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag in ("script", "style"):
            self.flush()
            self.script = f"data {given.get('id')}" if given.get("type") == "application/json" else "code"
        elif tag == "table":
            self.flush()
            self.table = Block(f"table in {self.prose.key}")
            self.blocks.append(self.table)
        elif tag == "caption" and self.table and given.get("id"):
            self.table.key = f"table {given['id']}"
        elif tag == "tr" and self.table:
            self.table.rows.append(Row("", []))
            self.words.clear()
        elif tag in self.FLUSH and not self.table:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self.table and self.table.rows:
            row = self.table.rows[-1]
            row.cells = [*row.cells, " ".join(" ".join(self.words).split())]
            row.key = row.key or row.cells[0]
            self.words.clear()
        elif tag == "table":
            self.table = None
            self.words.clear()
        elif tag in self.HEADINGS and not self.table:
            self.prose = Block(" ".join(" ".join(self.words).split()))
            self.blocks.append(self.prose)
            self.flush()
        elif tag in ("script", "style"):
            if self.script.startswith("data"):
                inner = from_json(_resolved("".join(self.words)))
                self.blocks += [Block(f"{self.script} {one.key}", one.rows) for one in inner]
            self.words.clear()
            self.script = ""
        elif tag in self.FLUSH and not self.table:
            self.flush()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def flush(self) -> None:
        text = " ".join(" ".join(self.words).split())
        if text:
            self.prose.rows.append(prose(text))
        self.words.clear()


def from_html(text: str) -> list[Block]:
    page = _Page()
    page.feed(text)
    return page.blocks


READERS = {
    ".csv": from_csv,
    ".json": from_json,
    ".html": from_html,
    ".svg": from_svg,
    ".md": from_lines,
    ".tex": from_lines,
}
