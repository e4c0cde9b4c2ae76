"""Preference pairs: the loss by hand, pairs as they were said, a margin that rises, going on, files that are wrong."""

from __future__ import annotations

import hashlib
import math
import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from overtone import audio
from overtone.cli import main
from overtone.echat.data import containers, layout
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import Labels
from overtone.echat.data.think import label_thought
from overtone.echat.learn import pairs, prefer
from overtone.echat.learn.batch_stream import Corpus
from overtone.echat.learn.batches import Clips
from overtone.echat.learn.prefer import LogProbabilities, Pairs, Preferring, dpo, measure, read_stage, run
from overtone.echat.learn.run_stages import Settings
from overtone.echat.learn.stages import plan, stages
from overtone.echat.learn.training_report import LOG, MARGINS, read_log
from overtone.echat.net import checkpoint
from overtone.echat.net.config import names, read
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import DataError, StoreError, UsageError
from overtone.models.echat import checkpoint_folder
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Reply, Score, Turn
from tests.echat.test_run_stages import PRESET

PREFER = """
[stage.prefer]
title = "preferences"
steps = 12
targets = 6
positions = 3000
warmup = 1
lr = { speech = 2e-3, lm = 2e-3 }
beta = 0.1
sft = 0.1
feeds = [{ task = "s2s", think = true }, { task = "s2t" }]
"""
THOUGHT = "<think>User's words: I lost it, Age: <ADULT>, Gender: <MALE>, Emotion: <SAD>, Sound Event: <OTHER>, "
THOUGHT += "Predicted reply emotion: <NEUTRAL><think end>"


def pair(number: int, **changes: Any) -> dict[str, Any]:
    chosen = {"text": f"I am sorry, friend {number}.", "speech_tokens": [(number + k) % 40 for k in range(30)]}
    rejected = {"text": "How nice for you!", "speech_tokens": [(2 * number + k) % 40 for k in range(34)]}
    return {
        "id": f"p{number}", "part": "held-out" if number % 4 == 3 else "train", "group": f"s{number}",
        "words": "I lost it", "clip": "clip.wav", "chosen": chosen, "rejected": rejected, "agreement": 1.0, **changes,
    }  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    sound = 0.1 * np.sin(np.arange(8000) / 9).astype(np.float32)
    (path.parent / "clip.wav").write_bytes(audio.encode_wav(sound, 16_000))
    made = [{**row, "clip": str(path.parent / row["clip"])} if row.get("clip") else row for row in rows]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in made))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a preset, a checkpoint of it that says it was taught stage 3, and pairs."""
    home = tmp_path_factory.mktemp("prefer")
    (home / "small.toml").write_text(PRESET + PREFER)
    torch.manual_seed(1)
    config = read(str(home / "small.toml"))
    notes = {"stage": "3", "steps": 6, "seed": 0, "ablate": [], "data": ["ab" * 32]}
    checkpoint.save(checkpoint.make(config), home / "start", config, notes=notes)
    write(home / "pairs.jsonl", [pair(n) for n in range(16)])
    return home


def settings(made: Path, out: Path, **changes: Any) -> Settings:
    given = {"device": "cpu", "samples": 0, "log_every": 3, "stage": "prefer", "start": made / "start", **changes}
    data = given.pop("data", (made / "pairs.jsonl",))
    return Settings(str(made / "small.toml"), data, out, **given)


def quiet(line: str) -> None:
    pass


def data_of(made: Path, folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Pairs:
    config = read(str(made / "small.toml"))
    pairs.pack([write(folder / "p.jsonl", rows)], folder / "pack")
    corpus = Corpus([folder / "pack"])
    stage = msgspec.structs.replace(read_stage(config, "small"), **changes)
    clips = Clips(corpus.packs, torch.device("cpu"))
    return Pairs(corpus, clips, stage, config.model, open_tokenizer(config.model))


# ── the loss ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_the_loss_is_that_of_the_paper_computed_by_hand() -> None:
    told = LogProbabilities(torch.tensor([-10.0, -12.0]), torch.tensor([-11.0, -11.0]), torch.tensor([5.0, 2.0]))
    # chosen gained 1 nat, rejected lost 1: the margin is 2, and −log σ(0.1 · 2) = log(1 + e^−0.2)
    assert told.margins(False).tolist() == [2.0]
    assert dpo(told, 0.1).item() == pytest.approx(math.log(1 + math.exp(-0.2)), abs=1e-6)
    assert dpo(told, 0.1).item() == pytest.approx(0.598139, abs=1e-6)
    # a mean over tokens: 1/5 − (−1/2) = 0.7
    assert dpo(told, 0.1, per_token=True).item() == pytest.approx(math.log(1 + math.exp(-0.07)), abs=1e-6)


def test_log_probabilities_are_summed_over_a_replys_text_and_speech(made, tmp_path) -> None:
    data = data_of(made, tmp_path, [pair(0), pair(1)], sft=0.5)
    policy, _ = checkpoint.load(made / "start")
    reference, _ = checkpoint.load(made / "start")
    with torch.no_grad():
        for weight in policy.lm.parameters():
            weight.mul_(1.1)
    model = Preferring(policy, reference, data.stage)
    batch = data.ready(data.collate(data.train), 1)
    told, *_ = model.log_probabilities(batch)
    assert batch.n_targets == 2 and batch.ids.shape[0] == 4 and batch.task == "s2s"
    sums, chosen_cost, chosen_tokens = [], 0.0, 0
    for row in range(4):  # another way: every position's distribution, one row at a time
        here = batch.ids[row][batch.mask[row]]
        embedded = policy.embed(batch)[row : row + 1, : len(here)]
        hidden = policy.lm.base_model(inputs_embeds=embedded).last_hidden_state[0]
        probability = policy.logits(hidden).log_softmax(-1)
        total = 0.0
        for at in range(1, len(here)):
            goal = int(batch.targets[row, at])
            if goal >= 0:
                total += float(probability[at - 1, goal].detach())
                chosen_tokens += row < 2
        sums.append(total)
        chosen_cost -= total if row < 2 else 0.0
    assert told.new.tolist() == pytest.approx(sums, abs=1e-2)
    words = [len(one["text"]) + 1 + len(one["speech_tokens"]) + 2 for row in (pair(0), pair(1))
             for one in (row["chosen"], row["rejected"])]  # fmt: skip
    assert told.tokens.tolist() == [words[0], words[2], words[1], words[3]]  # chosen first, then rejected
    out = model(batch)
    margins = [(told.new[i] - told.old[i]) - (told.new[i + 2] - told.old[i + 2]) for i in (0, 1)]
    by_hand = sum(math.log1p(math.exp(-0.1 * m.item())) for m in margins) / 2 + 0.5 * chosen_cost / chosen_tokens
    assert out.loss.item() == pytest.approx(by_hand, rel=1e-4)
    assert int(out.n_text + out.n_speech) == chosen_tokens


def test_a_model_that_is_still_its_reference_prefers_nothing(made, tmp_path) -> None:
    data = data_of(made, tmp_path, [pair(n) for n in range(3)])
    model = Preferring(*(checkpoint.load(made / "start")[0] for _ in range(2)), data.stage)
    model.train()  # there is dropout in the adapter, which is taken out
    found = measure(model, data, data.train)
    assert (found.margin, found.right, found.loss) == (0.0, 0.0, round(math.log(2), 5))


# ── pairs as they were said ───────────────────────────────────────────────────────────────────────────────────────────
def test_a_thought_is_laid_out_as_in_training(made, tmp_path) -> None:
    tok = open_tokenizer(read(str(made / "small.toml")).model)
    natural = "<think>The voice is low.<think end>"
    broken = THOUGHT.replace("<SAD>", "<GLUM>")
    unsure = THOUGHT.replace("<MALE>", "<>")  # a child
    rows = [pair(n) for n in (0, 1, 2, 4, 5)]
    said_by = ((THOUGHT, THOUGHT), (natural, natural), (THOUGHT, ""), (broken, broken), (unsure, THOUGHT))
    for row, thoughts in zip(rows, said_by, strict=True):
        row["chosen"]["thought"], row["rejected"]["thought"] = thoughts
    write(tmp_path / "p.jsonl", rows)
    pairs.pack([tmp_path / "p.jsonl"], tmp_path / "pack")
    found = pairs.of_pack(Corpus([tmp_path / "pack"]).packs[0])
    assert [both.thinks for both in found] == [
        ("label", "label"), ("natural", "natural"), ("label", ""), ("natural", "natural"), ("natural", "label")
    ]  # fmt: skip
    chosen, _ = found[0].lay_out("s2s", tok, thinking=True)
    labels = Labels("sad", "adult", "male", "other")
    pieces = label_thought("I lost it", labels, "neutral", random.Random(0))
    said = [i for text, _ in pieces for i in tok.encode(text)]
    at = chosen.targets.index(said[0])
    assert chosen.targets[at : at + len(said)] == said, "as the model was taught to write it, token by token"
    assert "<think>" not in _text(found[2].lay_out("s2s", tok, thinking=True)[0], tok), "one without: both without"
    assert "<think>" not in _text(found[0].lay_out("s2s", tok, thinking=False)[0], tok)
    assert _text(found[1].lay_out("s2s", tok, thinking=True)[0], tok).startswith(natural + "I am sorry, friend 1.")
    whole = _text(found[3].lay_out("s2s", tok, thinking=True)[0], tok)
    assert whole.startswith(broken + "<NEUTRAL>I am sorry"), "a thought that is not whole stands as it was said"
    assert _text(found[4].lay_out("s2s", tok, thinking=True)[0], tok).startswith(unsure + "<NEUTRAL>I am sorry")


def test_a_reply_keeps_the_tag_it_was_said_with(made, tmp_path) -> None:
    tok = open_tokenizer(read(str(made / "small.toml")).model)
    rows = [pair(n) for n in (0, 1, 2, 3)]
    thoughts = ("", "<think>The voice is low.<think end>", THOUGHT, "")
    for row, thought, emotion in zip(rows, thoughts, ("sad", "sad", "", "<b>"), strict=True):
        for side in (row["chosen"], row["rejected"]):
            side |= {"thought": thought, "emotion": emotion}
    write(tmp_path / "p.jsonl", rows)
    pairs.pack([tmp_path / "p.jsonl"], tmp_path / "pack")
    found = pairs.of_pack(Corpus([tmp_path / "pack"]).packs[0])
    said = [_text(both.lay_out("s2s", tok, thinking=True, tags=True)[0], tok) for both in found]
    assert [text[: text.index("I am")] for text in said] == ["<SAD>", thoughts[1] + "<SAD>", THOUGHT + "<NEUTRAL>", ""]
    plain = _text(found[2].lay_out("s2s", tok, thinking=False, tags=True)[0], tok)
    assert plain.startswith("<NEUTRAL>I am sorry"), "a model that always tells it tells it without a thought too"
    assert _text(found[0].lay_out("s2s", tok, thinking=True)[0], tok).startswith("I am"), "a model that was taught none"


def _text(sequence: layout.Sequence, tok: Any) -> str:
    return bytes(i for i in sequence.targets if 0 <= i < 256).decode()


def test_a_pair_without_speech_is_learnt_in_text(made, tmp_path) -> None:
    rows = [pair(0), pair(1)]
    del rows[1]["rejected"]["speech_tokens"]
    data = data_of(made, tmp_path, rows)
    assert [one.task for one in data.train] == ["s2s", "s2t"] and not data.left_out
    only = msgspec.structs.replace(data.stage, feeds=data.stage.feeds[:1])
    (tmp_path / "x").mkdir()
    some = data_of(made, tmp_path / "x", rows, feeds=only.feeds)
    assert len(some.train) == 1 and some.left_out == {"no speech tokens": 1}


def test_speech_is_made_tokens_where_the_model_told_none(made, tmp_path) -> None:
    class Ears:
        name, codes, rate, identity = "ears", 40, 25.0, "ears"

        def encode(self, samples: Any, rate: int) -> Any:
            return np.arange(len(samples) * 25 // rate)

    row = pair(0, chosen={"text": "I am sorry.", "audio": str(tmp_path / "clip.wav")})
    pairs.pack([write(tmp_path / "p.jsonl", [row])], tmp_path / "pack", Ears())  # type: ignore[arg-type]
    (both,) = pairs.of_pack(Corpus([tmp_path / "pack"]).packs[0])
    assert both.chosen.speech_token == tuple(range(12)) and len(both.rejected.speech_token) == 34


def test_batches_fit_their_budget_and_every_pair_comes_once_a_round(made, tmp_path) -> None:
    data = data_of(made, tmp_path, [pair(n) for n in range(16)], targets=100, positions=2200)
    first = [batch for _, batch in zip(range(20), data.batches(0), strict=False)]
    assert all(batch.ids.numel() <= 2200 for _, batch in first)
    sizes = np.cumsum([batch.n_targets for _, batch in first])
    assert 12 in sizes  # twelve pairs are learnt from
    later = next(data.batches(5))
    assert later[0] == 5 and torch.equal(later[1].ids, first[5][1].ids)


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_the_margin_rises_and_hearing_stays_as_it_is(made, tmp_path) -> None:
    said: list[str] = []
    assert run(settings(made, tmp_path, look_every=4), said.append)
    looks = [msgspec.json.decode(line) for line in (tmp_path / "stage-prefer" / MARGINS).read_bytes().splitlines()]
    train, held = ([look for look in looks if look["part"] == part] for part in ("train", "held-out"))
    assert [look["step"] for look in train] == [look["step"] for look in held] == [4, 8, 12]
    assert 0 < train[0]["margin"] < train[-1]["margin"] > 2
    assert train[-1]["right"] == 1.0 and held[-1]["pairs"] == 4
    log = read_log(tmp_path / "stage-prefer" / LOG)
    assert len(log) == 12 and log[-1].loss < log[0].loss
    before, after = (dict(checkpoint.load(checkpoint_folder(p))[0].state_dict()) for p in (made / "start", tmp_path))
    moved = {name.partition(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert moved == {"speech", "lm"}
    notes = checkpoint.index(checkpoint_folder(tmp_path)).notes
    assert notes["stage"] == "3" and notes["prefer"]["pairs"] == 12  # still answers as stage 3 taught it
    assert any("12 training pairs, 4 held out" in line for line in said)
    page = (tmp_path / "report.html").read_text()
    assert "Preference pairs" in page and f"<td>{train[-1]['margin']:+.2f}</td>" in page
    assert run(settings(made, tmp_path), said.append) and said[-1] == "stage prefer is already done"


def test_a_run_in_slices_ends_where_a_run_in_one_piece_does(made, tmp_path) -> None:
    run(settings(made, tmp_path / "whole"), quiet)
    slices = 0
    while not run(settings(made, tmp_path / "slices", minutes=1e-3, resume=True), quiet):
        slices += 1
    assert slices >= 2
    whole, found = (dict(checkpoint.load(checkpoint_folder(tmp_path / p))[0].state_dict()) for p in ("whole", "slices"))
    assert all(torch.equal(whole[name], found[name]) for name in whole)
    logs = [[row.loss for row in read_log(tmp_path / p / "stage-prefer" / LOG)] for p in ("whole", "slices")]
    assert logs[0] == logs[1]


# ── what is wrong is told ─────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "no pairs"),
        ([{"id": "x"}], r"line 1: not a preference pair: .*export --format preferences"),
        ([pair(0), pair(0)], r"line 2: duplicate pair 'p0'"),
        ([pair(0, clip="")], "has no clip"),
        ([pair(0, clip="gone.wav")], r"gone\.wav"),
        ([pair(0, clip_sha256="0" * 64)], "changed since 'p0' was judged"),
        ([pair(0), pair(3, group="s0")], "'s0' is both in training and held out"),
        ([pair(0, chosen={"text": "x", "speech_tokens": [41] * 30})], "speech token 41 is outside"),
        ([pair(0, rejected={"text": "x", "speech_tokens": [41] * 30})], "p0, rejected: speech token 41 is outside"),
        ([pair(3)], "none of 1 pairs can be used: all are held out"),
    ],
)
def test_pairs_that_cannot_be_learnt_from_are_told_before_the_first_step(made, tmp_path, rows, told) -> None:
    file = write(tmp_path / "p.jsonl", rows)
    with pytest.raises(DataError, match=told):
        run(settings(made, tmp_path / "out", data=(file,)), quiet)
    assert not (tmp_path / "out" / "run.json").exists()


def test_wishes_that_make_no_sense_are_refused(made, tmp_path) -> None:
    from tests.echat.toys import make_pack

    with pytest.raises(UsageError, match="give its checkpoint or run with --from"):
        run(settings(made, tmp_path, start=None), quiet)
    with pytest.raises(DataError, match="not a pack of preference pairs"):
        run(settings(made, tmp_path, data=(make_pack(tmp_path / "other", codes=40),)), quiet)
    with pytest.raises(UsageError, match="--ablate"):
        run(settings(made, tmp_path, ablate=("think",)), quiet)
    (tmp_path / "bare.toml").write_text(PRESET)
    bare = msgspec.structs.replace(settings(made, tmp_path), preset=str(tmp_path / "bare.toml"))
    with pytest.raises(UsageError, match=r"has no \[stage.prefer\] table"):
        run(bare, quiet)
    for wrong, told in (("betta = 1", "did you mean 'beta'"), ("beta = 0", "beta must be above 0"),
                        ("ctc = 0.1", "must not have augment, ctc")):  # fmt: skip
        (tmp_path / "w.toml").write_text(PRESET + PREFER.replace("beta = 0.1", wrong))
        with pytest.raises(UsageError, match=told):
            run(msgspec.structs.replace(settings(made, tmp_path), preset=str(tmp_path / "w.toml")), quiet)


def test_weights_that_are_named_are_used(made, tmp_path, monkeypatch) -> None:
    class Asked(Exception):
        pass

    def opened(model: Any) -> None:
        raise Asked(model.lm.weights)

    monkeypatch.setattr(prefer, "open_tokenizer", opened)
    with pytest.raises(Asked, match="some/where"):
        run(msgspec.structs.replace(settings(made, tmp_path), lm="some/where"), quiet)


def test_another_start_in_the_same_folder_is_refused(made, tmp_path) -> None:
    run(settings(made, tmp_path / "out", steps=1), quiet)
    torch.manual_seed(2)
    config = read(str(made / "small.toml"))
    checkpoint.save(checkpoint.make(config), tmp_path / "other", config)
    with pytest.raises(StoreError, match="a different started"):
        run(settings(made, tmp_path / "out", steps=1, start=tmp_path / "other"), quiet)


def test_a_run_goes_on_with_the_pairs_it_was_begun_with(made, tmp_path) -> None:
    asked = settings(made, tmp_path / "out")
    assert not run(msgspec.structs.replace(asked, minutes=1e-6), quiet)
    packed = (tmp_path / "out" / "pairs" / "records.jsonl").read_bytes()
    other = write(tmp_path / "other.jsonl", [pair(n) for n in range(8)])
    for resume in (True, False):
        with pytest.raises(StoreError, match="started with other data"):
            run(msgspec.structs.replace(asked, resume=resume, data=(other,)), quiet)
    assert (tmp_path / "out" / "pairs" / "records.jsonl").read_bytes() == packed
    moved = shutil.copy(made / "pairs.jsonl", tmp_path / "moved.jsonl")
    assert run(msgspec.structs.replace(asked, resume=True, data=(moved,)), quiet)


def test_a_checkpoint_says_which_pairs_it_learnt_from_beside_what_its_start_did(made, tmp_path) -> None:
    run(settings(made, tmp_path / "out", steps=1), quiet)
    digest = hashlib.sha256((made / "pairs.jsonl").read_bytes()).hexdigest()
    assert checkpoint.index(checkpoint_folder(tmp_path / "out")).notes["data"] == sorted(["ab" * 32, digest])
    config = read(str(made / "small.toml"))
    checkpoint.save(checkpoint.load(made / "start")[0], tmp_path / "silent", config, notes={"stage": "3"})
    run(settings(made, tmp_path / "more", steps=1, start=tmp_path / "silent"), quiet)
    notes = checkpoint.index(checkpoint_folder(tmp_path / "more")).notes
    assert "data" not in notes  # else it would seem to have learnt from pairs alone


def test_presets_have_a_stage_that_no_other_run_goes_through() -> None:
    for name in set(names()) - {"full"}:
        config = read(name)
        assert read_stage(config, name).beta > 0
        assert "prefer" not in {r.name for r in plan(stages(config.stage, name))}


# ── from a run to a model ─────────────────────────────────────────────────────────────────────────────────────────────
def test_a_stored_run_becomes_pairs_and_a_model_that_prefers_them(made, tmp_path, capsys) -> None:
    root = tmp_path / "clips"
    root.mkdir()
    sound = 0.1 * np.sin(np.arange(8000) / 9).astype(np.float32)
    with Store.create(tmp_path / "run") as store:
        store.set_meta({"benchmark": "toy", "model": "echat:start", "root": str(root)})
        for n in range(8):
            (root / f"{n}.wav").write_bytes(audio.encode_wav(sound, 16_000))
            item = Item(f"toy/{n}", "toy", 3, "converse", "conversation", f"c{n}", f"g{n}", "target",
                        (Turn(Clip(f"{n}.wav"), f"I lost it {n}"),))  # fmt: skip
            store.plan([(item, ["enhance/audio"])], 2)
        store.commit()
        for ask in store.open_asks(0, 100):
            text = "I am sorry." if ask.repeat else "How nice for you!"
            notes = (f"thought: {THOUGHT}", "speech tokens: " + " ".join(str(k) for k in range(30)))
            store.add_reply(ask, 0, Reply(text, notes=notes), sent=b"[]", latency=1.0, attempts=1)
            store.add_scores([(ask.id, Score("semsim", "s", 0.2 + 0.5 * ask.repeat))])
        store.commit()
    out = tmp_path / "pairs.jsonl"
    words = ["export", str(tmp_path / "run"), "--format", "preferences", "--by", "semsim", "--margin", "0.3",
             "--voters", "1", "--hold-out", "0.3", "-o", str(out), "--pack", str(tmp_path / "pack"),
             "--licence", "CC-BY-4.0"]  # fmt: skip
    assert main(words) == 0
    assert "→" in capsys.readouterr().out
    manifest = msgspec.json.decode((tmp_path / "pairs.manifest.json").read_bytes())
    assert manifest["licence"] == "CC-BY-4.0" and sum(row["records"] for row in manifest["parts"].values()) == 8
    words = ["train", "echat", "--stage", "prefer", "--preset", str(made / "small.toml"), "--steps", "8",
             "--from", str(made / "start"), "--data", str(tmp_path / "pack"), "--out", str(tmp_path / "out"),
             "--device", "cpu"]  # fmt: skip
    assert main(words) == 0
    assert "pairs correct" in capsys.readouterr().out
    first, *_ = (tmp_path / "out" / "stage-prefer" / MARGINS).read_bytes().splitlines()
    assert msgspec.json.decode(first)["right"] == 1.0
    learnt = {*checkpoint.index(checkpoint_folder(tmp_path / "out")).notes["data"]} - {"ab" * 32}
    assert learnt == {manifest["sha256"]["pack/records.jsonl"]}
    assert set(containers.digests([out, out.with_name("pairs.held-out.jsonl")])) < set(manifest["sha256"].values())


def test_records_read_and_written_keep_the_rejected_reply(made, tmp_path) -> None:
    pairs.pack([write(tmp_path / "p.jsonl", [pair(0)])], tmp_path / "pack")
    (both,) = pairs.of_pack(Corpus([tmp_path / "pack"]).packs[0])
    assert isinstance(both.rejected, Record) and both.rejected.txt == "How nice for you!"
    assert both.rejected.wav == both.chosen.wav and both.rejected.home == both.chosen.home


def test_a_checkpoint_tells_the_thoughts_and_tokens_that_pairs_are_made_of(monkeypatch) -> None:
    """What the worker notes is what the export reads."""
    import overtone.workers
    from overtone.echat.talk.answer import Answer
    from overtone.schema import THOUGHT as thought_mark
    from overtone.schema import TOKENS as tokens_mark

    monkeypatch.syspath_prepend(str(Path(next(iter(overtone.workers.__path__)))))
    from overtone.echat.talk.worker_program import Engine

    engine = Engine()
    engine.tells = True
    assert list(engine._notes(Answer("x", THOUGHT, codes=(3, 1, 4)))) == [thought_mark + THOUGHT, tokens_mark + "3 1 4"]
    engine.tells = False
    assert list(engine._notes(Answer("x", codes=(3, 1, 4)))) == []
