"""Files of scripts: what is refused, by name and with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overtone.build.script import HERE, read_files, read_scripts, read_set
from overtone.errors import DataError


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('cue = "male"', 'cue = "mole"', "did you mean 'male'"),
        ('voice = "arlo"', 'voice = "dora"', "is not male"),
        ('id = "id_0102"', 'id = "id_0101"', "another script has this id"),
        ('category = "recommendation"', 'category = "recomendation"', "did you mean 'recommendation'"),
        ('topic = "health"', 'tpoic = "health"', "tpoic"),
        ('alternative = "female"', 'alternative = "rain"', "needs another such cue"),
    ],
)
def test_a_broken_script_is_refused_by_name(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = (HERE / "open" / "01_speakers.toml").read_text("utf-8")
    assert old in text
    broken = tmp_path / "scripts.toml"
    broken.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DataError, match=re.escape(complaint)):
        read_scripts(broken)


def test_a_file_says_the_language_of_the_scripts_that_do_not_say_their_own(tmp_path: Path) -> None:
    text = (HERE / "open" / "01_speakers.toml").read_text("utf-8")
    first, second = text.split("[[script]]\n", 2)[1:]
    own = tmp_path / "scripts.toml"
    own.write_text(f'language = "es"\n[[script]]\n{first}[[script]]\nlanguage = "ja"\n{second}', "utf-8")
    languages = [script.language for script in read_scripts(own)]
    assert languages[:3] == ["es", "ja", "es"]


def test_an_unknown_set_is_named_with_the_nearest() -> None:
    with pytest.raises(DataError, match="did you mean 'open'"):
        read_set("opne")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('cue = "', 'cue = "x', "no cue"),
        ('voice = "', 'voice = "x', "no voice"),
        ('id = "dlg_02"', 'id = "dlg_01"', "another script has this id"),
        ("steady_reply", "steadyreply", "steadyreply"),
    ],
)
def test_a_broken_dialogue_is_refused_by_name(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = (HERE / "open" / "dialogues" / "01_moods.toml").read_text("utf-8")
    broken = tmp_path / "dialogues.toml"
    broken.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(DataError, match=re.escape(complaint)):
        read_files(broken)
