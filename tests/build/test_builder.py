"""The builder: layout, determinism, resumption, own scripts, what gates leave out, refusals."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.benchmarks import Selection, selected
from overtone.benchmarks.open import load
from overtone.build.builder import build
from overtone.build.licence import Ingredient, Verdict
from overtone.build.manifest import Manifest, read_manifest
from overtone.build.rebuild import rebuild_and_compare
from overtone.build.script import read_collection
from overtone.build.sound_plan import Options, plan
from overtone.build.speak_set import Built
from overtone.cli import main
from overtone.cues import CUES
from overtone.errors import DataError, UsageError

pytestmark = pytest.mark.local
Small = tuple[Path, Built]
OWN = {
    "id": "take-1",
    "cue": "sad",
    "alternative": "happy",
    "topic": "family",
    "voice": "dora",
    "words": "The letter from the school came this morning.",
    "reply": {"target": "Come here, sit down.", "alternative": "Show me at once!", "neutral": "Put it on my desk."},
    "style": {"target": "soft", "alternative": "bright", "neutral": "even"},
    "reasoning": [
        {"category": "consistency", "question": "Do they agree?", "target": "Consistent", "alternative": "Inconsistent"}
    ],
}


def _files(out: Path) -> dict[str, bytes]:
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def _own(path: Path, **changes: object) -> Path:
    path.write_bytes(msgspec.json.encode(OWN | changes) + b"\n")
    return path


def _build(out: Path, *only: str, **rest: object) -> Built:
    return build("open", out, only=only, per_cue=1, jobs=1, gates=False, **rest)  # type: ignore[arg-type]


def test_every_cue_has_a_clip_and_every_script_a_second_rendering(small: Small) -> None:
    out, built = small
    clips = [c for c in built.clips if not c.reply]
    assert {c.cue for c in clips} - {""} == {c.slug for c in CUES}
    plain = {s.id for s in read_collection("open").scripts}
    voices = {(c.case_id, c.style): c.voice for c in clips if c.case_id in plain}
    for case in {case for case, _ in voices}:
        like = "neutral" if (case, "neutral") in voices else "target"
        assert voices[case, "control"] != voices[case, like], case
    assert built.made == len(built.clips) == len(list(out.rglob("*.wav"))) and not list(out.rglob(".*.part"))


def test_the_manifest_tells_the_truth_about_every_file(small: Small) -> None:
    out, _ = small
    manifest = read_manifest(out)
    assert manifest.licence == "CC-BY-4.0" and set(manifest.status) == {c.slug for c in CUES}
    assert {c.path for c in manifest.clips} == {p.relative_to(out).as_posix() for p in out.rglob("*.wav")}
    known = set(manifest.ingredients)
    for clip in manifest.clips:
        data = (out / clip.path).read_bytes()
        assert hashlib.sha256(data).hexdigest() == clip.sha256
        assert clip.voice and clip.ingredients and set(clip.ingredients) <= known
        samples, rate = audio.decode(data)
        assert rate == 24_000 and abs(len(samples) / rate - clip.seconds) < 1e-3
        assert abs(audio.measure(samples, rate).rms_dbfs - clip.dbfs) < 1.0 and clip.peak <= 0.981


def test_the_loader_reads_it_without_a_warning(small: Small) -> None:
    out, built = small
    benchmark = load(out)
    items = list(benchmark.items(Selection()))
    assert benchmark.warnings == [] and benchmark.name == "open"
    assert sum(i.task == "choose" for i in items) == len(built.questions)
    assert {i.part for i in items} >= {"", "control", "false-cue", "conflict", "dialogue"}
    assert all((out / t.clip.path).is_file() for i in items for t in i.turns if t.clip)
    assert all(i.gold for i in items if i.task == "choose")
    assert all(i.status in ("validated", "unvalidated") for i in items if i.cue and i.part != "dialogue")


def test_data_check_has_nothing_to_report(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(small[0])]) == 0
    assert "error" not in capsys.readouterr().out


def test_datasheet_and_licence_say_what_was_built(small: Small) -> None:
    out, built = small
    sheet = (out / "DATASHEET.md").read_text("utf-8")
    assert f"{len(built.questions)} questions" in sheet and "CC-BY-4.0" in sheet and "| rain |" in sheet
    assert "without gates" in sheet
    assert "CC-BY-4.0" in (out / "LICENSE").read_text("utf-8")


def test_the_same_bytes_come_from_one_job_and_from_a_part_of_the_set(small: Small, tmp_path: Path) -> None:
    out, _ = small
    _build(tmp_path, "sobbing", "chatter")
    whole = {c.path: c for c in read_manifest(out).clips}
    part = read_manifest(tmp_path).clips
    assert len(part) >= 14 and all(whole[c.path] == c for c in part)
    wanted = Selection(levels=frozenset({1, 2}))
    asked = {i.id: i for i in selected(load(out), wanted)}
    again = list(selected(load(tmp_path), wanted))
    assert again and all(asked[i.id] == i for i in again)


def test_a_second_build_makes_nothing_and_changes_no_byte(tmp_path: Path) -> None:
    _build(tmp_path, "male")
    before = _files(tmp_path)
    again = _build(tmp_path, "male")
    assert (again.made, again.kept) == (0, 5)
    assert _files(tmp_path) == before


def test_lost_broken_and_unfinished_files_are_made_again(tmp_path: Path) -> None:
    _build(tmp_path, "male", "dog")
    before = _files(tmp_path)
    wavs = sorted(tmp_path.rglob("*.wav"))
    wavs[0].unlink()
    wavs[1].write_bytes(wavs[1].read_bytes()[:1000])
    (wavs[2].parent / f".{wavs[2].name}.7.part").write_bytes(b"half")
    assert _build(tmp_path, "male", "dog").made == 2
    assert _files(tmp_path) == before


def test_another_seed_changes_what_is_random_and_nothing_else(small: Small, tmp_path: Path) -> None:
    _build(tmp_path, "rain", options=Options(seed=5))
    whole = {c.path: c.sha256 for c in read_manifest(small[0]).clips}
    clips = [c for c in read_manifest(tmp_path).clips if c.cue or c.style == "neutral"]
    assert {c.path: whole[c.path] == c.sha256 for c in clips} == {c.path: not c.scene for c in clips}


def test_strength_room_and_ratio_are_heard(small: Small, tmp_path: Path) -> None:
    def after(folder: Path) -> float:
        """The level right after the words, where a room still sounds."""
        x, _ = audio.read(next(folder.glob("data_synthesis/audio/sad/id_*_target.wav")))
        return float(np.abs(x[-4000:]).max())

    _build(tmp_path / "flat", "sad", options=Options(strength=0.0))
    target, neutral = (next((tmp_path / "flat").glob(f"data_synthesis/audio/sad/id_*_{s}.wav")) for s in
                       ("target", "neutral"))  # fmt: skip
    assert target.read_bytes() == neutral.read_bytes()
    _build(tmp_path / "hall", "sad", options=Options(room="hall"))
    assert after(tmp_path / "hall") > 0.001 > after(small[0])
    with pytest.raises(UsageError, match="--strength"):
        _build(tmp_path / "no", "sad", options=Options(strength=3))
    with pytest.raises(UsageError, match="hall"):
        _build(tmp_path / "no", "sad", options=Options(room="cathedrall"))


def test_own_scripts_go_the_same_way(tmp_path: Path) -> None:
    scripts = _own(tmp_path / "mine.jsonl")
    built = build(str(scripts), tmp_path / "out", jobs=1, licence="CC0-1.0")
    assert built.gate_report.ran and built.verdict.licence == "CC-BY-4.0"
    assert {c.style for c in built.clips} == {"target", "alternative", "neutral", "control"}
    items = list(load(tmp_path / "out").items(Selection()))
    assert {i.category for i in items} >= {"asr", "emotion", "coarse", "consistency", "conversation", "false-cue"}


def test_a_script_file_says_its_language_and_the_items_have_it(tmp_path: Path) -> None:
    scripts = _own(tmp_path / "mine.jsonl", words="Der Zug kommt heute um neun an.", language="de")
    with pytest.raises(UsageError, match="the gates support only English, and there are texts in de: add --no-gates"):
        build(str(scripts), tmp_path / "out", jobs=1)
    built = build(str(scripts), tmp_path / "out", jobs=1, gates=False)
    items = list(load(tmp_path / "out").items(Selection()))
    assert {i.language for i in items} == {"de"}
    assert {clip.voice[:3] for clip in built.clips} == {"de+"}, "German is spoken by German voices, replies too"
    with pytest.raises(UsageError, match=r"--voice espeak.* speaks en, and texts are in de"):
        english = Options(voices=("espeak?male=en-us+m3&female=en-us+f3",))
        build(str(scripts), tmp_path / "other", options=english, jobs=1, gates=False)
    assert "questions. Languages: de." in (tmp_path / "out" / "DATASHEET.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"language": "not a tag"}, "BCP-47"),
        ({"id": "../../etc/passwd"}, "an id is letters"),
        ({"topic": "a/b"}, "a topic is one word"),
        ({"words": "two\nlines"}, "printable"),
        ({"words": ""}, "printable"),
        ({"voice": "nobody"}, "no voice"),
        ({"cue": "sadd"}, "did you mean 'sad'"),
        ({"cue": 7}, "line 1"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_written(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        build(str(_own(tmp_path / "mine.jsonl", **change)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_fails_a_gate_is_put_aside_with_the_reason_and_comes_back_when_it_passes(tmp_path: Path) -> None:
    told = _own(tmp_path / "mine.jsonl", words="I am so sad and tearful about the funeral.")
    out = tmp_path / "out"
    built = build(str(told), out, jobs=1, licence="CC0-1.0")
    assert built.clips == () and built.questions == () and "take-1" in built.gate_report.scripts
    report = msgspec.json.decode((out / "gates.json").read_bytes())
    assert report["findings"][0]["subject"] == "take-1" and report["left_out"]["scripts"] == ["take-1"]
    again = build(str(_own(told)), out, jobs=1, licence="CC0-1.0")
    assert len(again.clips) == 7 and not again.gate_report.scripts


def test_a_release_needs_the_whole_set_and_licences_that_agree(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="whole set"):
        build("open", tmp_path / "a", only=("sad",), release=True)
    own = _own(tmp_path / "mine.jsonl")
    with pytest.raises(UsageError, match="licence is not known"):
        build(str(own), tmp_path / "b", jobs=1, release=True)
    built = build(str(own), tmp_path / "b", jobs=1, release=True, licence="CC-BY-4.0")
    assert read_manifest(tmp_path / "b").release and built.verdict == Verdict("CC-BY-4.0")
    assert any(isinstance(i, Ingredient) and i.what == "texts" for i in read_manifest(tmp_path / "b").ingredients)


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_synthesis").mkdir()
    with pytest.raises(UsageError, match="not built here"):
        _build(tmp_path)
    other = tmp_path / "other"
    build(str(_own(tmp_path / "mine.jsonl")), other, jobs=1, gates=False)
    with pytest.raises(UsageError, match="holds the set 'mine'"):
        _build(other)
    (other / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="not a manifest"):
        build(str(tmp_path / "mine.jsonl"), other, jobs=1, gates=False)


def test_the_command_prints_counts_and_refuses_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--out", str(tmp_path), "--per-cue", "1", "--jobs", "1", "--no-gates"]
    assert main(["build", "open", *flags, "--only", "female"]) == 0
    printed = capsys.readouterr().out
    assert "5 sounds made" in printed and "× real time" in printed and "| female |" in printed
    assert "licence: CC-BY-4.0" in printed
    for words, complaint in (
        (["build", "open", *flags, "--only", "wisper"], "did you mean 'whisper'"),
        (["build", "opne", *flags], "did you mean 'open'"),
        (["build", "open"], "are required: --out"),
        (["build", "open", *flags, "--voice", "espeek"], "did you mean 'espeak'"),
        (["build", "open", *flags, "--sounds", str(tmp_path / "nothing")], "nothing"),
        (["build", "open", *flags[:-1], "--per-cue", "0"], "at least 1"),
        (["build", "review"], "are required: SCRIPTS"),
    ):
        assert main(words) != 0, words
        assert complaint in capsys.readouterr().err, words


def test_making_takes_one_core_less_than_a_twelfth_of_the_sounds_length(tmp_path: Path) -> None:
    began = time.process_time()  # not the wall: others may be busy on the same machine
    built = _build(tmp_path, "sad", "sigh", "wind")
    assert built.sound_seconds / (time.process_time() - began) > 12.5


def test_a_killed_build_leaves_only_whole_files_and_goes_on(tmp_path: Path) -> None:
    out, cues = tmp_path / "set", "fast,slow,sad,rain"
    command = [sys.executable, "-c", "import sys; from overtone.cli import main; sys.exit(main(sys.argv[1:]))"]
    command += ["build", "open", "--out", str(out), "--only", cues, "--per-cue", "1", "--jobs", "2", "--no-gates"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.rglob("*.wav")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    left = [audio.read(p)[0].size for p in out.rglob("*.wav") if not p.name.startswith(".")]
    assert left and all(left)
    built = _build(out, *cues.split(","))
    wanted = sum(len(g.jobs) for g in plan(read_collection("open"), Options()) if g.cue in cues.split(",") and
                 g.id in {c.case_id for c in built.clips})  # fmt: skip
    assert built.made + built.kept == wanted == len(read_manifest(out).clips)
    assert not list(out.rglob(".*.part"))


def test_a_manifest_of_a_stranger_is_plain_data() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"name": "x", "clips": "y"}', type=Manifest)


def test_a_rebuild_is_the_same_set_and_a_changed_clip_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _build(tmp_path / "a", "slow")
    _build(tmp_path / "b", "slow")
    assert main(["data", "check", str(tmp_path / "a"), "--rebuild", "--part", "1"]) == 0
    assert "the same set" in capsys.readouterr().out
    clips = sorted((tmp_path / "b").glob("data_synthesis/audio/slow/*_neutral.wav"))
    target = clips[0].with_name(clips[0].name.replace("neutral", "target"))
    clips[0].write_bytes(target.read_bytes())
    assert main(["data", "check", str(tmp_path / "a"), "--rebuild", str(tmp_path / "b")]) != 0
    assert clips[0].name in capsys.readouterr().out


def test_a_rebuild_speaks_the_same_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, out = str(_own(tmp_path / "mine.jsonl")), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("overtone.build.builder.plan", lambda c, o, _: plan(c, o, {"take-1": 2}))
        build(own, out, jobs=1, gates=False)
    assert read_manifest(out).takes == {"take-1": 2}
    assert rebuild_and_compare(out, None, tmp_path / "again", scripts=own, words=False) == []


def test_a_set_with_one_voice_per_sex_has_no_control_and_is_consistent(tmp_path: Path) -> None:
    options = Options(voices=("espeak?male=en-us+m3&female=en-us+f2",))
    built = _build(tmp_path / "set", "sad", "happy", options=options)
    assert "control" not in {clip.style for clip in built.clips}
    assert "control" not in {question.style for question in built.questions}
    assert main(["data", "check", str(tmp_path / "set")]) == 0
