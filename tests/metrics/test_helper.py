"""Helpers of metrics: a call and its answer, failures that leave the helper alive, deaths, and what is missing."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from overtone.errors import MissingExtra, OvertoneError
from overtone.metrics._helper import Helper, HelperDied, measures_python
from overtone.workers.measuring_environment import measures_folder

ECHO = str(Path(__file__).with_name("echo_helper.py"))


@pytest.fixture(autouse=True)
def our_own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The running Python as measuring environment: the echo needs nothing else."""
    (tmp_path / "measures/bin").mkdir(parents=True)
    (tmp_path / "measures/bin/python").symlink_to(sys.executable)
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "measures"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def gone(pid: int) -> bool:
    until = time.monotonic() + 8
    while time.monotonic() < until:
        if not psutil.pid_exists(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_call_brings_back_values_and_bytes_from_a_process_of_its_own() -> None:
    with Helper(ECHO, {"model": "x"}) as helper:
        first = helper.call({"text": "grüß"}, [b"abc", b""])
        second = helper.call({"text": None})
    assert first["told"] == "grüß" and first["options"] == {"model": "x"} and first["blobs"] == [b"cba", b""]
    assert second["pid"] == first["pid"] and "blobs" not in second
    assert gone(first["pid"])


def test_a_call_that_fails_leaves_the_helper_alive() -> None:
    with Helper(ECHO, {}) as helper:
        pid = helper.call({})["pid"]
        with pytest.raises(OvertoneError, match="not this one"):
            helper.call({"do": "fail"})
        assert helper.call({})["pid"] == pid


def test_a_death_shows_the_last_lines_of_the_log_and_the_next_call_starts_anew(our_own_python: Path) -> None:
    with Helper(ECHO, {}) as helper:
        pid = helper.call({})["pid"]
        with pytest.raises(HelperDied, match=r"(?s)exit status 9.*the last words"):
            helper.call({"do": "die"})
        assert helper.call({})["pid"] != pid
    assert not list(our_own_python.glob("*.log"))


def test_a_helper_that_does_not_answer_in_time_is_ended() -> None:
    helper = Helper(ECHO, {}, timeout=0.5)
    pid = helper.call({})["pid"]
    with pytest.raises(HelperDied, match="no answer within"):
        helper.call({"do": "hang"})
    assert gone(pid)


def test_a_helper_ends_with_its_last_reference() -> None:
    helper = Helper(ECHO, {})
    pid = helper.call({})["pid"]
    del helper
    gc.collect()
    assert gone(pid)


def test_a_helper_left_open_ends_with_its_interpreter() -> None:
    code = f"from overtone.metrics._helper import Helper\nh = Helper({ECHO!r}, {{}})\nprint(h.call({{}})['pid'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr and gone(int(done.stdout))


def test_no_secret_reaches_a_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setenv("HF_TOKEN", "hf_1234567890")
    with Helper(ECHO, {}) as helper:
        names = helper.call({"do": "environment"})["environment"]
    assert not {"OPENAI_API_KEY", "HF_TOKEN"} & set(names) and "PATH" in names


def test_a_missing_package_and_a_refusal_are_told_apart() -> None:
    with pytest.raises(MissingExtra, match=r"a_library_nobody_has.*overtone setup measures"):
        Helper(ECHO, {"do": "import"}).start()
    with pytest.raises(OvertoneError, match="no such weights") as caught:
        Helper(ECHO, {"do": "refuse"}).start()
    assert not isinstance(caught.value, MissingExtra)


def test_without_an_environment_the_command_that_makes_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "none"))
    with pytest.raises(MissingExtra, match="overtone setup measures"):
        Helper(ECHO, {}).start()
    with pytest.raises(MissingExtra):
        measures_python()


def test_the_environment_lies_among_the_users_data_unless_another_folder_is_named(tmp_path: Path) -> None:
    assert measures_folder({"OVERTONE_MEASURES": str(tmp_path)}) == tmp_path
    assert measures_folder({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "overtone/measures"
    assert measures_folder({"HOME": "/x"}) == Path.home() / ".local/share/overtone/measures"
