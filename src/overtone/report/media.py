"""The sounds of a report: as links relative to the file, or embedded in it.

Run folders are untrusted. A clip's path must stay inside the data folder, a reply's name must be plain hex, and only
files that begin like audio are embedded. The run itself names its data folder: clips are embedded only if it is in the
working directory or in a folder that the user names, so that no run can make its reader publish other recordings.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from overtone.audio import media_type
from overtone.errors import DataError, OvertoneError, UsageError
from overtone.paths import inside, narrow, shown
from overtone.results.load import Reading

EMBED_LIMIT = 200 * 2**20  # bytes of sound; a third more as base64, which is about what browsers open at ease
_SUFFIXES = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"}


class Media:
    """Converts sounds to the addresses that the page plays: a relative URL, or `#m<n>` for a sound embedded in the
    report."""

    def __init__(self, out: Path, embed: bool, data: Sequence[Path] = ()) -> None:
        self.home = out.resolve().parent
        self.embed = embed
        self.left_out: dict[str, Path] = {}  # runs whose clips are not embedded, and their data folders
        self._folders = [folder.resolve() for folder in (*narrow(Path.cwd()), *data)]
        self.size = 0
        self.blocks: list[tuple[str, Path]] = []  # media type, file
        self._known: dict[Path, str] = {}

    def clip(self, reading: Reading, relative: str) -> str:
        """Return the clip's URL, or `!reason` if it cannot be played."""
        if reading.root is None:
            return "!the run does not name the folder of its clips"
        if self.embed and not self._may_embed(reading.root):
            self.left_out[reading.name] = reading.root
            return "!not embedded: the data folder is outside the working directory, and --data does not name it"
        try:
            path = inside(reading.root, relative)
        except DataError as error:
            return f"!{error}"
        return self._use(path)

    def notes(self) -> list[str]:
        """Return a sentence for each run whose clips were left out."""
        why = "lies outside the working directory"
        if not narrow(Path.cwd()):
            why = (
                f"is not named with --data, and the working directory {shown(str(Path.cwd()))} is too broad: "
                "the root, the home folder and the folder for temporary files hold more than one project"
            )
        return [
            f"The clips of {name} are not in this report: its data folder {shown(str(root))} {why}. "
            f"If you want to share these recordings, write the report again with --data {shown(str(root))}"
            for name, root in self.left_out.items()
        ]

    def _may_embed(self, root: Path) -> bool:
        try:
            return any(root.resolve().is_relative_to(folder) for folder in self._folders)
        except (OSError, RuntimeError, ValueError):  # a loop of links, a null byte
            return False

    def reply(self, reading: Reading, name: str) -> str:
        """Return the address of a reply's sound, given its name in the run's store."""
        try:
            path = reading.audio_path(name)
        except OvertoneError as error:
            return f"!{error}"
        return self._use(path)

    def _use(self, path: Path) -> str:
        if path not in self._known:
            self._known[path] = self._place(path)
        return self._known[path]

    def _place(self, path: Path) -> str:
        if path.suffix.lower() not in _SUFFIXES:
            return "!not a sound file"
        try:
            if path.exists() and not path.is_file():  # opening a pipe would wait for ever
                return "!not a plain file"
            with path.open("rb") as file:
                kind = media_type(file)
                size = os.fstat(file.fileno()).st_size
        except OSError:
            return "!the file was missing when this report was written"
        if not self.embed:
            return quote(Path(os.path.relpath(path, self.home)).as_posix(), safe="/")
        if not kind:
            return "!the file does not begin like audio"
        self.size += size
        self.blocks.append((kind, path))
        return f"#m{len(self.blocks) - 1}"

    def check_size(self) -> None:
        """Raise UsageError if the embedded sounds are too large for a browser."""
        if self.size > EMBED_LIMIT:
            raise UsageError(
                f"the report's {len(self.blocks):,} sounds take {self.size / 2**20:,.0f} MiB, more than the "
                f"{EMBED_LIMIT / 2**20:,.0f} MiB that a browser can open; leave out --embed-audio (the report then "
                "plays the files from their folders), or report fewer or smaller runs"
            )

    def block(self, number: int) -> tuple[str, str]:
        """Return media type and base64 of an embedded sound."""
        kind, path = self.blocks[number]
        return kind, base64.b64encode(path.read_bytes()).decode("ascii")
