"""The report as its reader meets it: the answer first, the rest on demand, on a phone and without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overtone.display.table_data import Cell, Line, PartTable
from overtone.report import glossary
from overtone.report.missing_tables import absent_hearing, absent_talk, has_values, what_fills
from overtone.report.page import write_report
from overtone.results.measures import Estimate
from tests.report.browser import Tab, chromium
from tests.report.fake_run import HOSTILE, make_run
from tests.report.open_run import make_open_run
from tests.report.test_findings_page import section

PAGES = ("one.html", "two.html", "open.html", "four.html")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("reading")
    judges = ("gpt-4o", "gemini-2.5-pro")
    runs = [
        make_run(home / "a", scripts=30, judges=judges, voice=True, root=home / "data"),
        make_run(home / "b", scripts=30, seed=3, skill=0.2, judges=judges, voice=True, model="openai:b"),
    ]
    runs += [make_run(home / n, scripts=4, seed=s, model=f"openai:{n}") for s, n in enumerate("cd")]
    write_report(runs[:1], home / "one.html")
    write_report(runs[:2], home / "two.html")
    write_report(runs, home / "four.html")
    write_report([make_open_run(home / "open", scripts=40)], home / "open.html")
    return home


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as opened:
        yield opened


# ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_overview_has_verdict_numbers_and_funnel_and_says_which_run_is_better(home: Path) -> None:
    found = section((home / "two.html").read_text(), "overview")
    assert "openai:some-model is better than openai:b on Voice accuracy (by " in found
    assert found.count('class="verdict hears-') == 2 and "misses the cue" in found
    assert found.count('<dl class="tiles">') == 2 and found.count("<dt>") / 2 >= 3
    assert found.count('<ol class="stages">') == 2 and 'href="#behind=2%3Afunnel/' in found
    assert found.index("verdict") < found.index("How they were run"), "how it was run is folded away, below"


def test_too_little_data_says_what_is_missing_and_the_command(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", scripts=3)
    found = section(write_report([run], tmp_path / "r.html").read_text(), "overview")
    assert "Not enough data for a verdict." in found and "It needs at least 10 scripts" in found
    assert "overtone run" in found


def test_every_section_but_the_first_is_closed(home: Path) -> None:
    html = (home / "two.html").read_text()
    assert html.count('<details class="fold">') >= 10 and 'class="fold" open' not in html
    assert html.count("<section ") <= html.count('<details class="fold">') + 3, "overview, what is absent, and cases"


def test_a_table_without_a_value_becomes_a_line_with_its_command(home: Path) -> None:
    nothing = Estimate(None, None, None, 0, 12)
    table = PartTable("t", "Quality", "", ("Clips",), ("NISQA",), (Line(0, "zero/audio", ("all",), (Cell(nothing),)),))
    assert not has_values(table)
    assert what_fills(table) == ("Quality", "none of the 12 replies has a score", "overtone score RUN")
    filled = Estimate(3.0, None, None, 1, 12)
    assert has_values(PartTable("t", "Q", "", (), ("N",), (Line(0, "", (), (Cell(nothing), Cell(filled))),)))


def test_results_without_a_value_become_a_line_with_a_command() -> None:
    nothing, filled = Estimate(None, None, None, 0, 4), Estimate(0.5, None, None, 1, 4)
    (line,) = absent_hearing([nothing, nothing])
    assert line.title == "Hearing and reasoning" and "4 replies" in line.reason and line.command == "overtone score RUN"
    assert not absent_hearing([nothing, filled]) and not absent_hearing([])
    assert absent_talk([0, 0])[0].command.startswith("overtone run")
    assert not absent_talk([0, 1]) and not absent_talk([])


def test_absent_sections_are_one_line_each(home: Path) -> None:
    found = section((home / "open.html").read_text(), "absent")
    assert "no judge rated the replies" in found and "overtone score RUN --judge SPEC" in found
    assert "no spoken reply was measured" in found
    judged = section((home / "one.html").read_text(), "absent")
    assert "no judge rated" not in judged and "no spoken reply" not in judged


def test_cells_of_few_scripts_are_pale_and_show_n(home: Path) -> None:
    cues = section((home / "one.html").read_text(), "cues")
    assert cues.count(' few">') > 50 and cues.count('<span class="n">n ') > 50, "every cue has one or two scripts here"


def test_terms_explain_themselves_and_hostile_text_stays_text() -> None:
    assert "questions and transcripts" in glossary.meaning("task/audio").lower()
    assert glossary.meaning("Voice ACC\u00a0↑") and glossary.meaning("Style margin ↑") and not glossary.meaning("Run")
    assert glossary.meaning("enhance/audio (human)").endswith("Clips of the source human.")
    told = glossary.explained(f"C4 of {HOSTILE} under zero/transcript; C4 again")
    assert "<img" not in told and "&lt;img" in told and told.count('class="gloss"') == 2
    assert "<b>" not in glossary.gloss("<b>")


def test_every_condition_and_known_head_of_a_table_has_its_gloss(home: Path) -> None:
    for page in PAGES:
        html = (home / page).read_text()
        assert "<code>task/audio</code>" not in html and "<code>enhance/audio</code>" not in html
        assert all(f'title="{glossary.GLOSSARY[term]}"' in html for term in ("WER", "cue", "Voice ACC"))


# ── the browser ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.browser
@pytest.mark.parametrize(
    ("page", "size"), [("one.html", (1280, 800)), ("two.html", (1280, 800)), ("one.html", (390, 844))]
)
def test_the_first_screen_shows_verdict_numbers_and_funnel(
    tab: Tab, home: Path, page: str, size: tuple[int, int]
) -> None:
    tab.open(home / page)
    tab.phone(*size)
    bottoms = tab.run(
        "return ['.verdict', '.tiles', '.stages'].map((s) => document.querySelector(s).getBoundingClientRect().bottom)"
    )
    assert all(0 < bottom <= size[1] for bottom in bottoms), bottoms
    assert tab.run("return document.documentElement.scrollHeight") < 4 * size[1]


@pytest.mark.browser
@pytest.mark.parametrize("anchor", ["cues", "map-1", "finding-funnel", "how", "c-acc"])
def test_a_link_to_a_place_opens_the_section_that_holds_it(tab: Tab, home: Path, anchor: str) -> None:
    tab.open(home / "two.html", f"#{anchor}")
    visible = "return document.getElementById(args[0]).checkVisibility({contentVisibilityAuto: true})"
    if anchor == "map-1":  # a map that is not chosen stays hidden, its section is open
        assert tab.run("return document.querySelector('#cues details').open")
        return
    assert tab.run(visible, anchor)
    top = tab.run("return document.getElementById(args[0]).getBoundingClientRect().top", anchor)
    assert -5 <= top <= 1000
    tab.page.click("nav a[href='#failures']")
    tab.wait("return document.querySelector('#failures details').open")


@pytest.mark.browser
def test_printing_opens_all_sections_and_closes_them_again(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html")
    closed = "return document.querySelectorAll('main details:not([open])').length"
    before = tab.run(closed)
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert before > 20 and tab.run(closed) == 0
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run(closed) == before


@pytest.mark.browser
def test_filters_read_as_sentences_that_can_be_removed(tab: Tab, home: Path) -> None:
    tab.open(home / "two.html", "#cue=fear")
    tab.run(
        "const s = document.getElementById('f-voice'); s.value = 'wrong';"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    chips = "return [...document.querySelectorAll('#chips li')].map((c) => c.firstChild.textContent.trim())"
    assert tab.run(chips) == ["The cue is fear", "A question about the voice is answered wrongly"]
    tab.page.click("#chips li:first-child button")
    assert tab.run(chips) == ["A question about the voice is answered wrongly"]
    tab.page.fill("#q", "<img src=x>")
    tab.wait("return document.querySelectorAll('#chips li').length === 2")
    assert "The text contains “<img src=x>”" in tab.run(chips) and tab.run("return document.images.length") == 0


@pytest.mark.browser
def test_a_term_is_explained_to_keyboard_and_touch(tab: Tab, home: Path) -> None:
    tab.open(home / "one.html")
    tab.page.focus(".tiles .gloss >> nth=0")
    assert tab.text("#tip") == tab.page.get_attribute(".tiles .gloss >> nth=0", "title")
    tab.press("Escape")
    assert tab.run("return document.getElementById('tip').hidden")
    tab.page.click(".tiles .gloss >> nth=1")
    assert tab.text("#tip") == tab.page.get_attribute(".tiles .gloss >> nth=1", "title")


_SECOND_COLUMNS = """
document.querySelectorAll('main details').forEach((d) => { d.open = true });
document.querySelectorAll('.map').forEach((m) => { m.hidden = false });
const wide = [];
for (const box of document.querySelectorAll('main .scroll')) {
  if (!box.checkVisibility()) continue;
  const edge = box.getBoundingClientRect().right;
  for (const row of box.querySelectorAll('tbody tr')) {
    const cell = row.cells[1];
    if (!cell || cell.colSpan > 1) continue;
    const over = Math.round(cell.getBoundingClientRect().right - edge);
    if (over > 1) wide.push([box.querySelector('caption')?.textContent, over, cell.textContent.slice(0, 60)]);
  }
}
return wide;
"""


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_a_phone_shows_the_first_two_columns_of_every_table_and_whole_figures(tab: Tab, home: Path, page: str) -> None:
    tab.open(home / page)
    tab.phone()
    wide = tab.run(_SECOND_COLUMNS)
    assert wide == [], wide[:10]
    figures = tab.run(
        "return [...document.querySelectorAll('.picture')].filter((p) => p.checkVisibility())"
        ".map((p) => p.scrollWidth - p.clientWidth)"
    )
    assert figures and max(figures) <= 1
    tab.page.wait_for_timeout(100)
    hints = tab.run(
        "return [...document.querySelectorAll('main .scroll')].filter((b) => b.checkVisibility()).map((b) =>"
        " [b.scrollWidth > b.clientWidth + 1, !!b.nextElementSibling?.matches('.sideways:not([hidden])')])"
    )
    assert any(more for more, _ in hints) and all(more == told for more, told in hints), "a hint where more is beside"


@pytest.mark.browser
@pytest.mark.parametrize("hash_", ["", "#cases", "#case=synthesis%2Fid_2%2Ftarget"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_has_no_serious_findings(tab: Tab, home: Path, hash_: str, theme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tab.open(home / "two.html", hash_)
    tab.run("document.documentElement.dataset.theme = args[0]", theme)
    if not hash_:
        tab.run("document.querySelectorAll('main details').forEach((d) => { d.open = true })")
    found: list[dict[str, Any]] = Axe().run(tab.page).response["violations"]
    serious = [
        (v["id"], v["nodes"][0]["html"][:200], len(v["nodes"])) for v in found if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
