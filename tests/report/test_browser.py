"""The report in a real browser, from disk: opens, searches, plays, and lets nothing hostile run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overtone.report.page import write_report
from tests.report.browser import chromium, phone
from tests.report.fake_run import make_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


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


def go(driver: Any, page: Path, hash_: str = "") -> None:
    driver.get("about:blank")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.get(page.as_uri() + hash_)
    wait(driver, "return document.documentElement.dataset.ready === 'yes'")


def wait(driver: Any, script: str, seconds: float = 10) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := driver.execute_script(script):
            return found
        time.sleep(0.02)
    raise AssertionError(f"still not true: {script}")


def count(driver: Any) -> str:
    return str(driver.execute_script("return document.getElementById('count').textContent"))


def select(driver: Any, name: str, text: str) -> None:
    driver.execute_script(
        "const s = document.getElementById('f-' + arguments[0]);"
        "s.value = [...s.options].find((o) => o.text === arguments[1]).value;"
        "s.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        text,
    )


def test_it_opens_from_disk_without_a_complaint(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html")
    assert driver.get_log("browser") == []
    assert count(driver) == "120 of 120 cases"
    assert driver.execute_script("return document.querySelectorAll('.row').length") < 40


def test_search_and_filters_narrow_the_list(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html")
    driver.find_element("id", "q").send_keys("neighbour target")
    wait(driver, "return document.getElementById('count').textContent.startsWith('6 of')")
    driver.find_element("css selector", "button[type=reset]").click()
    wait(driver, "return document.getElementById('count').textContent.startsWith('120 of')")
    select(driver, "cue", "fear")
    assert count(driver).startswith("2 of"), "once as a target, once as an alternative"
    select(driver, "style", "neutral")
    assert count(driver).startswith("0 of")
    driver.find_element("css selector", "button[type=reset]").click()
    wait(driver, "return document.getElementById('count').textContent.startsWith('120 of')")
    select(driver, "voice", "all right")
    right = int(count(driver).split()[0])
    select(driver, "voice", "some wrong")
    wrong = int(count(driver).split()[0])
    assert right > 0 and wrong > 0 and right + wrong == 80, "neutral cases have no voice question"
    select(driver, "run", "openai:some-model")
    assert 0 < int(count(driver).split()[0]) < wrong
    select(driver, "voice", "any")
    assert count(driver).startswith("120 of"), "each run has every case"


def test_search_reaches_into_replies_when_asked(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html")
    driver.find_element("id", "q").send_keys("platform four")
    wait(driver, "return document.getElementById('count').textContent.startsWith('0 of')")
    driver.find_element("id", "deep").click()
    wait(driver, "return parseInt(document.getElementById('count').textContent) > 10")


def test_the_keyboard_opens_a_case_and_escape_comes_back(driver: Any, home: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    go(driver, home / "linked.html")
    box = driver.find_element("id", "list")
    box.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    active = driver.execute_script("return document.getElementById('list').getAttribute('aria-activedescendant')")
    assert active == "row-3"
    assert driver.execute_script("return document.getElementById('row-3').getAttribute('aria-posinset')") == "4"
    box.send_keys(Keys.ENTER)
    wait(driver, "return document.activeElement.id === 'case'")
    assert driver.find_element("css selector", "#case h3").text == "synthesis/id_1/target"
    assert "#case=synthesis%2Fid_1%2Ftarget" in driver.current_url
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait(driver, "return document.activeElement.id === 'list'")
    box.send_keys(Keys.END)
    wait(driver, "return document.getElementById('list').getAttribute('aria-activedescendant') === 'row-119'")
    driver.back()


def test_a_link_opens_a_case_with_all_levels_and_runs(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    text = driver.find_element("id", "case").text
    for expected in ("the words", "the voice", "Reasoning", "Replies", "Reference reply"):
        assert expected in text, expected
    assert "openai:other · task/audio · repeat 2" in text
    assert driver.execute_script("return document.querySelectorAll('#case li.gold').length") == 4
    go(driver, home / "linked.html", "#case=no%20such")
    assert "no case “no such”" in driver.find_element("id", "case").text
    go(driver, home / "linked.html", "#cue=fear")
    wait(driver, "return document.getElementById('count').textContent.startsWith('2 of')")


def test_hostile_replies_are_text_and_nothing_runs(driver: Any, home: Path) -> None:
    for case in ("synthesis%2Fid_0%2Ftarget", "synthesis%2Fid_1%2Ftarget", "synthesis%2Fid_3%2Ftarget"):
        go(driver, home / "linked.html", "#case=" + case)
        assert "<img src=x onerror=alert(1)></script>" in driver.find_element("id", "case").text
        assert driver.execute_script("return [window.hacked, document.images.length]") == [None, 0]
        assert "\\u202e" in driver.find_element("id", "case").text
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("page", ["linked.html", "embedded.html"])
def test_clips_and_replies_play(driver: Any, home: Path, page: str) -> None:
    go(driver, home / page, "#case=synthesis%2Fid_7%2Ftarget")
    sounds = driver.execute_script("return document.querySelectorAll('#case audio').length")
    assert sounds >= 2
    driver.set_script_timeout(10)
    lengths = driver.execute_async_script(
        "const done = arguments[0];"
        "Promise.all([...document.querySelectorAll('#case audio')].map((a) => new Promise((ok) => {"
        " a.addEventListener('loadedmetadata', () => ok(a.duration)); a.addEventListener('error', () => ok(-1));"
        " a.preload = 'metadata'; a.load(); }))).then(done)"
    )
    assert lengths == pytest.approx([0.4] * sounds, abs=0.01)
    wanted = "blob:" if page == "embedded.html" else "file:"
    assert driver.execute_script("return document.querySelector('#case audio').src").startswith(wanted)
    assert driver.get_log("browser") == []


def test_a_phone_sees_no_sideways_scroll(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html")
    phone(driver)
    for hash_ in ("", "#case=synthesis%2Fid_0%2Ftarget"):
        driver.execute_script("location.hash = arguments[0]", hash_)
        driver.execute_script("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        time.sleep(0.2)
        assert driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]") == [375, 375]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(driver: Any, home: Path, theme: str) -> None:
    go(driver, home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    low = driver.execute_script(_CONTRAST)
    assert low == [], low[:10]
    driver.execute_script("document.documentElement.style.setProperty('--muted', 'var(--line)')")
    assert driver.execute_script(_CONTRAST), "the measurement sees faint text"


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


def test_screen_readers_find_landmarks_names_and_captions(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html", "#case=synthesis%2Fid_2%2Ftarget")
    found = driver.execute_script(
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


def test_the_theme_button_changes_the_colours(driver: Any, home: Path) -> None:
    go(driver, home / "linked.html")
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = driver.execute_script(colour)
    driver.find_element("id", "theme").click()
    assert driver.execute_script(colour) != before
    driver.find_element("id", "theme").click()
    assert driver.execute_script(colour) == before


def test_three_thousand_cases_open_and_filter_without_freezing(driver: Any, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / n, scripts=1000, seed=s, audio=False) for s, n in enumerate("ab")]
    page = write_report(runs, tmp_path / "big.html")
    began = time.monotonic()
    go(driver, page)
    opened = time.monotonic() - began
    assert count(driver) == "3,000 of 3,000 cases"
    filtering = driver.execute_script(
        "const q = document.getElementById('q'), began = performance.now();"
        "const s = document.getElementById('f-voice'); s.value = 'wrong';"
        "s.dispatchEvent(new Event('input', {bubbles: true})); return performance.now() - began"
    )
    shown = driver.execute_script(
        "const began = performance.now(); document.querySelector('.row').click();return performance.now() - began"
    )
    print(f"{page.stat().st_size / 1e6:.1f} MB opened in {opened:.2f} s, filtered in {filtering:.0f} ms")
    assert opened < 8 and filtering < 500 and shown < 500
