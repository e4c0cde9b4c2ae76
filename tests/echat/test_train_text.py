"""Text alone, through the same loop: dialogues, and numbers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import torch

from overtone.echat.data.layout import Sequence
from overtone.echat.learn import distributed
from overtone.echat.learn.distributed import World
from overtone.echat.learn.train_text import Rows, Settings, TextModel, run
from overtone.echat.learn.training_report import LOG, read_log
from overtone.errors import DataError, StoreError, UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A causal model of Hugging Face's kind with a tokenizer of letters."""
    import tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    out = tmp_path_factory.mktemp("lm")
    letters = {letter: i for i, letter in enumerate(["§", *(chr(c) for c in range(32, 127)), "\n"])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(letters, unk_token="§"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="§").save_pretrained(out)
    torch.manual_seed(0)
    sizes = LlamaConfig(
        vocab_size=len(letters), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, bos_token_id=None, eos_token_id=None, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(sizes).save_pretrained(out)
    return out


def rows(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def settings(folder: Path, tmp_path: Path, data: Path, **more: object) -> Settings:
    given = {"steps": 40, "lr": 3e-3, "batch": 8, "log_every": 20, "device": "cpu", **more}
    return Settings(str(folder), (data,), tmp_path / "out", **given)  # type: ignore[arg-type]


def test_dialogues_are_learnt_and_saved_as_transformers_reads_them(folder, tmp_path) -> None:
    turns = [{"role": "user", "content": "how are you"}, {"role": "assistant", "content": "fine"}]
    data = rows(tmp_path / "rows.jsonl", [{"messages": turns}] * 16)
    assert run(settings(folder, tmp_path, data, steps=80, lr=1e-2), lambda line: None)
    log = read_log(tmp_path / "out" / "stage-text" / LOG)
    assert log[-1].loss < 0.3 * log[0].loss
    assert {row.text_targets for row in log} == {8 * len("fine<|im_end|>")}
    from transformers import AutoModelForCausalLM, AutoTokenizer

    saved = tmp_path / "out" / "stage-text" / "model"
    lm, tokenizer = AutoModelForCausalLM.from_pretrained(saved), AutoTokenizer.from_pretrained(saved)
    asked = tokenizer.encode("<|im_start|>user\nhow are you<|im_end|>\n<|im_start|>assistant\n", return_tensors="pt")
    answer = lm.generate(asked, max_new_tokens=4, do_sample=False, pad_token_id=0)[0, asked.shape[1] :]
    assert "".join(tokenizer.convert_ids_to_tokens(answer.tolist())) == "fine"
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize("kind", ["granite", "gemma2"])
def test_logits_are_the_models_own_also_where_it_scales_or_caps_them(kind: str) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    own = {"granite": {"logits_scaling": 8.0}, "gemma2": {"final_logit_softcapping": 3.0, "head_dim": 16}}[kind]
    sizes = {
        "vocab_size": 60, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 2, "initializer_range": 0.3, "pad_token_id": 0, "bos_token_id": None,
        "eos_token_id": None,
    }  # fmt: skip
    torch.manual_seed(0)
    lm = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, **own)).eval()
    ids = [[5, 6, 7, 8], [9, 10, 11, 12, 13, 14]]
    laid = [Sequence("k", "t2t", row, [-100, -100, *row[2:]], [False] * len(row)) for row in ids]
    batch = Rows(laid, None, 2, 0, World(0, 1, torch.device("cpu"))).batch([0, 1])
    told = [lm(input_ids=torch.tensor([row])).logits[0, 1:-1] for row in ids]
    goal = torch.tensor([token for row in ids for token in row[2:]])
    expected = torch.nn.functional.cross_entropy(torch.cat(told), goal)
    assert TextModel(lm, None)(batch).loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_rows_longer_than_the_model_has_positions_are_left_out_and_counted(folder, tmp_path) -> None:
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    short = tmp_path / "short"
    AutoTokenizer.from_pretrained(folder).save_pretrained(short)
    small = GPT2Config(vocab_size=97, n_embd=32, n_layer=1, n_head=2, n_positions=128)
    GPT2LMHeadModel(small).save_pretrained(short)

    def told(words: str) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": words}, {"role": "assistant", "content": "fine"}]}

    data = rows(tmp_path / "rows.jsonl", [told("hello")] * 8 + [told("hello " * 40)] * 2)
    said: list[str] = []
    assert run(settings(short, tmp_path, data, steps=2), said.append)
    assert said[0] == "8 rows (2 left out: over 128 tokens, or without an assistant turn), 2 steps"


def test_numbers_are_predicted_in_their_own_units(folder, tmp_path) -> None:
    words = ["bad", "so so", "good", "very good"]
    lines = [{"text": word, "targets": [100 + 10 * i, -i], "key": word} for i, word in enumerate(words)]
    data = rows(tmp_path / "rows.jsonl", lines * 4)
    held = rows(tmp_path / "held.jsonl", lines)
    said: list[str] = []
    assert run(settings(folder, tmp_path, data, target="regression", held_out=held, steps=120), said.append)
    found = [msgspec.json.decode(x) for x in (tmp_path / "out" / "predictions.jsonl").read_bytes().splitlines()]
    assert [row["key"] for row in found] == words
    for row in found:
        assert row["predicted"][0] == pytest.approx(row["targets"][0], abs=4)
        assert row["predicted"][1] == pytest.approx(row["targets"][1], abs=0.4)
    assert any("Pearson's r 0.9" in line or "Pearson's r 1.0" in line for line in said)
    assert (tmp_path / "out" / "stage-text" / "model" / "head.safetensors").is_file()


def test_a_prediction_does_not_depend_on_its_neighbours(folder) -> None:
    from transformers import AutoModelForCausalLM

    from overtone.echat.data.layout import Sequence
    from overtone.echat.learn.distributed import World
    from overtone.echat.learn.train_text import Rows, predict

    torch.manual_seed(1)
    model = TextModel(AutoModelForCausalLM.from_pretrained(folder), torch.tensor([[0.0], [2.0]]))
    torch.nn.init.normal_(model.head.weight)
    laid = [Sequence("k", "t2t", ids, [-100] * len(ids), [False] * len(ids)) for ids in ([5, 6, 7], [8] * 30)]
    world = World(0, 1, torch.device("cpu"))
    together = predict(model, Rows(laid, torch.zeros(2, 1), 2, 0, world))
    apart = predict(model, Rows(laid, torch.zeros(2, 1), 1, 0, world))
    assert torch.allclose(together, apart, atol=1e-5)


@pytest.mark.parametrize(
    ("lines", "target", "told"),
    [
        ([{"text": "a"}], "tokens", "nothing to learn in 1 rows"),
        ([{"text": "a", "targets": [1]}, {"text": "b"}], "regression", "same number of targets in every row.*0, 1"),
        ([{"text": 1}], "tokens", "rows.jsonl"),
    ],
)
def test_rows_that_cannot_be_learnt_are_told_of_at_once(folder, tmp_path, lines, target, told) -> None:
    with pytest.raises(DataError, match=told):
        run(settings(folder, tmp_path, rows(tmp_path / "rows.jsonl", lines), target=target), lambda line: None)


def test_a_folder_that_holds_a_run_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    data = rows(tmp_path / "rows.jsonl", [{"text": f"n {i}", "targets": [float(i)]} for i in range(4)])
    wish = settings(folder, tmp_path, data, target="regression", steps=2, batch=2)
    assert run(wish, lambda line: None)
    with pytest.raises(StoreError, match="continue it with --resume"):
        run(wish, lambda line: None)
    said: list[str] = []
    assert run(msgspec.structs.replace(wish, resume=True), said.append) and said[-1] == "the run is already done"
    with pytest.raises(StoreError, match="a different lr"):
        run(msgspec.structs.replace(wish, lr=1e-5, resume=True), lambda line: None)


NUMBERS = [{"text": f"n {i}", "targets": [float(i)], "key": str(i)} for i in range(4)]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (None, "unreadable: No such file"),
        ([{"text": "n"}], "--held-out .*held.jsonl: regression needs the same number of targets"),
        ([{"text": "n", "targets": [1, 2]}], "--held-out .*held.jsonl: 2 targets per row, but --data has 1"),
        ([{"text": "n" * 2000, "targets": [1]}], "--held-out .*held.jsonl: nothing to learn"),
        ([NUMBERS[0], {"text": "n" * 2000, "targets": [1]}], "held.jsonl: 1 of 2 rows cannot be predicted: over 1024"),
    ],
)
def test_held_out_rows_that_cannot_be_predicted_are_told_of_at_once(folder, tmp_path, lines, told) -> None:
    data, held = rows(tmp_path / "rows.jsonl", NUMBERS), tmp_path / "held.jsonl"
    if lines is not None:
        rows(held, lines)
    with pytest.raises(DataError, match=told):
        run(settings(folder, tmp_path, data, target="regression", held_out=held), lambda line: None)
    assert not (tmp_path / "out").exists()


def test_several_processes_refuse_to_predict_held_out_rows(folder, tmp_path, monkeypatch) -> None:
    class Two(World):
        def leave(self) -> None:
            pass

    monkeypatch.setattr(distributed, "enter", lambda device: Two(0, 2, torch.device("cpu")))
    data = rows(tmp_path / "rows.jsonl", NUMBERS)
    with pytest.raises(UsageError, match="--held-out needs a single process; remove it under torchrun"):
        run(settings(folder, tmp_path, data, target="regression", held_out=data), lambda line: None)


@pytest.mark.parametrize("target", ["regression", "tokens"])
def test_what_failed_to_be_predicted_is_predicted_by_the_model_that_was_saved(
    folder, tmp_path, monkeypatch, target
) -> None:
    turns = [{"role": "user", "content": "how are you"}, {"role": "assistant", "content": "fine"}]
    data = rows(tmp_path / "rows.jsonl", NUMBERS if target == "regression" else [{"messages": turns}] * 4)
    wish = settings(folder, tmp_path, data, target=target, held_out=data, steps=20)
    told: list[list[str]] = []
    for name in ("whole", "cut"):
        said: list[str] = []
        mine = msgspec.structs.replace(wish, out=tmp_path / name)
        if name == "cut":
            with monkeypatch.context() as broken, pytest.raises(MemoryError):
                broken.setattr("overtone.echat.learn.train_text._held_out", _no_room)
                run(mine, said.append)
            assert (mine.out / "stage-text" / "model").is_dir()
            said.clear()
            mine = msgspec.structs.replace(mine, resume=True)
        assert run(mine, said.append)
        told.append([line for line in said if "held-out" in line])
    assert told[0] == told[1] and len(told[0]) == 1
    if target == "regression":
        assert len({(tmp_path / name / "predictions.jsonl").read_bytes() for name in ("whole", "cut")}) == 1


def _no_room(*_: object) -> None:
    raise MemoryError


def test_a_model_is_there_whole_and_on_disk_or_not_at_all(folder, tmp_path, monkeypatch) -> None:
    import safetensors.torch

    wish = settings(folder, tmp_path, rows(tmp_path / "rows.jsonl", NUMBERS), target="regression", steps=4)
    with monkeypatch.context() as broken, pytest.raises(MemoryError):
        broken.setattr(safetensors.torch, "save_file", _no_room)  # as a kill before the last file
        run(wish, lambda line: None)
    assert not (tmp_path / "out" / "stage-text" / "model").exists()
    written: set[int] = set()
    to_disk, renamed, names = os.fsync, Path.rename, []

    def rename(path: Path, to: Path) -> Path:
        if to.name == "model":
            names.extend(one.name for one in path.rglob("*"))
            assert {one.stat().st_ino for one in (*path.rglob("*"), path)} <= written
        return renamed(path, to)

    monkeypatch.setattr(os, "fsync", lambda number: written.add(os.fstat(number).st_ino) or to_disk(number))
    monkeypatch.setattr(Path, "rename", rename)
    said: list[str] = []
    assert run(msgspec.structs.replace(wish, resume=True), said.append)
    assert "the run is already done" not in said
    assert {"config.json", "model.safetensors", "head.safetensors"} <= set(names)
    assert not list((tmp_path / "out" / "stage-text").glob(".*"))


def test_a_run_goes_on_with_the_same_rows_wherever_they_lie(folder, tmp_path) -> None:
    wish = settings(folder, tmp_path, rows(tmp_path / "rows.jsonl", NUMBERS), target="regression", minutes=1e-9)
    assert not run(wish, lambda line: None)
    moved = rows(tmp_path / "moved.jsonl", NUMBERS)
    on = msgspec.structs.replace(wish, resume=True, minutes=1.0, data=(moved,))
    rows(tmp_path / "rows.jsonl", NUMBERS[:3])
    with pytest.raises(StoreError, match="started with other data"):
        run(msgspec.structs.replace(on, data=wish.data), lambda line: None)
    assert run(on, lambda line: None)


def test_fewer_rows_than_processes_are_told() -> None:
    with pytest.raises(DataError, match="1 rows for 2 processes"):
        Rows([Sequence("a", "t2t")], None, 4, 0, World(0, 2, torch.device("cpu")))
