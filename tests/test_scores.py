"""Scores that a plug-in declares are shown, compared, checked, planned for and exported, also without the plug-in."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from overtone import registry
from overtone.cli import main
from overtone.errors import UsageError
from overtone.results.load import open_run
from overtone.runs.store import Store
from overtone.scores import ScoreInfo, built_in, declared_by, known
from overtone.scoring import score_run
from tests.report.fake_run import make_run

CURT = '''"""Whether a reply is short."""

from overtone.schema import Score
from overtone.scores import ScoreInfo

ROOM = "metrics"
SCORES = {"curt": ScoreInfo("Curt replies", better="lower", reduce="share", tasks=("converse",))}


class Curt:
    name, version = "curt", 1

    def applies(self, item):
        return item.task == "converse"

    def score(self, answered):
        return [[Score("curt", "curt|v1", float(len(a.text) < 60))] for a in answered]


def load():
    return Curt()
'''
BOLD = (
    CURT.replace("Whether a reply is short.", "How few letters an answer takes.")
    .replace('"curt": ScoreInfo("Curt replies", better="lower", reduce="share", tasks=("converse",))',
             '"bold": ScoreInfo("Boldness", "plain", low=0, high=None, tasks=("choose",))')
    .replace('item.task == "converse"', 'item.task == "choose"')
    .replace('Score("curt", "curt|v1", float(len(a.text) < 60))', 'Score("bold", "bold|v1", 100 / (1 + len(a.text)))')
    .replace("curt", "bold").replace("Curt", "Bold")
)  # fmt: skip
SURFACES = {
    "table": ["table", "results", "{run}"],
    "check": ["check", "{run}", "--require", "curt <= 90%", "--require", "bold >= 0.5"],
    "compare": ["compare", "{run}", "{other}"],
    "plan": ["plan", "--detect", "0.1", "--from", "{run}"],
}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that were scored with the plug-ins, which are not here any more."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "_plugins", {room: dict(found) for room, found in registry._plugins.items()})
        patched.setenv("OVERTONE_PLUGINS", "")
        for name, text in (("curt", CURT), ("bold", BOLD)):
            (folder / f"{name}.py").write_text(text)
            registry.load_plugin(folder / f"{name}.py")
        for seed, name in enumerate(("run", "other")):
            make_run(folder / name, root=None, scripts=12, seed=seed)
            score_run(folder / name)
    for name in ("curt", "bold"):
        (folder / f"{name}.py").unlink()
    return folder


def said(scored: Path, surface: str, capsys: pytest.CaptureFixture[str]) -> str:
    words = [word.format(run=scored / "run", other=scored / "other") for word in SURFACES[surface]]
    assert main(words) in (0, 1)
    return " ".join(capsys.readouterr().out.split())


def test_a_metric_and_its_declaration_take_at_most_25_lines() -> None:
    assert max(len(text.splitlines()) for text in (CURT, BOLD)) <= 25


def test_a_plug_in_s_scores_stand_in_the_terminal_s_tables(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "curt" not in known()
    text = said(scored, "table", capsys)
    assert "Curt replies ↓" in text.replace("\u00a0", " ") and "Boldness ↑" in text


def test_a_plug_in_s_scores_stand_in_the_report(scored: Path, tmp_path: Path) -> None:
    assert main(["report", str(scored / "run"), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Curt replies\u00a0↓" in page
    assert 'Boldness&nbsp;<span aria-label="higher is better">↑</span>' in page


def test_a_plug_in_s_scores_can_be_required(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(scored, "check", capsys)
    assert "curt <= 90 %" in text and "bold >= 0.5" in text
    assert main(["check", str(scored / "run"), "--require", "curt <= 200%"]) == 2
    assert "outside the scale of curt (0 % to 100 %)" in capsys.readouterr().err


def test_a_plug_in_s_scores_are_compared_without_being_named(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(scored, "compare", capsys)
    assert "Curt replies" in text and "Boldness" in text
    assert main(["compare", str(scored / "run"), str(scored / "other"), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"][0]["rows"]
    assert {(r["label"], r["better"]) for r in rows} >= {("Curt replies", "lower"), ("Boldness", "higher")}


def test_a_plug_in_s_scores_are_planned_for(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(scored, "plan", capsys)
    assert "Curt replies" in text and "Boldness" in text


def test_a_plug_in_s_scores_are_exported_with_what_they_are(scored: Path, tmp_path: Path) -> None:
    assert main(["export", str(scored / "run"), "-o", str(tmp_path / "rows.csv")]) == 0
    head = (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    assert {"score_curt", "score_bold"} <= set(head)
    assert main(["export", str(scored / "run"), "--format", "scores", "-o", str(tmp_path / "scores.json")]) == 0
    (curt,) = (row for row in json.loads((tmp_path / "scores.json").read_text()) if row["score"] == "curt")
    assert curt == {
        "score": "curt", "column": "score_curt", "label": "Curt replies", "scale": "percent", "better": "lower",
        "low": 0.0, "high": 1.0, "reduce": "share", "unit": "", "tasks": ["converse"],
    }  # fmt: skip


def test_a_score_that_is_not_declared_is_shown_all_the_same_and_the_warning_says_how_to_declare_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    text = "\n".join(line for line in BOLD.splitlines() if not line.startswith("SCORES"))
    (tmp_path / "bold.py").write_text(text)
    registry.load_plugin(tmp_path / "bold.py")
    run = make_run(tmp_path / "run", root=None, scripts=6)
    score_run(run)
    warning = "does not declare its score 'bold'"
    assert warning in caplog.text and 'SCORES = {"bold": ScoreInfo("LABEL", better="higher")}' in caplog.text
    with Store.read(run) as store:
        assert [detail for _, kind, detail in store.events() if kind == "warning" and warning in detail]
    info = open_run(run).declared["bold"]
    assert (info.label, info.better, info.tasks, info.headline) == ("bold", "neither", ("choose",), False)
    assert main(["table", "results", str(run)]) == 0
    assert "bold" in capsys.readouterr().out.split()
    assert main(["check", str(run), "--require", "bold > 0.01"]) in (0, 1)
    assert "bold is" in capsys.readouterr().out


def test_every_built_in_score_survives_its_encoding() -> None:
    for info in built_in().values():
        assert msgspec.json.decode(msgspec.json.encode(info), type=ScoreInfo) == info


def test_no_score_that_a_built_in_metric_gives_is_undeclared(scored: Path) -> None:
    with Store.read(scored / "run") as store:
        given = {name for name in store.scored_metrics() if "@" not in name}
    assert given - built_in().keys() == {"curt", "bold"}


@pytest.mark.parametrize("wrong", [{"mine": "Mine"}, ["mine"], "mine"])
def test_scores_that_are_no_declarations_are_an_error(wrong: object) -> None:
    from types import ModuleType

    module = ModuleType("mine")
    module.SCORES = wrong  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="SCORES must be a dict of score names and ScoreInfo"):
        declared_by(module, "mine")


def test_a_scale_that_ends_before_it_starts_is_an_error() -> None:
    with pytest.raises(ValueError, match="ends at 1, below its start 5"):
        ScoreInfo("Mine", low=5, high=1)
    with pytest.raises(ValueError, match="needs a label"):
        ScoreInfo(" ")


def test_what_a_run_declares_wins_over_the_metrics_that_are_here(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", root=None, scripts=1)
    with Store.create(run) as store:
        store.declare({**built_in(), "bleu": ScoreInfo("As it was", "plain")})
    assert open_run(run).declared["bleu"].label == "As it was"
    with Store.create(run) as store:
        store.db.execute("UPDATE declarations SET body = x'7b7d' WHERE score = 'bleu'")
    assert main(["verify", str(run)]) == 1
