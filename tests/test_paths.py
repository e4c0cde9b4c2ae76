"""A foreign path stays in its folder and cannot write to a terminal."""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from overtone.errors import DataError
from overtone.paths import inside, shown, to_disk, write_whole


def test_a_path_below_the_folder_is_resolved_whether_or_not_it_exists(tmp_path: Path) -> None:
    assert inside(tmp_path, "audio/a b.wav") == tmp_path.resolve() / "audio" / "a b.wav"
    assert inside(tmp_path, "audio/../b.wav") == tmp_path.resolve() / "b.wav"


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a\0b", "C:\\x", "C:/x", "\\\\host\\x"]
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError):
        inside(tmp_path, path)


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data-secret").mkdir()
    with pytest.raises(DataError, match="leaves its folder"):
        inside(tmp_path / "data", "../data-secret/x")


def test_a_link_is_followed_before_it_is_judged(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.wav").write_bytes(b"x")
    (root / "link.wav").symlink_to(tmp_path / "outside.wav")
    (root / "loop").symlink_to("loop")
    with pytest.raises(DataError):
        inside(root, "link.wav")
    (root / "real.wav").write_bytes(b"x")
    (root / "near.wav").symlink_to("real.wav")
    assert inside(root, "near.wav") == (root / "real.wav").resolve()


def test_control_and_direction_characters_are_escaped() -> None:
    assert shown("plain name é.wav") == "plain name é.wav"
    assert shown("a\x1b[31m\n\u202eb\udcff") == "a\\x1b[31m\\n\\u202eb\\udcff"


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond 10 bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a table of yesterday")
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="too large"):
        write_whole(file, b"x" * 100)
    assert file.read_text() == "a table of yesterday" and list(tmp_path.iterdir()) == [file]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"hello")
    assert os.read(reader, 10) == b"hello" and pipe.is_fifo()
    os.close(reader)


COMMANDS = Path(__file__).parent.parent / "src" / "overtone"
DIRECT = {  # files of our own that nobody loses: in temporary folders, or replaced into place by the same function
    "cli/_measures_setup.py",
    "runs/export_rows.py",
    "runs/store.py",
}


def test_no_command_writes_a_users_file_in_place() -> None:
    """A file that is opened for writing is empty until the new text is on the disk; `write_whole` replaces it."""
    direct = re.compile(r'\.write_(text|bytes)\(|\.open\("w')
    rooms = ("arena", "cli", "findings", "judge_trust", "judges", "report", "results", "runs")
    files = [path for room in rooms for path in (COMMANDS / room).rglob("*.py")]
    found = {str(path.relative_to(COMMANDS)) for path in files if direct.search(path.read_text())}
    assert found == DIRECT


def test_a_folder_is_not_synced_on_windows_and_a_file_is_opened_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    opened = os.open
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", lambda path, flags: modes.append(flags) or opened(path, flags))
    (tmp_path / "file").write_text("content")
    to_disk(tmp_path)
    to_disk(tmp_path / "file")
    assert modes == [os.O_RDWR]
