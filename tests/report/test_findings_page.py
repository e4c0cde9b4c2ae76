"""A report begins with what was found: in sentences, pictures and tables, for one run and several; then compared."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from overtone.cli import main as overtone
from overtone.report import flips
from overtone.report.page import write_report
from overtone.results import comparison
from overtone.results.load import open_run
from overtone.runs.store import Store
from tests.report.browser import Tab, chromium
from tests.report.fake_run import HOSTILE, make_run
from tests.report.test_page import Page

JUDGES = ("gpt-4o", "gemini-2.5-pro")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("findings")
    make_run(home / "a", scripts=14, judges=JUDGES, voice=True, root=home / "data")
    make_run(home / "b", scripts=14, seed=3, skill=0.2, judges=JUDGES, voice=True, root=home / "data", model="openai:b")
    write_report([home / "a", home / "b"], home / "two.html")
    write_report([home / "a"], home / "one.html")
    return home


def section(html: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', html, flags=re.S)
    return found[0] if found else ""


def test_findings_stand_first_with_sentences_a_picture_and_tables(home: Path) -> None:
    html = (home / "one.html").read_text()
    order = re.findall(r'<section id="(\w+)"', html)
    assert order[:3] == ["overview", "findings", "results"], "one run has nothing to be compared with"
    found = section(html, "findings")
    assert "Where between hearing and a fitting reply is the voice lost?" in found
    assert re.search(r'heard the words\. <a class="cases" href="#behind=1%3Afunnel/[^"]+">\d+ cases</a>', found)
    assert found.count("<svg") >= 3 and "xmlns" not in found and "style=" not in found
    assert "var(--f-s0" in found and "<summary>Table" in found
    assert "Not enough data in these runs" in found and "--input audio,transcript" in found


def test_every_link_behind_a_finding_has_a_set(home: Path) -> None:
    for name in ("one.html", "two.html"):
        page = Page(home / name)
        blocks = {a["id"]: text for _, a, text in page.blocks if a.get("id") in ("sets", "index")}
        told = msgspec.json.decode(blocks["sets"])
        asked = [str(a["href"])[8:] for t, a in page.tags if t == "a" and str(a.get("href")).startswith("#behind=")]
        assert len(asked) > 100
        assert {unquote(key) for key in asked} <= told["behind"].keys(), "no link is dead"
        assert all(0 <= n < len(told["sets"]) for n in told["behind"].values())


def test_runs_are_compared_with_what_flipped(home: Path) -> None:
    found = section((home / "two.html").read_text(), "compared")
    assert "openai:b against openai:some-model" in found
    assert "which is worse" in found and "right → wrong" in found
    assert re.search(r'href="#behind=2%3Acompare/task/audio/voice_accuracy/all/worse">\d+ cases', found)
    assert found.count('class="said end"') >= 6 and "✗ wrong" in found and 'data-name="Reply of openai:b"' in found


def test_the_cases_of_a_comparison_are_those_the_analysis_names(home: Path) -> None:
    first, second = open_run(home / "a"), open_run(home / "b")
    told = dict(flips.cases_by_key(first, second))
    found = comparison.compare(first, second)
    rows = [row for table in found.tables for row in table.rows]
    assert len(rows) > 50
    for row in rows:
        assert told.get(row.key, []) == comparison.behind(first, second, row.key), row.key
    for one in found.flips:
        if one.right_or_wrong:
            assert set(told.get(f"{one.key}/worse", [])) == {flip.case for flip in one.worse}
            assert set(told.get(f"{one.key}/improved", [])) == {flip.case for flip in one.improved}


def test_runs_that_do_not_compare_say_why_and_show_no_numbers(home: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", scripts=14, version=2, model="openai:c")
    found = section(write_report([home / "a", other], tmp_path / "r.html").read_text(), "compared")
    assert "These runs are not comparable." in found and "accuracy|v1|lenient" in found
    assert "<table" not in found and "data-sound" not in found


def test_runs_of_different_benchmarks_are_not_set_against_each_other(home: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", scripts=4)
    with Store.create(other) as store:
        store.set_meta({"benchmark": "elsewhere"})
    html = write_report([home / "a", other], tmp_path / "r.html").read_text()
    assert not section(html, "compared") and section(html, "findings")


def test_hostile_labels_are_text_in_sentences_and_pictures(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / n, scripts=4, seed=s, model=f"openai:{HOSTILE}{n}\u202e") for s, n in enumerate("ab")]
    page = Page(write_report(runs, tmp_path / "r.html"))
    assert "<img" not in page.html and "\u202e" not in section(page.html, "findings")
    assert "&lt;img" in section(page.html, "findings") and "&lt;img" in section(page.html, "compared")


def test_an_arena_has_its_ladder(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arena = tmp_path / "arena"
    pairs = tmp_path / "pairs.csv"
    assert overtone(["arena", str(home / "a"), str(home / "b"), "--out", str(arena), "--export", str(pairs)]) in (0, 3)
    with pairs.open(newline="") as file:
        names = [row["pair"] for row in csv.DictReader(file)]
    votes = tmp_path / "votes.csv"
    rows = [f"{name},{'A' if n % 3 else 'B'},person{n % 2}" for n, name in enumerate(names)]
    votes.write_text("pair,winner,rater\n" + "\n".join(rows) + "\n")
    overtone(["arena", str(home / "a"), str(home / "b"), "--out", str(arena), "--votes", str(votes)])
    capsys.readouterr()
    out = tmp_path / "r.html"
    assert overtone(["report", str(home / "a"), str(home / "b"), "--arena", str(arena), "-o", str(out)]) == 0
    found = section(out.read_text(), "arena")
    assert "<svg" in found and "<table" in found and 'href="#behind=arena/people/run/' in found
    assert overtone(["report", str(home / "a"), "--arena", str(tmp_path), "-o", str(out)]) == 2
    assert "overtone arena" in capsys.readouterr().err


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as opened:
        yield opened


@pytest.mark.browser
def test_a_sentence_and_a_mark_open_their_cases(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html")
    tab.run("document.querySelector('#findings details').open = true")
    link = tab.page.locator("#finding-funnel .told a.cases").first
    wanted = link.inner_text().split()[0]
    link.click()
    tab.wait("return !document.getElementById('under').hidden")
    count = "return document.getElementById('count').textContent"
    assert tab.run(count).startswith(f"{wanted} of")
    assert "heard the words" in tab.text("#under")
    tab.run(
        "const a = document.querySelector('#finding-funnel svg a:has(title)');location.hash = a.getAttribute('href')"
    )
    tab.wait("return document.getElementById('under').textContent.includes('openai:')")
    assert tab.log == []


@pytest.mark.browser
def test_flipped_cases_can_be_heard(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html")
    tab.run(
        "const e = document.querySelector('#compared .end');"
        "for (let d = e.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;"
        "e.scrollIntoView()"
    )
    tab.wait("return document.querySelectorAll('#compared .end audio').length > 0")
    assert tab.run("return document.querySelector('#compared .end audio').getAttribute('aria-label')")


@pytest.mark.browser
def test_colours_of_pictures_follow_the_theme(tab: Tab, home: Path) -> None:
    tab.open(home / "one.html")
    colour = "return getComputedStyle(document.querySelector('#findings svg text')).fill"
    seen = set()
    for theme in ("light", "dark"):
        tab.run("document.documentElement.dataset.theme = args[0]", theme)
        seen.add(tab.run(colour))
    assert len(seen) == 2


@pytest.mark.browser
def test_arrow_keys_walk_through_the_numbers_of_a_table_and_a_picture(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html", "#results")
    assert tab.run("return document.querySelectorAll('td a.v:not([tabindex=\"-1\"])').length") == 0
    tab.page.focus("#results .scroll >> nth=0")
    tab.press("ArrowRight")
    place = "const a = document.activeElement, td = a.closest('td'); return [td.parentElement.rowIndex, td.cellIndex]"
    assert tab.run(place) == [1, 1]
    tab.press("ArrowRight", "ArrowDown")
    assert tab.run(place) == [2, 2]
    tab.press("ArrowLeft", "Enter")
    tab.wait("return document.activeElement.id === 'list' && !document.getElementById('under').hidden")
    tab.press("Escape")
    assert tab.run(place) == [2, 1], "closing the panel leads back to the number"
    tab.run("location.hash = 'findings'")
    tab.wait("return document.querySelector('#findings details').open")
    tab.page.focus("#findings .picture.wide >> nth=0")
    tab.press("ArrowDown")
    assert tab.run("return document.activeElement.closest('svg') !== null")
