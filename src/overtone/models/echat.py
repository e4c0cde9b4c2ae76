"""A model trained by `overtone train echat`, in a separate process: echat:CHECKPOINT?think=label&batch=8.

CHECKPOINT is the folder of a checkpoint or of a training run, whose last finished stage is used, or `mini`, which
`overtone setup mini` installs. The process needs torch. Its interpreter is `python=PATH` (default: the one that runs
Overtone, with torch from the measuring environment if it has none).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import DataError, UsageError, install_line
from overtone.heard import HeardFile, HeardInTraining
from overtone.heard import read as read_heard
from overtone.models.worker import WorkerModel
from overtone.paths import read_plain, shown, user_data, user_path
from overtone.spec import Spec, suggest
from overtone.workers.host import worker_environment
from overtone.workers.measuring_environment import spare_packages

KEYS: dict[str, type] = {
    "think": str,
    "system": str,
    "tell": str,
    "speech_temperature": float,
    "max_speech": float,
    "device": str,
    "dtype": str,
    "threads": int,
    "python": str,
    "batch": int,
    "gpus": str,
    "start_timeout": float,
    "heartbeat_timeout": float,
    "restarts": int,
}
CHOICES = {
    "think": ("label", "natural", "none"),
    "system": ("own", "given"),
    "tell": ("thought", "tokens"),
    "dtype": ("float32", "bfloat16", "float16"),
}
RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0.001, 1),
    "speech_temperature": (0, 2),
    "max_tokens": (1, 1_000_000),
    "max_speech": (0.04, 600),
    "seed": (-(2**63), 2**63 - 1),
    "batch": (1, 1024),
    "threads": (1, 1024),
    "timeout": (0.01, 1e6),
    "start_timeout": (0.01, 1e6),
    "heartbeat_timeout": (1, 1e6),
    "restarts": (0, 1000),
}
MINI = "mini"  # the name of the trained model that Overtone gives away
INDEX, FORMAT = "checkpoint.json", 1  # a test checks that they equal those of `overtone.echat.net.checkpoint`
PROGRAM = Path(__file__).parent.parent / "echat" / "talk" / "worker_program.py"
_SET = ("think", "system", "dtype", "temperature", "top_p", "max_tokens", "max_speech", "speech_temperature", "seed")
_INDEX_BYTES = 1 << 20


class _Part(Struct):
    sha256: str
    more: tuple[_Part, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of all files of the part."""
        return "+".join([self.sha256, *(file.sha256 for file in self.more)])


class _Index(Struct):
    format: int
    parts: dict[str, _Part]
    notes: dict[str, Any] = {}
    heard: HeardFile | None = None


def mini_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where `overtone setup mini` puts the model: OVERTONE_MINI, else overtone/mini in the user's data."""
    return user_data("OVERTONE_MINI", MINI, environ)


def named_checkpoint(written: str) -> Path:
    """Return the checkpoint that a user wrote: `mini`, or the path of a checkpoint or of a training run.

    Raises DataError if the checkpoint is missing or cannot be used, and UsageError for an invalid path.
    """
    if written != MINI:
        return checkpoint_folder(user_path(written))
    folder = mini_folder()
    if not (folder / INDEX).is_file():
        raise DataError(
            f"the model {MINI} is not installed (no {shown(str(folder / INDEX))}); run 'overtone setup {MINI}', or "
            f"write ./{MINI} for a folder with that name"
        )
    read_index(folder)
    return folder


def checkpoint_folder(path: Path) -> Path:
    """Return the checkpoint at a path: the folder itself, or that of a training run's last finished stage.

    Raises DataError if the path is neither or the checkpoint cannot be used.
    """
    where = shown(str(path))
    if not path.exists():
        raise DataError(f"{where}: there is no such folder; give a checkpoint of 'overtone train echat'")
    if not path.is_dir():
        raise DataError(f"{where}: a file; give the folder of the checkpoint")
    if not (path / INDEX).is_file():
        finished = sorted(file.parent for file in path.glob(f"stage-*/model/{INDEX}"))
        if not finished:
            raise DataError(
                f"{where}: neither a checkpoint (no {INDEX}) nor a run with a finished stage; "
                "'overtone train echat --out DIR' makes one"
            )
        path = finished[-1]
    read_index(path)
    return path


def read_index(folder: Path) -> _Index:
    """Read a checkpoint's index. Raises DataError if it is not one or has another format version."""
    where = shown(str(folder / INDEX))
    try:
        index = msgspec.json.decode(read_plain(folder / INDEX, _INDEX_BYTES), type=_Index)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{where}: not a checkpoint's index ({error}); copy the checkpoint again") from None
    if index.format != FORMAT:
        raise DataError(
            f"{where}: format {index.format}, but this version of Overtone reads {FORMAT}; "
            "use the version that wrote it, or train again"
        )
    return index


def check_numbers(given: Mapping[str, Any], called: Callable[[str], str]) -> None:
    """Raise UsageError for a number outside its range; `called(key)` is how the user wrote the key."""
    for key, (low, high) in RANGES.items():
        value = given.get(key)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{called(key)} must be between {low:g} and {high:g}, not {str(value)[:40]}")


class EChatModel(WorkerModel):
    """A trained checkpoint: `echat:CHECKPOINT?…`. Waiting requests are answered in one batch."""

    keys = KEYS
    batch = 8

    def __init__(self, spec: Spec) -> None:
        if not spec.name:
            raise UsageError(f"{spec}: the checkpoint's folder is missing; write echat:FOLDER")
        for key, allowed in CHOICES.items():
            if (given := spec.options.get(key, allowed[0])) not in allowed:
                raise UsageError(
                    f"{spec}: {key} must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {given!r}"
                    f"{suggest(given, allowed)}"
                )
        check_numbers(spec.typed(self.keys), lambda key: f"{spec}: {key}")
        super().__init__(spec)
        self.folder = named_checkpoint(spec.name)
        self._options["checkpoint"] = str(self.folder.resolve())

    def find_program(self) -> Path:
        return PROGRAM

    def find_python(self) -> Path:
        chosen = self._python or os.environ.get("OVERTONE_WORKER_PYTHON", "")
        path = user_path(chosen) if chosen else Path(sys.executable)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise UsageError(f"{self.spec}: no Python at {shown(str(path))}; name another with python=PATH")
        return path.absolute()  # not resolved: a virtual environment is found through its own link

    def environment(self, hub: bool, gpu: str | None) -> dict[str, str]:
        out = worker_environment(os.environ, hub=hub, gpu=gpu)
        out["PYTHONSAFEPATH"] = "1"  # the program's own folder holds files with the names of other packages
        if self.find_python() == Path(sys.executable).absolute():  # then it imports from the same folders
            folders = [out["PYTHONPATH"], *filter(os.path.isabs, sys.path), *spare_packages()]
            out["PYTHONPATH"] = os.pathsep.join(folders)
        if "OVERTONE_ECHAT" in os.environ:
            out["OVERTONE_ECHAT"] = os.environ["OVERTONE_ECHAT"]
        return out

    def install(self) -> str:
        return f"{install_line('train', str(self.find_python()))}, or overtone setup {MINI}"

    def describe(self) -> dict[str, Any]:
        """Return what identifies its replies: the SHA-256 of the weights, and the settings."""
        index = read_index(self.folder)
        out: dict[str, Any] = {"kind": "echat", "weights": {name: part.digest for name, part in index.parts.items()}}
        out |= {"trained": index.notes} if index.notes else {}
        out |= {"heard": index.heard.sha256} if index.heard else {}
        out |= {key: self._options[key] for key in _SET if self._options.get(key) not in (None, "")}
        return out | ({"facts": self._facts} if self._facts else {})

    def heard(self) -> HeardInTraining | None:
        """Return what the checkpoint heard in training; None if it does not state that."""
        entry = read_index(self.folder).heard
        return None if entry is None else read_heard(self.folder, entry)


load = EChatModel
