"""Run files that run code or use a key: nothing of them runs before they are trusted, wherever the user stands."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import tempfile
from pathlib import Path

import pytest

from overtone import registry, trusted_files
from overtone.cli import main
from overtone.errors import UsageError
from overtone.models import worker
from overtone.safety import executable
from overtone.spec import parse_spec

Capture = pytest.CaptureFixture[str]
PLUGIN = """
'''A metric that leaves a mark when its code runs.'''
open({mark!r}, "a").write("x")
ROOM = "metrics"
def load():
    return Metric()
class Metric:
    name, version = "marked", 1
    def applies(self, item): return False
    def score(self, answered): return []
"""


class Download:
    """A folder from a stranger: a run file, a plug-in and a program, each of which leaves a mark when it runs."""

    def __init__(self, folder: Path, data: Path) -> None:
        folder.mkdir(parents=True)
        self.folder, self.mark = folder, folder.parent / "ran"
        self.plugin, self.program = folder / "marked.py", folder / "model.sh"
        self.plugin.write_text(PLUGIN.format(mark=str(self.mark)))
        self.program.write_text(f"#!/bin/sh\necho x >> {self.mark}\n")
        self.program.chmod(0o755)
        self.file = folder / "run.toml"
        self._rest = f'[[benchmark]]\nname = "echomind"\ndata = "{data}"\nlimit = 1\n'
        self.write('[run]\nplugins = ["marked.py"]\n[[model]]\nspec = "cascade"\n')

    def write(self, text: str) -> None:
        self.file.write_text(text + self._rest)

    @property
    def ran(self) -> bool:
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


@pytest.fixture
def download(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Download:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = Download(tmp_path / "home" / "download", small)
    monkeypatch.chdir(found.folder)
    return found


@pytest.mark.parametrize("place", ["/", "temporary", "home", "download", "elsewhere"])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_no_working_directory_makes_a_run_file_trusted(
    place: str, command: str, download: Download, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    places = {"temporary": tempfile.gettempdir(), "home": tmp_path / "home", "download": download.folder}
    monkeypatch.chdir(places.get(place, "/" if place == "/" else tmp_path))
    assert main([command, str(download.file)]) == 2
    told = capsys.readouterr().err
    assert f"overtone trust {download.file}" in told and "run plug-in marked.py" in told
    assert not download.ran


def test_a_trusted_file_runs_until_it_or_its_code_changes(download: Download, capsys: Capture) -> None:
    words = ["plan", "run.toml"]
    assert main(["trust", "run.toml"]) == 0
    assert not download.ran, "trusting runs nothing"
    told = capsys.readouterr().out
    assert "run plug-in marked.py" in told and str(download.plugin) in told
    assert main(words) == 0 and download.ran
    capsys.readouterr()

    download.plugin.write_text(download.plugin.read_text() + "\n# another line\n")
    assert main(words) == 2 and not download.ran
    assert f"{download.plugin}, which run.toml names, has changed since you trusted it" in capsys.readouterr().err
    assert main(["trust", "run.toml"]) == 0
    assert main(words) == 0 and download.ran
    capsys.readouterr()

    download.file.write_text(download.file.read_text() + "\n# another line\n")
    assert main(words) == 2 and not download.ran
    assert "run.toml has changed since you trusted it" in capsys.readouterr().err
    assert main([*words, "--trust"]) == 0 and download.ran
    assert main(words) == 2 and not download.ran, "--trust is for one command"


def test_trust_belongs_to_a_place_as_well(download: Download, tmp_path: Path) -> None:
    assert main(["trust", str(download.file)]) == 0
    copy = Path(shutil.copytree(download.folder, tmp_path / "copy"))
    assert main(["plan", str(copy / "run.toml")]) == 2 and not download.ran
    link = tmp_path / "link.toml"
    link.symlink_to(copy / "run.toml")
    assert main(["plan", str(link)]) == 2 and not download.ran, "a link is what it points to"


def test_a_link_in_place_of_a_trusted_plug_in_is_another_file(download: Download, tmp_path: Path) -> None:
    assert main(["trust", "run.toml"]) == 0
    other = Path(shutil.copy(download.plugin, tmp_path / "other.py"))
    download.plugin.unlink()
    download.plugin.symlink_to(other)
    assert main(["plan", "run.toml"]) == 2 and not download.ran


def test_bytecode_beside_a_plug_in_does_not_run_in_its_place(download: Download, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    info = download.plugin.stat()
    poison = f"ROOM = 'metrics'\nopen({str(hidden)!r}, 'w')\ndef load(): ...\n"
    source = tmp_path / "marked.py"
    source.write_text(poison + "#" * (info.st_size - len(poison)))
    os.utime(source, ns=(info.st_atime_ns, info.st_mtime_ns))
    cached = Path(importlib.util.cache_from_source(str(download.plugin)))
    cached.parent.mkdir()
    py_compile.compile(str(source), str(cached))
    assert main(["plan", "run.toml", "--trust"]) == 0
    assert download.ran and not hidden.exists()


def test_plan_counts_an_untrusted_file_without_starting_what_it_names(
    download: Download, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("MY_SECRET", "x" * 20)
    download.write(
        '[run]\nmetrics = ["utmos?source=/nowhere"]\n[[model]]\nspec = "command:./model.sh"\n'
        '[[judge]]\nspec = "openai:x?base_url=http://127.0.0.1:1/v1&api_key_env=MY_SECRET"\n'
    )
    assert main(["plan", "run.toml"]) == 0
    told = capsys.readouterr().out
    assert "requests     " in told
    for reason in (
        "run command:./model.sh",
        "send $MY_SECRET to http://127.0.0.1:1/v1",
        "compute utmos?source=/nowhere",
    ):
        assert reason in told
    assert "overtone trust run.toml" in told and "x" * 20 not in told
    assert main(["run", "run.toml"]) == 2
    assert not download.ran


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("command:./model.sh", "model.sh"),
        ("command:sh?args=model.sh", "model.sh"),
        ("worker:./marked.py?model=x&python=./model.sh", "model.sh"),
        ("worker:./marked.py?model=x", "marked.py"),
        ("echat:checkpoint?python=./model.sh", "model.sh"),
    ],
)
def test_the_programs_that_a_run_file_names_are_part_of_what_is_trusted(
    spec: str, changed: str, download: Download, capsys: Capture
) -> None:
    download.write(f'[[model]]\nspec = "{spec}"\n')
    assert main(["trust", "run.toml"]) == 0
    assert main(["plan", "run.toml"]) == 0
    assert "not trusted" not in capsys.readouterr().out
    with (download.folder / changed).open("a") as file:
        file.write("# changed\n")
    assert main(["run", "run.toml"]) == 2
    assert f"{changed}, which run.toml names, has changed" in capsys.readouterr().err
    assert not download.ran


def test_a_run_file_without_code_and_keys_needs_no_trust(download: Download, capsys: Capture) -> None:
    download.write('[[model]]\nspec = "cascade"\n')
    assert main(["trust", "run.toml"]) == 0
    assert "needs no trust" in capsys.readouterr().out
    assert trusted_files.read() == {}
    assert main(["plan", "run.toml"]) == 0


def test_trust_is_listed_and_removed(download: Download, tmp_path: Path, capsys: Capture) -> None:
    assert main(["trust", "--list"]) == 0
    assert "no trusted files" in capsys.readouterr().out
    assert main(["trust", "run.toml"]) == 0
    capsys.readouterr()
    for change, state in ((None, "unchanged"), ("# more", "changed"), ("", "missing")):
        if change:
            download.plugin.write_text(change)
        elif change == "":
            download.plugin.unlink()
        assert main(["trust", "--list"]) == 0
        assert capsys.readouterr().out.split() == [state, str(download.file)]
    download.file.unlink()
    assert main(["trust", "--remove", "run.toml"]) == 0, "also where the file is gone"
    assert trusted_files.read() == {}
    assert main(["trust", "--remove", "run.toml"]) == 2
    for words in ([], ["--list", "run.toml"], ["marked.py"]):
        assert main(["trust", *words]) == 2


def test_the_list_is_the_users_own(download: Download, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert main(["trust", "run.toml"]) == 0
    assert trusted_files.list_path().stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")  # relative: a download could bring its own
    assert trusted_files.list_path() == Path.home() / ".config/overtone/trusted.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(download.folder))
    (download.folder / "overtone").mkdir()
    trusted_files.list_path().write_text("{broken")
    assert main(["plan", "run.toml"]) == 2 and not download.ran
    assert "cannot be read" in capsys.readouterr().err


def test_a_plug_in_that_the_user_names_in_the_environment_runs(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_PLUGINS", str(download.plugin))
    assert main(["list", "metrics"]) == 0
    assert download.ran


def test_a_file_with_the_name_of_a_benchmark_does_not_stand_in_for_it(
    download: Download, small: Path, capsys: Capture
) -> None:
    download.file.rename(download.folder / "echomind")
    assert main(["plan", "echomind", "--data", str(small), "--model", "cascade"]) == 0
    assert "echomind · cascade" in capsys.readouterr().out and not download.ran


def test_the_working_directory_brings_no_program_and_no_interpreter(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(download.program, download.folder / "sh")
    assert executable("sh", "test") == Path(shutil.which("sh") or "")
    assert executable("model.sh", "test") == download.program.resolve(), "a name that only a file here has"
    environment = download.folder / ".venv-worker" / "bin"
    environment.mkdir(parents=True)
    shutil.copy(download.program, environment / "python")
    monkeypatch.delenv("OVERTONE_WORKER_PYTHON", raising=False)
    monkeypatch.setattr("sys.prefix", str(download.folder.parent / "nowhere" / ".venv"))
    with pytest.raises(UsageError, match="no Python for the worker"):
        worker.load(parse_spec("worker:hf_audio_text?model=x")).find_python()


@pytest.mark.parametrize(
    ("run", "would"),
    [
        ('[[model]]\nspec = "openai:x?base_url=https://example.org/v1"\n', "send recordings from {data} to https://ex"),
        (
            '[[judge]]\nspec = "openai:x?base_url=https://example.org/v1"\n[[model]]\nspec = "cascade"\n',
            "send recordings from {data} to https://example.org/v1",
        ),
        ('[run]\nout = "{elsewhere}"\n[[model]]\nspec = "cascade"\n', "write {elsewhere}"),
        ('[run]\nout = "../../elsewhere"\n[[model]]\nspec = "cascade"\n', "write ../../elsewhere"),
        ('[run]\nreport = "{elsewhere}.html"\n[[model]]\nspec = "cascade"\n', "write {elsewhere}.html"),
    ],
)
def test_recordings_go_to_a_strangers_host_and_files_elsewhere_only_when_trusted(
    run: str, would: str, download: Download, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    names = {"data": small, "elsewhere": tmp_path / "elsewhere"}
    download.write(run.format(**names))
    assert main(["run", str(download.file)]) == 2
    message = capsys.readouterr().err
    assert "is not trusted. It would: " + would.format(**names) in message
    assert main(["plan", str(download.file)]) == 0
    assert would.format(**names) in capsys.readouterr().out
    assert main(["trust", str(download.file)]) == 0
    assert would.format(**names) in capsys.readouterr().out
    assert main(["plan", str(download.file)]) == 0
    assert "not trusted" not in capsys.readouterr().out


def test_what_the_user_names_and_what_stays_on_this_machine_needs_no_trust(
    download: Download, small: Path, tmp_path: Path, capsys: Capture
) -> None:
    download.write('[run]\nout = "/nowhere"\n[[model]]\nspec = "openai:x?base_url=https://example.org/v1"\n')
    assert main(["plan", str(download.file), "--data", str(small), "--out", str(tmp_path / "mine")]) == 0
    assert "not trusted" not in capsys.readouterr().out
    inside = download.folder / "runs"
    download.write(f'[run]\nout = "{inside}"\n[[model]]\nspec = "openai:x?base_url=http://127.0.0.1:9/v1"\n')
    assert main(["plan", str(download.file)]) == 0
    assert "not trusted" not in capsys.readouterr().out


def test_a_rubric_is_a_plug_in_of_a_trusted_run_file(download: Download, capsys: Capture) -> None:
    rubric = download.folder / "kindness.toml"
    rubric.write_text(registry.find_rubric("implicit").read_text())
    judge = '[[judge]]\nspec = "openai:x?base_url=http://127.0.0.1:9/v1&rubrics=kindness"\n'
    download.write(f'[run]\nplugins = ["kindness.toml"]\n[[model]]\nspec = "cascade"\n{judge}')
    assert main(["plan", "run.toml"]) == 2
    assert "use plug-in kindness.toml" in capsys.readouterr().err
    assert main(["trust", "run.toml"]) == 0
    assert main(["plan", "run.toml"]) == 0
    assert "(kindness)" in capsys.readouterr().out
    rubric.write_text(rubric.read_text() + "# changed\n")
    assert main(["plan", "run.toml"]) == 2
