"""The AEQ builder: one plain clip per context group, one speaker per tone group, whole groups, the same bytes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.benchmarks import Selection
from overtone.benchmarks.aeq import load
from overtone.build import aeq_texts
from overtone.build.acceptance import GateReport
from overtone.build.aeq_set import FILE, _rows, _whole, build
from overtone.build.manifest import read_manifest
from overtone.build.rebuild import rebuild_and_compare
from overtone.build.sound_plan import Options
from overtone.build.speak_set import Built
from overtone.build.varied_corpora import Variant, Variation
from overtone.build.voices import VoiceError, cast
from overtone.cli import main
from overtone.errors import UsageError

pytestmark = pytest.mark.local
Small = tuple[Path, Built]


def _files(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def _instances(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode((out / FILE).read_bytes())
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The first two groups of each setting, without gates."""
    out = tmp_path_factory.mktemp("aeq")
    return out, build(out, per_setting=2, jobs=1, gates=False)


def test_a_context_group_has_one_plain_clip_and_a_tone_group_one_in_each_tone(small: Small) -> None:
    out, built = small
    rows = _instances(out)
    assert Counter(r["setting"] for r in rows) == {"context": 6, "tone": 8}
    assert built.lines[1] == "tone variation: 2 of 2 groups, 8 variants"
    for group in {r["group_id"] for r in rows}:
        mine = [r for r in rows if r["group_id"] == group]
        varied = "context" if mine[0]["setting"] == "context" else "utterance_audio"
        fixed = "utterance_audio" if varied == "context" else "context"
        assert len({r[varied] for r in mine}) == len(mine) == mine[0]["n_variants"]
        assert len({r[fixed] for r in mine}) == 1 and len({r["reference"] for r in mine}) == len(mine)
        assert [r["variant_index"] for r in mine] == list(range(1, len(mine) + 1))
        clips = [c for c in built.clips if c.case_id == group and not c.reply]
        assert len({c.voice for c in clips}) == 1
    assert {r["tone"] for r in rows if r["setting"] == "context"} == {None}
    assert next(r["tone"] for r in rows if r["group_id"] == "tone-01") is None
    spoken = {c.path: c.cue for c in built.clips}
    assert all(spoken[r["utterance_audio"]] == (r["tone"] or "") for r in rows)
    assert all((out / r[key]).stat().st_size > 1000 for r in rows for key in ("utterance_audio", "reference_audio"))


def test_the_benchmark_reads_what_was_built(small: Small) -> None:
    benchmark = load(small[0])
    items = list(benchmark.items(Selection()))
    assert len(items) == 14 and benchmark.warnings == []
    texts = {g.id: g for g in aeq_texts.read()}
    for item in items:
        group = texts[item.group]
        variant = next(v for v in group.variant if group.name_of(v) == item.case)
        assert (item.context, item.references) == (group.context_of(variant), (variant.reply,))
        assert item.cue == ("" if variant.tone in ("", "neutral") else variant.tone)


def test_manifest_licence_and_datasheet_stand_beside_it(small: Small) -> None:
    out, built = small
    manifest = read_manifest(out)
    assert manifest.name == "aeq" and manifest.licence == built.verdict.licence == "CC-BY-4.0"
    assert {c.path for c in manifest.clips} == {p.relative_to(out).as_posix() for p in out.rglob("*.wav")}
    sheet = (out / "DATASHEET.md").read_text("utf-8")
    assert "context variation: 2 groups with 6 variants" in sheet and "without gates" in sheet
    assert "AEQ-Bench" in sheet and "CC-BY-4.0" in (out / "LICENSE").read_text("utf-8")


def test_two_jobs_and_a_part_come_to_the_same_bytes_and_a_second_build_to_nothing_new(
    small: Small, tmp_path: Path
) -> None:
    out, built = small
    before = _files(out)
    again = build(out, per_setting=2, jobs=1, gates=False)
    assert (again.made, again.kept) == (0, built.made) and _files(out) == before
    build(tmp_path / "two", per_setting=2, jobs=2, gates=False)
    assert _files(tmp_path / "two") == before
    build(tmp_path / "part", only=("tone",), per_setting=1, jobs=1, gates=False)
    part = {path: data for path, data in _files(tmp_path / "part").items() if path.endswith(".wav")}
    assert len(part) == 8 and all(before[path] == data for path, data in part.items())


def test_a_rebuild_is_the_same_set(small: Small, tmp_path: Path) -> None:
    assert rebuild_and_compare(small[0], 1, tmp_path, words=False) == []
    assert list(tmp_path.rglob("audio/*.wav")) and list(tmp_path.rglob("audio/replies/*.wav"))


def test_gates_hear_what_is_built_and_speakers_are_balanced(tmp_path: Path) -> None:
    built = build(tmp_path, per_setting=1, jobs=1)
    assert built.gate_report.ran
    assert built.lines == (
        "context variation: 1 of 1 groups, 3 variants",
        "tone variation: 1 of 1 groups, 4 variants",
    )
    heard = {r["utterance_audio"]: r["recognised"] for r in _instances(tmp_path)}
    assert len(heard) == 5 and all(heard.values())
    counts = built.gate_report.counts()
    assert counts["words survive"] == (5, 0) and counts["the cue is there"] == (3, 0) and counts["hygiene"] == (5, 0)


def test_a_failing_tone_drops_its_whole_group_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overtone.build.speak_set.TAKES", 1)
    monkeypatch.setattr("overtone.build.gates.cue.least", lambda promise, strength: 99.0 * promise.sign)
    built = build(tmp_path, only=("tone",), per_setting=1, jobs=1)
    assert built.lines == ("tone variation: 0 of 1 groups, 0 variants",)
    assert _instances(tmp_path) == [] and built.clips == ()
    assert (
        len(list((tmp_path / "left_out").rglob("*.wav"))) == 8 and not (tmp_path / "audio/tone-01_angry.wav").exists()
    )
    assert "tone-01" in msgspec.json.decode((tmp_path / "gates.json").read_bytes())["left_out"]["scripts"]


def test_recordings_lose_what_fails_while_three_tones_are_left() -> None:
    variants = tuple(Variant(name, tone=name) for name in ("angry", "sad", "happy", "fear"))
    group = Variation("tone-1", "tone", "x", "It is late.", variants)
    one = _whole(GateReport(clips=frozenset({("tone-1", "sad")})), [group])
    assert [r["n_variants"] for r in _rows(group, one)] == [3, 3, 3] and not one.findings
    two = _whole(GateReport(clips=frozenset({("tone-1", "sad"), ("tone-1", "fear")})), [group])
    assert list(_rows(group, two)) == [] and two.findings[0].subject == "tone-1"


def test_a_users_recordings_are_copied_with_the_licence_they_state(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    rows = ["file,words,tone,speaker"]
    for k, tone in enumerate(("neutral", "anger", "sleepy")):
        noise = np.random.default_rng(k).standard_normal(32_000) * 0.05 * (k + 1)
        (folder / f"{tone}.wav").write_bytes(audio.encode_wav(noise, 16_000))
        rows.append(f"{tone}.wav,It is late again.,{tone},ann")
    (folder / "labels.csv").write_text("\n".join(rows))
    told = ["build", "aeq", "--tones", str(folder / "labels.csv"), "--no-gates", "--jobs", "1"]
    assert main([*told, "--out", str(tmp_path / "a"), "--licence", "CC-BY-4.0"]) == 0
    assert read_manifest(tmp_path / "a").licence == "CC-BY-4.0"
    found = _instances(tmp_path / "a")
    assert [(r["tone"], r["tone_text"]) for r in found] == [(None, "neutral"), ("angry", "anger"), ("tired", "sleepy")]
    assert {r["source"] for r in found} == {"mine"} and {r["reference"] for r in found} == {""}
    assert len(load(tmp_path / "a")._items) == 3
    assert main([*told, "--out", str(tmp_path / "b")]) == 0
    assert read_manifest(tmp_path / "b").licence == "none"


def test_takes_of_people_are_found_by_the_names_of_clips(small: Small, tmp_path: Path) -> None:
    takes = tmp_path / "takes"
    takes.mkdir()
    for path in (small[0] / "audio").glob("tone-01_*.wav"):
        (takes / path.name).write_bytes(path.read_bytes())
    voices = (f"recordings:{takes}?male=joe&licence=CC0-1.0", "espeak")
    built = build(tmp_path / "a", options=Options(voices), only=("tone",), per_setting=1, jobs=1, gates=False)
    assert {c.voice for c in built.clips if not c.reply} == {"joe"} and built.verdict.licence == "CC-BY-4.0"
    (takes / "tone-01_angry.wav").unlink()
    cast.cache_clear()
    with pytest.raises(VoiceError, match=r"1 takes are missing:\n  tone-01_angry\.wav"):
        build(tmp_path / "b", options=Options(voices), only=("tone",), per_setting=1, jobs=1, gates=False)


def test_a_killed_build_leaves_only_whole_files_and_goes_on(small: Small, tmp_path: Path) -> None:
    out = tmp_path / "set"
    command = [sys.executable, "-c", "import sys; from overtone.cli import main; sys.exit(main(sys.argv[1:]))"]
    command += ["build", "aeq", "--out", str(out), "--per-setting", "2", "--jobs", "2", "--no-gates"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.rglob("*.wav")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert all(audio.read(p)[0].size for p in out.rglob("*.wav") if not p.name.startswith("."))
    build(out, per_setting=2, jobs=1, gates=False)
    assert _files(out) == _files(small[0])


def test_the_command_prints_counts_and_refuses_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = ["--only", "context", "--per-setting", "1", "--jobs", "1", "--no-gates"]
    flags = ["build", "aeq", "--out", str(tmp_path), *some]
    assert main(flags) == 0
    printed = capsys.readouterr().out
    assert "context variation: 1 of 1 groups, 3 variants" in printed and "licence: CC-BY-4.0" in printed
    assert "overtone run aeq --data" in printed
    for more, complaint in (
        (["--only", "tones"], "did you mean 'tone'"),
        (["--release"], "unrecognized arguments: --release"),
        (["--clips", str(tmp_path)], "add --meld DIR"),
        (["--meld", str(tmp_path / "nothing")], "train_sent_emo.csv"),
        (["--voice", "espeek"], "did you mean 'espeak'"),
    ):
        assert main([*flags, *more]) != 0, more
        assert complaint in capsys.readouterr().err, more
    assert main(["build", "open", "--out", str(tmp_path / "o"), "--tones", "x.csv"]) != 0
    assert "unrecognized arguments: --tones" in capsys.readouterr().err
    with pytest.raises(UsageError, match="holds the set 'aeq'"):
        from overtone.build import echat_eval_set

        echat_eval_set.build(tmp_path, options=Options(), per_category=1, jobs=1, gates=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_whole_set_passes_every_gate(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.lines == (
        "context variation: 69 of 69 groups, 207 variants",
        "tone variation: 39 of 39 groups, 156 variants",
    )
    spoken = [c for c in built.clips if not c.reply]
    by = Counter(c.voice for c in {c.case_id: c for c in spoken}.values())
    assert len(by) == 10 and max(by.values()) <= 2 * min(by.values())


def test_a_recording_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"a.wav,It is late again.,{tone},ann" for tone in ("sad", "happy", "angry")]
    (tmp_path / "labels.csv").write_text("\n".join(["file,words,tone,speaker", *rows]))
    (tmp_path / "a.wav").write_text("no sound")
    told = ["build", "aeq", "--tones", str(tmp_path / "labels.csv"), "--out", str(tmp_path / "out"), "--no-gates"]
    assert main(told) != 0
    assert "a.wav: it is not a sound file" in capsys.readouterr().err
