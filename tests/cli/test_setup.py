"""`overtone setup local`: what it would install, what it refuses, and that a second call does nothing."""

from __future__ import annotations

import re
from importlib import util
from pathlib import Path

import pytest

from overtone.cli import _measures_setup, main, setup
from overtone.errors import EXIT_OK, EXIT_USAGE


def test_every_part_is_pinned_with_hashes() -> None:
    text = setup.lock().read_text("utf-8")
    assert set(setup.pins(setup.lock())) == {part.distribution for part in setup.PARTS}
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= 24
    assert "http" not in text


def test_a_dry_run_names_versions_and_licences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "local", "--dry-run"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "GPL-3.0" in out and "run time only" in out
    assert all(part.distribution in out for part in setup.PARTS)


@pytest.mark.local
def test_a_second_call_does_nothing_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "local"]) == EXIT_OK
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.local
@pytest.mark.parametrize("part", setup.PARTS, ids=lambda part: part.distribution)
def test_the_proof_of_an_installed_part_holds(part: setup.Part) -> None:
    exec(part.proof, {})


def test_without_pip_the_uv_command_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_installed", lambda part: "")
    found = util.find_spec
    monkeypatch.setattr(setup.util, "find_spec", lambda name: None if name == "pip" else found(name))
    assert main(["setup", "local"]) == EXIT_USAGE
    assert "uv pip install" in capsys.readouterr().err


def test_a_package_that_does_not_work_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = setup.Part("espeakng-loader", "", "", "raise SystemError('no such instruction')")
    monkeypatch.setattr(setup, "PARTS", (broken,))
    monkeypatch.setattr(setup, "_installed", lambda part: "")
    monkeypatch.setattr(setup.subprocess, "run", _pip_works(setup.subprocess.run))
    assert main(["setup", "local"]) == EXIT_USAGE
    assert "no such instruction" in capsys.readouterr().err


def _pip_works(run):  # type: ignore[no-untyped-def]
    """subprocess.run, but pip does nothing and succeeds."""

    def fake(command, **kwargs):  # type: ignore[no-untyped-def]
        return run([command[0], "-c", ""], check=False) if "pip" in command else run(command, **kwargs)

    return fake


def test_a_module_in_the_working_directory_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "colorsys.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    setup._prove(setup.Part("any", "MIT", "", "import colorsys; colorsys.rgb_to_hsv"))
    assert not (tmp_path / "ran").exists()
    for module in (setup, _measures_setup):
        text = Path(module.__file__).read_text("utf-8")
        assert not re.findall(r'(?:executable|python\)), "-[mc]"', text), "Python is started without -P or -I"
