"""`overtone train echat` from data to report: stages in order, ablations, going on, and data that is wrong."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from overtone.cli import main
from overtone.echat.data.containers import PackWriter
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import Labels
from overtone.echat.learn import batch_stream as streams
from overtone.echat.learn import gpu_speed, graphs, mixing
from overtone.echat.learn.batch_stream import Corpus, Stream
from overtone.echat.learn.batches import Clips
from overtone.echat.learn.run_stages import Settings, given, recipe_name, run
from overtone.echat.learn.stages import Feed, Rates, Stage, plan, stages
from overtone.echat.learn.training_report import LOG, LOOKS, read_log, read_looks
from overtone.echat.net import checkpoint
from overtone.echat.net.config import read
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import DataError, StoreError, UsageError
from overtone.models.echat import checkpoint_folder
from tests.echat.test_graphs import Straight
from tests.echat.toys import make_pack

PRESET = """
[model.encoder]
kind = "small"
dim = 16
layers = 1
heads = 2
ffn = 32
[model.adapter]
dim = 16
ffn = 32
layers = 1
heads = 2
[model.lm]
source = "random"
tokenizer = "bytes"
hidden = 32
layers = 1
heads = 2
kv_heads = 1
ffn = 64
vocab = 260
[model.speech]
codes = 40
"""
STAGE = """
[stage.{name}]
title = "{name}"
steps = 6
targets = 300
positions = 1500
warmup = 1
{rest}
"""
SPOILT = "augment = { specaug = true, specsub = true }\n"
ALL = "lr = { encoder = 1e-3, adapter = 1e-3, speech = 3e-3, lm = 3e-3 }\n"
MIX = 'feeds = [{ task = "s2s", think = true }, { task = "s2s" }, { task = "t2t", weight = 0.5 }]'
HEARD = 'lr = { encoder = 1e-3, adapter = 1e-3 }\nfeeds = [{ task = "s2t", style = "understand" }]\n'
TABLES = {
    "1": SPOILT + HEARD + "ctc = 0.3\ncues = 0.3\n",
    "2a": SPOILT + ALL + 'feeds = [{ task = "t2s" }]',
    "2b": ALL + 'feeds = [{ task = "s2s" }, { task = "t2t" }]',  # as it is: what a stage before did must not go on
    "3": SPOILT + ALL + MIX,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A preset and a pack."""
    home = tmp_path_factory.mktemp("recipe")
    text = PRESET + "".join(STAGE.format(name=name, rest=rest) for name, rest in TABLES.items())
    (home / "small.toml").write_text(text)
    return home / "small.toml", make_pack(home / "pack", codes=40)


def settings(made: tuple[Path, Path], out: Path, **changes: Any) -> Settings:
    given = {"device": "cpu", "samples": 0, "log_every": 3, **changes}
    return Settings(str(made[0]), (made[1],), out, **given)


def quiet(line: str) -> None:
    pass


def weights(out: Path) -> dict[str, torch.Tensor]:
    model, _ = checkpoint.load(checkpoint_folder(out))
    return dict(model.state_dict())


def test_all_stages_are_gone_through_and_reported(made, tmp_path) -> None:
    said: list[str] = []
    assert run(settings(made, tmp_path, samples=2, look_every=3), said.append)
    assert sorted(path.name for path in tmp_path.glob("stage-*")) == ["stage-1", "stage-2a", "stage-2b", "stage-3"]
    assert checkpoint_folder(tmp_path) == tmp_path / "stage-3" / "model"
    for name in TABLES:
        log = read_log(tmp_path / f"stage-{name}" / LOG)
        assert [row.step for row in log] == list(range(1, 7))
        used = sum(row.text_targets + row.speech_targets for row in log)
        assert 0 <= used - 6 * 300 < 300  # a batch at most
    looks = read_looks(tmp_path / "stage-3" / LOOKS)
    assert [look.step for look in looks] == [3, 6]
    assert set(looks[0].losses) == {"s2s-think", "s2s", "t2t"}
    assert [one.key for one in looks[0].said] == [one.key for one in looks[1].said] and len(looks[0].said) == 2
    aloud = read_looks(tmp_path / "stage-2a" / LOOKS)[-1].said  # it has not learnt to answer yet, and reads aloud
    assert [one.text for one in aloud] == [one.reference for one in aloud] and not any(one.thought for one in aloud)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 4 and "Replies to held-out clips" in page and looks[0].said[0].key in page
    assert any("s2s-think × 1: 20 records" in line for line in said)
    assert not list(tmp_path.glob("stage-*/step-*"))  # nothing under way is left


def test_the_first_stage_leaves_the_language_model_as_it_was(made, tmp_path) -> None:
    run(settings(made, tmp_path, stage="1"), quiet)
    after = weights(tmp_path)
    torch.manual_seed(0)
    before = dict(checkpoint.make(read(str(made[0]))).state_dict())
    moved = {name.partition(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert moved == {"encoder", "adapter"}


def test_a_listening_stage_finds_words_and_labels_and_is_gone_on_with(made, tmp_path) -> None:
    rest = HEARD + "listen = true\nctc = 1.0\ncues = 1.0\n"
    tapped = PRESET.replace("[model.adapter]", "taps = [0]\n[model.adapter]")
    stages = STAGE.format(name="1a", rest=rest) + STAGE.format(name="1b", rest=TABLES["1"])
    (tmp_path / "l.toml").write_text(tapped + stages)
    listening = (tmp_path / "l.toml", made[1])
    said: list[str] = []
    assert not run(settings(listening, tmp_path / "run", minutes=1e-6), quiet)
    assert run(settings(listening, tmp_path / "run", resume=True), said.append)
    first, then = (read_log(tmp_path / "run" / f"stage-{name}" / LOG) for name in ("1a", "1b"))
    assert all(row.cues and not row.text for row in first)
    assert all(row.cues and row.text for row in then)
    assert any("cues" in line and "text" not in line for line in said if line.startswith("  step"))
    assert (tmp_path / "run" / "report.html").read_text().count("<svg") == 2


def test_a_frozen_language_model_is_exact_after_slices_on_a_gpu(made, tmp_path, monkeypatch) -> None:
    """The first slice as on a GPU, with narrow weights in its checkpoint; the next one anywhere."""
    exactly = gpu_speed.freeze
    monkeypatch.setattr(gpu_speed, "freeze", lambda part, narrow: exactly(part, narrow=True))
    with torch.autocast("cpu", torch.bfloat16):
        assert not run(settings(made, tmp_path, stage="1", minutes=1e-6), quiet)
    monkeypatch.setattr(gpu_speed, "freeze", exactly)
    assert run(settings(made, tmp_path, stage="1", resume=True), quiet)
    after = weights(tmp_path)
    torch.manual_seed(0)
    before = dict(checkpoint.make(read(str(made[0]))).state_dict())
    assert all(torch.equal(after[name], before[name]) for name in before if name.startswith("lm."))


def test_rows_end_to_end_learn_what_padded_ones_do(made, tmp_path, monkeypatch) -> None:
    """With looks and slices between, as on a GPU but for the recording; no dropout, whose draws depend on how far a
    batch is padded, so that every weight must be the same."""
    preset = tmp_path / "sure.toml"
    preset.write_text(made[0].read_text().replace("[model.adapter]", "[model.adapter]\ndropout = 0.0"))
    made = preset, made[1]
    for stage in ("1", "2"):
        run(settings(made, tmp_path / "plain", stage=stage, graphs=False), quiet)
    readers = []
    recorded = gpu_speed.record

    def rows(model, on: bool, most: int) -> None:
        recorded(model, True, most)
        readers.append(model.reader)

    monkeypatch.setattr(graphs, "Recorder", Straight)
    monkeypatch.setattr(gpu_speed, "record", rows)
    asked = {"look_every": 2, "samples": 1}
    assert not run(settings(made, tmp_path / "rows", stage="1", minutes=1e-6, **asked), quiet)
    for stage in ("1", "2"):
        assert run(settings(made, tmp_path / "rows", stage=stage, resume=True, **asked), quiet)
    assert len(readers) == 4 and readers[2] is readers[3] is not readers[1]  # 2a hands its weights on to 2b
    plain, others = weights(tmp_path / "plain"), weights(tmp_path / "rows")
    assert list(plain) == list(others)
    assert all(torch.allclose(plain[name], others[name], atol=1e-4) for name in plain)


def test_a_run_in_slices_ends_where_a_run_in_one_piece_does(made, tmp_path) -> None:
    """Stopped by the clock again and again, and stage by stage from one folder to the next."""
    run(settings(made, tmp_path / "whole"), quiet)
    slices = 0
    while not run(settings(made, tmp_path / "slices", minutes=1e-3, resume=True), quiet):
        slices += 1
    assert slices >= 2
    before = None
    for stage in ("1", "2", "3"):
        run(settings(made, tmp_path / stage, stage=stage, start=before and checkpoint_folder(before)), quiet)
        before = tmp_path / stage
    whole = weights(tmp_path / "whole")
    for other in ("slices", "3"):
        found = weights(tmp_path / other)
        assert all(torch.equal(whole[name], found[name]) for name in whole)


def test_an_arm_without_understanding_spends_as_much_elsewhere(made, tmp_path) -> None:
    used = {}
    for arm in ((), ("understanding",), ("think",), ("understanding", "think")):
        out = tmp_path / ("-".join(arm) or "whole")
        run(settings(made, out, ablate=arm), quiet)
        logs = [row for path in out.glob(f"stage-*/{LOG}") for row in read_log(path)]
        used[arm] = (len(logs), sum(row.text_targets + row.speech_targets for row in logs))
        assert (out / "stage-1").exists() == ("understanding" not in arm)
    steps, tokens = zip(*used.values(), strict=True)
    assert set(steps) == {24}
    assert max(tokens) - min(tokens) < 4 * 300  # a batch at most in each of four stages


def test_a_stage_without_what_comes_before_it_is_refused(made, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"stage 2b needs the result of stage 2a.*--from"):
        run(settings(made, tmp_path, stage="2b"), quiet)
    with pytest.raises(DataError, match="not a checkpoint"):
        run(settings(made, tmp_path, stage="2b", start=tmp_path), quiet)


def test_a_folder_with_another_run_is_refused(made, tmp_path) -> None:
    run(settings(made, tmp_path, stage="1"), quiet)
    with pytest.raises(StoreError, match="a different seed"):
        run(settings(made, tmp_path, stage="2a", seed=1), quiet)
    said: list[str] = []
    run(settings(made, tmp_path, stage="1"), said.append)
    assert said == ["stage 1 is already done", f"report: {tmp_path / 'report.html'}"]
    assert not run(settings(made, tmp_path, stage="2a", minutes=1e-6), quiet)
    with pytest.raises(StoreError, match="already been started; continue it with --resume"):
        run(settings(made, tmp_path, stage="2a"), quiet)


def test_a_stage_goes_on_with_the_data_it_was_begun_with(made, tmp_path) -> None:
    asked = settings(made, tmp_path / "out", stage="1")
    assert not run(msgspec.structs.replace(asked, minutes=1e-6), quiet)
    other = make_pack(tmp_path / "other", 9)
    with pytest.raises(StoreError, match="started with other data"):
        run(msgspec.structs.replace(asked, resume=True, data=(*asked.data, other)), quiet)
    assert run(msgspec.structs.replace(asked, resume=True, data=tuple(reversed(asked.data))), quiet)
    notes = checkpoint.index(tmp_path / "out" / "stage-1" / "model").notes
    digests = {hashlib.sha256((path / "records.jsonl").read_bytes()).hexdigest() for path in asked.data}
    assert set(notes["data"]) == digests


def test_what_begins_with_weights_of_unknown_data_does_not_claim_to_know_its_own(made, tmp_path) -> None:
    config = read(str(made[0]))
    checkpoint.save(checkpoint.make(config), tmp_path / "found", config)
    asked = settings(made, tmp_path / "out", stage="2a", start=tmp_path / "found")
    assert run(asked, quiet)
    assert "data" not in checkpoint.index(tmp_path / "out" / "stage-2a" / "model").notes


def test_arms_and_seeds_have_one_recipe_and_other_steps_another(made, tmp_path) -> None:
    asked = settings(made, tmp_path)
    config = read(asked.preset)
    name = recipe_name(config, asked)
    alike = ({"seed": 3}, {"ablate": ("think",)}, {"lm": "elsewhere"}, {"out": tmp_path / "b"})
    assert all(recipe_name(given(config, s), s) == name for s in (msgspec.structs.replace(asked, **x) for x in alike))
    assert recipe_name(config, msgspec.structs.replace(asked, steps=99)) != name


def broken(folder: Path, **changes: Any) -> Path:
    seconds = changes.pop("seconds", 1.0)
    with PackWriter(folder) as writer:
        good = Record("good", "Fine.", "x", "Hello", Labels(), "neutral", speech_token=(1,) * 30)
        for record in (good, msgspec.structs.replace(good, key="bad<script>", **changes)):
            sound = np.full(round(16_000 * (seconds if record.key != "good" else 1.0)), 100, np.int16)
            writer.add(record, [sound] if record.wav else [])
    return folder


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"wav": "", "task": "<S2TCHAT>"}, "no wav"),
        ({"labels": Labels(emotion="angst")}, "unknown emotion 'angst'"),
        ({"speech_token": (39, 40)}, "speech token 40 is outside 0–39"),
        ({"extra": {"tokens_of": "s3@0123456789ab"}}, "its speech tokens are 's3', but the model's are 'units2'"),
        ({"seconds": 0.1}, "has 0.10 s, outside 0.2 to 200"),
        ({"seconds": 201.0}, "has 201.00 s"),
    ],
)
def test_bad_data_is_told_before_the_first_step(made, tmp_path, changes, told) -> None:
    pack = broken(tmp_path / "pack", **changes)
    with pytest.raises(DataError, match=rf"1 records cannot.*\n.*records\.jsonl: bad<script>: .*{told}"):
        run(Settings(str(made[0]), (pack,), tmp_path / "out", device="cpu"), quiet)
    assert not (tmp_path / "out").exists()


def test_many_problems_are_listed_up_to_ten(made, tmp_path) -> None:
    with PackWriter(tmp_path / "pack") as writer:
        for i in range(14):
            writer.add(Record(f"r{i}", wav="x", labels=Labels(age="young-ish")), [np.full(8000, 9, np.int16)])
    with pytest.raises(DataError, match="14 records cannot") as error:
        run(Settings(str(made[0]), (tmp_path / "pack",), tmp_path / "out", device="cpu"), quiet)
    assert str(error.value).count("young-ish") == 10 and "and 4 more" in str(error.value)


def test_an_empty_list_is_told(made, tmp_path, capsys) -> None:
    with PackWriter(tmp_path / "pack"):
        pass
    words = ["train", "echat", "--preset", str(made[0]), "--data", str(tmp_path / "pack"), "--out", str(tmp_path / "o")]
    assert main(words) == 2
    assert "the list is empty" in capsys.readouterr().err


def stream(made: tuple[Path, Path], stage: str = "3", workers: int = 0, **world: int) -> Stream:
    config = read(str(made[0]))
    [planned] = plan(stages(config.stage, "small"), only=stage)
    corpus = Corpus([made[1]])
    clips = Clips(corpus.packs, torch.device("cpu"))
    return Stream(corpus, clips, planned, config.model, open_tokenizer(config.model), workers=workers, **world)


def some(source: Stream, start: int, count: int) -> list[tuple[int, list[list[int]]]]:
    return [(index, batch.ids.tolist()) for (index, batch), _ in zip(source.batches(start), range(count), strict=False)]


def test_batches_are_the_same_from_any_place_and_by_any_number_of_processes(made) -> None:
    alone = some(stream(made), 0, 8)
    assert some(stream(made), 5, 3) == alone[5:]
    assert some(stream(made, workers=2), 2, 6) == alone[2:]
    assert some(stream(made, seed=1), 0, 8) != alone


def test_two_processes_take_the_same_tasks_and_other_records(made) -> None:
    pair = [stream(made, rank=rank, world=2) for rank in (0, 1)]
    for (_, one), (_, other), _ in zip(pair[0].batches(0), pair[1].batches(0), range(8), strict=False):
        assert one.task == other.task
        assert not set(one.clips.tolist()) & set(other.clips.tolist())


def test_feeds_of_other_records_are_measured_apart_though_they_are_as_many(tmp_path) -> None:
    for name, words in (("a", "one"), ("b", "one two three four five")):
        with PackWriter(tmp_path / name) as pack:
            wave = np.full(8000, 0.1, np.float32)
            pack.add(Record(name, words, "x", words, Labels(emotion="sad"), "neutral", dataset=name), [wave])
    config = read("tiny")
    feeds = (Feed("t2t", datasets=("a",)), Feed("t2t", datasets=("b",)))
    planned = plan({"3": Stage("toy", 1, 64, Rates(lm=1.0), feeds)})[0]
    corpus = Corpus([tmp_path / "a", tmp_path / "b"])
    clips = Clips(corpus.packs, torch.device("cpu"))
    one, other = Stream(corpus, clips, planned, config.model, open_tokenizer(config.model)).sources
    assert one.lengths[0] < other.lengths[0]


def test_a_long_list_is_measured_by_several_processes_as_by_one(made, monkeypatch) -> None:
    alone = [(source.lengths, source.targets, source.left_out) for source in stream(made).sources]
    monkeypatch.setattr(streams, "_CHUNK", 2)
    here = os.getpid()
    real = mixing.layout.length
    monkeypatch.setattr(mixing.layout, "length", lambda *how: real(*how) if os.getpid() != here else 0)
    assert [(source.lengths, source.targets, source.left_out) for source in stream(made, workers=2).sources] == alone


def test_a_list_that_an_earlier_stage_had_is_not_measured_again(tmp_path, monkeypatch) -> None:
    with PackWriter(tmp_path / "a") as pack:
        pack.add(Record("a", "yes", "x", "well", Labels(emotion="sad"), "happy"), [np.full(8000, 0.1, np.float32)])
    config, corpus = read("tiny"), Corpus([tmp_path / "a"])
    measured = []
    real = mixing.surveyed
    monkeypatch.setattr(mixing, "surveyed", lambda source, found: measured.append(source.task) or real(source, found))
    clips, tok = Clips(corpus.packs, torch.device("cpu")), open_tokenizer(config.model)
    lengths = []
    for reply_tag in (False, True):
        stage = Stage("toy", 1, 64, Rates(lm=1.0), (Feed("t2t"), Feed("s2t")), reply_tag=reply_tag)
        sources = Stream(corpus, clips, plan({"3": stage})[0], config.model, tok).sources
        lengths.append([source.lengths[0] for source in sources])
    assert measured == ["t2t", "s2t", "s2t"]
    assert lengths[0][0] == lengths[1][0] and lengths[0][1] < lengths[1][1]


def test_a_list_of_data_that_are_not_there_is_an_error_unless_it_is_not_needed(tmp_path) -> None:
    corpus = Corpus([make_pack(tmp_path / "pack", 4)])
    config, clips = read("tiny"), Clips(corpus.packs, torch.device("cpu"))
    for needed in (False, True):
        feeds = (Feed("t2t"), Feed("t2t", datasets=("*-aloud",), needed=needed))
        planned = plan({"3": Stage("toy", 1, 64, Rates(lm=1.0), feeds)})[0]
        if needed:
            with pytest.raises(DataError, match=r"t2t-\*-aloud: none of 0 records can be trained on"):
                Stream(corpus, clips, planned, config.model, open_tokenizer(config.model))
        else:
            stream = Stream(corpus, clips, planned, config.model, open_tokenizer(config.model))
            assert [source.name for source in stream.sources] == ["t2t"]
            assert stream.absent == ["t2t-*-aloud"]


def test_a_clip_longer_than_whisper_hears_is_left_out_before_training(tmp_path) -> None:
    with PackWriter(tmp_path / "pack") as pack:
        for key, seconds in (("short", 2), ("long", 45)):
            wave = np.full(16_000 * seconds, 0.1, np.float32)
            pack.add(Record(key, "Yes.", "x", "hello", Labels(emotion="sad"), "neutral"), [wave])
    config = read("tiny")
    model = msgspec.structs.replace(config.model, encoder=read("full").model.encoder)
    planned = plan({"3": Stage("toy", 1, 64, Rates(lm=1.0), (Feed("s2t"),))})[0]
    corpus = Corpus([tmp_path / "pack"])
    clips = Clips(corpus.packs, torch.device("cpu"))
    [source] = Stream(corpus, clips, planned, model, open_tokenizer(config.model)).sources
    assert [n > 0 for n in source.lengths] == [True, False]


def test_what_is_longer_than_the_language_model_reads_is_left_out_before_training(tmp_path) -> None:
    with PackWriter(tmp_path / "pack") as pack:
        for key, words in (("short", "Yes."), ("long", "Yes. " * 80)):
            wave = np.full(16_000, 0.1, np.float32)
            pack.add(Record(key, words, "x", "hello", Labels(emotion="sad"), "neutral"), [wave])
    config = read("tiny")
    planned = plan({"3": Stage("toy", 1, 64, Rates(lm=1.0), (Feed("s2t"),))})[0]
    corpus = Corpus([tmp_path / "pack"])
    clips = Clips(corpus.packs, torch.device("cpu"))
    for context, used in ((4096, [True, True]), (300, [True, False])):
        model = msgspec.structs.replace(config.model, lm=msgspec.structs.replace(config.model.lm, context=context))
        corpus.surveyed.clear()
        [source] = Stream(corpus, clips, planned, model, open_tokenizer(config.model)).sources
        assert [n > 0 for n in source.lengths] == used


def test_the_command_trains_and_says_when_the_time_is_up(made, tmp_path, capsys) -> None:
    words = ["train", "echat", "--preset", str(made[0]), "--data", str(made[1]), "--out", str(tmp_path / "o"),
             "--device", "cpu", "--stage", "1"]  # fmt: skip
    assert main([*words, "--minutes", "0.00001"]) == 4
    assert "continue with --resume" in capsys.readouterr().out
    assert main([*words, "--resume"]) == 0
    assert main(["train", "echat", "--out", str(tmp_path / "o")]) == 2
    assert main([*words, "--preset", "mni"]) == 2
    assert "did you mean 'mini'" in capsys.readouterr().err


def test_dialogue_in_text_joins_as_text_alone(made, tmp_path) -> None:
    rows = [{"messages": [{"role": "user", "content": f"Is {i} odd?"}, {"role": "assistant", "content": "Count."}]}
            for i in range(5)]  # fmt: skip
    path = tmp_path / "plain.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    config = read(str(made[0]))
    [planned] = plan(stages(config.stage, "small"), only="3")
    corpus = Corpus([made[1], path])
    clips = Clips(corpus.packs, torch.device("cpu"))
    found = Stream(corpus, clips, planned, config.model, open_tokenizer(config.model)).sources
    used = {source.name: sum(n > 0 for n in source.lengths) for source in found}
    assert used == {"s2s-think": 20, "s2s": 20, "t2t": 25}
    assert found[0].left_out == {"no recording": 5}
    path.write_bytes(msgspec.json.encode({"messages": [{"role": "user", "content": "Alone?"}], "key": "k1"}))
    with pytest.raises(DataError, match=r"plain\.jsonl: k1: turns must alternate"):
        Corpus([path])


@pytest.mark.timeout(120)
def test_a_run_that_fails_ends_with_those_that_make_its_batches(made, tmp_path, environment) -> None:
    """They must not be waited for: a run that holds a GPU's memory for ever stops all that come after it."""
    code = """
import sys, torch
from overtone.cli import main
from overtone.echat.net.model import EChat
steps, forward = [], EChat.forward
def no_room(self, batch):
    steps.append(batch)
    if len(steps) == 3:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB. GPU 0 has 4 MiB free.\\nMore.")
    return forward(self, batch)
EChat.forward = no_room
sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", code, "train", "echat", "--preset", str(made[0]), "--data", str(made[1]), "--out",
               str(tmp_path), "--device", "cpu", "--workers", "2", "--stage", "1"]  # fmt: skip
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 2 and "Traceback" not in run.stderr
    assert "Tried to allocate 20 MiB" in run.stderr and "smaller `positions`" in run.stderr
    assert "More." not in run.stderr


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_sigterm_to_all_processes_of_a_run_saves_and_exits_4(made, tmp_path, environment) -> None:
    """As `timeout` sends it: to the one that trains and to those that make its batches."""
    command = [sys.executable, "-m", "overtone", "train", "echat", "--preset", str(made[0]), "--data", str(made[1]),
               "--out", str(tmp_path), "--device", "cpu", "--workers", "2", "--steps", "100000", "--stage", "1",
               "--log-every", "1"]  # fmt: skip
    run = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    while run.poll() is None and len(read_log(tmp_path / "stage-1" / LOG)) < 3:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGTERM)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 4 and "stage 1: stopped by a signal; its checkpoint is saved" in said
    [kept] = (tmp_path / "stage-1").glob("step-*")
    assert int(kept.name.removeprefix("step-")) == read_log(tmp_path / "stage-1" / LOG)[-1].step
