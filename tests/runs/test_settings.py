"""Flags, run files and the environment brought together: who wins, what is refused, what is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import UsageError
from overtone.runs.settings import model_label, read_run_file, resolve, to_toml
from overtone.spec import parse_spec

FILE = """
[run]
limit = 5
max-connections = 3
prompt = ["zero", "basic"]

[[model]]
spec = "cascade"

[[model]]
spec = "openai:gpt?base_url=http://127.0.0.1:1/v1"

[[benchmark]]
name = "echomind"
data = "files"
levels = [1, 2]

[[judge]]
spec = "openai:judge?base_url=http://127.0.0.1:2/v1&temperature=0"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_flag_wins_over_file_over_environment_over_default(tmp_path: Path) -> None:
    file = read_run_file(write(tmp_path, FILE))
    around = {"OVERTONE_LIMIT": "9", "OVERTONE_REPEATS": "2", "OVERTONE_MAX_CONNECTIONS": "8"}
    first, second = resolve({"limit": 7}, file, around)
    assert (first.limit, first.max_connections, first.repeats, first.seed) == (7, 3, 2, None)
    assert (first.levels, first.prompt) == ((1, 2), ("zero", "basic"))
    assert [str(first.model), second.model.name] == ["cascade", "gpt"]
    assert [judge.name for judge in first.judges] == ["judge"]


def test_a_run_file_writes_one_run_for_each_model_and_benchmark(tmp_path: Path) -> None:
    file = read_run_file(write(tmp_path, FILE))
    runs = resolve({"out": "runs/all"}, file, {})
    assert len({run.folder for run in runs}) == 2
    assert all(run.folder.parent == Path("runs/all") for run in runs)
    assert all(run.data == str(tmp_path / "files") for run in runs)


def test_what_is_written_down_does_the_same_again(tmp_path: Path) -> None:
    flags = {"benchmark": "echomind", "data": 'd\x7f\x1b"\n', "model": ["cascade?max_tokens=3"], "seed": 4}
    (first,) = resolve(flags, None, {})
    again = resolve({}, read_run_file(write(tmp_path, to_toml(first))), {})
    assert [to_toml(run) for run in again] == [to_toml(first)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[run]\nlimt = 3", "unknown key 'limt' in .run.; did you mean 'limit'"),
        ("[modell]\n", "unknown table .modell.; did you mean 'model'"),
        ('[model]\nspec = "x"', "with two brackets"),
        ('[[model]]\nname = "x"', "unknown key 'name'"),
        ("[[benchmark]]\n", "has no name"),
        ("run = 5", "must be a table"),
        ("model = [1, 2]", "must be a table"),
        ("[[model]]\nspec = 5", "spec in .* must be a text"),
        ("[[benchmark]]\nname = true", "name in .* must be a text"),
        ("[run]\ndata = 5", "data in .* must be a text"),
        ("[run]\nout = [1]", "out in .* must be a text"),
        ('[run]\nplugins = "mine.py"', "plugins must be a list"),
        ("[run]\nplugins = [5]", "plugins must be a list"),
        ("not toml at all", "is not a run file"),
    ],
)
def test_a_wrong_run_file_says_where_and_what(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_run_file(write(tmp_path, text))


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"prompt": "enhanced"}, "unknown 'enhanced'; did you mean 'enhance'"),
        ({"levels": "1,4"}, "unknown '4'"),
        ({"levels": "one"}, "not a whole number"),
        ({"styles": "sad"}, "unknown 'sad'"),
        ({"parts": "false_cue"}, "unknown 'false_cue'; did you mean 'false-cue'"),
        ({"input": ""}, "input is empty"),
        ({"limit": 0}, "limit must be greater than 0"),
        ({"budget_usd": -1.0}, "budget_usd must be greater than 0"),
        ({"budget_usd": float("nan")}, "budget_usd must be greater than 0"),
        ({"limit": 10**30}, "limit must be greater than 0 and at most"),
        ({"repeats": 10**30}, "repeats must be greater than 0 and at most"),
        ({"seed": 10**30}, "seed must be between"),
        ({"levels": 1.5}, "not a whole number"),
        ({"prompt": {"a": 1}}, "unknown"),
        ({"model": None}, "no model given"),
        ({"data": None}, "no folder given for echomind"),
        ({"benchmark": None}, "no benchmark given"),
    ],
)
def test_a_wrong_setting_says_what_and_what_is_known(flags: dict[str, object], complaint: str) -> None:
    given = {"benchmark": "echomind", "data": "d", "model": ["cascade"], **flags}
    with pytest.raises(UsageError, match=complaint):
        resolve(given, None, {})


def test_a_wrong_type_from_the_environment_is_refused() -> None:
    with pytest.raises(UsageError, match="a setting is wrong"):
        resolve({"benchmark": "b", "data": "d", "model": ["cascade"]}, None, {"OVERTONE_LIMIT": "many"})


def test_all_prompts_are_five() -> None:
    (found,) = resolve({"benchmark": "b", "data": "d", "model": ["cascade"], "prompt": "all"}, None, {})
    assert found.prompt == ("zero", "basic", "enhance", "oracle", "oracle-false")


def test_a_folder_name_is_safe_and_tells_models_apart_but_not_where_they_are_served() -> None:
    names = [
        model_label(parse_spec(text))
        for text in ("openai:a/../b?temperature=1", "openai:a/../b", "openai:a/../b?base_url=http://127.0.0.1:3/v1")
    ]
    assert all("/" not in name for name in names)
    assert names[0] != names[1] == names[2]


def test_needs_trust_names_what_runs_code(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[run]\nplugins = ["mine.py"]\n[[model]]\nspec = "command:./x"\n[[model]]\nspec = "cascade"\n'
    )
    assert read_run_file(path).needs_trust() == ["run plug-in mine.py", "run command:./x"]


@pytest.mark.parametrize("spec", [" command:./x", "COMMAND:./x", "\\tcommand:./x", "Worker:x?python=y"])
def test_a_kind_that_runs_code_is_known_however_it_is_written(tmp_path: Path, spec: str) -> None:
    for table in ("model", "judge"):
        path = write(tmp_path, f'[[{table}]]\nspec = "{spec}"\n')
        assert len(read_run_file(path).needs_trust()) == 1


def test_sending_a_variable_of_the_environment_needs_trust(tmp_path: Path) -> None:
    spec = "openai:x?base_url=http://127.0.0.1:1/v1&api_key_env=AWS_SECRET"
    path = write(tmp_path, f'[[model]]\nspec = "{spec}"\n[[model]]\nspec = "openai:gpt"\n')
    assert read_run_file(path).needs_trust() == ["send $AWS_SECRET to http://127.0.0.1:1/v1"]
