"""A benchmark's folder made to hang, flood or mislead: pipes, huge files and links are found, not followed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from overtone.audio import check_folder
from overtone.audio._references import read_labels
from overtone.benchmarks.echomind import load
from overtone.errors import DataError


@pytest.mark.parametrize("name", ["script_info_synthesis.json", "MCQ/understanding.json"])
def test_a_pipe_in_place_of_a_json_file_is_an_error_and_is_not_waited_for(small: Path, name: str) -> None:
    path = small / "data_synthesis" / name
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="not a plain file"):
        load(small)
    found = check_folder(small)
    assert any(f.code == "unreadable" and f.path.endswith(name) and "not a plain file" in f.text for f in found)


@pytest.mark.parametrize("name", ["notes.json", "notes.csv", "notes.jsonl"])
def test_a_pipe_beside_the_data_does_not_stop_a_check(small: Path, name: str) -> None:
    os.mkfifo(small / "data_synthesis" / name)
    assert not [f for f in check_folder(small) if f.severity == "error"]


def test_a_table_of_one_long_line_is_read_in_one_pass(small: Path) -> None:
    sounds = sorted(path.name for path in small.rglob("*.wav"))
    table = "x" * 3_000_000 + f',"a/{sounds[0]}";{sounds[1]} and more'
    (small / "data_synthesis" / "notes.csv").write_text(table)
    began = time.monotonic()
    check_folder(small)
    assert time.monotonic() - began < 10
    assert read_labels(small, ["data_synthesis/notes.csv"]).mentioned == set(sounds[:2])


def test_a_json_file_larger_than_memory_is_refused_unread(small: Path) -> None:
    path = small / "data_synthesis" / "script_info_synthesis.json"
    os.truncate(path, 10**12)
    with pytest.raises(DataError, match="too large"):
        load(small)
    assert any("too large" in f.text for f in check_folder(small))


def test_a_prompt_larger_than_memory_is_refused_unread(small: Path) -> None:
    folder = small / "instruction" / "generate_audio_response"
    folder.mkdir(parents=True)
    (folder / "basic_prompt.txt").touch()
    os.truncate(folder / "basic_prompt.txt", 10**12)
    with pytest.raises(DataError, match="too large"):
        load(small)


def test_a_source_that_is_a_link_to_elsewhere_is_refused_before_it_is_read(small: Path, tmp_path: Path) -> None:
    (small / "data_synthesis").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "script_info_synthesis.json").write_text("not JSON")
    (small / "data_synthesis").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leaves its folder"):
        load(small)


def test_a_name_longer_than_a_file_system_takes_is_a_missing_file(small: Path) -> None:
    path = small / "data_synthesis" / "script_info_synthesis.json"
    path.write_text(path.read_text().replace("id_0_sad_work_target", "x" * 5000))
    assert any(f.code == "missing" and "xxx" in f.path for f in check_folder(small))


def test_a_folder_whose_name_is_no_utf8_holds_nothing_that_can_be_asked(small: Path) -> None:
    clips = small / "data_synthesis" / "audio"
    (clips / "sad").rename(os.fsdecode(os.fsencode(clips) + b"/\xff"))
    assert any("do not exist" in line for line in load(small).warnings)
    (small / "data_synthesis").rename(os.fsdecode(os.fsencode(small) + b"/data_\xff"))
    with pytest.raises(DataError, match="not written in UTF-8"):
        load(small)
