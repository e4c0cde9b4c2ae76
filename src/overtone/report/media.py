"""The sounds of a report: as links relative to the file, or inside it.

Run folders come from strangers. A clip's path must stay inside the data folder, a reply's name must be plain hex, and
only what begins like a sound is ever put into a report, so that no run can make its reader publish another file.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

from overtone.analysis.reading import Reading
from overtone.errors import DataError, OvertoneError, UsageError
from overtone.paths import inside

EMBED_LIMIT = 200 * 2**20  # bytes of sound; a third more as base64, which is about what browsers open at ease
_MAGIC = {b"RIFF": "audio/wav", b"fLaC": "audio/flac", b"OggS": "audio/ogg", b"ID3": "audio/mpeg"}
_SUFFIXES = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a"}


def sound_type(head: bytes) -> str:
    """The media type of what begins so, or nothing when it is no sound we know."""
    if head[:4] == b"RIFF" and head[8:12] != b"WAVE":
        return ""
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0:
        return "audio/mpeg"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "")


class Media:
    """Turns sounds into what the page plays: a relative URL, or `#m<n>` of a block inside the report."""

    def __init__(self, out: Path, embed: bool) -> None:
        self.home = out.resolve().parent
        self.embed = embed
        self.size = 0
        self.blocks: list[tuple[str, Path]] = []  # media type, file
        self._known: dict[Path, str] = {}

    def clip(self, reading: Reading, relative: str) -> str:
        """The clip's URL, or `!reason` where it cannot be played."""
        if reading.root is None:
            return "!the run does not say where its clips lie"
        try:
            path = inside(reading.root, relative)
        except DataError as error:
            return f"!{error}"
        return self._use(path)

    def reply(self, reading: Reading, name: str) -> str:
        """A reply's sound, by its name in the run's store."""
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
                kind = sound_type(file.read(16))
                size = os.fstat(file.fileno()).st_size
        except OSError:
            return "!the file was not there when this report was written"
        if not self.embed:
            return quote(Path(os.path.relpath(path, self.home)).as_posix(), safe="/")
        if not kind:
            return "!the file does not begin like a sound"
        self.size += size
        self.blocks.append((kind, path))
        return f"#m{len(self.blocks) - 1}"

    def check_size(self) -> None:
        if self.size > EMBED_LIMIT:
            raise UsageError(
                f"the report's {len(self.blocks):,} sounds take {self.size / 2**20:,.0f} MiB, more than the "
                f"{EMBED_LIMIT / 2**20:,.0f} MiB a browser opens at ease; leave out --embed-audio (the report then "
                "plays the files where they lie), or report fewer runs or a smaller run"
            )

    def block(self, number: int) -> tuple[str, str]:
        """Media type and base64 of an embedded sound."""
        kind, path = self.blocks[number]
        return kind, base64.b64encode(path.read_bytes()).decode("ascii")
