"""Build parts of the open sets, run the embedded models on them, and write one report, all offline."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from overtone.errors import EXIT_OK
from overtone.paths import write_whole
from overtone.text import percent

# To finish within minutes, the demo builds one script per cue, without the gates, and asks all questions about the
# target clip only. It adds what the findings compare: the voice of the alternative clip and a reply to it, the words
# alone, other prompts, a false cue. Without these flags the commands cover everything.
FLAGS = ("--parts", "core")
DEAF, ACOUSTIC = "cascade?max_tokens=32", "cascade?hear=acoustic&max_tokens=32"
TARGET = ("--styles", "target", "--prompt", "enhance")
FIRST = (*FLAGS, "--levels", "1", *TARGET)
ALL = (*FLAGS, *TARGET)
TOLD = (*FLAGS, "--levels", "3", "--styles", "target", "--prompt", "basic,oracle,oracle-false")
MOVED = (*FLAGS, "--levels", "1,3", "--styles", "target,alternative", "--prompt", "enhance")
WORDS = (*FLAGS, "--levels", "1", "--styles", "target", "--input", "transcript")
QUICK_CUES = "male,female,happy,sad,angry,fast,slow,whisper,cough,rain"
EXAMPLES = ("overtone demo --out demo", "overtone demo --quick", "overtone demo --mini")


class Build(NamedTuple):
    """A set to build: its name, its folder, and the flags of `overtone build`."""

    name: str
    clips: str
    flags: tuple[str, ...]


class Phase(NamedTuple):
    """A run to do: what it asks, its benchmark and clips, its folder, its model, and the flags of `overtone run`."""

    question: str
    benchmark: str
    clips: str
    folder: str
    model: str
    flags: tuple[str, ...]


OPEN = Build("open", "clips", ("--per-cue", "1", "--no-gates"))
QUICK_OPEN = Build("open", "clips", ("--per-cue", "1", "--no-gates", "--only", QUICK_CUES))
OTHERS = (
    Build("aeq", "aeq-clips", ("--per-setting", "1", "--no-gates")),
    Build("echat-eval", "echat-clips", ("--per-category", "1", "--no-gates")),
)
# The first phase needs the language model least, so that a first result is there within a minute.
QUICK_PHASES = (
    Phase("hears the voice: questions about it", "open", "clips", "acoustic", ACOUSTIC, FIRST),
    Phase("hears the voice: all questions", "open", "clips", "acoustic", ACOUSTIC, ALL),
    Phase("hears words only: all questions", "open", "clips", "deaf", DEAF, ALL),
)
PHASES = (
    *QUICK_PHASES,
    Phase("hears words only: told the cue", "open", "clips", "deaf", DEAF, TOLD),
    Phase("hears words only: another voice", "open", "clips", "deaf", DEAF, MOVED),
    Phase("hears the voice: another voice", "open", "clips", "acoustic", ACOUSTIC, MOVED),
    Phase("hears the voice: words alone", "open", "clips", "acoustic", ACOUSTIC, WORDS),
    Phase("hears the voice: AEQ-Bench", "aeq", "aeq-clips", "aeq", ACOUSTIC, ("--input", "audio,context")),
    Phase("hears the voice: EChat-eval", "echat-eval", "echat-clips", "echat-eval", ACOUSTIC, ()),
)
# Speaking takes mini about as long as the speech itself, so it speaks short replies to the target clips alone.
MINI_PHASES = (
    Phase("mini: questions about the voice", "open", "clips", "mini", "echat:mini?speech=no", FIRST),
    Phase(
        "mini: spoken replies",
        "open",
        "clips",
        "mini-speaks",
        "echat:mini?max_speech=8",
        (*FLAGS, "--levels", "3", *TARGET),
    ),
)
MODELS = {
    "acoustic": "hears the voice: recogniser, measures of the voice and language model",
    "deaf": "hears words only: recogniser and language model",
    "aeq": "hears the voice, on AEQ-Bench",
    "echat-eval": "hears the voice, on EChat-eval",
    "mini": "the trained model mini, questions",
    "mini-speaks": "the trained model mini, spoken replies",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="output folder (default: demo, demo-quick or demo-mini)"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="10 cues and Overtone-Open only, for a first look")
    kind.add_argument(
        "--mini",
        action="store_true",
        help="as --quick, with the trained model of 'overtone setup mini' beside the others",
    )


def main(args: argparse.Namespace) -> int:
    from overtone.models.echat import MINI, named_checkpoint
    from overtone.score_workers import keep_workers

    out: Path = args.out or Path("demo-mini" if args.mini else "demo-quick" if args.quick else "demo")
    builds = (QUICK_OPEN,) if args.quick or args.mini else (OPEN, *OTHERS)
    phases: tuple[Phase, ...] = QUICK_PHASES if args.quick else PHASES
    if args.mini:
        named_checkpoint(MINI)  # raises if it is not installed
        phases = (*QUICK_PHASES, *MINI_PHASES)
    with keep_workers():
        return _Demo(out, len(builds) + len(phases) + 1).run(builds, phases)


class _Demo:
    """The demo's phases, one line each. The output of their commands goes to demo.log."""

    def __init__(self, out: Path, phases: int) -> None:
        self.out = out
        self.log = out / "demo.log"
        self.phases = phases
        self.done = 0
        self.began = time.perf_counter()

    def run(self, builds: tuple[Build, ...], phases: tuple[Phase, ...]) -> int:
        self.out.mkdir(parents=True, exist_ok=True)
        write_whole(self.log, b"")
        first, *others = builds
        if code := self._build(first):
            return code
        for number, phase in enumerate(phases):
            if number == 1:
                print(f"  first result: {sentence(self.out / phase.folder)}", flush=True)
            for build in [one for one in others if one.clips == phase.clips]:
                if code := self._build(build):
                    return code
            data = ("--data", str(self.out / phase.clips), "--out", str(self.out / phase.folder))
            command = ("run", phase.benchmark, *data, "--model", phase.model, *phase.flags, "--quiet")
            if code := self._phase(phase.question, *command):
                return code
        folders = list(dict.fromkeys(phase.folder for phase in phases))
        report = self.out / "report.html"
        runs = [str(self.out / folder) for folder in folders]
        if code := self._phase("writes the report", "report", *runs, "-o", str(report)):
            return code
        print("\n".join(self._summary(folders, report)))
        return EXIT_OK

    def _build(self, build: Build) -> int:
        words = ("build", build.name, *build.flags, "--out", str(self.out / build.clips))
        return self._phase(f"speaks clips of {build.name}", *words)

    def _phase(self, name: str, *words: str) -> int:
        """Run one command and print one line about it. If it fails, print the end of its output too."""
        from overtone.cli import main as overtone

        self.done += 1
        print(f"[{self.done:>2}/{self.phases}] {name:<38}", end="", flush=True)
        began, start = time.perf_counter(), self.log.stat().st_size
        with _into(self.log):
            print(f"── overtone {' '.join(words)}", flush=True)
            code = overtone(words)
        print(f"{time.perf_counter() - began:6.1f} s", flush=True)
        if code != EXIT_OK:
            with self.log.open("rb") as file:
                file.seek(start)
                lines = file.read().decode("utf-8", "replace").splitlines()
            print("\n".join([*lines[-10:], f"stopped; {self.log} has everything"]), file=sys.stderr)
        return code

    def _summary(self, folders: list[str], report: Path) -> list[str]:
        minutes, seconds = divmod(round(time.perf_counter() - self.began), 60)
        lines = ["", "Do these models hear how something is said?", ""]
        for folder in folders:
            lines += [MODELS[folder], f"  {sentence(self.out / folder)}"]
        return [
            *lines,
            "",
            "The voices are synthetic and the models small: this shows what Overtone measures, not how good they are.",
            f"{minutes} min {seconds} s. Every table: overtone table headline {self.out / 'acoustic'}",
            f"open {report}",
        ]


@contextlib.contextmanager
def _into(log: Path) -> Iterator[None]:
    """Append what is printed to a file."""
    with (
        log.open("a", encoding="utf-8", errors="backslashreplace") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield


def sentence(folder: Path) -> str:
    """Return the main numbers of a run in one line: accuracy on questions about the voice and about reasons, words,
    replies."""
    from overtone.results.load import open_run
    from overtone.results.summary import summarise_reading

    summary = summarise_reading(open_run(folder, light=True))
    parts = []
    for condition in summary.conditions:
        by = " from the words alone" if condition.condition.endswith("/transcript") else ""
        for what, accuracy in (("about the voice", condition.voice), ("on reasons", condition.reasoning)):
            if accuracy is not None and accuracy.questions.value is not None:
                chance = f", chance {percent(accuracy.chance)}" if accuracy.chance is not None else ""
                right = percent(accuracy.questions.value)
                parts.append(f"{right} of {accuracy.questions.scored} questions {what} right{by}{chance}")
        words = condition.measures.get("wer_corpus")
        if words is not None and words.value is not None:
            parts.append(f"word error rate {percent(words.value)}")
    parts.append(f"{summary.answered} of {summary.asked} answered")
    return "; ".join(dict.fromkeys(parts)) + "."
