"""The terminal's tables: plain where nobody looks, and deaf to what models write."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.report.page import write_report
from overtone.report.table_formats import safe
from overtone.report.terminal import print_case, print_run
from overtone.results.cases import case
from overtone.runs.store import Store
from tests.report.fake_run import CONTROL, make_run
from tests.results.small import Maker, item


def test_a_log_gets_plain_text_with_the_headline_and_the_ledger(tmp_path: Path) -> None:
    out = io.StringIO()
    print_run(make_run(tmp_path / "run", scripts=20), out)
    text = out.getvalue()
    assert "\x1b" not in text and "\u202e" not in text
    for expected in ("Voice ACC ↑", "WER ↓", "bounds", " of ", "timeout", "unparsable", "zero/audio"):
        assert expected in text, expected


def test_signatures_are_said_on_demand(tmp_path: Path) -> None:
    run, plain, signed = make_run(tmp_path / "run", scripts=4), io.StringIO(), io.StringIO()
    print_run(run, plain)
    print_run(run, signed, signatures=True)
    assert "accuracy: accuracy|v1" in signed.getvalue() and "accuracy|v1" not in plain.getvalue()


def test_model_text_is_neither_markup_nor_control() -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=200, highlight=False).print(safe(CONTROL))
    assert out.getvalue().strip() == r"fine\x1b[31m red \x07 [red]markup[/red] \u202e evil"


def test_a_case_prints_all_its_levels(tmp_path: Path) -> None:
    out = io.StringIO()
    with Store.read(make_run(tmp_path / "run", scripts=2, failures=False)) as store:
        print_case(case(store, "synthesis/id_0/target"), out)
    for expected in ("the words", "the voice", "the reasoning", "the reply", "reference", "✓"):
        assert expected in out.getvalue(), expected
    assert "\x1b" not in out.getvalue()


def test_a_long_reply_is_cut_in_the_terminal_and_in_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Maker(tmp_path / "run")
    made.store.set_meta({"benchmark": "toy", "model": "openai:x"})
    made.answered(item("a", "converse", level=3, category="conversation"), "long " * 200_000)
    run = made.done()
    assert main(["case", str(run), "synthesis/s1/target"]) == 0
    short = capsys.readouterr().out
    assert len(short) < 5_000 and "1,000,000 characters; --full shows all" in " ".join(short.split())
    assert main(["case", str(run), "synthesis/s1/target", "--full"]) == 0
    assert capsys.readouterr().out.count("long") == 200_000
    page = write_report([run], tmp_path / "page.html").read_text()
    assert page.count("long long") < 20_000 and "[cut: 1,000,000 characters" in page
