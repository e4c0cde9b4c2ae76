"""Which cues count as validated: by the measurement that ships with the package, or by listeners' ratings."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overtone.build import cue_validation
from overtone.build.cue_validation import Status, from_ratings, statuses
from overtone.build.recipes import VERSION
from overtone.cues import CUES
from overtone.errors import DataError

CLIPS = {f"{cue}{k}.wav": cue for cue in ("happy", "sad", "cough") for k in range(4)} | {"plain.wav": ""}


def _file(tmp_path: Path, *rows: str, head: str = "listener,clip,heard") -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join((head, *rows)) + "\n", "utf-8")
    return path


def test_every_cue_has_a_status_measured_with_these_recipes() -> None:
    found = statuses("espeak")
    assert set(found) == {c.slug for c in CUES}
    for slug, s in found.items():
        assert s.status in ("validated", "unvalidated"), slug
        assert s.by, slug
        assert s.recipes == VERSION, "recipes changed: run python -m experiments.realness --write"


def test_a_validated_cue_was_recognised_clear_of_chance() -> None:
    good = [s for s in statuses().values() if s.validated]
    assert good
    for s in good:
        assert s.low is not None and s.chance is not None and s.recall is not None and s.n > 0
        assert s.chance < s.low <= s.recall <= (s.high or 0)


def test_cues_without_real_recordings_are_unvalidated() -> None:
    found = statuses("espeak:en-us")
    for slug in ("hoarse", "tired", "elderly", "whisper", "shout"):
        assert not found[slug].validated and found[slug].recall is None


def test_another_engine_has_not_been_measured() -> None:
    found = statuses("openai:tts-1?base_url=http://localhost:1/v1")
    assert set(found) == {c.slug for c in CUES}
    assert not any(s.validated for s in found.values())


def test_a_broken_file_says_how_to_make_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cue_validation, "FILE", tmp_path / "status.json")
    cue_validation._measured.cache_clear()
    with pytest.raises(DataError, match=r"experiments\.realness --write"):
        statuses()
    (tmp_path / "status.json").write_bytes(msgspec.json.encode({"happy": {"status": "validated", "more": 1}}))
    with pytest.raises(DataError, match="more"):
        statuses()
    cue_validation._measured.cache_clear()


def test_listeners_validate_what_they_recognise_and_nothing_else(tmp_path: Path) -> None:
    rows = []
    for listener in range(6):
        for k in range(4):
            rows.append(f"l{listener},happy{k}.wav,happy")
            rows.append(f"l{listener},sad{k}.wav,{'sad' if k == 0 else 'tired'}")
        rows.append(f"l{listener},plain.wav,none")
    found = from_ratings(_file(tmp_path, *rows), CLIPS)
    assert found["happy"] == Status("validated", 1.0, found["happy"].low, 1.0, 0.25, 24, "6 listeners")
    assert (found["happy"].low or 0) > 0.25
    assert not found["sad"].validated and found["sad"].recall == 0.25
    assert found["cough"] == Status("unvalidated", by="no listener rated it")


def test_many_answers_of_one_listener_are_one_opinion(tmp_path: Path) -> None:
    found = from_ratings(_file(tmp_path, *(f"ann,happy{k}.wav,happy" for k in range(4))), CLIPS)
    assert not found["happy"].validated and "only 1 of 3" in found["happy"].by


def test_two_options_are_guessed_more_often_than_four(tmp_path: Path) -> None:
    rows = [
        f"l{i},happy{k}.wav,{'happy' if k < 3 or i == 0 else 'sad'}" for i in range(4) for k in range(4)
    ]  # fmt: skip
    four = from_ratings(_file(tmp_path, *rows), CLIPS)
    two = from_ratings(_file(tmp_path, *(f"{r},2" for r in rows), head="listener,clip,heard,options"), CLIPS)
    assert (four["happy"].chance, two["happy"].chance) == (0.25, 0.5)
    assert four["happy"].validated


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("ann,hapy0.wav,happy", r"line 2: no clip 'hapy0.wav'; did you mean 'happy0.wav'"),
        ("ann,happy0.wav,hapy", r"line 2: no cue 'hapy'; did you mean 'happy'"),
        ("ann,happy0.wav,", r"line 2: listener, clip and heard must not be empty"),
        (",happy0.wav,happy", r"must not be empty"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        from_ratings(_file(tmp_path, row), CLIPS)


def test_a_file_that_is_no_ratings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column heard"):
        from_ratings(_file(tmp_path, "a,b", head="listener,clip"), CLIPS)
    with pytest.raises(DataError, match="contains no ratings"):
        from_ratings(_file(tmp_path), CLIPS)
    with pytest.raises(DataError, match="cannot be read"):
        from_ratings(tmp_path / "none.csv", CLIPS)
    with pytest.raises(DataError, match="options is the number of answers"):
        from_ratings(_file(tmp_path, "a,sad0.wav,sad,one", head="listener,clip,heard,options"), CLIPS)
    with pytest.raises(DataError, match=r"line 3: a has rated sad0\.wav before"):
        from_ratings(_file(tmp_path, "a,sad0.wav,sad", "a,sad0.wav,happy"), CLIPS)
