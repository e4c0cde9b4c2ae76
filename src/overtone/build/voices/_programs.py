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
    """The path of a program; MissingExtra names the package that brings it."""
    path = shutil.which(name)
    if path is None:
        raise MissingExtra(f"the program {name!r} is not installed; run 'apt install {package}', or use --voice espeak")
    return path


def plain_ascii(words: str) -> str:
    """Words for programs that know no other letters: typographic marks as plain ones, accents taken off."""
    plain = unicodedata.normalize("NFKD", words.translate(_ASCII))
    return " ".join(plain.encode("ascii", "ignore").decode().split())


def run_program(
    command: Sequence[str],
    *,
    who: str,
    feed: str | None = None,
    timeout: float = TIMEOUT,
    fine: tuple[int, ...] = (0,),
) -> tuple[str, str]:
    """Run a program to its end; what it wrote to stdout and stderr. VoiceError when its exit status is not among the
    `fine` ones or it takes too long."""
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
    """The samples, unless nobody can be heard in them."""
    if not samples.size or float(abs(samples).max()) < 1e-4:
        raise VoiceError(f"{who}: what came back is silence")
    return samples, rate


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder for one utterance's files, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="overtone-voice-") as folder:
        yield Path(folder)
