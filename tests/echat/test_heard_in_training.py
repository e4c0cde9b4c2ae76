"""What checkpoints state that they heard: every stage, what they began with, and marks of what they are tested on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from msgspec.structs import replace

from overtone.cli import main
from overtone.echat.data.containers import Pack, PackWriter
from overtone.echat.data.exchange_records import Record, from_raw, to_raw
from overtone.echat.data.labels import Labels
from overtone.echat.data.record_origins import mark_of, origins_of
from overtone.echat.exam import answer_file, counts, exam_scores
from overtone.echat.learn import prefer, run_stages
from overtone.echat.learn.run_stages import Settings
from overtone.echat.net import checkpoint
from overtone.echat.net.config import read
from overtone.errors import DataError, UsageError
from overtone.heard import HeardInTraining, Origin
from overtone.models.echat import EChatModel, checkpoint_folder
from overtone.spec import parse_spec
from scripts import release_echat
from tests.echat.test_prefer import PREFER, pair, write
from tests.echat.test_run_stages import HEARD, PRESET, STAGE

NC, BY = "CC-BY-NC-SA-4.0", "CC-BY-4.0"
Clip = tuple[str, str, str, str]  # corpus, licence, speaker, name
PEOPLE: list[Clip] = [("ravdess", NC, f"{actor:02}", f"03-01-04-02-01-01-{actor:02}.ogg") for actor in range(1, 7)]
READERS: list[Clip] = [("librispeech", BY, str(100 + n), f"{100 + n}-1-000{n}.flac") for n in range(6)]
TONES: list[Clip] = [("overtone-echat", "", f"espeak:en+f{n}", "") for n in range(6)]


def people(folder: Path, clips: Sequence[Clip], part: str = "train", seed: int = 0) -> Path:
    """A pack of recordings as `build echat-real` writes them, or as `build echat` does without a licence."""
    with PackWriter(folder) as writer:
        for at, (corpus, licence, speaker, name) in enumerate(clips):
            rng = np.random.default_rng([seed, *f"{corpus}{speaker}{name}".encode()])
            extra: dict[str, Any] = {"part": part, "speaker": speaker, "group": f"{corpus}{at}"}
            if licence:
                extra |= {"speaker": f"{corpus}:{speaker}", "licence": licence, "clip": name}
            record = Record(f"{corpus}-{seed}-{at}", "It is a word.", "x", "It is a word.", Labels(emotion="sad"),
                            dataset=corpus, task="<TRANSCRIBE> <EMOTION>", extra=extra)  # fmt: skip
            writer.add(record, [(0.1 * rng.standard_normal(8000)).astype(np.float32)])
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packs of corpora, a preset whose first two stages hear, and a checkpoint of the first that heard two corpora."""
    home = tmp_path_factory.mktemp("heard")
    tables = {"1": HEARD + "ctc = 0.3\n", "2": HEARD, "3": 'lr = { lm = 1e-3 }\nfeeds = [{ task = "t2t" }]\n'}
    text = PRESET + "".join(STAGE.format(name=name, rest=rest) for name, rest in tables.items()) + PREFER
    (home / "small.toml").write_text(text)
    people(home / "ravdess", PEOPLE[:4])
    people(home / "libri", READERS[:3])
    people(home / "tones", TONES)
    with PackWriter(home / "chat") as writer:  # for the stage that learns in writing
        record = Record("c", "Oh no.", "x", "I lost it", dataset="esd", task="<S2TCHAT>", extra={"licence": NC})
        writer.add(record, [np.full(8000, 0.1, np.float32)])
    assert train(home, home / "first", "ravdess", "tones", stage="1")
    return home


def train(home: Path, out: Path, *packs: str, **changes: Any) -> bool:
    given = {"device": "cpu", "samples": 0, "steps": 2, **changes}
    settings = Settings(str(home / "small.toml"), tuple(home / name for name in packs), out, **given)
    return run_stages.run(settings, lambda line: None)


def stated(folder: Path) -> HeardInTraining:
    found = checkpoint.heard(checkpoint_folder(folder))
    assert found is not None
    return found


def corpora(folder: Path) -> dict[str, tuple[int, int, list[str]]]:
    told = stated(folder).statement()["corpora"]
    return {name: (one["clips"], one["speakers"], one["licences"]) for name, one in told.items()}


def test_a_checkpoint_states_corpora_speakers_licences_and_clips(home: Path) -> None:
    assert corpora(home / "first") == {"ravdess": (4, 4, [NC]), "overtoneechat": (6, 0, [])}
    heard = stated(home / "first")
    assert heard.complete and heard.corpora["overtoneechat"].made
    assert heard.corpora["ravdess"].speakers == {"1", "2", "3", "4"}
    index = checkpoint.index(checkpoint_folder(home / "first"))
    assert index.heard is not None and index.heard.statement == heard.statement()


def test_every_stage_adds_to_what_it_began_with(home: Path, tmp_path: Path) -> None:
    start = checkpoint_folder(home / "first")
    assert train(home, tmp_path / "next", "libri", stage="2", start=start)
    assert corpora(tmp_path / "next") == {**corpora(home / "first"), "librispeech": (3, 3, [BY])}
    assert train(home, tmp_path / "both", "ravdess", "libri", "chat")  # all stages, each from the one before
    # The first stages also transcribe the query that the last stage answers in writing.
    assert corpora(tmp_path / "both") == {"ravdess": (4, 4, [NC]), "librispeech": (3, 3, [BY]), "esd": (1, 0, [NC])}


def test_a_stage_in_writing_hears_nothing_and_forgets_nothing(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train(home, out, "chat", stage="3", start=checkpoint_folder(home / "first"))
    assert corpora(out) == corpora(home / "first")


def test_the_encoders_weights_of_a_checkpoint_bring_what_they_heard(home: Path, tmp_path: Path) -> None:
    encoder = checkpoint_folder(home / "first") / "encoder.safetensors"
    assert train(home, tmp_path / "out", "libri", stage="1", encoder=str(encoder))
    assert set(corpora(tmp_path / "out")) == {"ravdess", "overtoneechat", "librispeech"}


def test_a_start_that_states_nothing_makes_the_statement_incomplete(home: Path, tmp_path: Path) -> None:
    config = read(str(home / "small.toml"))
    torch.manual_seed(0)
    checkpoint.save(checkpoint.make(config), tmp_path / "silent", config, notes={"stage": "1"})
    assert checkpoint.heard(tmp_path / "silent") is None
    assert train(home, tmp_path / "out", "libri", stage="2", start=tmp_path / "silent")
    assert set(corpora(tmp_path / "out")) == {"librispeech"} and not stated(tmp_path / "out").complete


def test_preferences_and_releases_keep_the_statement(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "pairs.jsonl", [pair(n) for n in range(8)])
    assert train(home, tmp_path / "open", "libri", stage="1")
    given = Settings(str(home / "small.toml"), (tmp_path / "pairs.jsonl",), tmp_path / "preferred", stage="prefer",
                     start=checkpoint_folder(tmp_path / "open"), device="cpu", samples=0, steps=1)  # fmt: skip
    assert prefer.run(given, lambda line: None)
    assert corpora(tmp_path / "preferred") == {"librispeech": (3, 3, [BY]), "preferences": (1, 0, [])}
    folder = checkpoint_folder(tmp_path / "preferred")
    release_echat.write(folder, tmp_path / "released")
    assert stated(tmp_path / "released") == stated(tmp_path / "preferred")
    # A manifest that calls a list open does not open the recordings that were heard.
    closed = checkpoint_folder(home / "first")
    manifest = {"name": "x", "version": "1", "licence": BY, "seed": 0, "parts": {},
                "sha256": dict(enumerate(checkpoint.index(closed).notes["data"]))}  # fmt: skip
    (tmp_path / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    words = [str(closed), str(tmp_path / "out"), "--trained-on", str(tmp_path / "manifest.json")]
    assert release_echat.main(words) == UsageError.exit_code
    assert "heard ravdess, under CC-BY-NC-SA-4.0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_model_describes_and_states_what_it_heard(home: Path, tmp_path: Path) -> None:
    folder = checkpoint_folder(home / "first")
    model = EChatModel(parse_spec(f"echat:{folder}"))
    assert model.heard() == stated(folder)
    index = checkpoint.index(folder)
    assert index.heard is not None and model.describe()["heard"] == index.heard.sha256
    model, config = checkpoint.load(folder)
    checkpoint.save(model, tmp_path / "silent", config)
    silent = EChatModel(parse_spec(f"echat:{tmp_path / 'silent'}"))
    assert silent.heard() is None and "heard" not in silent.describe()


def test_a_missing_statement_is_an_error_and_not_an_empty_one(home: Path, tmp_path: Path) -> None:
    model, config = checkpoint.load(checkpoint_folder(home / "first"))
    checkpoint.save(model, tmp_path / "copy", config, heard=stated(home / "first"))
    (tmp_path / "copy" / "heard.json.gz").unlink()
    for state in (lambda: checkpoint.heard(tmp_path / "copy"), EChatModel(parse_spec(f"echat:{tmp_path}/copy")).heard):
        with pytest.raises(DataError, match=r"heard\.json\.gz: cannot be read"):
            state()


# ── records ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_mixture_has_the_origins_of_both_recordings() -> None:
    record = Record("k", dataset="librispeech+esc50", extra={
        "licence": NC, "speaker": "librispeech+esc50:1688", "clip": "1688-1-0.flac+rain/1-17367-A-10.flac",
    })  # fmt: skip
    both = (Origin("librispeech", "1688", "1688-1-0.flac"), Origin("esc50", "", "rain/1-17367-A-10.flac"))
    assert origins_of(from_raw(to_raw(record), "here")) == both
    assert origins_of(replace(record, extra=record.extra | {"clip": "one"})) == tuple(replace(o, clip="") for o in both)


def test_synthesised_records_have_no_origin() -> None:
    assert origins_of(Record("k", dataset="overtone-echat", extra={"speaker": "espeak:en"})) == ()
    assert origins_of(Record("k")) == ()


# ── tests of a checkpoint ───────────────────────────────────────────────────────────────────────────────────────────
def test_records_are_marked_and_scored_apart(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = [PEOPLE[0], (*PEOPLE[1][:3], "03-01-04-02-01-02-02.ogg"), PEOPLE[4], PEOPLE[5], *READERS[:2]]
    people(tmp_path / "test", again, "people", seed=1)  # other samples, as after another compression
    people(tmp_path / "tones", TONES[:2], "seen")  # the same samples, and no name
    out = tmp_path / "answers.jsonl.gz"
    words = ["evaluate", "echat", str(home / "first"), "--data", str(tmp_path / "test"), "--data",
             str(tmp_path / "tones"), "--modes", "labels", "--device", "cpu", "--out", str(out)]  # fmt: skip
    assert main(words) == 0
    assert "8 records, 6 of which the model heard in training" in capsys.readouterr().out
    head, rows = answer_file.read(out)
    assert head.states
    marks = {row.key: row.mark for row in rows}
    expected = ["clip", "speaker", "corpus", "corpus", "", "", "clip", "clip"]
    assert [marks[record.key] for name in ("test", "tones") for record in Pack(tmp_path / name).records] == expected
    assert main(["evaluate", "scores", str(out), "--draws", "10", "--out", str(tmp_path / "s.json")]) == 0
    said = capsys.readouterr().out
    assert (
        "part people: 4 of 6 records were heard in training (the clip of 1, the speaker of 1, the corpus of 2)" in said
    )
    assert "part seen: no headline: all 2 records were heard in training (the clip of 2)" in said
    scores = msgspec.json.decode((tmp_path / "s.json").read_bytes(), type=exam_scores.Scores)
    assert scores.parts == {
        "people": 2, "people (clip heard)": 1, "people (speaker heard)": 1, "people (corpus heard)": 2,
        "seen (clip heard)": 2,
    }  # fmt: skip
    assert {row.n for row in scores.rows if row.part == "people"} == {2}
    words = ["evaluate", "scores", str(out), "--draws", "10", "--heard", "corpus", "--out", str(tmp_path / "c.json")]
    assert main(words) == 0
    scores = msgspec.json.decode((tmp_path / "c.json").read_bytes(), type=exam_scores.Scores)
    assert scores.parts["people"] == 4 and "people (corpus heard)" not in scores.parts
    assert main(["evaluate", "counts", str(out), "--heard", "clip", "--out", str(tmp_path / "counted")]) == 0
    counted = counts.read(tmp_path / "counted" / "answers.json.gz")
    assert counted.parts == {"people": 6, "seen": 2} and counted.apart == ""
    kept = str(tmp_path / "counted" / "answers.json.gz")
    assert (
        main(["evaluate", "scores", kept, "--heard", "clip", "--out", str(tmp_path / "d.json")]) == UsageError.exit_code
    )


def test_models_that_heard_different_records_are_not_compared(home: Path) -> None:
    def answered(arm: str, *marks: str) -> tuple[answer_file.Head, list[answer_file.Prediction]]:
        rows = [
            answer_file.Prediction(
                f"k{n}", "people", f"g{n}", heard={"emotion": "sad"}, named={"emotion": "<SAD>"}, mark=m
            )
            for n, m in enumerate(marks)
        ]
        return answer_file.Head(1, arm, 0, ("labels",), states=True), rows

    def embed(texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 4), np.float32)

    runs = [answered("full", "corpus", ""), answered("no-people", "", "")]
    with pytest.raises(DataError, match="no-people, seed 0: its model heard other records"):
        exam_scores.score(counts.count(runs, embed=embed), draws=5)
    assert exam_scores.score(counts.count(runs, embed=embed, heard="corpus"), draws=5).parts == {"people": 2}


def test_a_checkpoint_without_a_statement_is_tested_as_before(home: Path, tmp_path: Path) -> None:
    model, config = checkpoint.load(checkpoint_folder(home / "first"))
    checkpoint.save(model, tmp_path / "silent", config, notes={"stage": "1"})
    people(tmp_path / "test", PEOPLE[:2], "people")
    out = tmp_path / "a.jsonl"
    words = ["evaluate", "echat", str(tmp_path / "silent"), "--data", str(tmp_path / "test"), "--modes", "labels"]
    assert main([*words, "--device", "cpu", "--out", str(out)]) == 0
    head, rows = answer_file.read(out)
    assert not head.states and {row.mark for row in rows} == {""}
    assert b"mark" not in out.read_bytes()


def test_a_real_sets_records_name_their_clips_in_their_corpora(tmp_path: Path) -> None:
    from overtone.echat.making.real_set import build
    from tests.echat.test_real_set import tone

    for take in ("03-01-04-02-01-01-01", "03-01-05-02-02-01-01"):
        tone(tmp_path / "corpora" / "ravdess" / "Actor_01" / f"{take}.wav")
    build(tmp_path / "set", tmp_path / "corpora", pack=str(tmp_path / "pack"))
    records = [record for part in (tmp_path / "pack").iterdir() for record in Pack(part).records]
    assert records and all("licence" in record.extra for record in records)
    heard = HeardInTraining()
    assert mark_of(heard, records[0]).level == ""
    assert {origins_of(record)[0] for record in records} == {
        Origin("ravdess", "01", "Actor_01/03-01-04-02-01-01-01.wav"),
        Origin("ravdess", "01", "Actor_01/03-01-05-02-02-01-01.wav"),
    }
