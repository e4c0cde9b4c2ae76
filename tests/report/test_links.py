"""Every number of a report opens the cases under it: those of the replies it was made of, no more and no fewer."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from overtone.findings.analysis import cases_by_key as cases_of_finding
from overtone.findings.analysis import compute_findings
from overtone.report.case_links import FAMILIES, CaseFinder, read, where
from overtone.report.case_sets import Sets, packed
from overtone.report.page import write_report
from overtone.results.load import open_run
from tests.report.browser import Tab, chromium
from tests.report.fake_run import make_run
from tests.report.open_run import make_open_run
from tests.report.test_page import Page

PAIRED = {"following", "control", "agreement"}  # numbers of pairs, squares or raters: their n counts no replies
JUDGES = ("gpt-4o", "gemini-2.5-pro")


class Numbers(HTMLParser):
    """Every linked number: its name, its set, and the n written below it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[dict[str, Any]] = []
        self.unlinked: list[str] = []
        self._cell: list[dict[str, Any]] | None = None
        self._text = ""
        self._linked = False
        self.feed(re.sub(r"<script.*?</script>", "", html, flags=re.S))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "td":
            self._cell, self._text, self._linked = [], "", False
        self._linked |= tag == "a"
        if tag == "a" and "data-s" in found:
            link = {"key": str(found["href"])[1:], "set": int(str(found["data-s"])), "n": None}
            self.links.append(link)
            if self._cell is not None and found["class"] in ("v", "b"):
                self._cell.append(link)

    def handle_data(self, data: str) -> None:
        self._text += data + "\n"

    def handle_endtag(self, tag: str) -> None:
        if tag != "td" or self._cell is None:
            return
        scored = re.search(r"^n (\d+)$|([\d,]+) of [\d,]+$", self._text, flags=re.M)
        for link in self._cell:
            link["n"] = int((scored[1] or scored[2]).replace(",", "")) if scored else None
        if scored and not self._linked and not self._text.lstrip().startswith(("–", "0.0\n")):
            self.unlinked.append(" ".join(self._text.split()))
        self._cell = None


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("links")
    make_run(home / "a", scripts=8, judges=JUDGES, voice=True)
    make_run(home / "b", scripts=8, seed=3, skill=0.4, judges=JUDGES, voice=True, repeats=2, model="openai:other")
    make_open_run(home / "open", scripts=24)
    write_report([home / "a", home / "b"], home / "two.html")
    write_report([home / "open"], home / "open.html")
    write_report([home / "a", home / "open"], home / "mixed.html")
    return home


PAGES = {"two.html": ("a", "b"), "open.html": ("open",), "mixed.html": ("a", "open")}


@pytest.mark.parametrize("page", PAGES)
def test_the_replies_under_a_number_are_as_many_as_it_says(home: Path, page: str) -> None:
    found = Numbers((home / page).read_text())
    finders = [CaseFinder(open_run(home / name)) for name in PAGES[page]]
    checked = set()
    for link in found.links:
        told = read(link["key"])
        if link["n"] is None or told["measure"] in PAIRED or (told["measure"] == "dialogue" and "style" not in told):
            continue
        if told["measure"] in ("wrong", "troubles") or ("read" in told and told["read"] in ("spoken", "unparsed")):
            continue  # what is written below is of how many, not how many
        answers = finders[int(told["run"]) - 1].answers(link["key"])
        assert len(answers) == link["n"], link
        checked.add(told["measure"])
    assert len(found.links) > 100 and len(checked) > 5, checked
    assert found.unlinked == [], "a number with replies under it is a link"


def test_every_kind_of_number_is_met(home: Path) -> None:
    links = [link for page in PAGES for link in Numbers((home / page).read_text()).links]
    assert {read(link["key"])["measure"] for link in links} >= FAMILIES.keys() - {
        "calibrated",
        "people",
    }  # for people: test_people


def test_shares_of_wrong_answers_add_up(home: Path) -> None:
    finder = CaseFinder(open_run(home / "open"))
    about = {"condition": "task/audio", "style": "target"}
    wrong = finder.answers(where(0, "wrong", **about))
    readings = ("target", "alternative", "words", "harmful", "nothing", "none", "unreadable")
    parts = [finder.answers(where(0, "wrong", **about, reading=reading)) for reading in readings]
    assert sorted(a.ask for part in parts for a in part) == sorted(a.ask for a in wrong) and wrong


def test_a_square_a_pair_and_a_panel_have_all_their_cases(home: Path) -> None:
    finder = CaseFinder(open_run(home / "a"))
    squares = finder.answers(where(0, "following", condition="zero/audio", styles="3"))
    assert len(squares) % 3 == 0 and len({a.item.group for a in squares}) == len(squares) // 3
    panel = {a.ask for a in finder.answers(where(0, "judged", condition="zero/audio", rubric="cctxfit"))}
    alone = [
        {a.ask for a in finder.answers(where(0, "judged", condition="zero/audio", rubric="cctxfit", judge=judge))}
        for judge in JUDGES
    ]
    assert panel == alone[0] & alone[1] and panel < alone[0] | alone[1]
    controls = CaseFinder(open_run(home / "open"))
    same = controls.answers(where(0, "control", condition="task/audio", read="same"))
    assert {a.item.style for a in same} == {"control", "neutral"}


@pytest.mark.parametrize(
    ("numbers", "total"), [([], 5), ([0], 1), ([0, 3, 4], 5), (list(range(0, 9000, 7)), 9000), ([8191, 70000], 70001)]
)
def test_sets_come_back_whole(numbers: list[int], total: int) -> None:
    assert unpacked(packed(numbers, total), total) == numbers


def unpacked(text: str, total: int) -> list[int]:
    data = base64.b64decode(text[1:])
    if text[0] == "b":
        return [i for i in range(total) if data[i // 8] >> i % 8 & 1]
    found, at, step, shift = [], -1, 0, 0
    for byte in data:
        step |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            at += step + 1
            found.append(at)
            step = shift = 0
    return found


def test_runs_of_two_benchmarks_keep_their_cases_apart(home: Path) -> None:
    page = Page(home / "mixed.html")
    blocks = {a["id"]: msgspec.json.decode(text) for _, a, text in page.blocks if a.get("id") in ("index", "sets")}
    ids = [row[0] for row in blocks["index"]["cases"]]
    finders = [CaseFinder(open_run(home / name)) for name in PAGES["mixed.html"]]
    for link in Numbers(page.html).links:
        run = int(read(link["key"])["run"]) - 1
        wanted = {f"{('echomind', 'open')[run]}/{case}" for case in finders[run].cases(link["key"])}
        assert {ids[n] for n in unpacked(blocks["sets"]["sets"][link["set"]], len(ids))} == wanted


def test_equal_sets_are_packed_once(home: Path) -> None:
    readings = [open_run(home / "a")]
    sets = Sets([f"c{n}" for n in range(100)], readings)
    assert sets.add([1, 2, 3]) == sets.add([1, 2, 3]) != sets.add([1, 2])
    assert len(sets.packed) == 2


def test_strange_names_survive_a_link() -> None:
    told = {"condition": "zero/audio", "rubric": "a,b:c", "judge": "x%20y, z:ü#'\"<"}
    key = where(2, "judged", **told)
    assert read(key) == {"run": "3", "measure": "judged", **told}
    assert re.fullmatch(r"where=[\w./:,%-]+", key)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as opened:
        yield opened


_FOLLOW = """
const links = [...new Set([...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')))]
  .filter((href) => /^#(where|behind)=/.test(href));
const shown = {}, pause = () => new Promise((ok) => setTimeout(ok, 0));
for (const href of links) {
  const turned = new Promise((ok) => addEventListener('hashchange', ok, { once: true }));
  location.hash = href;
  await turned; await pause();
  shown[href] = [parseInt(document.getElementById('count').textContent.replace(/,/g, '')),
    document.getElementById('under').textContent];
}
return shown;
"""


@pytest.mark.browser
@pytest.mark.parametrize("page", ["two.html", "open.html"])
def test_every_link_of_the_page_shows_as_many_cases_as_stand_under_it(tab: Tab, home: Path, page: str) -> None:
    tab.open(home / page)
    shown = tab.run(_FOLLOW)
    found = {link["key"]: link["set"] for link in Numbers((home / page).read_text()).links}
    assert {f"#{key}" for key in found} == {href for href in shown if href.startswith("#where=")}
    finders = [CaseFinder(open_run(home / name)) for name in PAGES[page]]
    for key in found:
        cases = finders[int(read(key)["run"]) - 1].cases(key)
        assert shown[f"#{key}"][0] == len(cases), key
        assert shown[f"#{key}"][1].startswith("These cases are behind “"), key
    readings = [one.reading for one in finders]
    behind = {key: cases for one in compute_findings(readings) for key, cases in cases_of_finding(readings, one)}
    asked = {unquote(href.removeprefix("#behind=")): href for href in shown if href.startswith("#behind=")}
    assert len(asked) > 50
    for key, href in asked.items():
        if "compare/" not in key:
            assert shown[href][0] == len(set(behind[key])), key
    assert tab.log == []


@pytest.mark.browser
def test_a_number_is_named_filtered_further_and_let_go(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html")
    link = "#results td:nth-child(5) a"
    assert read(str(tab.page.get_attribute(f"{link} >> nth=0", "href"))[1:])["measure"] == "voice_accuracy"
    tab.run("document.querySelector(args[0]).click()", link)
    tab.wait("return !document.getElementById('under').hidden")
    told = tab.text("#under")
    assert "Voice ACC" in told and "openai:some-model" in told and "task/audio" in told, told
    assert tab.run("return document.activeElement.id") == "list", "the keyboard goes on from here"
    count = "return parseInt(document.getElementById('count').textContent)"
    before = tab.run(count)
    tab.run(
        "const s = document.getElementById('f-style'); s.value = [...s.options].find((o) => o.text === 'target').value;"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    after = tab.run(count)
    assert 0 < after < before
    tab.page.click("#under button")
    tab.wait("return document.getElementById('under').hidden")
    assert tab.run(count) == 8, "the other filters stay"
    assert tab.run("return location.hash") == "#cases"
    tab.open(home / "two.html", "#where=run:9,measure:nothing")
    assert "no number" in tab.text("#case")


def test_the_sets_are_json_without_teeth(home: Path) -> None:
    html = (home / "two.html").read_text()
    block = re.search(r'id="sets">(.*?)</script>', html, flags=re.S)
    assert block is not None
    told = msgspec.json.decode(block[1])
    assert all(re.fullmatch(r"[sb][A-Za-z0-9+/=]*", text) for text in told["sets"])
