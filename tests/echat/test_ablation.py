"""The ablation goes run by run, does nothing twice, and every arm is asked what every other is asked."""

from __future__ import annotations

import tarfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

from experiments.echat import ablation, jobs, real_pack
from experiments.echat.ablation import Settings
from experiments.echat.jobs import Job, Limits
from overtone.audio import encode_wav
from overtone.cli import main
from overtone.echat.data.containers import Pack
from overtone.echat.data.labels import Labels
from overtone.echat.exam import answer_file
from overtone.echat.exam.ask_checkpoint import replies
from overtone.errors import UsageError
from tests.echat.toys import make_pack


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    pack = make_pack(tmp_path / "pack", count=12)
    return Settings(
        data=(pack,), tests=(pack,), preset="tiny", scale=0.02,
        training=("--device", "cpu"), asking=("--device", "cpu", "--modes", "labels,words", "--limit", "2"),
    )  # fmt: skip


SIMPLE = Settings((Path("p"),), (Path("q"),), scale=0.1)


def test_the_command_at_its_head_is_the_one_of_the_results_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "echat-results.md").read_text()

    def command(text: str) -> list[str]:
        return (
            text[text.index("python -m experiments.echat.ablation") :]
            .partition("overtone")[0]
            .replace("\\", " ")
            .split()
        )

    assert command(ablation.__doc__ or "") == command(page)
    for line in (ablation.__doc__ or "").splitlines():
        if "overtone evaluate" in line:
            assert line.strip() in page


def test_runs_are_planned_seed_by_seed_or_arm_by_arm() -> None:
    def names(by: str) -> list[str]:
        return [job.name for job in ablation.planned(["full", "neither"], [0, 1], SIMPLE, by)]

    assert names("seed") == ["full-0", "neither-0", "full-1", "neither-1"]
    assert names("arm") == ["full-0", "full-1", "neither-0", "neither-1"]
    with pytest.raises(UsageError, match="did you mean 'no-think'"):
        ablation.planned(["nothink"], [0], SIMPLE)


def test_each_arm_leaves_out_what_it_is_called_after() -> None:
    for arm, left in (
        ("full", ""), ("no-understanding", "understanding"), ("neither", "think,understanding"),
        ("no-people", "people"), ("frozen", "tuning"),
    ):  # fmt: skip
        words = jobs.train_words(ablation.job_of(arm, 2, SIMPLE), Path("o/r"), 1.5)
        assert words[words.index("--ablate") + 1] == left
        assert words[words.index("--seed") + 1] == "2" and words[words.index("--minutes") + 1] == "1.50"


def test_a_run_is_trained_asked_and_never_done_twice(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "call", lambda words, log: main(words))  # in this process: it has torch already
    out = tmp_path / "out"
    bundle = out / "all.tar"
    runs = ablation.planned(["no-understanding"], [1], settings)
    assert [result.how for result in jobs.go(runs, Limits(out), bundle)] == ["done"]
    head, rows = answer_file.read(out / "no-understanding-1.jsonl.gz")
    assert (head.arm, head.seed, head.notes["ablate"]) == ("no-understanding", 1, ["understanding"])
    assert len(rows) == 2 and all(row.named for row in rows)
    assert not (out / "runs" / "no-understanding-1").exists()
    with tarfile.open(bundle) as tar:
        assert tar.getnames() == ["no-understanding-1.jsonl.gz", "no-understanding-1.steps.jsonl.gz"]
    monkeypatch.setattr(jobs, "call", lambda words, log: pytest.fail("called again"))
    assert [result.how for result in jobs.go(runs, Limits(out))] == ["skipped"]


@pytest.mark.full
def test_runs_are_processes_of_their_own_and_their_output_is_kept(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    runs = ablation.planned(["full", "no-think"], [0], settings)
    assert [result.how for result in jobs.go(runs, Limits(tmp_path / "out", parallel=2))] == ["done", "done"]
    assert "stage 1" in (tmp_path / "out" / "full-0.train.log").read_text()


def test_what_fails_is_told_and_the_next_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {"full-0": 2, "no-think-0": jobs.EXIT_BUDGET}
    monkeypatch.setattr(jobs, "call", lambda words, log: codes[log.name.split(".")[0]])
    found = jobs.go([Job("full-0", (), ()), Job("no-think-0", (), ())], Limits(tmp_path))
    assert [result.how for result in found] == ["failed", "stopped"]


def test_nothing_is_begun_that_would_not_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "call", lambda words, log: pytest.fail("begun"))
    assert [result.how for result in jobs.go([Job("full-0", (), ())], Limits(tmp_path, minutes=1.0))] == ["late"]


def test_echat_eval_becomes_a_pack_whose_groups_are_queries(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encode_wav(np.full(8_000, 0.1, np.float32), 16_000))
    rows = [
        {"key": f"e-{emotion}", "category": "emotion", "txt": "Yes.", "wav": "a.wav", "task": "<S2TCHAT>",
         "extra": {"question": question, "q_emotion": f"<{emotion}>"}}
        for emotion, question in (("HAPPY", "It rains."), ("SAD", "it rains."), ("SAD", "It is late."))
    ]  # fmt: skip
    (tmp_path / "echat_eval.json").write_bytes(msgspec.json.encode(rows))
    clips = {"clips": [{"path": "a.wav", "voice": "en-us+f3"}]}
    (tmp_path / "manifest.json").write_bytes(msgspec.json.encode(clips))
    assert real_pack.write_eval(tmp_path, tmp_path / "pack") == 3
    found = Pack(tmp_path / "pack").records
    assert [record.group for record in found].count(found[0].group) == 2
    assert {(record.part, record.extra["kind"]) for record in found} == {("echat-eval", "emotion")}
    assert all(replies(record) for record in found)
    assert found[0].heard == Labels(emotion="happy", age="adult", gender="female")  # all there is to hear


def test_people_become_packs_to_be_understood(tmp_path: Path) -> None:
    """Two corpora of noise with silence around it: labels as ours, one that never varies left out."""
    rng = np.random.default_rng(0)
    sound = np.concatenate([np.zeros(16_000), 0.1 * rng.standard_normal(8_000), np.zeros(16_000)]).astype(np.float32)
    data = tmp_path / "data"
    for kind in ("coughing", "crying", "laughing", "moaning"):
        (data / "sounds" / kind).mkdir(parents=True)
        (data / "sounds" / kind / "1_a.wav").write_bytes(encode_wav(sound, 16_000))
    (data / "acted").mkdir()
    for name in ("03-01-02-01-02-01-07", "03-01-06-01-02-01-07"):  # calm, fearful
        (data / "acted" / f"{name}.wav").write_bytes(encode_wav(sound, 16_000))
    real_pack.main([str(data), str(tmp_path / "real"), "--corpora", "ravdess,nonverbal"])
    acted, sounds = Pack(tmp_path / "real" / "ravdess"), Pack(tmp_path / "real" / "nonverbal")
    assert [record.labels.known() for record in acted.records] == [{"emotion": "neutral"}, {"emotion": "fear"}]
    assert {record.labels.event for record in sounds.records} == {"cough", "cry", "laugh"}
    assert {record.part for record in acted.records} == {"ravdess"}
    assert {record.group for record in acted.records} == {"ravdess:07"}
    assert not any(replies(record) for record in (*acted.records, *sounds.records))
    assert acted.seconds(0) == pytest.approx(0.7, abs=0.05)
    with tarfile.open(tmp_path / "real" / "ravdess.tar.xz") as tar:
        tar.extractall(tmp_path / "there", filter="data")
    there = Pack(tmp_path / "there" / "ravdess")
    assert (there.clip(1) == acted.clip(1)).all()
    with pytest.raises(UsageError, match="no corpus 'speechocean'"):
        real_pack.write(data, tmp_path / "x", ["speechocean"])
