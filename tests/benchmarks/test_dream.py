"""DREAM's files become questions with three options, its baselines give known numbers, and bad files are refused."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import overtone
from overtone.benchmarks import Selection
from overtone.benchmarks.dream import SUITE, load
from overtone.benchmarks.dream.baseline_scores import NAMES, BaselineScores
from overtone.benchmarks.dream.baselines import Baselines, window_score
from overtone.build.dream.dream_files import Dialogue, Line, Question, read_split
from overtone.cli import main
from overtone.errors import DataError
from overtone.metrics import Answered
from overtone.results.headline import suite_tables
from overtone.results.load import open_run
from overtone.runs.session import planned, warnings_of
from overtone.runs.settings import Settings
from overtone.schema import Item, Key, Likelihood, Reply, Request
from overtone.spec import parse_spec
from tests.servers import tone

Row = list[Any]
SHOES = ["W: Do you like the red shoes?", "M: No, I like the blue shoes. They cost ten dollars.", "W: I buy them."]


def asked(
    question: str = "What does the woman buy?", answer: str = "The blue shoes.", **changes: Any
) -> dict[str, Any]:
    choices = ["The red shoes.", answer, "A hat for her very old mother in the country."]
    return {"question": question, "choice": choices, "answer": answer} | changes


def rows() -> list[Row]:
    """Two dialogues with three questions; the third is not annotated."""
    first = [SHOES, [asked(), asked("How much are they?", "Ten dollars.")], "4-1"]
    return [first, [["A: It rains."], [asked("How is the weather?", "Wet.")], "12-2"]]


def write(root: Path, test: list[Row] | None = None, train: list[Row] | None = None, types: bool = True) -> Path:
    root.mkdir(exist_ok=True)
    (root / "test.json").write_bytes(msgspec.json.encode(rows() if test is None else test))
    if train is not None:
        (root / "train.json").write_bytes(msgspec.json.encode(train))
    if types:
        annotate(root, 1, "4-1\t1\tl\n4-1\t2\tcl\n")
        annotate(root, 2, "4-1\t1\tl\n4-1\t2\tal\n")
    return root


def annotate(root: Path, annotator: int, lines: str, head: str = "dialogueID\tquestionIndex\ttype") -> None:
    (root / f"annotator{annotator}_test.txt").write_text(f"{head}\n{lines}".replace("\n", "\r\n"), encoding="utf-8")


def items(data: Path) -> list[Item]:
    return list(load(data).items(Selection()))


def test_a_dialogue_becomes_questions_with_three_options_in_one_group(tmp_path: Path) -> None:
    first, second, third = items(write(tmp_path, train=rows()))
    assert [i.id for i in (first, second, third)] == ["dream/test/4-1/1", "dream/test/4-1/2", "dream/test/12-2/1"]
    assert first.group == second.group != third.group
    assert (first.task, first.gold, [o.letter for o in first.options]) == ("choose", "B", ["A", "B", "C"])
    assert first.options[1].text == "The blue shoes." and first.question == "What does the woman buy?"
    assert first.turns[0].words == "\n".join(SHOES) and first.turns[0].clip is None


def test_types_say_which_ones_both_annotators_name(tmp_path: Path) -> None:
    topics = [i.topic for i in items(write(tmp_path))]
    assert topics == ["+logic", "+logic ~arithmetic ~commonsense", ""]


def test_a_question_that_one_annotator_skipped_has_disputed_types(tmp_path: Path) -> None:
    annotate(write(tmp_path), 2, "4-1\t2\tal\n")
    assert items(tmp_path)[0].topic == "~logic"


def test_a_file_chooses_its_split_and_the_repository_has_its_own_folders(tmp_path: Path) -> None:
    root = write(tmp_path / "data", types=False)
    (root / "dev.json").write_bytes(msgspec.json.encode(rows()[1:]))
    (tmp_path / "annotation").mkdir()
    annotate(tmp_path / "annotation", 1, "4-1\t1\tm\n")
    annotate(tmp_path / "annotation", 2, "4-1\t1\tm\n")
    assert [i.topic for i in items(tmp_path)] == ["+matching", "", ""]
    assert [i.id for i in items(root / "dev.json")] == ["dream/dev/12-2/1"]
    assert items(root)[0].topic == "+matching"  # the data folder of the repository


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[0][1][0].update(answer="The green shoes."), "4-1.*question 1.*none of the choices"),
        (lambda r: r[0][1][0].update(choice=["a", "a", "b"], answer="a"), "more than one of the choices"),
        (lambda r: r[0][1][0].update(choice=["a", "b"], answer="a"), "3 choices"),
        (lambda r: r[0][1][0].pop("answer"), "'question', 'choice' and 'answer'"),
        (lambda r: r[0].__setitem__(0, []), "no turns with words"),
        (lambda r: r[0].__setitem__(0, ["M: …"]), "no turns with words"),
        (lambda r: r[0].__setitem__(0, ["no speaker"]), "does not begin with a speaker"),
        (lambda r: r[0].__setitem__(0, "M: text"), "not a list of texts"),
        (lambda r: r[0].__setitem__(1, []), "no question"),
        (lambda r: r[0].__setitem__(2, ""), "the id of the dialogue is missing"),
        (lambda r: r[0].__setitem__(2, "../../x"), "the id of the dialogue is missing"),
        (lambda r: r[0].pop(), "turns, questions, id"),
        (lambda r: r[1].__setitem__(2, "4-1"), "4-1 is at positions 0 and 1"),
        (lambda r: r.__setitem__(0, {"dialogue_id": "4-1"}), "another version"),
        (lambda r: r.clear(), "a list of dialogues"),
    ],
)
def test_files_of_other_versions_are_refused_with_their_place(tmp_path: Path, change: Any, message: str) -> None:
    changed = rows()
    change(changed)
    with pytest.raises(DataError, match=message):
        load(write(tmp_path, changed, types=False))


@pytest.mark.parametrize(
    ("lines", "head", "message"),
    [
        ("4-1\t3\tl\n", None, "no question 3 of dialogue 4-1"),
        ("9-9\t1\tl\n", None, "no question 1 of dialogue 9-9"),
        ("4-1\t1\tx\n", None, "line 2.*letters of mslac"),
        ("4-1\t1\n", None, "line 2"),
        ("4-1\t1\tl\n", "id,question,type", "the first line must be"),
    ],
)
def test_types_of_other_questions_are_refused(tmp_path: Path, lines: str, head: str | None, message: str) -> None:
    annotate(write(tmp_path), 2, lines, **({"head": head} if head else {}))
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_missing_split_and_a_missing_annotator_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a")
    (tmp_path / "a" / "annotator2_test.txt").unlink()
    with pytest.raises(DataError, match="has annotator1_test"):
        load(tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(DataError, match=r"holds no test\.json; fetch"):
        load(tmp_path / "b")
    (tmp_path / "b" / "dev.json").write_bytes(msgspec.json.encode(rows()))
    with pytest.raises(DataError, match=r"it has dev\.json: give one of these files"):
        load(tmp_path / "b")
    (tmp_path / "b" / "x.json").write_text("[]")
    with pytest.raises(DataError, match="not a file of DREAM"):
        load(tmp_path / "b" / "x.json")
    (tmp_path / "b" / "test.json").write_text("[")
    with pytest.raises(DataError, match="not valid JSON"):
        load(tmp_path / "b")


def test_dialogues_are_asked_in_writing_unless_they_are_spoken(tmp_path: Path) -> None:
    settings = Settings(benchmark="dream", data=str(write(tmp_path)), model=parse_spec("cascade"))
    benchmark = load(tmp_path)
    assert {name for _, names in planned(settings, benchmark) for name in names} == {"task/transcript"}
    assert any("asked in writing" in line for line in warnings_of(settings, benchmark))
    (tmp_path / "audio" / "test").mkdir(parents=True)
    (tmp_path / "audio" / "test" / "4-1.wav").write_bytes(tone(1, 0.2))
    spoken = load(tmp_path)
    assert {name for _, names in planned(settings, spoken) for name in names} == {"task/audio"}
    assert [i.group for i in spoken.items(Selection())] == ["test/4-1"] * 2  # 12-2 has no recording
    assert any("recording is missing" in line for line in warnings_of(settings, spoken))


# ── baselines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_window_sums_the_rarity_of_words_as_computed_by_hand() -> None:
    said = ["a", "b", "a", "c", "d"]
    # Words of question and option: b, c. Windows of two words: "a c" and "b a" have one of them, each once: log 2.
    assert math.isclose(window_score(said, "b?", "c"), math.log(2))
    # a (twice: log 1.5), b, c: three words; the window "b a c" has log 2 + log 1.5 + log 2.
    assert math.isclose(window_score(said, "a b?", "c"), 2 * math.log(2) + math.log(1.5))


def test_each_baseline_answers_by_its_own_rule() -> None:
    def dialogue(words: str, question: str, *choices: str, answer: int = 0) -> Dialogue:
        return Dialogue("1-1", (Line("M", words),), (Question(question, choices, answer),))

    train = [dialogue("the the sea", "Where?", "at home", "at sea", "in bed") for _ in range(3)]
    train += [dialogue("the ship", "Where?", "at home", "on land", "in air")]
    (answers,) = Baselines(train).answers(dialogue("the sea and a lamp", "Where?", "the sea", "a lamp", "at home now"))
    # longest: the most characters. options: "home" was always right. overlap: "lamp" is unknown and therefore rarest.
    assert answers == {"longest": 2, "options": 2, "window": 0, "overlap": 1}
    (blind,) = Baselines(None).answers(dialogue("the sea", "Where?", "at", "the sea", "of"))
    assert blind == {"longest": 1, "window": 1}


def test_without_the_train_split_two_baselines_are_left_out_with_a_warning(tmp_path: Path) -> None:
    benchmark = load(write(tmp_path))
    assert {g.baseline for i in benchmark.items(Selection()) for g in i.guesses} == {"longest", "window"}
    assert any("options and overlap" in line and "no train.json" in line for line in benchmark.warnings)


def test_baselines_are_scored_on_the_questions_that_were_answered(tmp_path: Path) -> None:
    item = items(write(tmp_path, train=rows()))[0]
    metric = BaselineScores()
    assert metric.applies(item)
    scores = {s.metric: s.value for s in metric.score([Answered(Key(item.id, "task/transcript"), item, "C")])[0]}
    assert set(scores) == set(NAMES.values()) and scores["dream_longest"] == 0.0  # the longest is C, B is right


@pytest.mark.shared
def test_the_released_files_give_the_known_counts_and_baselines(shared: Path) -> None:
    root = shared / "data" / "dream"
    counts = {split: read_split(root, split) for split in ("train", "dev", "test")}  # type: ignore[arg-type]
    assert {s: (len(d), sum(len(x.questions) for x in d)) for s, d in counts.items()} == {
        "train": (3869, 6116),
        "dev": (1288, 2040),
        "test": (1287, 2041),
    }
    asked_items = items(root)
    right = Counter(g.baseline for i in asked_items for g in i.guesses if g.letter == i.gold)
    shares = {name: round(100 * n / len(asked_items), 1) for name, n in right.items()}
    assert shares == {"longest": 33.2, "options": 38.9, "window": 42.9, "overlap": 44.0}
    known = {"longest": 33.2, "options": 38.8, "window": 43.7, "overlap": 44.0}  # by others; details are not stated
    assert {name: abs(shares[name] - value) < 0.15 for name, value in known.items()} == {
        "longest": True, "options": True, "window": False, "overlap": True,
    }  # fmt: skip
    assert abs(shares["window"] - known["window"]) < 1
    assert sum(bool(i.topic) for i in asked_items) == 514


def test_a_run_shows_accuracy_types_and_baselines_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, answers = write(tmp_path / "data", train=rows()), tmp_path / "answers.json"
    answers.write_bytes(msgspec.json.encode({i.id: i.gold if i.id.endswith("1/1") else "C" for i in items(data)}))
    out = tmp_path / "run"
    assert (
        main(["run", "dream", "--data", str(data), "--model", f"predictions:{answers}", "--out", str(out), "-q"]) == 0
    )
    tables = {table.headline.key: table for table in suite_tables(open_run(out))}
    (row,) = tables["dream"].rows
    cells = dict(zip((column.key for column in tables["dream"].headline.columns), row.cells, strict=True))
    assert row.condition == "task/transcript" and set(cells) == {"accuracy", "above", *NAMES}
    guessed = Counter(g.baseline for i in items(data) for g in i.guesses if g.letter == i.gold)
    assert cells["accuracy"].value == pytest.approx(1 / 3) and cells["accuracy"].scored == 3
    assert cells["above"].value == pytest.approx((1 - guessed["overlap"]) / 3)
    assert {name: round(cells[name].value * 3) for name in NAMES} == {name: guessed[name] for name in NAMES}
    assert main(["table", "headline", str(out)]) == 0  # without --input transcript, which is the only one
    assert "task/transcript" in capsys.readouterr().out
    types = tables["dream-types"]
    logic, either = (next(iter(tables[key].rows)).cells for key in ("dream-types", "dream-types-either"))
    place = [column.key for column in types.headline.columns].index("logic")
    assert (logic[place].scored, logic[place].value) == (2, 0.5) and either[0] is None
    assert [cell.scored if cell else 0 for cell in either] == [0, 0, 2, 1, 1]


def test_intervals_are_clustered_by_dialogue(tmp_path: Path) -> None:
    same = [[SHOES, [asked(f"Question {q}?") for q in range(8)], f"4-{n}"] for n in range(1, 13)]
    data, answers = write(tmp_path / "data", same, types=False), tmp_path / "answers.json"

    def width(name: str, letter: Any) -> float:
        answers.write_bytes(msgspec.json.encode({i.id: letter(i) for i in items(data)}))
        out = tmp_path / name
        run = ["run", "dream", "--data", str(data), "--model", f"predictions:{answers}", "--out", str(out), "-q"]
        assert main(run) == 0
        cell = suite_tables(open_run(out))[0].rows[0].cells[0]
        assert cell is not None and cell.value == 0.5 and cell.low is not None and cell.high is not None
        return cell.high - cell.low

    letters = random.Random(1).sample("BC" * 48, 96)
    whole = width("whole", lambda i: "B" if int(i.group.rpartition("-")[2]) % 2 else "C")  # dialogues right or wrong
    mixed = width("mixed", lambda i: letters.pop())
    assert whole > 2 * mixed


def test_published_rows_say_that_they_were_not_verified() -> None:
    assert SUITE.published and all("not verified" in f"{p.title}" and p.comparable for p in SUITE.published)


class Likely:
    """A model that finds the second option most likely per token, and the third once its prior is subtracted."""

    likelihoods = True
    given = (Likelihood(-9.0, 4, -8.0), Likelihood(-4.0, 4, -1.0), Likelihood(-6.0, 4, -9.0))

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(request.continuations[0][1], likelihoods=(self.given,))


def test_options_can_be_chosen_by_likelihood_without_showing_letters(tmp_path: Path) -> None:
    model = Likely()
    data = write(tmp_path / "data", [[SHOES, [asked()], "4-1"]], types=False)
    run = overtone.run("dream", data=data, model=model, prompt="likelihood", out=tmp_path / "run")
    (request,) = model.requests
    assert request.continuations == (("The red shoes.", "The blue shoes.", asked()["choice"][2]),)
    text = request.messages[-1].text
    assert "\n".join(SHOES) in text and "What does the woman buy?" in text and "The red shoes." not in text
    assert all("W: Do you like" not in message.text for message in request.without)
    tables = {t.headline.key: t.rows[0] for t in suite_tables(open_run(run.folder))}
    assert tables["dream"].condition == "likelihood/transcript"
    accuracy, minus_prior = tables["dream"].cells[0], tables["dream-likelihood"].cells[0]
    assert accuracy is not None and accuracy.value == 1.0 and minus_prior is not None and minus_prior.value == 0.0
