"""Judged and spoken replies in the report: on their scales, marked, with reasons that cannot leave their place."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main as overtone
from overtone.display.table_data import without_unmarked_cues
from overtone.report.page import write_report
from overtone.report.reply_tables import agreement, alignment, following, judged_tables, spoken
from overtone.report.terminal import print_case, print_run
from overtone.results.cases import case
from overtone.results.load import open_run
from overtone.results.summary import summarise_reading
from overtone.runs.store import Store
from tests.report.browser import chromium
from tests.report.fake_run import make_run
from tests.report.test_page import Page

JUDGES = ("gpt-4o", "gemini-2.5-pro")
SECTIONS = ("judged", "following", "voice", "ends", "signatures")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("replies")
    make_run(home / "run", root=home / "data", scripts=16, judges=JUDGES, voice=True)
    write_report([home / "run"], home / "report.html")
    return home


def visible_part(html: str) -> str:
    return re.sub(r"<script.*?</script>", "", html, flags=re.S)


def test_every_dimension_stands_on_its_own_scale(home: Path) -> None:
    conditions = summarise_reading(open_run(home / "run", light=True)).conditions
    judged, styles, differences = judged_tables([(0, c) for c in conditions])
    assert judged.heads == (
        "Context fit (C1)\u00a0↑ · 1–5", "Speech relevance (C4)\u00a0↑ · 1–5",
        "Speech relevance, implicit use counted\u00a0↑ · 1–5", "False cue\u00a0↓ · %",
    )  # fmt: skip
    assert [cell.kind for cell in judged.lines[0].cells] == ["number", "number", "number", "percent"]
    assert [line.names[1] for line in judged.lines[:3]] == ["panel of 2", "gemini-2.5-pro", "gpt-4o"]
    marks = {line.names[1]: ["unvalidated" in cell.small for cell in line.cells] for line in judged.lines}
    assert not any(marks["gpt-4o"]) and all(marks["gemini-2.5-pro"]) and all(marks["panel of 2"])
    assert judged.lines[1].cells[1].title.startswith("cspeechrel@gemini-2.5-pro|v1|rubric:")
    assert {line.names[2] for line in styles.lines} == {"target", "alternative", "neutral"}
    assert len(differences.lines) == 6 and "Cues" not in without_unmarked_cues(judged).names


def test_agreement_and_troubles_have_their_tables(home: Path) -> None:
    summary = summarise_reading(open_run(home / "run", light=True))
    agreed, left = agreement([summary])
    assert [line.names[1] for line in agreed.lines[:3]] == [
        "gemini-2.5-pro and gpt-4o", "gemini-2.5-pro, again", "gpt-4o, again",
    ]  # fmt: skip
    assert any("not on the menu" in line.cells[-1].small for line in left.lines)


def test_the_page_has_these_parts_and_leaves_no_empty_ones(home: Path, tmp_path: Path) -> None:
    page = Page(home / "report.html")
    ids = {attrs.get("id") for tag, attrs in page.tags if tag == "section"}
    assert set(SECTIONS) <= ids
    bare = make_run(tmp_path / "bare", scripts=2, audio=False)
    html = write_report([bare], tmp_path / "bare.html").read_text()
    assert not any(f'id="{name}"' in html for name in ("judged", "following", "voice"))
    assert "similarity to the reference reply, not a judgement" in html


def test_a_judges_reasons_are_text_wherever_they_stand(home: Path) -> None:
    page = Page(home / "report.html")
    shown = visible_part(page.html)
    assert "<img" not in page.html and "window.hacked=1</script>" not in page.html and "\u202e" not in shown
    blocks = {str(a["id"]): text for _, a, text in page.blocks if a.get("id")}
    whys = [
        why for name, text in blocks.items() if name.startswith("chunk-") for case in msgspec.json.decode(text)
        for one in case["items"] for a in one["a"] for _, why in a.get("y", [])
    ]  # fmt: skip
    assert any("onerror=alert(1)" in why for why in whys) and any("not on the menu" in why for why in whys)
    for tag, attrs in page.tags:
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)


def test_every_score_of_the_run_shows_its_signature(home: Path) -> None:
    shown = visible_part((home / "report.html").read_text())
    for signature in open_run(home / "run", light=True).signatures.values():
        assert signature in shown, signature


def test_the_terminal_is_brief_and_plain(home: Path) -> None:
    out = io.StringIO()
    print_run(home / "run", out)
    text = out.getvalue()
    for expected in ("Replies: judged", "panel of 2", "unvalidated", "Does the reply follow the voice?", "chance 16.7"):
        assert expected in text, expected
    assert "Agreement of judges" in text and "Replies: voice" in text and "Judged, by style" not in text
    assert "\\n" not in text and "\x1b" not in text


def test_voice_and_following_stand_in_their_units(home: Path) -> None:
    conditions = summarise_reading(open_run(home / "run", light=True)).conditions
    delivery, quality = spoken([(0, c) for c in conditions])
    assert "Pitch · Hz, median" in delivery.heads and quality.heads[0] == "NISQA\u00a0↑ · 1 to 5"
    assert {line.names[1] for line in delivery.lines} == {"all", "target", "alternative", "neutral"}
    found = following([(0, c) for c in conditions])
    assert found.lines and found.lines[0].cells[0].digits == 3


def test_emoalign_stands_beside_chance_and_kappa(home: Path) -> None:
    summary = summarise_reading(open_run(home / "run", light=True))
    (table,) = alignment([summary])
    first = table.lines[0]
    assert first.names == ("with the reference's voice", "all") and [c.kind for c in first.cells][2] == "number"
    chance = first.cells[1].estimate
    assert chance is not None and chance.value is not None and 0.1 < chance.value < 0.3
    assert "EmoAlign" in visible_part((home / "report.html").read_text())
    assert len(alignment([summary], brief=True)[0].lines) < len(table.lines)


def test_a_case_in_the_terminal_has_the_judges_reasons(home: Path) -> None:
    out = io.StringIO()
    with Store.read(home / "run") as store:
        print_case(case(store, "synthesis/id_12/target"), out)
    assert re.search(r"cspeechrel@gpt-4o (\d(\.\d+)?|no value): \w", out.getvalue())


def test_the_sounds_of_the_cards_are_inside_a_report_that_embeds_them(home: Path, tmp_path: Path) -> None:
    page = Page(write_report([home / "run", home / "run"], tmp_path / "r.html", embed_audio=True, data=[home]))
    blocks = {str(a["id"]): text for _, a, text in page.blocks if a.get("id")}
    sounds = [sound for card in msgspec.json.decode(blocks["card-sounds"]) for sound in card if sound]
    assert len(sounds) > 20 and all(sound[0] == "#" and sound[1:] in blocks for sound in sounds)
    places = [attrs["data-sound"] for _, attrs in page.tags if "data-sound" in attrs]
    assert {str(place).split("-")[0] for place in places} == {str(n) for n in range(40)}, "two runs, two conditions"


@pytest.fixture
def labels(home: Path, tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "condition", "rater", "cspeechrel"])
        for n in range(10):
            rows.writerow([f"synthesis/id_{n}/target", "zero/audio", "ann", 1 + n % 5])
    return path


def test_calibrated_means_stand_beside_the_judges_own(home: Path, labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert overtone(["report", str(home / "run"), "-o", str(out), "--calibrated", str(labels)]) == 0
    html = out.read_text()
    assert "Calibrated by people" in html and "People alone" in html and "the interval may be too narrow" in html
    assert "Calibrated by people" not in (home / "report.html").read_text()


def test_labels_that_fit_nothing_are_a_clear_error(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,rater,warmth\nx,ann,3\n")
    assert overtone(["report", str(home / "run"), "-o", str(tmp_path / "r.html"), "--calibrated", str(path)]) == 2
    assert "no dimension is in both" in capsys.readouterr().err and not (tmp_path / "r.html").exists()


@pytest.mark.browser
def test_the_cards_have_players_and_a_case_shows_reasons_and_signatures(home: Path) -> None:
    with chromium() as tab:
        tab.open(home / "report.html", "#case=synthesis%2Fid_12%2Ftarget")
        told = tab.page.text_content("#case") or ""
        tab.run("location.hash = 'ends'; document.querySelector('#ends details.more').open = true")
        players = tab.wait("return document.querySelectorAll('#ends audio').length")
        log, hacked = tab.log, tab.run("return window.hacked")
        tab.phone()
        wide = tab.run("return document.documentElement.scrollWidth")
    assert "Speech relevance (C4)" in told and "gemini-2.5-pro" in told and "cspeechrel@gpt-4o|v1|rubric" in told
    assert players and log == [] and hacked is None and wide <= 390
