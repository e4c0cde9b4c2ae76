"""Checks a built site: every link leads to a file and a heading, and nothing is loaded from another host."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "audio": "src",
    "video": "src",
    "source": "src",
    "link": "href",
}
_HARMLESS = ("canonical", "alternate", "next", "prev")  # relations that load nothing
_CSS_URL = re.compile(r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)")


class _Page(HTMLParser):
    """The ids, the links and the loaded addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in _LOADS and _LOADS[tag] in given and given.get("rel") not in _HARMLESS:
            self.loads.append(given[_LOADS[tag]])
        self.loads += _CSS_URL.findall(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style":
            self.loads += _CSS_URL.findall(data)


def problems(site: Path) -> list[str]:
    """Return what is wrong with a built site, one line each."""
    site = site.resolve()
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loads:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address}")
            elif not address.startswith("data:") and not _file(path, address, site).is_file():
                found.append(f"{name} loads {address}, which does not exist")
        if name.name != "404.html":  # its links are absolute
            found += [f"{name}: {why}" for link in page.links if (why := _broken(path, link, site, pages))]
    for css in sorted(site.rglob("*.css")):
        found += [f"{css.relative_to(site)} loads {url}" for url in _CSS_URL.findall(css.read_text(encoding="utf-8"))]
    return found


def _file(page: Path, address: str, site: Path) -> Path:
    path = unquote(urlsplit(address).path)
    target = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    return target / "index.html" if path.endswith("/") else target


def _broken(page: Path, link: str, site: Path, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = Path(os.path.normpath(_file(page, link, site))) if parts.path else page
    if target not in pages and not target.is_file():
        return f"{link} leads nowhere"
    heading = "" if "=" in parts.fragment else unquote(parts.fragment)  # `#case=…` is read by a report's own script
    if heading and target in pages and heading not in pages[target].ids:
        return f"{link}: no such heading"
    return ""
