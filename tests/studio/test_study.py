"""The study file: mistakes in it are found and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import DataError, UsageError
from overtone.studio import study
from tests.studio.helpers import new_study


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("votes = 3", "votes = ", "not valid TOML"),
        ("votes = 3", "votes = 0", "votes must be"),
        ("votes = 3", "vots = 3", "vots"),
        ("votes = 3", 'votes = "many"', "Expected `int`"),
        ("overlap = 2", "overlap = 99", "must not be larger than session"),
        ("shows = []", 'shows = ["name"]', "raters can see cue, topic, words, reply"),
        ("gold = 1", "gold = -1", "checks.gold"),
        ('url = "sqlite:', 'url = "mysql:', "store.url"),
        ('name = "friday"', 'name = "monday"', "a name of its own"),
        ("reserve_minutes = 30", "reserve_minutes = 0", "reserve_minutes"),
    ],
)
def test_a_damaged_study_file_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = new_study(tmp_path).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(DataError, match=message):
        study.read(path)


def test_a_missing_study_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="overtone studio new"):
        study.read(tmp_path / "none.toml")


def test_texts_for_people_may_change_without_changing_what_is_asked(tmp_path: Path) -> None:
    made = new_study(tmp_path)
    text = made.path.read_text()
    made.path.write_text(text.replace('contact = ""', 'contact = "a@example.org"'))
    changed = study.read(made.path)
    assert changed.sha256 == made.sha256 and changed.consent_sha != made.consent_sha
    made.path.write_text(text.replace("seed = 0", "seed = 1"))
    assert study.read(made.path).sha256 != made.sha256


def test_a_study_lists_the_notices_that_people_elsewhere_need(tmp_path: Path) -> None:
    assert new_study(tmp_path).missing_notices == ["controller", "contact", "approval", "retention", "debriefing"]
