"""The EChat-eval builder: every label in one recording, measured step by step; replies in the emotion they want."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone import audio
from overtone.benchmarks import Selection
from overtone.benchmarks.echat_eval import load
from overtone.build import echat_texts
from overtone.build.echat_eval_set import FILE, LIST, _jobs, build
from overtone.build.echat_texts import CATEGORIES, Query, Rendition
from overtone.build.manifest import read_manifest
from overtone.build.sound_plan import PLAIN
from overtone.build.speak_set import Built
from overtone.build.voices import cast
from overtone.cli import main
from overtone.errors import UsageError

pytestmark = pytest.mark.local
Small = tuple[Path, Built]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The first sentence of each category, without gates, in two processes."""
    out = tmp_path_factory.mktemp("echat")
    return out, build(out, per_category=1, jobs=2, gates=False)


def _query() -> Query:
    first = Rendition("Yes.", "happy", "bright", emotion="sad", age="old", event="rain")
    second = Rendition("No.", "neutral", "even", gender="female", age="child")
    return Query("multi-90", "home", "arlo", "The letter from the school came this morning.", (first, second))


def test_labels_are_laid_on_one_after_the_other_each_against_the_step_before() -> None:
    jobs = list(_jobs(_query(), cast(), 0))
    clips = [j for j in jobs if j.is_clip]
    rain = next(j for j in clips if j.style.endswith("rain"))
    assert rain.cues == ("elderly", "sad", "rain") and rain.scene == "rain"
    by = {j.path: j for j in clips}
    chain = [rain]
    while chain[-1].twin:
        chain.append(by[chain[-1].twin])
    assert [j.cues for j in chain] == [("elderly", "sad", "rain"), ("elderly", "sad"), ("elderly",), ()]
    assert rain.drawn_as == chain[1].path and {j.style for j in chain[1:]} == {PLAIN}
    assert not any(j.outdoors for j in clips) and len({j.speaker for j in chain}) == 1
    child = next(j for j in clips if "child" in j.style)
    assert child.cues == ("female", "child") and child.speaker is not None and child.speaker.sex == "female"
    assert by[child.twin].cues == ("female",)  # whose pitch the gate on sexes measures
    replies = {j.style.split("-")[2]: j.cue for j in jobs if not j.is_clip}
    assert replies == {"sad": "happy", "child": ""}


def test_every_category_is_built_and_read_by_the_benchmark(small: Small) -> None:
    out, built = small
    assert built.lines == tuple(f"{category}: 2 of 2 items" for category in CATEGORIES)
    benchmark = load(out)
    items = list(benchmark.items(Selection()))
    assert Counter(i.category for i in items) == dict.fromkeys(CATEGORIES, 2) and benchmark.warnings == []
    wanted = {one.id: one for one in echat_texts.spoken(echat_texts.read())}
    for item in items:
        one = wanted[item.case.partition("/")[2]]
        assert item.turns[0].words == one.query.words and item.references == (one.said.reply,)
        assert item.gold == one.said.reply_emotion and item.reference_audio == one.reply_clip


def test_the_records_are_also_written_as_echat_has_them(small: Small, tmp_path: Path) -> None:
    out, _ = small
    ours: list[dict[str, Any]] = msgspec.json.decode((out / FILE).read_bytes())
    lines = [msgspec.json.decode(line) for line in (out / LIST).read_bytes().splitlines()]
    assert [r["key"] for r in lines] == [r["key"] for r in ours] and "category" not in lines[0]
    assert set(lines[0]["extra"]) <= {"dataset", "age", "gender", "caption", "q_emotion", "question", "a_wav_path"}
    (out / FILE).rename(tmp_path / FILE)
    try:
        read = list(load(out).items(Selection()))
    finally:
        (tmp_path / FILE).rename(out / FILE)
    assert len(read) == 10


def test_a_reply_carries_its_emotion_in_the_voice(small: Small) -> None:
    out, built = small
    replies = {c.path: c for c in built.clips if c.reply}
    assert len(replies) == 10
    coloured = [c for c in replies.values() if c.cue]
    assert coloured and all(c.recipe for c in coloured) and not any(c.recipe for c in replies.values() if not c.cue)
    for clip in replies.values():
        assert 3 < len(audio.read(out / clip.path)[0]) / 24_000 < 30


def test_one_job_comes_to_the_same_bytes_as_two_and_a_lost_file_is_made_again(small: Small, tmp_path: Path) -> None:
    out, _ = small
    build(tmp_path, only=("multi", "event"), per_category=1, jobs=1, gates=False)
    whole = {c.path: c for c in read_manifest(out).clips}
    part = read_manifest(tmp_path).clips
    assert part and all(whole[c.path] == c for c in part)
    lost = next(tmp_path.rglob("audio/multi/*.wav"))
    before = lost.read_bytes()
    lost.unlink()
    assert build(tmp_path, only=("multi", "event"), per_category=1, jobs=1, gates=False).made == 1
    assert lost.read_bytes() == before


def test_gates_measure_every_label(tmp_path: Path) -> None:
    built = build(tmp_path, only=("multi",), per_category=1, jobs=1)
    assert built.gate_report.ran and built.lines == ("multi: 2 of 2 items",)
    checked, failed = built.gate_report.counts()["the cue is there"]
    assert checked >= 4 and failed == 0
    assert (tmp_path / "gates.json").is_file() and "Chain" not in (tmp_path / "DATASHEET.md").read_text("utf-8")


def test_the_command_builds_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["build", "echat-eval", "--out", str(tmp_path), "--per-category", "1", "--jobs", "1", "--no-gates"]
    assert main([*flags, "--only", "gender"]) == 0
    assert "gender: 2 of 2 items" in capsys.readouterr().out
    assert main([*flags, "--only", "sex"]) != 0
    assert "no category 'sex'" in capsys.readouterr().err
    assert main([*flags, "--meld", str(tmp_path)]) != 0
    assert "unrecognized arguments: --meld" in capsys.readouterr().err
    with pytest.raises(UsageError, match="--strength"):
        from overtone.build.sound_plan import Options

        build(tmp_path / "x", options=Options(strength=9.0), per_category=1, gates=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_whole_set_passes_every_gate(tmp_path: Path) -> None:
    assert build(tmp_path).items == dict.fromkeys(CATEGORIES, (44, 44))
