"""Check that docs, docstrings, help texts and errors are written in plain English.

The rules are data: prose_rules.toml holds a pattern, advice and examples for each. Titles of cited works (italics and
a comma) are not checked, because nobody can reword them.

    python scripts/prose.py                    check the repository; fail on any hit
    python scripts/prose.py docs src/x.py      list the hits of these files only, with advice
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RULES = Path(__file__).with_name("prose_rules.toml")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md")
SOURCES = "src/**/*.py"
ERRORS = "src/overtone/errors.py"
KINDS = ("doc", "heading", "docstring", "help", "error")


class Rule(NamedTuple):
    """One turn of phrase to avoid."""

    name: str
    pattern: re.Pattern[str]
    advice: str
    kinds: tuple[str, ...]
    bad: tuple[str, ...]
    good: tuple[str, ...]


class Passage(NamedTuple):
    """A piece of text to check. `lines` has each character's line; `function`: the docstring of a public function."""

    kind: str
    text: str
    lines: list[int]
    function: bool = False


class Hit(NamedTuple):
    """A turn of phrase to avoid, and where it is."""

    path: str
    line: int
    rule: str
    text: str
    advice: str


def load_rules(path: Path = RULES) -> tuple[list[Rule], frozenset[str]]:
    """Read the rules, and the verbs that may begin the docstring of a function."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    rules = []
    for one in data["rule"]:
        kinds, bad, good = (tuple(one.get(key, KINDS)) for key in ("kinds", "bad", "good"))
        rules.append(Rule(one["name"], re.compile(one["pattern"]), one["advice"], kinds, bad, good))
    return rules, frozenset(data["verbs"].split())


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────────────────
_FENCE = re.compile(r"^\s*(```|~~~)")
_NEW_BLOCK = re.compile(r"^\s*(?:[-*+] |\d+\. |> |#)")
_MARKUP = (
    (re.compile(r"<!--.*?-->"), ""),
    (re.compile(r"``.+?``|`[^`]*`"), "CODE"),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"(?<!\*)\*[^*]+\*(?=, [A-Z])"), "TITLE"),  # of a cited work: *Not all laughs are alike*, Journal
    (re.compile(r"\*\*|\*|(?<!\w)_|_(?!\w)"), ""),
    (re.compile(r"^\s*(?:[-*+] |\d+\. |> |#+ )"), ""),
)


def _plain(line: str) -> str:
    return reduce(lambda text, rule: rule[0].sub(rule[1], text), _MARKUP, line).strip()


def _passage(kind: str, rows: Iterable[tuple[int, str]], function: bool = False) -> Passage:
    """Join numbered lines to one passage."""
    characters = [(number, character) for number, row in rows for character in row + " "]
    return Passage(kind, "".join(one for _, one in characters), [number for number, _ in characters], function)


def markdown(text: str) -> Iterator[Passage]:
    """Split a page into paragraphs, list entries, headings and table cells, without its code."""
    rows: list[tuple[int, str]] = []
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = bool(_FENCE.match(line))
        code ^= fence
        cell = line.lstrip().startswith("|")
        if rows and (fence or code or cell or not line.strip() or _NEW_BLOCK.match(line)):
            yield _passage("doc", rows)
            rows = []
        if fence or code:
            continue
        if cell:
            yield from (_passage("doc", [(number, one.strip())]) for one in _plain(line).split("|") if one.strip())
        elif plain := _plain(line):
            rows.append((number, plain))
        if rows and line.startswith("#"):
            yield _passage("heading", rows)
            rows = []
    if rows:
        yield _passage("doc", rows)


# ── Python ────────────────────────────────────────────────────────────────────────────────────────────────────────────
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _literal(node: ast.expr) -> str:
    """Return the text of a string expression, with {} in place of its values; empty if it is not a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _literal(node.left) + _literal(node.right)
    return ""


def _docstrings(node: ast.Module | ast.ClassDef) -> Iterator[Passage]:
    """Yield the first sentence of the docstrings of this node and its public members."""
    yield from _docstring(node)
    for one in node.body:
        public = not getattr(one, "name", "_").startswith("_")
        if public and isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            attribute = any(_name(decorator) in ("property", "cached_property") for decorator in one.decorator_list)
            yield from _docstring(one, function=not attribute)
        elif public and isinstance(one, ast.ClassDef):
            yield from _docstrings(one)


def _docstring(node: Documented, function: bool = False) -> Iterator[Passage]:
    if text := ast.get_docstring(node):
        rows = enumerate(text.split("\n\n")[0].splitlines(), node.body[0].lineno)
        whole = _passage("docstring", rows, function)
        end = _SENTENCE.search(whole.text)
        yield whole._replace(text=whole.text[: end.start()]) if end else whole


def python(tree: ast.Module, errors: frozenset[str]) -> Iterator[Passage]:
    """Collect docstrings' first sentences, help texts and the messages of `errors` from a module."""
    yield from _docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        given = [("help", key.value) for key in node.keywords if key.arg in ("help", "description")]
        given += [("error", one) for one in node.args if name in errors]
        for kind, value in given:
            if (text := _literal(value)).strip():
                yield _passage(kind, [(value.lineno, re.sub(r"\s+", " ", text))])


def error_names(trees: Iterable[ast.Module], base: ast.Module) -> frozenset[str]:
    """Return the names of the exceptions in `base` and of the classes derived from them."""
    names = {node.name for node in base.body if isinstance(node, ast.ClassDef)}
    classes = [one for tree in trees for one in tree.body if isinstance(one, ast.ClassDef)]
    return frozenset(names | {one.name for one in classes if any(_name(base) in names for base in one.bases)})


# ── hits ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!cf\.)\s+(?=[A-Z(\"'“`*…]|$)")


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for end in (*(match.end() for match in _SENTENCE.finditer(text)), len(text)):
        if sentence := text[start:end].strip():
            yield start + text[start:end].index(sentence[0]), sentence
        start = end


def check(passage: Passage, path: str, rules: list[Rule], verbs: frozenset[str]) -> Iterator[Hit]:
    """Yield every hit of the rules in a passage."""
    if passage.function and re.split(r"[^\w-]", passage.text.strip().lower())[0] not in verbs:
        yield Hit(path, passage.lines[0], "imperative", passage.text[:60], "Begin with a verb: Return …, Read …")
    for at, sentence in _sentences(passage.text):
        for rule in rules:
            if passage.kind in rule.kinds:
                for match in rule.pattern.finditer(sentence):
                    context = sentence[max(0, match.start() - 25) : match.end() + 25]
                    yield Hit(path, passage.lines[at + match.start()], rule.name, context, rule.advice)


def scan(root: Path = ROOT) -> tuple[list[Hit], int]:
    """Check the repository; return its hits and the number of words in its documentation."""
    rules, verbs = load_rules()
    hits: list[Hit] = []
    words = 0
    for page in (one for pattern in PAGES for one in sorted(root.glob(pattern))):
        for passage in markdown(page.read_text(encoding="utf-8")):
            words += len(passage.text.split())
            hits += check(passage, page.relative_to(root).as_posix(), rules, verbs)
    trees = {p.relative_to(root).as_posix(): ast.parse(p.read_bytes()) for p in sorted(root.glob(SOURCES))}
    errors = error_names(trees.values(), trees.get(ERRORS, ast.Module([], [])))
    for path, tree in trees.items():
        hits += (hit for passage in python(tree, errors) for hit in check(passage, path, rules, verbs))
    return hits, words


def _print(hits: Iterable[Hit]) -> None:
    for hit in hits:
        print(f"{hit.path}:{hit.line}: {hit.rule}: {' '.join(hit.text.split())}\n    {hit.advice}")


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Check that texts are written in plain English.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="check only these files and folders")
    args = parser.parse_args()
    gc.disable()  # the syntax trees hold no cycles, and looking for cycles doubles the time
    hits, words = scan()
    chosen = [one.resolve() for one in args.paths] or [ROOT]
    hits = [hit for hit in hits if any((ROOT / hit.path).is_relative_to(one) for one in chosen)]
    _print(hits)
    print(f"prose: {len(hits)} hits; the docs have {words:,} words")
    return int(bool(hits))


if __name__ == "__main__":
    sys.exit(main())
