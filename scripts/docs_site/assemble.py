"""Assembles the pages of the site in one folder: those of docs/, those generated from the code, and llms.txt."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scripts.docs_site import commands, environment, python_api, store
from scripts.docs_site.catalogues import CATALOGUES
from scripts.docs_site.markdown import bars_in_code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = ROOT / "zensical.toml"
GENERATED: tuple[Callable[[], dict[str, str]], ...] = (
    commands.pages, python_api.pages, store.pages, environment.pages,
)  # fmt: skip
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_MARK = re.compile(r"^<!-- generated: ([\w-]+) -->\n.*?^<!-- end -->\n", re.M | re.S)
Nav = list[dict[str, Any]]


def assemble(out: Path) -> list[str]:
    """Write all pages, their pictures and the configuration to a folder. Return the paths of the pages."""
    shutil.rmtree(out, ignore_errors=True)
    pages = out / "pages"
    shutil.copytree(DOCS, pages)
    for path in sorted(pages.rglob("*.md")):
        text = bars_in_code(path.read_text(encoding="utf-8"))
        text = without_outside_links(text, DOCS / path.relative_to(pages))
        path.write_text(with_catalogues(text), encoding="utf-8")
    for make in GENERATED:
        for name, text in make().items():
            target = pages / name
            if target.exists():
                raise SystemExit(f"docs/{name} would hide the generated page of that name; rename or remove it")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]
    config["nav"] = expanded(config["nav"], pages)
    config |= {"docs_dir": "pages", "site_dir": "site"}
    (out / "zensical.toml").write_text(f"project = {inline(config)}\n", encoding="utf-8")
    (pages / "llms.txt").write_text(llms(config, pages), encoding="utf-8")
    return [str(path.relative_to(pages)) for path in sorted(pages.rglob("*.md"))]


def with_catalogues(text: str) -> str:
    """Return a page whose marked places hold the catalogues that they name."""
    return _MARK.sub(lambda mark: CATALOGUES[mark[1]](), text)


def without_outside_links(text: str, source: Path) -> str:
    """Return a page whose links to files outside docs/ are replaced by the file's path in the repository."""

    def replaced(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        path = (source.parent / target).resolve()
        if not target or re.match(r"[a-z]+:", target) or path.is_relative_to(DOCS):
            return match[0]
        if not path.exists():
            raise SystemExit(f"{source.relative_to(ROOT)} links to {target}, which does not exist")
        named = path.relative_to(ROOT).as_posix()
        return f"`{named}`" if match[1].strip("`") == named else f"{match[1]} (`{named}`)"

    parts, last = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(replaced, text[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, _LINK.sub(replaced, text[last:])])


def expanded(nav: Nav, pages: Path) -> Nav:
    """Return the navigation with every folder (`"reference/commands/"`) replaced by its pages, the index first."""

    def entries(value: Any) -> Any:
        if isinstance(value, list):
            return [{title: entries(inner) for title, inner in entry.items()} for entry in value]
        if not value.endswith("/"):
            return value
        found = sorted((pages / value).glob("*.md"), key=lambda path: (path.name != "index.md", path.stem))
        return [{title_of(path): value + path.name} for path in found]

    result: Nav = entries(nav)
    return result


def title_of(page: Path) -> str:
    """Return a page's title without markup."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").replace("`", "")


def listed(nav: Nav) -> Iterator[tuple[str, str]]:
    """Yield title and path of every page of the navigation."""
    for entry in nav:
        for title, value in entry.items():
            if isinstance(value, list):
                yield from listed(value)
            else:
                yield title, value


def inline(value: Any) -> str:
    """Return a value as inline TOML. JSON's strings, numbers and booleans are TOML's."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def llms(config: dict[str, Any], pages: Path) -> str:
    """Return llms.txt: the site's pages by part, as links to their Markdown, each with its first sentence."""
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    for part in config["nav"]:
        for title, value in part.items():
            lines += ["", f"## {title}", ""]
            inner = value if isinstance(value, list) else [{title: value}]
            for _, path in listed(inner):
                lines.append(f"- [{title_of(pages / path)}]({path}): {first_sentence(pages / path)}")
    return "\n".join(lines) + "\n"


def first_sentence(page: Path) -> str:
    """Return the first sentence of a page's first paragraph, without links and emphasis."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for paragraph in text.split("\n\n")[1:]:
        if paragraph.strip() and not re.match(r"\s*(\||#|<!--|!\[|!!!)", paragraph):
            joined = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split())).replace("**", "")
            return re.split(r"(?<=[.:!?])\s", joined)[0].rstrip(":")
    return title_of(page)
