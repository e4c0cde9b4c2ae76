"""`overtone setup mini` and what it makes possible: `echat:mini` and `overtone serve mini`, with a toy's release."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.audio import encode_wav, load_sound
from overtone.cli import _mini_setup, main
from overtone.echat.learn.run_stages import run
from overtone.errors import EXIT_OK, EXIT_USAGE, OvertoneError
from overtone.models import echat
from overtone.models.echat import checkpoint_folder
from overtone.schema import Key, Message, Request
from overtone.spec import parse_spec
from overtone.workers import measuring_environment
from tests.echat.toys import make_pack
from tests.echat.trained_toy import preset, release, settings

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy's release; its archive is beside it."""
    home = tmp_path_factory.mktemp("released")
    made = preset(home), make_pack(home / "pack")
    assert run(settings(made, home / "run"), lambda line: None)
    assert release(checkpoint_folder(home / "run"), home / "mini") == 0
    return home / "mini"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the model is put. Loading it as a proof takes seconds, and one test does it."""
    monkeypatch.setattr(_mini_setup, "prove", lambda folder: None)
    monkeypatch.setenv("OVERTONE_MINI", str(tmp_path / "data" / "mini"))
    return tmp_path / "data" / "mini"


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_without_weights_the_error_says_where_they_are(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_mini_setup, "cloned_weights", lambda: tmp_path / "weights" / "mini")
    assert main(["setup", "mini"]) == EXIT_USAGE
    told = capsys.readouterr().err
    assert "weights/mini" in told and "overtone setup mini --from PATH" in told
    for words in (["serve", "mini"], ["run", "open", "--data", "x", "--model", "echat:mini"], ["demo", "--mini"]):
        assert main(words) == EXIT_USAGE
        assert "run 'overtone setup mini'" in capsys.readouterr().err
    assert not place.exists()


def test_the_weights_of_a_clone_are_in_a_folder_outside_the_package() -> None:
    root = Path(__file__).parents[2]
    assert _mini_setup.cloned_weights() == root / "weights" / "mini"
    text = (root / "pyproject.toml").read_text()
    assert 'exclude = ["/weights"]' in text and 'packages = ["src/overtone"]' in text


@pytest.mark.parametrize("source", ["clone", "folder", "archive"])
def test_a_release_is_put_in_place_once(
    released: Path, place: Path, source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["setup", "mini"]
    if source == "clone":
        monkeypatch.setattr(_mini_setup, "cloned_weights", lambda: released)
    else:
        words += ["--from", str(released if source == "folder" else released.with_suffix(".tar"))]
    assert main([*words, "--dry-run"]) == EXIT_OK
    assert "would copy" in capsys.readouterr().out and not place.exists()
    assert main(words) == EXIT_OK
    assert f"installed, {sum(map(len, held(place).values())) / 1e6:.1f} MB: {place}" in capsys.readouterr().out
    assert held(place) == held(released)
    assert main(words) == EXIT_OK
    assert "was installed already" in capsys.readouterr().out


def test_an_interrupted_copy_is_resumed_and_a_damaged_file_is_repaired(
    released: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = place.with_name(".mini.part")
    part.mkdir(parents=True)
    shutil.copyfile(released / "encoder.safetensors", part / "encoder.safetensors")
    (part / "lm.safetensors").write_bytes(b"half of a fi")
    (part / "of-another-release").write_bytes(b"")
    copied = []
    exactly = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        copied.append(source.name)
        exactly(source, target)

    monkeypatch.setattr(_mini_setup.shutil, "copyfile", copyfile)
    assert main(["setup", "mini", "--from", str(released)]) == EXIT_OK
    assert held(place) == held(released) and "encoder.safetensors" not in copied and "lm.safetensors" in copied
    (place / "adapter.safetensors").write_bytes(b"damaged")
    assert main(["setup", "mini", "--from", str(released)]) == EXIT_OK
    assert held(place) == held(released)
    assert [path.name for path in place.parent.iterdir()] == ["mini"]


def test_a_model_that_cannot_be_loaded_is_told(released: Path, tmp_path: Path) -> None:
    _mini_setup.prove(released)
    shutil.copytree(released, tmp_path / "copy")
    _changed(tmp_path / "copy")
    with pytest.raises(OvertoneError, match=r"cannot be loaded: .*speech\.safetensors"):
        _mini_setup.prove(tmp_path / "copy")


def _changed(folder: Path) -> None:
    (folder / "speech.safetensors").write_bytes(b"changed")


def _missing(folder: Path) -> None:
    (folder / "speech.safetensors").unlink()


def _no_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")


def _outside(folder: Path) -> None:
    told = msgspec.json.decode((folder / "manifest.json").read_bytes())
    told["sha256"]["../secret"] = "0" * 64
    (folder / "manifest.json").write_bytes(msgspec.json.encode(told))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_changed, "speech.safetensors: incomplete or changed"),
        (_missing, "speech.safetensors: No such file"),
        (_no_manifest, "not a release's manifest"),
        (_outside, "plain file names"),
    ],
)
def test_a_damaged_release_is_refused_and_the_installed_one_stays(
    released: Path, place: Path, tmp_path: Path, spoil: Callable[[Path], None], told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place.mkdir(parents=True)
    (place / "checkpoint.json").write_bytes(b"older")
    shutil.copytree(released, tmp_path / "copy")
    spoil(tmp_path / "copy")
    assert main(["setup", "mini", "--from", str(tmp_path / "copy")]) == EXIT_USAGE
    assert told in capsys.readouterr().err
    assert held(place) == {"checkpoint.json": b"older"}


def test_an_archive_that_is_none_and_a_folder_of_others_are_refused(
    released: Path, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.tar").write_bytes(b"no archive")
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("mini/README.md"), io.BytesIO())
    with tarfile.open(tmp_path / "hostile.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("../../outside"), io.BytesIO())
    for name, told in (("bad.tar", "not an archive"), ("other.tar", "has no folder"), ("hostile.tar", "outside"),
                       ("none", "not a release")):  # fmt: skip
        assert main(["setup", "mini", "--from", str(tmp_path / name)]) == EXIT_USAGE
        assert told in capsys.readouterr().err
    place.mkdir(parents=True)
    (place / "thesis.txt").write_text("years of work")
    assert main(["setup", "mini", "--from", str(released)]) == EXIT_USAGE
    assert "contains other files" in capsys.readouterr().err and held(place) == {"thesis.txt": b"years of work"}


@pytest.mark.timeout(180)
async def test_the_installed_model_answers_by_its_name(
    released: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["setup", "mini", "--from", str(released)]) == EXIT_OK
    (tmp_path / "mini").mkdir()
    monkeypatch.chdir(tmp_path)  # a folder with that name has no precedence; ./mini is that folder
    with pytest.raises(Exception, match="neither a checkpoint"):
        echat.load(parse_spec("echat:./mini"))
    wave = (0.1 * np.random.default_rng(0).standard_normal(8_000)).astype(np.float32)
    asked = Request(
        Key("i", "c"), (Message("user", (load_sound(encode_wav(wave, 16_000)),)),), True, "converse", seed=3
    )
    replies = []
    for name in ("mini", str(released)):  # the release itself, without its installation
        model = echat.load(parse_spec(f"echat:{name}?max_tokens=20&max_speech=1&threads=1&device=cpu"))
        try:
            await model.open()
            facts = model.describe()
            replies.append(await model.ask(asked))
        finally:
            await model.close()
        assert facts["facts"]["dtype"] == "float16" and "lm" in facts["weights"]
    assert replies[0] == replies[1]


@pytest.mark.full
@pytest.mark.timeout(180)
def test_the_installed_model_is_served_by_its_name(
    released: Path, place: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """By a Python without torch, which borrows it from the measuring environment."""
    assert main(["setup", "mini", "--from", str(released)]) == EXIT_OK
    command = [sys.executable, "-m", "overtone", "serve", "mini", "--port", "0", "--device", "cpu", "--threads", "1"]
    root = str(Path(__file__).parents[2] / "src")
    given = {**environment, "OVERTONE_MINI": str(place), "PYTHONPATH": root}
    with subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            if " answers at " in line:
                break
        url = lines[-1].partition(" answers at ")[2].partition(";")[0].strip()
        body = msgspec.json.encode(
            {"model": "echat", "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}
        )
        request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert msgspec.json.decode(answer.read())["choices"]
        server.send_signal(signal.SIGTERM)
    assert server.returncode == 0


def test_torch_is_borrowed_only_where_it_is_missing_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = tmp_path / "lib" / version / "site-packages"
    (packages / "torch").mkdir(parents=True)
    environ = {"OVERTONE_MEASURES": str(tmp_path)}
    monkeypatch.setattr(measuring_environment, "find_spec", lambda name: None)
    assert measuring_environment.spare_packages(environ) == [str(packages)]
    packages.parent.rename(tmp_path / "lib" / "python3.1")  # made for another Python
    assert measuring_environment.spare_packages(environ) == []
    (tmp_path / "lib" / "python3.1").rename(packages.parent)
    monkeypatch.setattr(measuring_environment, "find_spec", lambda name: object())
    assert measuring_environment.spare_packages(environ) == []
