"""Install the trained model `mini`: what it needs, and its weights from a clone or a released folder or archive."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

import overtone
from overtone.errors import EXIT_OK, DataError, OvertoneError, UsageError
from overtone.models.echat import INDEX, MINI, mini_folder, read_index
from overtone.paths import read_plain, sha256, shown, to_disk, user_path
from overtone.workers.measuring_environment import spare_packages

MANIFEST = "manifest.json"
MOST = 1_000_000_000  # bytes of a release
PROOF = "import pathlib, sys; from overtone.echat.net import checkpoint; checkpoint.load(pathlib.Path(sys.argv[1]))"


class _Manifest(msgspec.Struct):
    sha256: dict[str, str]


def cloned_weights() -> Path:
    """Return the folder of the weights in the clone that Overtone runs from."""
    return Path(overtone.__file__).parents[2] / "weights" / MINI


def find_release(source: str) -> Path:
    """Return the folder or archive of a release that a user named, or else that of the clone. Raises UsageError."""
    path = user_path(source) if source else cloned_weights()
    if path.is_file() or (path / MANIFEST).is_file():
        return path
    if source:
        raise UsageError(f"{shown(source)}: not a release: neither an archive nor a folder with {MANIFEST}")
    raise UsageError(
        f"the weights of {MINI} are missing (no {shown(str(path / MANIFEST))}). Their place is the folder "
        f"weights/{MINI} of Overtone's repository, not its package; name a copy of that folder, or the archive of a "
        f"release, with: overtone setup {MINI} --from PATH"
    )


@contextlib.contextmanager
def unpacked(release: Path) -> Iterator[Path]:
    """Yield the folder of a release. An archive is unpacked for that time. Raises DataError."""
    if release.is_dir():
        yield release
        return
    with tempfile.TemporaryDirectory() as room:
        try:
            with tarfile.open(release) as tar:
                if sum(member.size for member in tar.getmembers()) > MOST:
                    raise DataError(f"{shown(str(release))}: more than {MOST / 1e9:g} GB; not a release")
                tar.extractall(room, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DataError(f"{shown(str(release))}: not an archive of a release: {error}; copy it again") from None
        folders = [path.parent for path in Path(room).glob(f"*/{MANIFEST}")]
        if len(folders) != 1:
            raise DataError(f"{shown(str(release))}: not an archive of a release: it has no folder with {MANIFEST}")
        yield folders[0]


def hashes(release: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a release, without checking them. Raises DataError."""
    where = release / MANIFEST
    try:
        found = msgspec.json.decode(read_plain(where, 50_000_000), type=_Manifest).sha256
    except (msgspec.DecodeError, OSError) as error:
        raise DataError(f"{shown(str(where))}: not a release's manifest: {error}") from None
    if INDEX not in found or any(Path(name).name != name for name in found):
        raise DataError(f"{shown(str(where))}: not a release's manifest: it must list {INDEX} and plain file names")
    return found | {MANIFEST: sha256(where)}


def lacking(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Return the names of the files that a folder lacks or has with other bytes."""
    return [name for name, digest in wanted.items() if not (folder / name).is_file() or sha256(folder / name) != digest]


def place(release: Path, folder: Path, wanted: dict[str, str]) -> None:
    """Copy a release to its folder, and replace an older one. Resumes a copy that was interrupted. Raises DataError."""
    fresh = folder.with_name(f".{folder.name}.part")
    fresh.mkdir(parents=True, exist_ok=True)
    for name in lacking(fresh, wanted):
        try:
            shutil.copyfile(release / name, fresh / name)
        except OSError as error:
            raise DataError(f"{shown(str(release / name))}: {error.strerror}; copy the release again") from None
        to_disk(fresh / name)
        if sha256(fresh / name) != wanted[name]:
            (fresh / name).unlink()
            raise DataError(f"{shown(str(release / name))}: incomplete or changed (different SHA-256); copy it again")
    for path in fresh.iterdir():
        if path.name not in wanted:  # of another release, whose copy was interrupted
            path.unlink()
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def prove(folder: Path) -> None:
    """Load the model in a separate process. Raises OvertoneError if that fails."""
    path = os.pathsep.join([*filter(os.path.isabs, sys.path), *spare_packages()])
    command = [sys.executable, "-P", "-c", PROOF, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise OvertoneError(
            f"the model {MINI} was installed in {shown(str(folder))} but cannot be loaded: {shown(last)}"
        )


def main(dry_run: bool, source: str) -> int:
    """Install what `mini` needs, then its weights."""
    from overtone.cli import _measures_setup, setup

    release, folder = find_release(source), mini_folder()
    if folder.exists() and not (folder / INDEX).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{shown(str(folder))}: contains other files; set OVERTONE_MINI to another folder")
    with unpacked(release) as found:
        wanted = hashes(found)
        missing = lacking(folder, wanted)
        if dry_run:
            setup.install_local(dry_run=True)
            _measures_setup.main(dry_run=True)
            done = "would copy" if missing else "installed"
            print(f"{done:<14}{MINI} from {shown(str(release))} to {shown(str(folder))}")
            return EXIT_OK
        setup.install_local(dry_run=False)
        if not _has_torch():
            _measures_setup.main(dry_run=False)
        if missing:
            place(found, folder, wanted)
            prove(folder)
    read_index(folder)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{MINI:<20} {'installed' if missing else 'was installed already'}, {size:.1f} MB: {shown(str(folder))}")
    print(f"Talk to it: overtone serve {MINI}, or overtone talk echat:{MINI}")
    return EXIT_OK


def _has_torch() -> bool:
    """Return whether this environment has all that training and decoding need, as `overtone[train]` installs it."""
    from overtone.embedded import present

    return all(present(name) for name in ("torch", "transformers", "safetensors", "gguf"))
