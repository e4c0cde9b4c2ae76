"""The training report: one file that needs nothing else, tells what the logs say, and believes no text."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from overtone.echat.learn.training_report import (
    LOG,
    LOOKS,
    RUN,
    Look,
    Row,
    RunDescription,
    Sample,
    picture,
    read_log,
    read_looks,
    thinned,
    ticks,
    write_report,
)  # fmt: skip

EVIL = "<script>alert(1)</script>"


def row(step: int, **changes: float) -> Row:
    given = {"loss": 3.0 / step, "text": 2.0 / step, "speech": 4.0 / step, "ctc": 0.0, "norm": 1.0, "rate": 1.0}
    return Row(
        step=step, text_targets=10, speech_targets=5, positions=100 * step, tasks="s2s", seconds=2.0 * step,
        **{**given, **changes},
    )  # fmt: skip


def write(out: Path) -> None:
    folder = out / "stage-1"
    folder.mkdir(parents=True)
    stage = {"name": "1", "title": f"understanding {EVIL}", "steps": 9, "targets": 135, "learning": ["adapter"]}
    (out / RUN).write_bytes(msgspec.json.encode(RunDescription(f"EChat {EVIL}", [stage], {"seed": 3, "note": EVIL})))
    (folder / LOG).write_bytes(b"".join(msgspec.json.encode(row(step)) + b"\n" for step in range(1, 10)) + b'{"ste')
    said = Sample(f"key{EVIL}", f"question {EVIL}", "anger", f"thought {EVIL}", f"reply {EVIL}", "said.wav")
    looks = [Look(5, {"s2s": 1.5, EVIL: 2.5}, [said]), Look(5, {"s2s": 1.25}, [said])]
    (folder / LOOKS).write_bytes(b"".join(msgspec.json.encode(look) + b"\n" for look in looks))
    (folder / "said.wav").write_bytes(b"RIFF....")


def test_the_page_tells_what_the_logs_say_and_escapes_all_of_it(tmp_path) -> None:
    write(tmp_path)
    page = write_report(tmp_path).read_text()
    assert "<script" not in page and page.count("&lt;script&gt;") >= 7
    assert "9 of 9" in page and "135 of 135" in page
    assert "<td>50</td>" in page  # positions a second: 900 in 18 s
    assert 'src="data:audio/wav;base64,UklGRi4uLi4="' in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_a_strangers_log_brings_no_file_from_elsewhere_into_the_page(tmp_path) -> None:
    write(tmp_path)
    (tmp_path / "secret").write_bytes(b"do not tell")
    said = Sample("k", "question", wav="../secret", reference="what was hoped for")
    (tmp_path / "stage-1" / LOOKS).write_bytes(msgspec.json.encode(Look(5, {}, [said])) + b"\n")
    page = write_report(tmp_path).read_text()
    assert "<audio" not in page and "what was hoped for" in page


def test_a_picture_is_well_formed_and_says_what_it_shows() -> None:
    drawn = picture([row(step) for step in range(1, 1000)], [Look(7, {"a": 1.0, "b": 2.0})], "Loss <1>")
    tree = ElementTree.fromstring(drawn)
    assert tree[0].text == "Loss <1>" and "text 1.04 to 0.002" in (tree[1].text or "")
    paths = [mark for mark in tree if mark.tag == "path"]
    assert len(paths) == 2 and all(mark.get("d", "").count("L") < 300 for mark in paths)
    assert len([mark for mark in tree if mark.tag == "circle"]) == 1
    assert picture([row(1, text=float("nan"), speech=float("nan"))], [], "t") == ""


def test_a_cut_line_and_an_earlier_look_at_the_same_step_are_passed_over(tmp_path) -> None:
    write(tmp_path)
    assert len(read_log(tmp_path / "stage-1" / LOG)) == 9
    assert [look.losses for look in read_looks(tmp_path / "stage-1" / LOOKS)] == [{"s2s": 1.25}]
    assert read_log(tmp_path / "none") == []


def test_a_long_curve_is_thinned_to_means() -> None:
    points = [(float(i), float(i % 2)) for i in range(1200)]
    short = thinned(points)
    assert len(short) == 300 and all(value == 0.5 for _, value in short)


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 0.5, [0, 0.1, 0.2, 0.3, 0.4, 0.5])]
)
def test_ticks_are_round_numbers(low, high, expected) -> None:
    assert ticks(low, high) == pytest.approx(expected)
