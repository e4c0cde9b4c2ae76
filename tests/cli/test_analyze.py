"""`overtone analyze`: what it says, its formats, keys that lead back to cases, and what it refuses."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from bench.findings_runs import make_runs
from overtone.cli import main
from overtone.runs.store import Store
from tests.results.small import Maker, item

QUESTIONS = ("Where between hearing and a fitting reply is the voice lost?", "What does the audio add to the words?")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(folder) for folder in make_runs(tmp_path_factory.mktemp("runs"), runs=2, scripts=12)]


def toy(folder: Path, benchmark: str = "toy", label: str = "") -> str:
    """A run of two questions and a transcript."""
    maker = Maker(folder)
    maker.choice(item("q1", "choose", benchmark=benchmark), "A")
    maker.choice(item("q2", "choose", benchmark=benchmark, script="s2"), "B")
    maker.transcript(item("t", "transcribe", benchmark=benchmark), 1, 4)
    maker.store.set_meta({"benchmark": benchmark, "model": f"m-{folder.name}", **({"label": label} if label else {})})
    return str(maker.done())


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["analyze", *words]) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_every_finding_is_told_with_its_question_sentences_and_tables(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, *runs)
    for question in QUESTIONS:
        assert text.count(question) == 1
    assert "heard the cue" in text and "After the previous" in text
    assert "Wrong cue stated" in text
    assert "GPT-4o-Audio" in text
    assert "more sentences and the numbers under other conditions: --by all" in text
    assert "zero/audio:" not in text
    assert "\x1b" not in text


def test_all_conditions_are_told_on_demand(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, runs[0], "--finding", "funnel", "--by", "all")
    assert "zero/audio:" in text and "oracle-false/audio" in text
    assert "more sentences" not in text
    assert "What does the sound add" not in text


def test_json_holds_everything_and_each_key_leads_to_cases(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    told = msgspec.json.decode(out(capsys, *runs, "--finding", "funnel", "--finding", "levels", "--format", "json"))
    assert [finding["name"] for finding in told["findings"]] == ["funnel", "funnel", "levels"]
    assert told["runs"][0]["signatures"]["accuracy"]
    second = told["findings"][1]
    assert second["runs"] == [2]
    assert second["found"]["signature"].startswith("funnel|v2|words:wer<=0.2")
    spoken = [sentence for finding in told["findings"] for sentence in finding["sentences"]]
    keys = [sentence["key"] for sentence in spoken]
    assert all(sentence["key"] or sentence["text"].startswith("Not enough data") for sentence in spoken)
    assert any(key.startswith("2:funnel/") for key in keys)
    row = next(r for r in second["found"]["rows"] if r["key"] == "2:funnel/enhance/audio/overall/used")
    cases = out(capsys, *runs, "--behind", row["key"]).split()
    assert 0 < len(set(cases)) == len(cases) <= row["reached"]["scored"]  # some were asked twice
    passed = out(capsys, *runs, "--behind", f"{row['key']}/passed").split()
    failed = out(capsys, *runs, "--behind", f"{row['key']}/failed").split()
    assert set(passed) | set(failed) == set(cases)


def test_a_number_of_the_plain_tables_leads_to_its_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = toy(tmp_path / "a"), toy(tmp_path / "b")
    key = "where=run:2,condition:task/audio,measure:voice_accuracy"
    assert out(capsys, a, b, "--behind", key).split() == ["synthesis/s1/target", "synthesis/s2/target"]


def test_markdown_has_the_same_numbers(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, runs[0], "--finding", "upper", "--format", "markdown")
    assert "## With the cue stated" in text and "### With the cue stated" in text
    assert "| C4 ↑ | " in text
    assert text.count("\n| ") > 4


def test_stages_are_named_parameters(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--finding", "funnel", "--format", "json"]
    strict = msgspec.json.decode(
        out(capsys, runs[0], *words, "--set", "funnel.used=5", "--set", "funnel.words=0", "--set", "funnel.cue=coarse")
    )
    found = strict["findings"][0]["found"]
    assert "words:wer<=0|cue:coarse" in found["signature"] and "cspeechrel>=5" in found["signature"]
    key = found["rows"][0]["key"]
    assert key.startswith("1:funnel-coarse/")
    assert out(capsys, runs[0], "--set", "funnel.words=0", "--behind", key)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "funnel.wrods=0.2"], "did you mean 'words'"),
        (["--set", "funnel.words"], "give a number from 0"),
        (["--set", "funnel.words=nan"], "give a number from 0"),
        (["--set", "funnel.reasoned=2"], "from 0 to 1"),
        (["--set", "funnel.used=9"], "from 1 to 5"),
        (["--set", "funnel.cue=rough"], "coarse or fine"),
        (["--set", "funnel.used=4", "--set", "funnel.used=5"], "given twice"),
        (["--finding", "funel"], "did you mean 'funnel'"),
        (["--prompt", "enhanced"], "did you mean 'enhance'"),
        (["--input", "audoi"], "did you mean 'audio'"),
        (["--behind", "funnel/nothing"], "no number of these runs has the key"),
        (["--behind", "9:funnel/nothing"], "there is no such run"),
        (["--behind", "nonsense"], "is not the key of a finding"),
        (["--behind", "where=run:2,condition:task/audio,measure:wer_raw"], "does not name one of the runs"),
        (["--behind", "where=run:1,measure:wer_raw"], "condition is missing"),
        (["--behind", "where=nonsense"], "no number has the key"),
    ],
)
def test_what_is_misspelt_is_refused_with_the_nearest(
    words: list[str], says: str, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, runs[0], *words, code=2)
    assert says in text
    assert text.count("\n") == 1


def test_what_is_no_run_is_refused(tmp_path: Path, runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "missing" in out(capsys, str(tmp_path / "missing"), code=2)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "run.db").write_bytes(b"SQLite format 3\0 but no more")
    assert "foreign" in out(capsys, str(tmp_path / "foreign"), code=2)
    Store.create(tmp_path / "empty").close()
    assert "holds no answers" in out(capsys, str(tmp_path / "empty"), code=2)
    (tmp_path / "link").symlink_to(runs[0])
    assert "given twice" in out(capsys, runs[0], str(tmp_path / "link"), code=2)


def test_benchmarks_are_not_averaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = toy(tmp_path / "a"), toy(tmp_path / "b", "other")
    text = out(capsys, a, b)
    assert "levels is left out: the runs have several benchmarks (toy, other)" in text
    assert "heard the cue" in text
    assert "Levels together" not in text
    assert "give runs of one benchmark" in out(capsys, a, b, "--finding", "levels", code=2)


def test_a_killed_run_is_told_of_as_far_as_it_came(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = Maker(tmp_path / "run")
    maker.choice(item("q1", "choose"), "A")
    maker.pending(item("q2", "choose", script="s2"))
    maker.failed(item("q3", "choose", script="s3"))
    folder = maker.done()
    with sqlite3.connect(folder / "run.db") as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('open', 'yes')")  # as a kill leaves it
    text = out(capsys, str(folder))
    assert "of 3 requests 1 failed and 1 not asked yet; repeat the command that ran it to resume" in text
    assert "100.0" in text


def test_what_cannot_be_told_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, toy(tmp_path / "a"))
    assert "Not enough data to answer this; the notes say what is missing" in text
    assert "run with --prompt enhance,oracle,oracle-false" in text
    assert "overtone score RUN --judge SPEC" in text


def test_a_deaf_run_solves_what_the_words_give_and_is_not_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, deaf = toy(tmp_path / "a"), toy(tmp_path / "deaf")
    without = msgspec.json.decode(out(capsys, a, "--finding", "text-only", "--format", "json"))
    assert without["findings"][0]["found"]["unsolved"] == []
    beside = msgspec.json.decode(out(capsys, a, "--deaf", deaf, "--format", "json"))
    assert len(beside["runs"]) == 1
    alone = next(f for f in beside["findings"] if f["name"] == "text-only")
    assert (alone["found"]["unsolved"][0]["questions"], alone["found"]["unsolved"][0]["unsolved"]) == (2, 1)
    assert [f["runs"] for f in beside["findings"] if f["name"] == "leaderboard"] == [[1]]
    key = alone["found"]["unsolved"][0]["key"]
    assert out(capsys, a, "--deaf", deaf, "--behind", f"{key}/questions").split() == [
        "synthesis/s1/target", "synthesis/s2/target",
    ]  # fmt: skip
    among = msgspec.json.decode(out(capsys, a, deaf, "--deaf", deaf, "--format", "json"))
    assert len(among["runs"]) == 2 and among["settings"]["deaf"] == [2]


def test_a_strangers_label_is_neither_markup_nor_an_emoji(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = toy(tmp_path / "a", label="[red]x[/red]:parrot:\x1b[31m|")
    b = toy(tmp_path / "b")
    text = out(capsys, a, b, "--finding", "leaderboard")
    assert "\x1b" not in text
    assert "[red]x[/red]:parrot:" in text.replace("\n", "")
    marked = out(capsys, a, b, "--finding", "leaderboard", "--format", "markdown")
    assert r"\[red\]x\[/red\]:parrot:" in marked


def talked(folder: Path, settings: str) -> str:
    make = Maker(folder)
    make.store.set_meta({"settings": settings})
    for number in range(3):
        make.choice(item(f"q{number}", "choose", script=f"s{number}"), "A")
    return str(make.done())


def test_a_run_without_a_limit_is_told_to_use_a_larger_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--finding", "funnel")
    limited = " ".join(out(capsys, talked(tmp_path / "a", "[run]\nlimit = 3\n"), *words).split())
    assert "with a larger --limit" in limited and "--per-cue" not in limited
    whole = " ".join(out(capsys, talked(tmp_path / "b", '[run]\nlevels = "1"\n'), *words).split())
    assert "overtone build open --per-cue N" in whole and "--limit" not in whole


def test_a_run_in_which_everything_failed_is_not_told_to_ask_more_levels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = Maker(tmp_path / "run")
    for number in range(3):
        make.failed(item(f"q{number}", "choose", script=f"s{number}"))
    text = " ".join(out(capsys, str(make.done())).split())
    assert "no reply came: all 3 requests failed" in text and "--levels" not in text
