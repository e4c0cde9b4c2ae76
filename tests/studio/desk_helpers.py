"""Studies of the recording desk and the review desk over a few scripts of the package's set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from overtone.build.script import Script, read_set
from overtone.cli import main
from overtone.studio import study
from overtone.studio.study import Study

SPEAKER = {"voice": "female", "adult": True, "guardian": False, "sampleRate": 48_000, "noise_dbfs": -70.0}


def some_scripts(*cues: str, each: int = 1) -> list[Script]:
    """Scripts of the package's set with these target cues."""
    found: list[Script] = []
    for cue in cues:
        found += [script for script in read_set("open") if script.cue == cue][:each]
    return found


def scripts_file(folder: Path, scripts: Sequence[Script], name: str = "scripts") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(script) + b"\n" for script in scripts))
    return path


def desk(folder: Path, design: str, scripts: Sequence[Script], *flags: str, name: str = "desk", url: str = "") -> Study:
    """A study file of a desk, written by the command. `url` is its database, instead of a SQLite file."""
    path = folder / f"{name}.toml"
    given = scripts_file(folder, scripts, f"{name}-scripts")
    assert main(["studio", "new", str(path), "--design", design, "--scripts", str(given), *flags]) == 0
    if url:
        path.write_text(path.read_text().replace(f"sqlite:{name}.db", url))
    return study.read(path)
