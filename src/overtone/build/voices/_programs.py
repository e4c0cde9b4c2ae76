"""Run a speech program once per utterance: no shell, a time-out that also ends its children, clear errors."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from overtone import audio, processes
from overtone.audio import Samples
from overtone.build.voices._records import VoiceError
from overtone.errors import AudioError, MissingExtra
from overtone.processes import last_lines

TIMEOUT = 120.0
_ASCII = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": ", ", "—": ", ", "…": "...", "\0": " "})


def find_program(name: str, package: str) -> str:
    """Return the path of a program. Raises MissingExtra with the package that provides it."""
    path = shutil.which(name)
    if path is None:
        raise MissingExtra(f"the program {name!r} is not installed; run 'apt install {package}', or use --voice espeak")
    return path


def plain_ascii(words: str) -> str:
    """Reduce words to ASCII: typographic marks become plain ones, accents are removed."""
    plain = unicodedata.normalize("NFKD", words.translate(_ASCII))
    return " ".join(plain.encode("ascii", "ignore").decode().split())


def run_program(
    command: Sequence[str], *, who: str, feed: str | None = None, timeout: float = TIMEOUT, fine: tuple[int, ...] = (0,)
) -> tuple[str, str]:
    """Run a program and return its stdout and stderr. Raises VoiceError if its exit status is not in `fine` or it takes
    too long."""
    program = Path(command[0]).name
    try:
        status, *streams = processes.run(command, None if feed is None else feed.encode(), timeout)
    except TimeoutError:
        raise VoiceError(f"{who}: no speech in {timeout:g} s; give it longer with timeout=SECONDS") from None
    except OSError as error:
        raise VoiceError(f"{who}: cannot start {command[0]}: {error.strerror or error}") from None
    out, err = (stream.decode("utf-8", "replace") for stream in streams)
    if status not in fine:
        raise VoiceError(f"{who}: {program} ended with {processes.ended_with(status)}{last_lines(err, out)}")
    return out, err


def speech_of(
    command: Sequence[str], out: Path, *, who: str, feed: str | None = None, timeout: float = TIMEOUT
) -> tuple[Samples, int]:
    """Run a program that writes the sound file `out`, and read it."""
    stdout, stderr = run_program(command, who=who, feed=feed, timeout=timeout)
    if not out.is_file():
        raise VoiceError(f"{who}: {Path(command[0]).name} wrote no sound to {{out}}{last_lines(stderr, stdout)}")
    try:
        return sounding(*audio.read(out), who)
    except AudioError as error:
        raise VoiceError(f"{who}: {Path(command[0]).name} wrote no usable sound: {error}") from None


def sounding(samples: Samples, rate: int, who: str) -> tuple[Samples, int]:
    """Return the samples. Raises VoiceError if they are silent."""
    if not samples.size or float(abs(samples).max()) < 1e-4:
        raise VoiceError(f"{who}: the sound is silent; check the program or server, and the voice's name")
    return samples, rate


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Provide a temporary folder for one utterance's files."""
    with tempfile.TemporaryDirectory(prefix="overtone-voice-") as folder:
        yield Path(folder)
