"""`overtone data`: exit codes and plain, safe output of `check`; terms first and quiet reruns of `fetch`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.cli import data as command
from overtone.cli import main
from overtone.errors import UsageError
from tests.benchmarks.built import write_built


def call(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    command.add(parser)
    return command.main(parser.parse_args(argv))


def tone(level: float = 0.3) -> bytes:
    return audio.encode_wav(level * np.sin(np.arange(8000) * 0.1), 16000)


def test_a_clean_folder_exits_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.wav").write_bytes(tone())
    assert call("check", str(tmp_path)) == 0
    assert "nothing to report" in capsys.readouterr().out


def test_warnings_alone_exit_zero_and_an_error_exits_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).write_bytes(tone())
    assert call("check", str(tmp_path)) == 0
    (tmp_path / "c.wav").write_bytes(b"")
    assert call("check", str(tmp_path)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["error", "empty", "1"] for line in lines)
    assert any(line.startswith("  c.wav: the file is empty") for line in lines)


def test_json_output_holds_every_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(30):
        (tmp_path / f"{n}.wav").write_bytes(b"")
    assert call("check", str(tmp_path), "--json") == 1
    found = msgspec.json.decode(capsys.readouterr().out)
    assert len(found) == 30
    assert set(found[0]) == {"severity", "code", "path", "text"}


def test_a_hostile_file_name_reaches_the_terminal_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("\x1b]0;owned\x07.wav", "[bold]x[-bold].wav", "\u202egnp.wav", ":bomb:.wav"):
        (tmp_path / name).write_bytes(b"")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.wav", os.O_CREAT | os.O_WRONLY))
    assert call("check", str(tmp_path)) == 1
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert "[bold]x[-bold].wav" in out and ":bomb:" in out and "\\x1b" in out
    assert call("check", str(tmp_path), "--json") == 1
    out = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in out)
    assert "\u202egnp.wav" in {finding["path"] for finding in msgspec.json.decode(out)}


def test_long_lists_are_cut_with_a_word_on_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(25):
        (tmp_path / f"{n}.wav").write_bytes(b"")
    call("check", str(tmp_path))
    assert "and 5 more; --json lists all" in capsys.readouterr().out


def test_an_unknown_release_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'echomind'"):
        call("fetch", "ecomind", "--out", str(tmp_path))


def test_wrong_languages_and_texts_in_another_language_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = write_built(tmp_path) / "data_synthesis" / "script_info_synthesis.json"
    rows = msgspec.json.decode(scripts.read_bytes())
    german = "Ich bin heute wirklich sehr müde, und du?"
    scripts.write_bytes(msgspec.json.encode([row | {"speak_A": german} for row in rows]))
    call("check", str(tmp_path), "--json")
    hint = "items without a language seem to be in 'de'"
    assert [f["severity"] for f in msgspec.json.decode(capsys.readouterr().out) if hint in f["text"]] == ["warning"]
    main(["plan", "open", "--data", str(tmp_path), "--model", "cascade", "--out", str(tmp_path / "run")])
    assert f"{hint}" in capsys.readouterr().out
    scripts.write_bytes(msgspec.json.encode([row | {"speak_A": german, "language": "de"} for row in rows]))
    call("check", str(tmp_path), "--json")
    assert "seem to be in" not in capsys.readouterr().out
    scripts.write_bytes(msgspec.json.encode([row | {"language": "jp"} for row in rows]))
    call("check", str(tmp_path), "--json")
    found = [f for f in msgspec.json.decode(capsys.readouterr().out) if f["code"] == "language"]
    assert [f["severity"] for f in found] == ["error"] and "did you mean 'ja'" in found[0]["text"]
