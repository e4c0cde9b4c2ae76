"""The documentation site builds strictly, has every page and every generated part, and loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import overtone
from overtone import registry
from overtone.suite import find_suite
from scripts.docs_site.__main__ import build
from scripts.docs_site.assemble import CONFIG, assemble, expanded, listed
from scripts.docs_site.check import problems
from scripts.docs_site.environment import INTERNAL, VARIABLES, settings
from tests.conftest import REPOSITORY

SOURCES = sorted((REPOSITORY / "src").rglob("*.py"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every page of the site as Markdown."""
    folder = tmp_path_factory.mktemp("assembled")
    assemble(folder)
    return folder / "pages"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed; run \"pip install --editable '.[dev]'\"")
    folder = tmp_path_factory.mktemp("built") / "site"
    build(folder)
    return folder


def test_the_site_builds_strictly_with_search_and_both_colour_schemes(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-scheme="slate"' in home and 'data-md-color-scheme="default"' in home
    assert (site / "search.json").stat().st_size > 100_000
    assert "fonts.g" not in home


def test_every_page_is_in_the_navigation_and_in_llms_txt(pages: Path) -> None:
    nav = expanded(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"], pages)
    paths = [path for _, path in listed(nav)]
    assert len(set(paths)) == len(paths), "a page is in the navigation twice"
    assert set(paths) == {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    text = (pages / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Overtone\n\n> ") and not [path for path in paths if f"]({path}): " not in text]


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="b.html">b</a>', "b.html leads nowhere"),
        ('<a href="#other">b</a>', "#other: no such heading"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', "loads //fonts.example/a.css"),
        ("<style>@import 'https://fonts.example/b.css';</style>", "loads https://fonts.example/b.css"),
        ('<img src="gone.png">', "loads gone.png, which does not exist"),
        ('<a href="https://example.org/">elsewhere</a><a href="#here">here</a>', ""),
    ],
)
def test_a_broken_link_or_an_address_elsewhere_is_found(tmp_path: Path, html: str, problem: str) -> None:
    (tmp_path / "a.html").write_text(f'<h1 id="here">A</h1>{html}')
    found = problems(tmp_path)
    assert len(found) == bool(problem) and problem in "".join(found)


def test_a_link_out_of_the_docs_must_lead_to_a_file() -> None:
    from scripts.docs_site.assemble import DOCS, without_outside_links

    page = DOCS / "how-to" / "x.md"
    text = "See [the notes](../../experiments/echat/ablation.md#x) and [runs](../reference/runs.md)."
    expected = "See the notes (`experiments/echat/ablation.md`) and [runs](../reference/runs.md)."
    assert without_outside_links(text, page) == expected
    with pytest.raises(SystemExit, match="does not exist"):
        without_outside_links("[x](../../gone.md)", page)


# ── generated pages ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_command_has_a_page_with_its_flags_and_examples(pages: Path) -> None:
    for name in registry.builtins("cli"):
        assert f"# `overtone {name}`" in (pages / "reference" / "commands" / f"{name}.md").read_text(encoding="utf-8")
    run = (pages / "reference" / "commands" / "run.md").read_text(encoding="utf-8")
    assert "| `--limit N` |" in run and "```sh\novertone run " in run
    judge = (pages / "reference" / "commands" / "judge.md").read_text(encoding="utf-8")
    assert "## `overtone judge validate`" in judge


def test_every_public_name_is_documented(pages: Path) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (pages / "reference" / "python").glob("*.md"))
    for name in overtone.__all__:
        assert f"## `overtone.{name}`" in text
    assert "### `Run.to_pandas()`" in text and "| `case` | `str` | required |" in text


def test_every_table_and_column_of_the_store_is_documented(pages: Path) -> None:
    text = (pages / "reference" / "store.md").read_text(encoding="utf-8")
    for name in ("meta", "items", "asks", "replies", "failures", "clips", "scores", "events", "suite"):
        assert f"## `{name}`" in text
    assert "| `item` | integer | refers to `items.seq` |" in text and "The last failure of an ask" in text


def test_every_environment_variable_in_the_code_is_documented() -> None:
    used = {
        name for path in SOURCES for name in re.findall(r"\bOVERTONE_[A-Z0-9_]*[A-Z0-9]\b", path.read_text("utf-8"))
    }
    documented = {*VARIABLES, *INTERNAL}
    assert used - documented - set(settings()) == set(), "add them to scripts/docs_site/environment.py"
    assert documented - used == set(), "these are no longer read; remove them from scripts/docs_site/environment.py"


def test_catalogues_list_every_built_in(pages: Path) -> None:
    for room in ("benchmarks", "rubrics", "findings"):
        text = (pages / "reference" / room / "index.md").read_text(encoding="utf-8")
        assert not [name for name in registry.builtins(room) if f"({name}.md)" not in text]
    metrics = (pages / "reference" / "metrics" / "index.md").read_text(encoding="utf-8")
    scores = {score for name in registry.builtins("metrics") for score in registry.find("metrics", name).SCORES}
    assert not [score for score in scores if f"[`{score}`]" not in metrics]
    assert [name for name in registry.builtins("benchmarks") if find_suite(name) is None] == []
