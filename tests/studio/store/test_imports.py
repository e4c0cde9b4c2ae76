"""Answers from elsewhere, on both databases: stored once, replaced by newer ones, refused after withdrawal."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.studio.store import Refusal
from overtone.studio.store.imports import Elsewhere
from tests.studio.store.helpers import make_study, open_study


def test_imported_answers_are_finished_screens_and_come_once(tmp_path: Path, database: str) -> None:
    with open_study(make_study(tmp_path, database)) as store:
        label = store.people.join("label-studio", "a hash").label
        given = [Elsewhere("one-1", {"C1": 4}), Elsewhere("two-1", {"C1": 2, "C2": 5}, swap=True)]
        assert store.imports.add(label, given) == 2
        assert store.imports.add(label, given) == 0
        assert store.imports.add(label, [Elsewhere("one-1", {"C1": 5})]) == 1
        found = {one.unit: one for one in store.answers.all()}
        assert found["one-1"].values == {"C1": 5} and found["two-1"].values == {"C1": 2, "C2": 5}
        assert found["two-1"].swap and not found["one-1"].swap  # both units are of one script
        assert store.people.join("label-studio", "a hash").label == label
        store.withdrawals.withdraw(label)
        assert store.answers.all() == []
        with pytest.raises(Refusal, match="withdrawn"):
            store.imports.add(label, given)
