"""`overtone studio backup`: the file, and the sentences that say how to restore it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.studio.store import Store
from tests.studio.helpers import new_study
from tests.studio.store.helpers import arrive


def test_a_backup_is_written_while_the_study_is_open_and_the_printed_command_restores_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = new_study(tmp_path)
    copy = tmp_path / "copy of study.db"
    with Store.open(study) as store:
        people = [arrive(store).label for _ in range(3)]
        capsys.readouterr()
        assert main(["studio", "backup", str(study.path), str(copy)]) == 0
        arrive(store)
    printed = capsys.readouterr().out
    assert f"Written: {copy}" in printed and "study-withdrawn.txt" in printed
    command = printed.split("stop the server, then: ")[1].splitlines()[0]
    subprocess.run(command, shell=True, check=True)
    with Store.open(study) as store:
        assert [person.label for person in store.people.all()] == people


def test_a_backup_neither_replaces_a_file_nor_begins_a_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = new_study(tmp_path)
    assert main(["studio", "backup", str(study.path), str(tmp_path / "copy.db")]) == 2
    assert f"does not exist; 'overtone studio serve {study.path}' makes it" in capsys.readouterr().err
    Store.open(study).close()
    (tmp_path / "copy.db").write_text("mine")
    assert main(["studio", "backup", str(study.path), str(tmp_path / "copy.db")]) == 2
    assert "exists; name a new file" in capsys.readouterr().err
    assert (tmp_path / "copy.db").read_text() == "mine"
