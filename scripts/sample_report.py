"""Make docs/sample/report.html: two embedded models on twelve scripts, with compressed clips inside the file.

This takes about four minutes on two idle cores. It needs `overtone setup local`.

    python -m scripts.sample_report
"""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
from pathlib import Path

import soundfile

from overtone.audio import read
from overtone.cli import main as overtone

PAGE = Path(__file__).parent.parent / "docs" / "sample" / "report.html"
CUES = "happy,sad,angry,surprise,child,fast,cough,laughter,rain,thunder,dog,alarm"
ASK = "run open --data clips --parts core --styles target,alternative"
COMMANDS = (
    f"build open --only {CUES} --per-cue 1 --no-gates --out clips",
    f"{ASK} --model 'cascade?max_tokens=32&speech=no' --out runs/words",
    f"{ASK} --model 'cascade?hear=acoustic&max_tokens=32&speech=no' --out runs/hears",
)
REPORT = "report runs/words runs/hears --embed-audio --data clips -o report.html"
LIMIT = 1_250_000  # bytes of the page
RATE = 16_000


def compress(clips: Path) -> None:
    """Replace the clips by Opus at 16 kHz under their names, and remove the reference replies, to keep the page small.

    A report reads what a file contains, not how it is called."""
    for path in sorted((clips / "audio_response").rglob("*.wav")):
        path.unlink()
    for path in sorted(clips.rglob("*.wav")):
        samples, rate = read(path, rate=RATE)
        packed = io.BytesIO()
        soundfile.write(packed, samples, rate, format="OGG", subtype="OPUS", compression_level=1.0)
        path.write_bytes(packed.getvalue())


def main() -> None:
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(home):
        for command in COMMANDS:
            if code := overtone(shlex.split(command)):
                raise SystemExit(f"overtone {command} ended with exit code {code}")
        compress(Path("clips"))
        overtone(shlex.split(REPORT))
        page = Path("report.html").read_bytes().replace(f"{Path.cwd()}/".encode(), b"")  # where this was made
    if len(page) > LIMIT:
        raise SystemExit(f"the page has {len(page):,} bytes, more than {LIMIT:,}; use fewer cues")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_bytes(page)


if __name__ == "__main__":
    main()
