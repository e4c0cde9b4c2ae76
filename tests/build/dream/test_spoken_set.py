"""The spoken DREAM: one clip per dialogue, gates on its words, DREAM's own layout, builds that can be resumed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone import audio
from overtone.benchmarks import Selection
from overtone.benchmarks.dream import load
from overtone.build.dream import spoken_set
from overtone.build.dream.dialogue_sound import PAUSES, DialogueJob
from overtone.build.dream.dream_files import read_split
from overtone.build.dream.spoken_set import build, plan
from overtone.build.manifest import read_manifest
from overtone.build.sound_plan import Options
from overtone.cli import main
from overtone.errors import DataError, UsageError

pytestmark = pytest.mark.local

TWO = ["M: Good morning. Can I help you?", "W: Yes, please. I am looking for a blue shirt.", "M: Here is one."]
SEVEN = [
    "Narrator: The ship is ready to leave the harbour.",
    "Captain: Is everybody here this morning?",
    "Ann: My brother is still buying bread.",
    "B: I can see him over there.",
    "Greg: Sorry, the shop was full of people.",
    "W1: You should get up earlier next time.",
    "Mr. Li: Now we can go home together.",
]
ODD = ["Group of Children: The weather is nice today.", "O:", "Dave's Sister: We will walk to the lake."]


def dream(folder: Path, *dialogues: list[str]) -> Path:
    """A folder in DREAM's layout with a test and a train split."""
    folder.mkdir(parents=True)
    question = {"question": "What is it?", "choice": ["A shirt.", "A hat.", "A car."], "answer": "A shirt."}
    rows = [[turns, [question], f"4-{n}"] for n, turns in enumerate(dialogues, 1)]
    for split in ("test", "train"):
        (folder / f"{split}.json").write_bytes(msgspec.json.encode(rows))
    for annotator in (1, 2):
        (folder / f"annotator{annotator}_test.txt").write_text("dialogueID\tquestionIndex\ttype\n4-1\t1\tl\n")
    return folder


def files(out: Path) -> dict[str, str]:
    return {
        p.relative_to(out).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(out.rglob("*"))
        if p.is_file() and p.name != "facts.jsonl"
    }


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """DREAM's files with three dialogues, and their spoken set, checked by the gates."""
    root = tmp_path_factory.mktemp("dream")
    data = dream(root / "data", TWO, SEVEN, ODD)
    build(root / "spoken", data, jobs=1)
    return data, root / "spoken"


def test_each_dialogue_is_one_clip_that_the_benchmark_reads(small: tuple[Path, Path]) -> None:
    data, out = small
    benchmark = load(out)
    items = list(benchmark.items(Selection()))
    assert benchmark.warnings == [] and [i.group for i in items] == ["test/4-1", "test/4-2", "test/4-3"]
    written = list(load(data).items(Selection()))
    for item, text in zip(items, written, strict=True):
        assert item.turns[0].words == text.turns[0].words and item.id == text.id and item.topic == text.topic
        assert item.turns[0].clip is not None and item.guesses == text.guesses
    samples, rate = audio.read(out / "audio/test/4-1.wav")
    assert rate == 24_000 and 4 < samples.size / rate < 12


def test_the_manifest_names_every_voice_and_the_licence(small: tuple[Path, Path]) -> None:
    manifest = read_manifest(small[1])
    assert manifest.licence == "non-commercial research only" and manifest.name == "dream-test"
    assert [len(m.voice.split(", ")) for m in manifest.clips] == [2, 7, 2]
    assert "non-commercial research only" in (small[1] / "LICENSE").read_text()
    assert "never evidence" in (small[1] / "DATASHEET.md").read_text()


def test_turns_are_separated_by_pauses_and_an_empty_turn_is_not_spoken(small: tuple[Path, Path]) -> None:
    (job,) = (g.jobs[0] for g in plan(read_split(small[0], "test"), "test", Options(), {}) if g.id == "4-3")
    assert isinstance(job, DialogueJob) and [words for _, words in job.spoken] == [
        t.partition(": ")[2] for t in (ODD[0], ODD[2])
    ]
    samples, rate = audio.read(small[1] / "audio/test/4-2.wav")
    loud = abs(samples) > 1e-3
    gaps, length = [], 0
    for one in loud:
        if one and length > PAUSES[0] * rate * 0.95:
            gaps.append(length / rate)
        length = 0 if one else length + 1
    assert len(gaps) == 1 + 6 and all(gap < PAUSES[1] + 0.3 for gap in gaps)  # the beginning and between seven turns


def test_the_same_build_keeps_everything_and_gives_the_same_bytes(small: tuple[Path, Path], tmp_path: Path) -> None:
    data, out = small
    before = files(out)
    again = build(out, data, jobs=1)
    assert (again.made, again.kept) == (0, 3) and files(out) == before
    build(tmp_path / "two", data, jobs=2)
    assert files(tmp_path / "two") == before


def test_a_limit_is_a_part_that_a_later_build_completes(small: tuple[Path, Path], tmp_path: Path) -> None:
    first = build(tmp_path, small[0], limit=1, jobs=1)
    assert first.lines == ("test: 1 of 1 dialogues, 1 questions",)
    rest = build(tmp_path, small[0], jobs=1)
    assert rest.kept == 1 and files(tmp_path) == files(small[1])


def test_a_killed_build_leaves_only_whole_files_and_resumes(small: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "set"
    command = [sys.executable, "-m", "overtone", "build", "dream", "--data", str(small[0]), "--out", str(out)]
    process = subprocess.Popen([*command, "--jobs", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.rglob("*.wav")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert all(audio.read(p)[0].size for p in out.rglob("*.wav") if not p.name.startswith("."))
    build(out, small[0], jobs=1)
    assert files(out) == files(small[1])


def test_a_full_disk_is_reported_and_the_build_resumes(
    small: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def full(self: Path, *args: Any, **options: Any) -> Any:
        if "4-2.wav" in self.name:
            raise OSError(28, "No space left on device")
        return real(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(DataError, match="No space left on device; free some space"):
            build(tmp_path, small[0], jobs=1)
    with pytest.raises(DataError, match=r"holds no test\.json"):
        load(tmp_path)  # a partial set is not mistaken for a finished one
    assert build(tmp_path, small[0], jobs=1).kept == 1
    assert files(tmp_path) == files(small[1])


def test_a_dialogue_that_is_not_understood_is_spoken_again_and_then_left_out(
    small: tuple[Path, Path], tmp_path: Path
) -> None:
    data = dream(tmp_path / "data", TWO, ["M: Xqzt vrrk plth.", "W: Zgrb mnpf kqx."])
    built = build(tmp_path / "out", data, jobs=1)
    assert built.gate_report.scripts == {"4-2"} and built.lines == ("test: 1 of 2 dialogues, 1 questions",)
    assert built.made == 1 + 4  # four casts tried the second dialogue
    report = msgspec.json.decode((tmp_path / "out" / "gates.json").read_bytes())
    assert report["left_out"]["scripts"] == ["4-2"] and "at most 0.35" in report["findings"][0]["reason"]
    assert [i.group for i in load(tmp_path / "out").items(Selection())] == ["test/4-1"]
    assert not (tmp_path / "out" / "audio/test/4-2.wav").exists()


def test_another_set_is_never_overwritten(small: tuple[Path, Path], tmp_path: Path) -> None:
    data, out = small
    (data / "dev.json").write_bytes((data / "test.json").read_bytes())
    before = files(out)
    with pytest.raises(UsageError, match="holds the set 'dream-test'; give another --out for 'dream-dev'"):
        build(out, data, split="dev", jobs=1)
    with pytest.raises(UsageError, match="is in the folder of DREAM's own files"):
        build(data / "spoken", data, jobs=1)
    own = dream(tmp_path / "own", TWO)
    with pytest.raises(UsageError, match="not built here"):
        build(own, data, jobs=1)
    assert files(out) == before


def test_mistakes_are_reported_before_anything_is_written(
    small: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, empty = tmp_path / "out", tmp_path / "empty"
    empty.mkdir()
    flags = ["build", "dream", "--out", str(out), "--data"]
    for words, complaint in (
        ([str(small[0]), "--split", "tset"], "did you mean 'test'"),
        ([str(tmp_path / "nothing")], "not a folder"),
        ([str(small[0] / "test.json")], "--split"),
        ([str(empty)], "holds no test.json"),
        ([str(small[0]), "--voice", "espeek"], "did you mean 'espeak'"),
        ([str(small[0]), "--voice", f"recordings:{tmp_path}"], "recordings"),
        ([str(small[0]), "--limit", "0"], "must be at least 1"),
    ):
        assert main([*flags, *words]) != 0, words
        assert complaint in capsys.readouterr().err, words
    assert not out.exists()


def test_the_command_prints_counts_and_the_next_command(
    small: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = ["--limit", "1", "--jobs", "1", "--no-gates"]
    assert main(["build", "dream", "--data", str(small[0]), "--out", str(tmp_path / "out"), *some]) == 0
    printed = capsys.readouterr().out
    assert "test: 1 of 1 dialogues, 1 questions" in printed and "licence: non-commercial research only" in printed
    assert "overtone run dream --data" in printed


@pytest.mark.shared
def test_released_dialogues_of_one_and_seven_speakers_have_as_many_voices(shared: Path) -> None:
    dialogues = read_split(shared / "data" / "dream", "dev")
    jobs = {g.id: g.jobs[0] for g in plan(dialogues, "dev", Options(), {})}
    assert len(jobs) == len(dialogues) == 1288
    for dialogue in dialogues:
        job = jobs[dialogue.id]
        assert isinstance(job, DialogueJob)
        assert len({speaker for speaker, _ in job.spoken}) == len(dialogue.speakers)
    assert spoken_set.name_of("dev") == "dream-dev"
