"""The command line as a user meets it: help, typos, exit codes, interruption, trust, plan and export."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from overtone import registry
from overtone.cli import main
from overtone.cli._main import command_parser
from overtone.cli._plugins import leaves
from overtone.runs.store import Store
from overtone.schema import Option, Reply
from tests.runs.test_store import filled, item
from tests.servers import OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def words(data: Path, server: OpenAIServer, out: Path, *more: str) -> list[str]:
    model = f"openai:any?base_url={server.base_url}"
    return ["run", "echomind", "--data", str(data), "--model", model, "--out", str(out), *more]


def test_help_run_is_the_help_of_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "run"]) == 0
    by_help = capsys.readouterr().out
    assert main(["run", "--help"]) == 0
    assert capsys.readouterr().out == by_help
    assert "what is asked:" in by_help and "requests and cost:" in by_help
    assert main(["help", "rnu"]) == 2
    assert "did you mean 'run'" in capsys.readouterr().err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in ("run", "score", "report", "export", "plan", "data", "list", "setup"):
        assert f"\n  {command} " in shown
    assert main([]) == 2


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "score", "report", "export", "plan", "data", "list", "setup", "case", "build", "demo"):
        assert main([command, "--help"]) == 0
        assert f"usage: overtone {command}" in capsys.readouterr().out


@pytest.mark.parametrize("name", registry.builtins("cli"))
def test_help_ends_with_examples_that_the_command_accepts(name: str) -> None:
    parser = command_parser(name)
    examples = registry.find("cli", name).EXAMPLES
    assert parser.format_help().endswith("".join(f"  {line}\n" for line in examples))
    for leaf in leaves(parser):
        assert "\n  overtone " in leaf.format_help().partition("\nexample")[2], leaf.prog
    for line in examples:
        program, command, *words = shlex.split(line)
        assert (program, command) == ("overtone", name)
        parser.parse_args(words)


def test_help_has_the_flags_of_a_command_with_many_in_groups() -> None:
    for name in ("table", "figure", "compare", "judge", "data", "build"):
        for leaf in leaves(command_parser(name)):
            ungrouped = {action.dest for action in leaf._optionals._group_actions} - {"help", "plugin", "insecure"}
            assert len(ungrouped) <= 3, (leaf.prog, ungrouped)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("overtone 0.")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["rnu"], "did you mean 'run'"),
        (["run", "echomind", "--modle", "x"], "did you mean '--model'"),
        (["run", "ecomind", "--model", "cascade", "--data", "."], "did you mean 'echomind'"),
        (["run", "echomind", "--model", "opnai:x", "--data", "."], "did you mean 'openai'"),
        (
            ["run", "echomind", "--model", "openai:x?tmperature=1&base_url=http://127.0.0.1:1", "--data", "."],
            "temperature",
        ),
        (["run", "echomind", "--model", "openai:x?api_key=sk-1", "--data", "."], "looks like a secret"),
        (["run", "echomind", "--model", "openai:x?base_url=http://u:p@h/v1", "--data", "."], "user name or password"),
        (["run", "nowhere.toml"], "cannot read run file"),
        (["report", "/nowhere"], "is not a run"),
        (["score", "/nowhere"], "is not a run"),
        (["export", "/nowhere"], "is not a run"),
        (["run", "echomind", "--model", "cascade", "--data", "/nowhere"], "/nowhere"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_2(
    given: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(given) == 2
    shown = capsys.readouterr().err
    assert complaint in shown
    assert "Traceback" not in shown
    assert "sk-1" not in shown
    assert "u:p@" not in shown
    assert not (tmp_path / "runs").exists(), "a mistake must not leave a run behind"


def test_a_run_prints_its_tables_and_says_what_next(
    small: Path, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(small, server, tmp_path / "run")) == 0
    shown = capsys.readouterr()
    assert "WER" in shown.out
    assert f"next: overtone report {tmp_path / 'run'}" in shown.out
    assert "18/18" in shown.err
    assert "\x1b[" not in shown.out + shown.err
    log = (tmp_path / "run" / "run.log").read_text()
    assert "answered 18, failed 0" in log


def test_failures_are_exit_3_and_the_budget_exit_4(small: Path, server: OpenAIServer, tmp_path: Path) -> None:
    assert main(words(small, server, tmp_path / "run", "-q", "--limit", "1")) == 0
    assert main(words(small, server, tmp_path / "run", "-q", "--budget-requests", "2")) == 4
    server.always = "400:no such thing"
    assert main(words(small, server, tmp_path / "run", "-q")) == 3
    server.always = None
    assert main(words(small, server, tmp_path / "run", "-q")) == 0


def test_one_of_several_models_that_is_not_there_does_not_stop_the_others(
    small: Path, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ["openai:gone?base_url=http://127.0.0.1:9/v1", f"openai:any?base_url={server.base_url}"]
    given = [word for model in models for word in ("--model", model)]
    assert main(["run", "echomind", "--data", str(small), *given, "--out", str(tmp_path / "runs"), "-q"]) == 2
    assert "echomind-openai-gone: the first request failed" in capsys.readouterr().err
    with Store.read(tmp_path / "runs" / "echomind-openai-any") as store:
        assert store.counts()["answered"] == 18


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(small: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.3) as server:
        command = [sys.executable, "-m", "overtone", *words(small, server, tmp_path / "run", "--max-connections", "2")]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while server.count < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        assert child.returncode == 130, err
        assert "run the same command again to resume" in out
        assert "Traceback" not in err
        asked = server.count
        with Store.read(tmp_path / "run") as store:
            assert store.counts()["answered"] == asked, "what was in flight came back and was kept"
        server.latency = 0.0
        assert main(words(small, server, tmp_path / "run", "-q")) == 0
        assert server.count == 18


def test_plan_asks_nothing_and_counts_what_is_left(
    small: Path, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(small, server, tmp_path / "run", "-q", "--limit", "4")) == 0
    before = server.count
    assert main(["plan", *words(small, server, tmp_path / "run")[1:]]) == 0
    shown = capsys.readouterr().out
    assert server.count == before
    assert "requests     14 (" in shown
    assert "answered     4 before" in shown
    assert "price unknown" in shown


def test_plan_gives_a_price_range_for_a_known_model(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "echomind", "--data", str(small), "--model", "openai:gpt-4o-audio-preview"]) == 0
    assert " to $" in capsys.readouterr().out


HOSTILE = [
    '=HYPERLINK("http://x")',
    "+1",
    "-2",
    "@cmd",
    "  =1+1",
    "\t=1",
    "\ufeff=1",
    "\x01\u200b@x",
    "\uff1d1",
    "plain",
]


def hostile_run(folder: Path) -> Path:
    with filled(folder, len(HOSTILE)) as store:
        for ask, text in zip(store.open_asks(0, 99), HOSTILE, strict=True):
            store.add_reply(ask, 0, Reply(text), sent=b"[]", latency=0.1, attempts=1)
    return folder


def test_csv_cells_cannot_become_formulas(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    assert main(["export", str(run), "--format", "csv"]) == 0
    with (run / "replies.csv").open(newline="") as file:
        cells = [row["text"] for row in csv.DictReader(file)]
    assert [cell.lstrip("'") for cell in cells] == [text.replace("\x01", "\\x01") for text in HOSTILE]
    assert all(cell.startswith("'") for cell in cells[:-1])
    assert cells[-1] == "plain"


def test_jsonl_and_parquet_hold_every_reply_as_it_was(tmp_path: Path) -> None:
    import pyarrow.parquet

    run = hostile_run(tmp_path / "run")
    assert main(["export", str(run), "--format", "jsonl", "-o", str(tmp_path / "x.jsonl")]) == 0
    rows = [msgspec.json.decode(line) for line in (tmp_path / "x.jsonl").read_bytes().splitlines()]
    assert [row["text"] for row in rows] == HOSTILE
    assert main(["export", str(run), "--format", "parquet"]) == 0
    assert pyarrow.parquet.read_table(run / "replies.parquet")["text"].to_pylist() == HOSTILE


def two_conditions(folder: Path) -> Path:
    items = [item(n, task="choose", options=(Option("A", "yes"), Option("B", "no")), gold="A") for n in range(2)]
    with Store.create(folder) as store:
        store.plan([(one, ("zero/audio", "enhance/audio")) for one in items], 1)
        for ask in store.open_asks(0, 99):
            text = "B" if ask.item.case.endswith("0/target") else "who knows"
            store.add_reply(ask, 0, Reply(text), sent=b"[]", latency=0.1, attempts=1)
    return folder


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_export_writes_one_condition_and_refuses_one_that_the_run_does_not_have(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = two_conditions(tmp_path / "run")
    assert main(["export", str(run), "--format", form]) == 0
    assert main(["export", str(run), "--format", form, "--condition", "enhance/audio"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("4 rows") and "\n2 rows" in printed
    assert main(["export", str(run), "--format", form, "--condition", "enhance/audios"]) == 2
    error = capsys.readouterr().err
    assert "did you mean 'enhance/audio'" in error and "zero/audio" in error


def test_export_takes_the_format_from_the_ending_and_refuses_flags_that_it_would_ignore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(two_conditions(tmp_path / "run"))
    assert main(["export", run, "-o", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text().startswith("run,model,item,condition")
    assert main(["export", run, "-o", str(tmp_path / "x.docx")]) == 2
    assert main(["export", run, "--format", "csv", "-o", str(tmp_path / "x.jsonl")]) == 2
    assert main(["export", run, "--by", "semsim", "--hold-out", "0.2"]) == 2
    assert "--by, --hold-out: only for --format preferences" in capsys.readouterr().err
    assert not (tmp_path / "x.docx").exists() and not (tmp_path / "x.jsonl").exists()


def test_export_names_the_letter_that_was_read_and_how(tmp_path: Path) -> None:
    run = two_conditions(tmp_path / "run")
    assert main(["score", str(run), "--metric", "choice"]) == 0
    assert main(["export", str(run), "--condition", "zero/audio"]) == 0
    rows = [msgspec.json.decode(line) for line in (run / "replies.jsonl").read_bytes().splitlines()]
    assert [(row["answer"], row["read_by"]) for row in rows] == [("B", "rules"), ("", "rules")]
    assert rows[0]["answer_status"] == "parsed" and rows[1]["answer_status"] not in ("", "parsed")


def test_list_shows_each_room_without_importing_it() -> None:
    code = "import sys; from overtone.cli import main; main(['list']); print({'aiohttp', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    for name in (
        "echomind",
        "openai",
        "gemini",
        "worker",
        "cascade",
        "command",
        "replay",
        "wer",
        "semsim",
        "oracle-false",
    ):
        assert f"\n  {name} " in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m overtone list | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert os.linesep not in done.stderr.strip()


def test_a_recorded_run_can_be_replayed_and_scores_the_same(small: Path, server: OpenAIServer, tmp_path: Path) -> None:
    assert main(words(small, server, tmp_path / "run", "-q")) == 0
    server.always = "500"
    replay = [
        "run",
        "echomind",
        "--data",
        str(small),
        "--model",
        f"replay:{tmp_path / 'run'}",
        "--out",
        str(tmp_path / "again"),
    ]
    assert main([*replay, "-q"]) == 0
    with Store.read(tmp_path / "run") as first, Store.read(tmp_path / "again") as second:
        pairs = [
            (f"{a.key} {a.text} {a.audio}", f"{b.key} {b.text} {b.audio}")
            for a, b in zip(first.replies(), second.replies(), strict=True)
        ]
        assert all(a == b for a, b in pairs)
        assert [s for _, s in first.scores()] == [s for _, s in second.scores()]
    assert main([*replay[:-1], str(tmp_path / "more"), "-q", "--repeats", "2"]) == 3
    with Store.read(tmp_path / "more") as store:
        assert {f.reason for f in store.failures()} == {"not_recorded"}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_trouble(tmp_path: Path, closed: str) -> None:
    filled(tmp_path / "run").close()
    (tmp_path / "a.wav").write_bytes(b"")
    for command, code in (("score run", 0), ("data check .", 1), ("case nowhere", 2)):
        done = subprocess.run(
            ["sh", "-c", f'"$1" -m overtone {command} {closed}', "sh", sys.executable],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_an_encoding_without_arrows_and_a_full_output_are_no_tracebacks(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    around = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "overtone", "score", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=around)
    assert done.returncode == 0, done.stderr
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (2, "overtone: No space left on device")


def test_a_folder_that_is_not_utf8_or_has_an_endless_name_is_a_clear_error(
    small: Path, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(small, server, tmp_path / "\udcff")) == 2
    assert "not written in UTF-8" in capsys.readouterr().err
    assert main(words(small, server, tmp_path / ("x" * 5000))) == 2
    assert "the name is too long for a file" in capsys.readouterr().err
    assert server.count == 0


REMOTE = "http://192.0.2.1/v1"  # no machine has this address


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--model", f"openai:x?base_url={REMOTE}&api_key_env=MY_KEY"], "over plain http"),
        (["--model", "openai:x?api_key_env=NO_KEY"], "NO_KEY is not set"),
        (["--model", "cascade", "--judge", "openai:x?api_key_env=NO_KEY"], "NO_KEY is not set"),
        (["--model", "cascade", "--reader", f"openai:x?base_url={REMOTE}&api_key_env=MY_KEY"], "over plain http"),
        (["--model", "cascade", "--parts", "conflict"], "has no item"),
    ],
)
def test_a_refused_start_leaves_no_folder_and_the_plan_says_so(
    small: Path, more: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "k" * 20)
    monkeypatch.delenv("NO_KEY", raising=False)
    given = ["echomind", "--data", str(small), "--out", str(tmp_path / "run"), *more]
    errors, page = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(errors):
        assert main(["run", *given]) == 2
    assert complaint in errors.getvalue()
    assert not (tmp_path / "run").exists()
    if "key" in " ".join(more):
        with contextlib.redirect_stdout(page):
            assert main(["plan", *given]) == 0
        assert "'overtone run' would refuse to start" in page.getvalue() and complaint in page.getvalue()
        if "http" in complaint:
            with contextlib.redirect_stdout(page := io.StringIO()):
                assert main(["plan", *given, "--insecure"]) == 0
            assert "would refuse" not in page.getvalue()


@pytest.mark.parametrize("place", ["/", ".", "runs/..", "data", "a\x1b[31m", "a\u202eb", "a\nb"])
def test_a_run_is_not_written_where_something_else_is(
    small: Path,
    server: OpenAIServer,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    out = small if place == "data" else place
    before = {path.name for path in Path(small).iterdir()} | {path.name for path in tmp_path.iterdir()}
    for command in ("run", "plan"):
        assert main([command, *words(small, server, Path("x"))[1:-1], str(out)]) in (1, 2)
        message = capsys.readouterr().err
        assert "not a run and not empty" in message or "invisible characters" in message
        assert "\x1b" not in message and "\u202e" not in message
    assert {path.name for path in Path(small).iterdir()} | {path.name for path in tmp_path.iterdir()} == before
    assert server.count == 0


def test_an_empty_folder_and_the_run_itself_can_be_written(
    small: Path, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        assert main(words(small, server, Path(), "--limit", "1", "-q")) == 0
    with Store.read(tmp_path / "here") as store:
        assert store.meta()["label"] == "here"
