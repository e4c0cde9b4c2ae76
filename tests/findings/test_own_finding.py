"""A finding of the user's own, in one file: answered, tabulated, drawn and reported like a built-in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overtone import registry
from overtone.cli import main
from overtone.errors import UsageError
from overtone.findings.lookup import find
from tests.report.fake_run import make_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_finding.py"
KEY = "my-finding/enhance/audio/target"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_run(tmp_path_factory.mktemp("own") / "run", scripts=12))


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main([*words, "--plugin", str(EXAMPLE)]) == code
    printed = capsys.readouterr()
    return printed.out if code == 0 else printed.err


def test_it_is_answered_beside_the_built_in_ones(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = msgspec.json.decode(out(capsys, "analyze", run, "--format", "json"))["findings"]
    assert [f["name"] for f in found[-2:]] == ["noise-floor", "my-finding"], "in the order that it declares"
    (own,) = msgspec.json.decode(out(capsys, "analyze", run, "--finding", "my-finding", "--format", "json"))["findings"]
    assert own["title"] == "Length of replies" and f"1:{KEY}" in {s["key"] for s in own["sentences"]}
    assert {row["key"] for row in own["found"]["rows"]} >= {f"1:{KEY}"}


def test_its_numbers_lead_to_their_cases(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = out(capsys, "analyze", run, "--behind", KEY).splitlines()
    (own,) = msgspec.json.decode(out(capsys, "analyze", run, "--finding", "my-finding", "--format", "json"))["findings"]
    row = next(row for row in own["found"]["rows"] if row["key"] == f"1:{KEY}")
    assert len(cases) == row["words"]["scored"] and all(case.endswith("/target") for case in cases)


def test_it_has_a_table_and_a_figure_by_its_name(run: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "Words per reply" in out(capsys, "table", "my-finding", run)
    out(capsys, "figure", "my-finding", run, "-o", str(tmp_path / "x.svg"))
    assert f'data-key="1:{KEY}"' in (tmp_path / "x.svg").read_text()
    assert "The words per reply to each style." in out(capsys, "figure")
    assert "my-finding" in out(capsys, "list", "figures")


def test_the_report_shows_it_with_links_to_its_cases(
    run: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out(capsys, "report", run, "-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text()
    assert 'id="finding-my-finding"' in page and f"#behind=1%3A{KEY}" in page


def test_a_declaration_that_is_not_a_finding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no_finding.py"
    path.write_text('"""Nothing."""\nROOM = "findings"\nFINDING = {"title": "x"}\n')
    registry.load_plugin(path)
    with pytest.raises(UsageError, match=r"'no-finding': FINDING must be"):
        find("no-finding")
