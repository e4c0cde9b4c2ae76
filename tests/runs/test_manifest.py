"""A run of a built set warns where a clip is not the file that the set's manifest lists."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from overtone.runs.store import Store
from tests.servers import OpenAIServer

from .helpers import run


@pytest.fixture
def built(small: Path) -> Path:
    clips = [
        {"path": p.relative_to(small).as_posix(), "sha256": hashlib.sha256(p.read_bytes()).hexdigest()}
        for p in sorted(small.rglob("*.wav"))
    ]
    (small / "manifest.json").write_bytes(msgspec.json.encode({"clips": clips}))
    return small


def warnings(out: Path) -> list[str]:
    with Store.read(out) as store:
        return [detail for _, kind, detail in store.events() if kind == "warning" and "manifest.json" in detail]


def test_a_run_of_an_unchanged_set_gives_no_warning(built: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(built, server.base_url, tmp_path / "run")
    assert warnings(tmp_path / "run") == []


@pytest.mark.parametrize("keys", [{}, {"audio_rate": "8000"}])
def test_a_run_warns_once_where_clips_were_exchanged(built: Path, tmp_path: Path, keys: dict[str, str]) -> None:
    first, second, *_ = sorted((built / "data_synthesis").rglob("*target*.wav"))
    one, two = first.read_bytes(), second.read_bytes()
    assert one != two
    first.write_bytes(two)
    second.write_bytes(one)
    with OpenAIServer() as server:
        run(built, server.base_url, tmp_path / "run", keys=keys)
    (warning,) = warnings(tmp_path / "run")
    assert f"overtone data check {built}" in warning
    assert any(path.relative_to(built).as_posix() in warning for path in (first, second))
