"""The end of a run: about twelve lines with the headline, what was lost and what is next."""

from __future__ import annotations

from pathlib import Path

from overtone.report.run_summary import brief
from tests.report.fake_run import CONTROL, make_run
from tests.results.small import Maker, item


def test_a_run_with_failures_names_its_numbers_and_every_kind_of_loss_with_its_count(tmp_path: Path) -> None:
    lines = brief(make_run(tmp_path / "run", scripts=20))
    page = "\n".join(lines)
    assert len(lines) <= 13, page
    for expected in ("Voice accuracy ↑", "WER ↓", " of ", " failed: ", "timeout", " unreadable: ", "unparsable"):
        assert expected in page, (expected, page)
    number = next(line for line in lines if "Voice accuracy" in line)
    assert " % " in number and "[" in number and " to " in number


def test_a_run_that_lost_nothing_says_so(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.store.set_meta({"benchmark": "toy", "model": "openai:x"})
    made.answered(item("a", "converse", level=3, category="conversation"), "fine")
    *_, losses, tables = brief(made.done())
    assert losses == "lost: nothing; every request was answered, read and scored"
    assert tables == f"tables: overtone table results {tmp_path / 'run'}"


def test_the_names_of_models_cannot_control_the_terminal(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.store.set_meta({"benchmark": "toy", "model": CONTROL})
    made.answered(item("a", "converse", level=3, category="conversation"), "fine")
    page = "".join(brief(made.done()))
    assert "\x1b" not in page and "\u202e" not in page
