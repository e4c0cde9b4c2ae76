"""The report in a real browser, from disk: opens, searches, plays, and lets nothing hostile run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from overtone.report.page import write_report
from tests.report.browser import Tab, chromium
from tests.report.fake_run import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("report")
    runs = [make_run(home / "a", scripts=40, root=home / "data")]
    runs.append(
        make_run(home / "b", scripts=40, root=home / "data", seed=5, skill=0.4, model="openai:other", repeats=2)
    )
    write_report(runs, home / "linked.html")
    write_report(runs[:1], home / "embedded.html", embed_audio=True, data=[home / "data"])
    return home


def count(tab: Tab) -> str:
    return str(tab.run("return document.getElementById('count').textContent"))


def counts(start: str) -> str:
    return f"return document.getElementById('count').textContent.startsWith('{start}')"


def select(tab: Tab, name: str, text: str) -> None:
    tab.run(
        "const s = document.getElementById('f-' + args[0]);"
        "s.value = [...s.options].find((o) => o.text === args[1]).value;"
        "s.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        text,
    )


def test_it_opens_from_disk_without_a_complaint(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html")
    assert tab.log == []
    assert tab.run("return document.querySelectorAll('.row').length") == 0, "cases are read when they are asked for"
    tab.page.click("#browse")
    assert count(tab) == "120 of 120 cases"
    assert 0 < tab.run("return document.querySelectorAll('.row').length") < 40


def test_search_and_filters_narrow_the_list(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html", "#cases")
    tab.page.fill("#q", "neighbour target")
    tab.wait(counts("6 of"))
    tab.page.click("#reset")
    tab.wait(counts("120 of"))
    select(tab, "cue", "fear")
    assert count(tab).startswith("2 of"), "once as a target, once as an alternative"
    select(tab, "style", "neutral")
    assert count(tab).startswith("0 of")
    tab.page.click("#reset")
    tab.wait(counts("120 of"))
    select(tab, "voice", "all right")
    right = int(count(tab).split()[0])
    select(tab, "voice", "some wrong")
    wrong = int(count(tab).split()[0])
    assert right > 0 and wrong > 0 and right + wrong == 80, "neutral cases have no voice question"
    select(tab, "run", "openai:some-model")
    assert 0 < int(count(tab).split()[0]) < wrong
    select(tab, "voice", "any")
    assert count(tab).startswith("120 of"), "each run has every case"


def test_search_reaches_into_replies_when_asked(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html", "#cases")
    tab.page.fill("#q", "platform four")
    tab.wait(counts("0 of"))
    tab.page.click("#deep")
    tab.wait("return parseInt(document.getElementById('count').textContent) > 10")


def test_the_keyboard_opens_a_case_and_escape_goes_back_and_closes(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html")
    tab.page.focus("#browse")
    tab.press("Enter")
    tab.wait("return document.activeElement.id === 'list'")
    tab.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert tab.run("return document.getElementById('list').getAttribute('aria-activedescendant')") == "row-3"
    assert tab.run("return document.getElementById('row-3').getAttribute('aria-posinset')") == "4"
    tab.press("Enter")
    tab.wait("return document.activeElement.id === 'case'")
    assert tab.text("#case h3 >> nth=0") == "synthesis/id_1/target"
    assert "#case=synthesis%2Fid_1%2Ftarget" in tab.page.url
    tab.press("Escape")
    tab.wait("return document.activeElement.id === 'list'")
    tab.press("End")
    tab.wait("return document.getElementById('list').getAttribute('aria-activedescendant') === 'row-119'")
    tab.press("Escape")
    tab.wait("return document.getElementById('panel').hidden && document.activeElement.id === 'browse'")
    assert "#" not in tab.page.url


def test_a_link_to_a_case_opens_a_panel_and_the_page_stays_where_it_is(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html", "#failures")
    tab.wait("return document.querySelector('#failures details').open")
    tab.run("document.querySelector('#failures .place a').scrollIntoView({block: 'center'})")
    before = tab.run("return scrollY")
    tab.page.click("#failures .place a >> nth=0")
    tab.wait("return !document.getElementById('panel').hidden && document.activeElement.id === 'case'")
    assert tab.run("return scrollY") == before
    tab.page.click("#close")
    assert tab.run("return [scrollY, location.hash]") == [before, "#failures"]
    assert tab.run("return document.activeElement.closest('#failures') !== null"), "the keyboard is back at the link"
    tab.page.click("#failures .place a >> nth=0")
    tab.page.go_back()
    tab.wait("return document.getElementById('panel').hidden")


def test_a_link_opens_a_case_with_all_levels_and_runs(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    text = tab.text("#case")
    for expected in ("the words", "the voice", "Reasoning", "Replies", "Reference reply"):
        assert expected in text, expected
    assert "openai:other · task/audio · repeat 2" in text
    assert tab.run("return document.querySelectorAll('#case li.gold').length") == 4
    tab.open(home / "linked.html", "#case=no%20such")
    assert "no case “no such”" in tab.text("#case")
    tab.open(home / "linked.html", "#cue=fear")
    tab.wait(counts("2 of"))


def test_hostile_replies_are_text_and_nothing_runs(tab: Tab, home: Path) -> None:
    for case in ("synthesis%2Fid_0%2Ftarget", "synthesis%2Fid_1%2Ftarget", "synthesis%2Fid_3%2Ftarget"):
        tab.open(home / "linked.html", "#case=" + case)
        assert "<img src=x onerror=alert(1)></script>" in tab.text("#case")
        assert tab.run("return [window.hacked, document.images.length]") == [None, 0]
        assert "\\u202e" in tab.text("#case")
    assert tab.log == []


@pytest.mark.parametrize("page", ["linked.html", "embedded.html"])
def test_clips_and_replies_play(tab: Tab, home: Path, page: str) -> None:
    tab.open(home / page, "#case=synthesis%2Fid_7%2Ftarget")
    sounds = tab.run("return document.querySelectorAll('#case audio').length")
    assert sounds >= 2
    lengths = tab.run(
        "return Promise.all([...document.querySelectorAll('#case audio')].map((a) => new Promise((ok) => {"
        " a.addEventListener('loadedmetadata', () => ok(a.duration)); a.addEventListener('error', () => ok(-1));"
        " a.preload = 'metadata'; a.load(); })))"
    )
    assert lengths == pytest.approx([0.4] * sounds, abs=0.01)
    wanted = "blob:" if page == "embedded.html" else "file:"
    assert tab.run("return document.querySelector('#case audio').src").startswith(wanted)
    assert tab.log == []


def test_a_phone_sees_no_sideways_scroll(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html")
    tab.phone()
    for hash_ in ("", "#case=synthesis%2Fid_0%2Ftarget"):
        tab.run("location.hash = args[0]", hash_)
        tab.run("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        time.sleep(0.2)
        assert tab.run("return [document.documentElement.scrollWidth, innerWidth]") == [390, 390]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(tab: Tab, home: Path, theme: str) -> None:
    tab.open(home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    tab.run("document.documentElement.dataset.theme = args[0]", theme)
    low = tab.run(_CONTRAST)
    assert low == [], low[:10]
    tab.run("document.documentElement.style.setProperty('--muted', 'var(--line)')")
    assert tab.run(_CONTRAST), "the measurement sees faint text"


_CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data; };
const light = (c) => { const l = [0, 1, 2].map((i) => { const v = c[i] / 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
const ground = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor);
  if (c[3] === 255) return c; } return [255, 255, 255]; };
document.querySelectorAll('details').forEach((d) => { d.open = true });
const low = new Set();
for (const e of document.querySelectorAll('body *')) {
  if (['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(e.tagName)) continue;
  if (!e.checkVisibility() || e.closest(':disabled')) continue;
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const a = light(rgba(getComputedStyle(e).color)), b = light(ground(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) low.add(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2));
}
return [...low];
"""


def test_screen_readers_find_landmarks_names_and_captions(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    found = tab.run(
        "return {main: document.querySelectorAll('main').length,"
        " nav: document.querySelectorAll('nav[aria-label]').length,"
        " h1: document.querySelectorAll('h1').length, lang: document.documentElement.lang,"
        " bare: [...document.querySelectorAll('table')].filter((t) => !t.caption).length,"
        " headless: [...document.querySelectorAll('th')].filter((t) => !t.scope).length,"
        " unnamed: [...document.querySelectorAll('input,select,button,audio')].filter((e) => !e.labels?.length &&"
        " !e.textContent.trim() && !e.getAttribute('aria-label')).length,"
        " twice: (() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
        " return ids.length - new Set(ids).size })(),"
        " live: document.getElementById('count').getAttribute('aria-live')}"
    )
    assert found == {"main": 1, "nav": 1, "h1": 1, "lang": "en", "bare": 0, "headless": 0, "unnamed": 0, "twice": 0,
                     "live": "polite"}  # fmt: skip


def test_the_theme_button_changes_the_colours(tab: Tab, home: Path) -> None:
    tab.open(home / "linked.html")
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = tab.run(colour)
    tab.page.click("#theme")
    assert tab.run(colour) != before
    tab.page.click("#theme")
    assert tab.run(colour) == before


def test_three_thousand_cases_open_and_filter_without_freezing(tab: Tab, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / n, scripts=1000, seed=s, audio=False) for s, n in enumerate("ab")]
    page = write_report(runs, tmp_path / "big.html")
    began = time.monotonic()
    tab.open(page)
    opened = time.monotonic() - began
    tab.page.click("#browse")
    assert count(tab) == "3,000 of 3,000 cases"
    filtering = tab.run(
        "const q = document.getElementById('q'), began = performance.now();"
        "const s = document.getElementById('f-voice'); s.value = 'wrong';"
        "s.dispatchEvent(new Event('input', {bubbles: true})); return performance.now() - began"
    )
    shown = tab.run(
        "const began = performance.now(); document.querySelector('.row').click();return performance.now() - began"
    )
    print(f"{page.stat().st_size / 1e6:.1f} MB opened in {opened:.2f} s, filtered in {filtering:.0f} ms")
    assert opened < 8 and filtering < 500 and shown < 500
