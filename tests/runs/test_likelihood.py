"""Questions answered by likelihood: how they are asked, stored, resumed, scored and exported."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import overtone
from overtone import registry
from overtone.benchmarks import Selection
from overtone.errors import StoreError, UsageError
from overtone.runs.export_rows import export
from overtone.runs.integrity import verify
from overtone.runs.store import Store
from overtone.schema import Item, Likelihood, Option, Reply, Request, Turn
from tests.runs.old_store import as_version_2

OPTIONS = (Option("A", "At home."), Option("B", "At work."), Option("C", "Abroad."))


class Toy:
    name = "toy-likely"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []
        self.prompts: dict[str, str] = {"choose.words": "{words}"}

    def items(self, selection: Selection) -> Iterator[Item]:
        for number in range(3):
            turn = Turn(None, f"M: Hello {number}.\nW: Hello.")
            fields: dict[str, Any] = {"question": "Where is she?", "options": OPTIONS, "gold": "B", "level": 2}
            yield Item.of(self.name, str(number), "choose", turn, **fields)
        yield Item.of(self.name, "talk", "converse", Turn(None, "Hello."))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("toy_likely")
    module.load = Toy  # type: ignore[attr-defined]
    monkeypatch.setitem(registry._plugins["benchmarks"], "toy-likely", module)


class Likely:
    """Finds the first option likeliest as a whole, the second per token, and the third against its prior."""

    likelihoods = True
    given = (Likelihood(-4.0, 2, -4.0), Likelihood(-6.0, 6, -7.0), Likelihood(-9.0, 3, -12.0))

    def __init__(self, fail_after: int = 9) -> None:
        self.asked: list[Request] = []
        self.fail_after = fail_after

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        if len(self.asked) > self.fail_after:
            raise RuntimeError("gone")
        if not request.continuations:
            return Reply("The answer is: [A]")
        return Reply("At work.", likelihoods=(self.given,))

    def describe(self) -> dict[str, str]:
        return {"name": "likely"}


def run(folder: Path, model: Any, prompt: str = "likelihood", **more: Any) -> None:
    overtone.run("toy-likely", data=folder, model=model, out=folder / "run", prompt=prompt, input="transcript", **more)


def test_the_question_is_asked_without_options_and_their_texts_are_the_continuations(tmp_path: Path) -> None:
    model = Likely()
    run(tmp_path, model)
    assert [request.key.condition for request in model.asked] == ["likelihood/transcript"] * 3
    first = model.asked[0]
    assert [(m.role, m.text) for m in first.messages] == [
        ("user", "M: Hello 0.\nW: Hello.\n\nQuestion: Where is she?"),
    ]
    assert first.continuations == (("At home.", "At work.", "Abroad."),)
    assert [(m.role, m.text) for m in first.without] == [("user", "Question: Where is she?")]


def test_other_prompts_keep_the_letters_and_the_conversations(tmp_path: Path) -> None:
    model = Likely()
    run(tmp_path, model, "zero,likelihood")
    conditions = [request.key.condition for request in model.asked]
    assert sorted(conditions) == ["likelihood/transcript"] * 3 + ["task/transcript"] * 3 + ["zero/transcript"]


def test_accuracy_is_of_the_likeliest_per_token_and_a_second_score_subtracts_the_prior(tmp_path: Path) -> None:
    run(tmp_path, Likely(), "task,likelihood")
    overtone.score(tmp_path / "run")
    with Store.read(tmp_path / "run") as store:
        found: dict[tuple[str, str], list[Any]] = {}
        condition = {ask.id: ask.condition for ask, _ in store.asks()}
        for ask, score in store.scores():
            if score.metric.startswith("accuracy"):
                found.setdefault((condition[ask], score.metric), []).append((score.value, score.detail["answer"]))
    assert found == {
        ("likelihood/transcript", "accuracy"): [(1.0, "B")] * 3,
        ("likelihood/transcript", "accuracy_less"): [(0.0, "C")] * 3,
        ("task/transcript", "accuracy"): [(0.0, "A")] * 3,
        ("task/transcript", "accuracy_strict"): [(0.0, "A")] * 3,
    }


def test_the_table_shows_both_scores(tmp_path: Path) -> None:
    run(tmp_path, Likely())
    overtone.score(tmp_path / "run")
    with overtone.open_run(tmp_path / "run") as opened:
        table = repr(opened.table())
    assert "likelihood/transcript" in table and "Reasoning ACC" in table and "less prior" in table


def test_likelihoods_are_stored_exported_and_kept_when_the_run_is_resumed(tmp_path: Path) -> None:
    run(tmp_path, Likely(fail_after=1))
    model = Likely()
    run(tmp_path, model)
    assert len(model.asked) == 2
    with Store.read(tmp_path / "run") as store:
        assert [reply.likelihoods for reply in store.replies()] == [(Likely.given,)] * 3
        for form in ("jsonl", "csv"):
            export(store, form, tmp_path / f"out.{form}")
    row = msgspec.json.decode((tmp_path / "out.jsonl").read_bytes().splitlines()[0])
    assert row["likelihoods"] == [[msgspec.structs.asdict(one) for one in Likely.given]]
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert msgspec.json.decode(next(csv.DictReader(file))["likelihoods"]) == row["likelihoods"]
    assert not verify(tmp_path / "run").damage


def test_a_replay_of_the_run_gives_the_same_likelihoods(tmp_path: Path) -> None:
    run(tmp_path, Likely())
    again = tmp_path / "again"
    again.mkdir()
    run(again, f"replay:{tmp_path / 'run'}")
    with Store.read(again / "run") as store:
        assert [reply.likelihoods for reply in store.replies()] == [(Likely.given,)] * 3


def test_a_model_without_likelihoods_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--prompt likelihood: python:\S+ does not give the likelihood of a text"):
        run(tmp_path, lambda request: "A")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "given",
    [
        (),
        (Likely.given[:2],),
        ((*Likely.given[:2], Likelihood(float("nan"), 3)),),
        ((*Likely.given[:2], Likelihood(0.5, 3)),),
        ((*Likely.given[:2], Likelihood(-1.0, 0)),),
    ],
)
def test_invalid_likelihoods_are_failures_and_not_stored(tmp_path: Path, given: Any) -> None:
    class Wrong(Likely):
        def ask(self, request: Request) -> Reply:
            return Reply("At work.", likelihoods=given)

    with pytest.raises(overtone.OvertoneError, match="likelihood"):
        run(tmp_path, Wrong())
    with Store.read(tmp_path / "run") as store:
        assert store.counts()["answered"] == 0 and not list(store.replies())


def test_a_run_of_an_older_version_has_none_and_is_upgraded_by_the_next_writer(tmp_path: Path) -> None:
    run(tmp_path, lambda request: "The answer is: [B]", "task")
    as_version_2(tmp_path / "run")
    with Store.read(tmp_path / "run") as store:
        assert [reply.likelihoods for reply in store.replies()] == [()] * 3
    with Store.create(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / "run.db.v2.bak").is_file()
    with Store.read(tmp_path / "run") as store:
        assert [reply.text for reply in store.replies()] == ["The answer is: [B]"] * 3


def test_damaged_likelihoods_are_reported(tmp_path: Path) -> None:
    run(tmp_path, Likely())
    with Store.create(tmp_path / "run") as store:
        store.db.execute("UPDATE likelihoods SET body = CAST('[[{}]]' AS BLOB)")
    with Store.read(tmp_path / "run") as store, pytest.raises(StoreError, match="that Overtone did not write"):
        list(store.replies())
    with Store.create(tmp_path / "run") as store:
        store.db.execute("DELETE FROM replies")
        store.db.execute("DELETE FROM asks")
    assert any("likelihoods of replies that are missing" in line for line in verify(tmp_path / "run").damage)
