"""A disk that is full while people answer: a clear error, everything acknowledged stays, and it continues afterwards.

The limit on the size of files (RLIMIT_FSIZE) stands for the full disk. It is set in a child process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overtone.studio.database import RATER_MESSAGE, Unavailable
from overtone.studio.store import Store
from tests.postgres_server import Server
from tests.studio.store.helpers import arrive, make_study, open_study, rate

CHILD = """
import resource, sys
from pathlib import Path
from overtone.studio.database import Unavailable
from tests.studio.store.helpers import arrive, make_study, open_study
folder = Path(sys.argv[1])
study = make_study(folder, "sqlite:study.db", id="abcdefabcdef")
with open_study(study) as store:
    label = arrive(store).label
    slot = store.sessions.enter(label)[0]
    size = max(path.stat().st_size for path in folder.iterdir())
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))  # of the log file beside the database
    stored, refused = [], []
    def add(number):
        values = {"text": "x" * 2000 + str(number)}
        store.answers.add(label, slot.id, f"k{number}", values, plays={}, ms=1)
        stored.append(number)
    for number in range(200):
        try:
            add(number)
        except Unavailable as error:
            refused.append(number)
            message = str(error)
            break
    take = {"seconds": 1.0, "settings": {}, "checks": {}, "verdict": "good"}
    try:
        store.takes.add(label, slot.id, "take", bytes(size + 200_000), **take)
    except Unavailable as error:
        recording = str(error)
    left = [path for path in folder.rglob("*.part")]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for number in [*refused, 900]:
        add(number)
    kept = [int(one.value[2000:]) for one in store.answers.history()]
    assert kept == stored and refused and len(stored) > 3, (kept, stored, refused)
    assert left == [] and store.takes.all(kept=None) == []
print(message)
print(recording)
"""


def test_a_full_disk_loses_nothing_and_the_study_continues_when_there_is_room(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer, take = done.stdout.splitlines()
    assert "the disk is full or failing; free some space. Stored answers are safe" in answer
    assert "the recording cannot be written" in take
    with Store.open(make_study(tmp_path, "sqlite:study.db", id="abcdefabcdef")) as store:
        assert len(store.answers.history()) > 3


@pytest.mark.postgres
def test_a_full_disk_of_the_server_is_named_and_loses_nothing(tmp_path: Path, postgres: Server) -> None:
    """A trigger raises the error that PostgreSQL raises where its disk is full."""
    with open_study(make_study(tmp_path, postgres.url)) as store:
        label = arrive(store).label
        first, second = store.sessions.enter(label)[:2]
        rate(store, label, first)
        schema = f'"overtone_{store.study.id}"'
        postgres.sql(
            f"CREATE FUNCTION {schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''53100''; END'"
        )
        postgres.sql(f"CREATE TRIGGER no_room BEFORE INSERT ON {schema}.answer EXECUTE FUNCTION {schema}.no_room()")
        with pytest.raises(Unavailable, match="disk is full") as failed:
            rate(store, label, second)
        assert failed.value.rater == RATER_MESSAGE
        postgres.sql(f"DROP TRIGGER no_room ON {schema}.answer")
        assert rate(store, label, second)  # the page sends it again
        assert len(store.answers.history()) == 2
