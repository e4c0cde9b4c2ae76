"""A design from a plug-in file: the example of the documents becomes a study, screens and labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.cli import main
from overtone.errors import DataError
from overtone.studio import contents, designs, study
from overtone.studio.designs import Answered
from tests.needs import REPOSITORY
from tests.studio.helpers import spoken_runs

PLUGIN = str(REPOSITORY / "examples" / "my_design.py")


@pytest.fixture(autouse=True)
def _no_plugin_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_plugins", {room: {} for room in registry.PLUGIN_ROOMS})
    monkeypatch.setenv("OVERTONE_PLUGINS", "")


def test_the_example_of_the_documents_becomes_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(run) for run in spoken_runs(tmp_path, "monday", "friday")]
    path = tmp_path / "s.toml"
    words = ["studio", "new", str(path), "--from", *runs, "--design", "my-design", "--plugin", PLUGIN]
    assert main(words) == 0
    assert "36 replies of 9 scripts" in capsys.readouterr().out
    read = contents.read(study.read(path))
    (stage,) = read.stages(read.units[0])
    assert [field.key for field in stage.fields] == ["helps", "sure"] and read.study.checks.gold == 1
    rows = designs.find("my-design").labels(Answered("k3f9", read.units[0], {"helps": "yes", "sure": 80}), read.study)
    assert [(row.run, row.cells["dimension"], row.cells["value"]) for row in rows] == [
        ("monday", "helps", "yes"), ("monday", "sure", 80),
    ]  # fmt: skip


def test_a_study_of_an_unknown_design_is_refused(tmp_path: Path) -> None:
    runs = [str(run) for run in spoken_runs(tmp_path, "monday")]
    path = tmp_path / "s.toml"
    assert main(["studio", "new", str(path), "--from", *runs, "--design", "my-design", "--plugin", PLUGIN]) == 0
    registry._plugins["designs"].clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERTONE_PLUGINS", "")
        with pytest.raises(DataError, match="unknown design 'my-design'"):
            study.read(path)
