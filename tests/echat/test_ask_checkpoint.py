"""What a checkpoint says to a test: the same as when it is asked one by one, and about all that was asked."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from overtone.cli import main
from overtone.echat.data import layout
from overtone.echat.data.containers import Pack, PackWriter, open_audio
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import EMOTIONS, Labels, tag
from overtone.echat.exam import answer_file, ask_checkpoint, batched_decoding
from overtone.echat.exam.ask_checkpoint import Wanted
from overtone.echat.exam.batched_decoding import Machine
from overtone.echat.exam.exam_scores import Scores
from overtone.echat.net import checkpoint, config, decode, device
from overtone.errors import DataError, UsageError

EMOTION = {"a": "anger", "b": "happy"}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three queries in two deliveries each, a clip to be understood only, and a part that is learnt from."""
    folder = tmp_path_factory.mktemp("pack")
    rng = np.random.default_rng(0)
    with PackWriter(folder) as writer:
        for i in range(8):
            part = "train" if i == 7 else "people" if i == 6 else "seen"
            emotion = EMOTION["ab"[i % 2]]
            sound = (0.1 * rng.standard_normal(6_000 + 1_700 * i)).astype(np.float32)
            record = Record(
                key=f"k{i}",
                txt=f"Well, {emotion}.",
                wav="x",
                question=f"Query number {i // 2}",
                labels=Labels(emotion=emotion),
                reply_emotion="neutral",
                task="<TRANSCRIBE> <EMOTION>" if part == "people" else "<S2TCHAT>",
                extra={"part": part, "group": f"g{i // 2}", "speaker": "s", "kind": "emotion",
                       "heard": {"emotion": emotion, "gender": "female"}},
            )  # fmt: skip
            writer.add(record, [sound])
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    preset = config.read("tiny")
    folder = tmp_path_factory.mktemp("model") / "full"
    checkpoint.save(checkpoint.make(preset), folder, preset, notes={"stage": "3", "seed": 2, "ablate": []})
    return folder


@pytest.fixture(scope="module")
def machine(saved: Path) -> Machine:
    found, _, _ = ask_checkpoint.open_machine(saved, "cpu")
    return found


def told(machine: Machine, pack: Path) -> tuple[list[Record], list[layout.Sequence], batched_decoding.Heard]:
    records = Pack(pack).records[:5]
    asked = [layout.prompt(record, "s2t", machine.tok, ask="Name it." * (i % 2)) for i, record in enumerate(records)]
    return records, asked, batched_decoding.hear(machine, [clip for sequence in asked for clip in sequence.clips])


def test_many_are_answered_as_each_is_alone(machine: Machine, pack: Path) -> None:
    records, asked, heard = told(machine, pack)
    waves = [[open_audio(record)] for record in records]
    how = decode.DecodeOptions(max_text=30)
    slow = [decode.respond(machine.model, machine.tok, [a], [w], how)[0] for a, w in zip(asked, waves, strict=True)]
    for budget in (1, 300, 100_000):  # one by one, a few, all together
        machine.positions = budget
        fast = batched_decoding.answer(machine, heard, asked, 30)
        assert [text for text, _ in fast] == [said.text for said in slow]
        assert [cut for _, cut in fast] == [said.cut == "text" for said in slow]


def test_rows_that_are_done_leave_the_batch_and_change_nothing(machine: Machine, pack: Path) -> None:
    """Some rows are made to end early: an end mark that is likelier than anything after some tokens."""
    _, asked, heard = told(machine, pack)
    machine.positions = 100_000
    x, mask = batched_decoding.inputs(machine, heard, asked)
    plain = batched_decoding.greedy(machine, x, mask, 40)
    often = max({t for row in plain for t in row}, key=lambda t: sum(t in row for row in plain))
    end, machine.tok.im_end = machine.tok.im_end, often
    try:
        cut = batched_decoding.greedy(machine, x, mask, 40)
    finally:
        machine.tok.im_end = end
    assert cut == [row[: row.index(often)] if often in row else row for row in plain]
    assert sum(often in row for row in plain) >= 2


def test_a_labels_likelihood_is_that_of_its_tokens_one_after_the_other(machine: Machine, pack: Path) -> None:
    _, asked, heard = told(machine, pack)
    endings = [[*machine.tok.encode(tag(name)), machine.tok.im_end] for name in EMOTIONS]
    machine.positions = 1_000
    found = batched_decoding.likelihoods(machine, heard, asked, endings)
    for i, sequence in enumerate(asked):
        for j, ending in enumerate(endings):
            with torch.inference_mode():
                x, _ = batched_decoding.inputs(machine, heard, [sequence])
                x = torch.cat((x, machine.model.embed_ids(torch.tensor([ending]))), 1)
                hidden = machine.model.lm.base_model(inputs_embeds=x, use_cache=False).last_hidden_state
                logits = machine.model.lm.get_output_embeddings()(hidden)[0, -len(ending) - 1 : -1]
            alone = logits.log_softmax(-1)[range(len(ending)), ending].sum()
            assert found[i][j] == pytest.approx(float(alone), abs=2e-3)


def test_everything_is_asked_of_a_test_and_written_down(saved: Path, pack: Path, tmp_path: Path) -> None:
    head, rows = ask_checkpoint.evaluate(saved, [pack], Wanted(spoken=1, longest=30), device="cpu")
    assert (head.arm, head.seed) == ("full", 2)
    assert head.modes == ("labels", "words", "plain", "label", "told", "oracle", "deaf", "speech")
    assert [row.key for row in rows if row.part == "people"] == ["k6"]
    assert sorted(row.key for row in rows) == [f"k{i}" for i in range(7)]  # not what is learnt from
    for row in rows:
        assert set(row.named) == {"emotion", "gender"} and row.words is not None
        assert [len(row.scored[name]) for name in ("emotion", "gender")] == [8, 2]
        assert max(row.scored["emotion"]) < 0
    seen = [row for row in rows if row.part == "seen"]
    assert all(set(row.said) == {"plain", "label", "told", "oracle", "deaf"} for row in seen)
    assert [row.said for row in rows if row.part == "people"] == [{}]
    assert sum(bool(row.spoken or row.codes) for row in rows) <= 1
    for mode in ("told", "oracle"):
        for row in seen:
            assert f"Emotion: {tag(row.heard['emotion'])}" in row.said[mode]
            assert row.question in row.said[mode]
    groups: dict[str, set[str]] = {}
    for row in seen:
        groups.setdefault(row.group, set()).add(row.said["deaf"])
    assert all(len(texts) == 1 for texts in groups.values())  # who reads the words alone answers every delivery alike
    for name in ("p.jsonl", "p.jsonl.gz"):
        answer_file.write(tmp_path / name, head, rows)
        assert answer_file.read(tmp_path / name) == (head, rows)


def test_what_was_never_taught_to_think_is_not_asked_to() -> None:
    preset = config.read("tiny")
    assert "label" in ask_checkpoint.chosen_modes((), preset, {"ablate": ["understanding"]})
    without = ask_checkpoint.chosen_modes((), preset, {"ablate": ["understanding", "think"]})
    assert without == ("labels", "words", "plain", "deaf", "speech")
    assert ask_checkpoint.chosen_modes((), preset, {"stage": "2b"}) == without
    assert "label" in ask_checkpoint.chosen_modes((), preset, {"stage": "3"})
    assert ask_checkpoint.chosen_modes(("words", "labels"), preset, {}) == ("labels", "words")
    with pytest.raises(UsageError, match="did you mean 'labels'"):
        ask_checkpoint.chosen_modes(("lables",), preset, {})


def test_a_limit_keeps_groups_whole_and_a_part_can_be_named(pack: Path) -> None:
    records = Pack(pack).records
    few = ask_checkpoint.chosen(records, Wanted(limit=4))
    assert len([r for r in few if r.part == "seen"]) == 4
    assert {len([r for r in few if r.group == g]) for g in {r.group for r in few if r.part == "seen"}} == {2}
    assert [r.key for r in ask_checkpoint.chosen(records, Wanted(parts=("train",)))] == ["k7"]


def test_nothing_to_test_on_is_an_error(saved: Path, pack: Path) -> None:
    with pytest.raises(DataError, match="no records to test on"):
        ask_checkpoint.evaluate(saved, [pack], Wanted(parts=("engine",)), device="cpu")


def test_damaged_weights_are_told_and_not_asked(saved: Path, pack: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(saved, folder)
    with (folder / "lm.safetensors").open("r+b") as file:
        file.seek(-2, 2)
        file.write(b"??")
    with pytest.raises(DataError, match="changed since it was written"):
        ask_checkpoint.evaluate(folder, [pack], Wanted(modes=("words",)), device="cpu")


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_file, "LIMIT", 1 << 20)
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(b" " * (2 << 20)))
    with pytest.raises(DataError, match="more than 1 MB of predictions"):
        answer_file.read(tmp_path / "bomb.jsonl.gz")


def test_a_device_that_is_not_there_is_told_before_anything_is_loaded() -> None:
    assert str(device.choose_device("cpu")) == "cpu"
    for name, complaint in (("gpu", "must be auto, cpu"), ("cuda:x", "must be auto"), ("cuda:99", "torch sees")):
        with pytest.raises(UsageError, match=complaint):
            device.choose_device(name)


def test_a_broken_file_of_predictions_is_told(tmp_path: Path) -> None:
    whole = tmp_path / "p.jsonl.gz"
    answer_file.write(whole, answer_file.Head(1, "full", 0, ("words",)), [answer_file.Prediction("a", "seen", "g")])
    (tmp_path / "cut.jsonl.gz").write_bytes(whole.read_bytes()[:-9])
    (tmp_path / "other.jsonl").write_text("hello\n")
    for name in ("cut.jsonl.gz", "other.jsonl"):
        with pytest.raises(DataError, match="not a complete file of predictions"):
            answer_file.read(tmp_path / name)
    answer_file.write(tmp_path / "new.jsonl", answer_file.Head(9, "full", 0, ()), [])
    with pytest.raises(DataError, match="format 9"):
        answer_file.read(tmp_path / "new.jsonl")


@pytest.mark.local
def test_asking_and_scoring_are_two_commands(
    saved: Path, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "full-2.jsonl.gz"
    asked = ["evaluate", "echat", str(saved), "--data", str(pack), "--out", str(out), "--device", "cpu"]
    assert main([*asked, "--modes", "labels,words,plain", "--limit", "4"]) == 0
    assert main(["evaluate", "scores", str(out), "--out", str(tmp_path / "scores.json"), "--draws", "50"]) == 0
    found = msgspec.json.decode((tmp_path / "scores.json").read_bytes(), type=Scores)
    assert found.arms == {"full": [2]} and found.parts == {"seen": 4, "people": 1}
    assert {"emotion.uar", "wer", "direction"} <= {row.measure for row in found.rows}
    assert main(["evaluate", "replies", str(out), "--part", "seen", "--out", str(tmp_path / "said.jsonl")]) == 0
    said = [msgspec.json.decode(line) for line in (tmp_path / "said.jsonl").read_bytes().splitlines()]
    assert len(said) == 4 and all(set(one) == {"id", "text"} for one in said)
    capsys.readouterr()
    for wrong, complaint in (
        (["evaluate", "echat", str(saved), "--out", str(out)], "--data PACK"),
        ([*asked, "--modes", "lables"], "did you mean 'labels'"),
        ([*asked[:2], str(tmp_path), *asked[3:]], "nor a run with a finished stage"),
        (["evaluate", "scores", str(tmp_path / "none.jsonl"), "--out", str(out)], "unreadable"),
        (["evaluate", "scores", str(out), "--out", str(out), "--draws", 20 * "9"], "--draws must be between 2 and"),
        ([*asked, "--limit", "-1"], "must be 0 or more"),
        (["evaluate", "replies", str(out), "--mode", "oracle", "--out", str(out)], "it has the modes plain"),
        (["evaluate", "replies", str(out), "--part", "sen", "--out", str(out)], "and the parts people, seen"),
    ):
        assert main(wrong) == 2
        assert complaint in capsys.readouterr().err


def test_who_is_told_all_is_told_what_training_writes() -> None:
    heard = {"age": "child", "event": "laugh"}
    record = Record("k", "Rest.", "a", "hi", Labels(event="laugh"), "happy", extra={"heard": heard})
    told = "".join(text for text, _ in ask_checkpoint._given(record))
    assert told == "<think>User's words: hi, Age: <CHILD>, Gender: <>, Emotion: <>, Sound Event: <LAUGH>"


def test_weights_are_narrowed_and_positions_are_not(saved: Path) -> None:
    model, _ = checkpoint.load(saved)
    device.cast_weights(model.lm, torch.bfloat16)
    assert {weight.dtype for weight in model.lm.parameters()} == {torch.bfloat16}
    assert model.lm.model.rotary_emb.inv_freq.dtype == torch.float32


def test_the_words_of_a_long_recording_are_not_cut(
    machine: Machine, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    def answer(machine: Machine, heard: object, asked: list[object], longest: int) -> list[tuple[str, bool]]:
        limits.append(longest)
        return [("", False)] * len(asked)

    monkeypatch.setattr(ask_checkpoint, "answer", answer)
    short = Pack(pack).records[:2]
    long = [msgspec.structs.replace(record, question="word " * 100) for record in short]
    for records, wanted in ((short, Wanted()), (long, Wanted()), (long, Wanted(longest=9))):
        ask_checkpoint.predict(machine, records, ("words",), wanted)
    assert limits == [ask_checkpoint.LONGEST["words"] * 5, 750, 9]
