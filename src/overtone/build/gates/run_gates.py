"""Run all gates on audio: measure every clip once, in several processes, and check the measurements.

Measurements are stored in `facts.jsonl` in the set's folder, one clip per line, as soon as they are made. A killed
build resumes there, and a second build measures only changed clips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.build.gates import Finding, cue, hygiene, speaker, survive
from overtone.build.gates.facts import VERSION, ClipRecord, Facts, Key, Sound, digest, measure_sound, read
from overtone.build.gates.survive import Rate
from overtone.build.recipes import recipe_of
from overtone.embedded import require
from overtone.errors import AudioError
from overtone.pool import Progress, no_progress, spread

FILE = "facts.jsonl"

__all__ = ["FILE", "Checked", "ClipRecord", "audio_gates", "judge", "measure_all"]


class Checked(Struct, frozen=True):
    """The result of the gates on audio.

    A finding's subject is a clip's path, or `style/cue` for a finding on a whole style of a cue (see `wholes`).
    Findings on a whole style leave nothing out, but a set with such a finding should not be released.
    """

    findings: tuple[Finding, ...]
    facts: dict[str, Facts]  # by path
    checked: dict[str, int]  # gate → number of clips it checked
    rates: tuple[Rate, ...]  # word error rates by style and cue

    @property
    def clips(self) -> frozenset[str]:
        """The paths of the clips that failed."""
        return frozenset(f.subject for f in self.findings) - {f.subject for f in self.wholes}

    @property
    def wholes(self) -> tuple[Finding, ...]:
        """The findings on a whole style of a cue."""
        subjects = {f"{r.style}/{r.cue or 'plain'}" for r in self.rates}
        return tuple(f for f in self.findings if f.subject in subjects)


def audio_gates(
    clips: Sequence[ClipRecord],
    out: Path,
    jobs: int = 1,
    progress: Progress = no_progress,
    *,
    strength: float = 1.0,
    snr: float = cue.SNR_DB,
) -> Checked:
    """Measure clips that are not measured yet and run every gate. `strength` and `snr` are the settings that the set
    was built with."""
    facts, broken = measure_all(clips, out, jobs, progress)
    findings = [*broken, *judge(clips, facts, strength=strength, snr=snr)]
    checked = {
        survive.GATE: len(facts),
        cue.GATE: sum(bool(c.cue) for c in clips if c.path in facts),
        speaker.GATE: len(facts),
        hygiene.GATE: len(clips),
    }
    return Checked(tuple(findings), facts, checked, tuple(survive.rates(clips, facts)))


def judge(
    clips: Sequence[ClipRecord], facts: Mapping[str, Facts], *, strength: float = 1.0, snr: float = cue.SNR_DB
) -> list[Finding]:
    """Run every gate on existing measurements."""
    return [
        *survive.check(clips, facts),
        *cue.check(clips, facts, strength=strength, snr=snr),
        *speaker.check(clips, facts),
        *hygiene.check(clips, facts),
    ]


def measure_all(
    clips: Sequence[ClipRecord], out: Path, jobs: int = 1, progress: Progress = no_progress
) -> tuple[dict[str, Facts], list[Finding]]:
    """Return the facts of every clip by path, and findings on files that cannot be read. Facts that are already stored
    are not measured again."""
    require("moonshine_voice", "the offline recogniser, for the gates")
    stored = (out / FILE).read_bytes() if (out / FILE).is_file() else b""
    kept = _load(stored)
    shas: dict[str, str] = {}
    broken: list[Finding] = []
    for clip in clips:
        try:
            shas[clip.path] = digest((out / clip.file).read_bytes())
        except OSError as error:
            reason = f"cannot be read: {error.strerror}; build it again"
            broken.append(Finding(hygiene.GATE, clip.path, reason))
    by_path = {clip.path: clip for clip in clips}
    facts: dict[str, Facts] = {}
    todo: dict[str, list[_Task]] = {}
    for clip in clips:
        if clip.path not in shas:
            continue
        twin = by_path.get(clip.twin) if clip.twin in shas else None
        task = _Task(clip.path, str(out / clip.file), clip.words, str(out / twin.file) if twin else "", _formants(clip))
        key: Key = (shas[clip.path], clip.words, shas[twin.path] if twin else "", task.formants if twin else 1.0)
        if key in kept:
            facts[clip.path] = kept[key]
        else:
            todo.setdefault(clip.case_id, []).append(task)
    done = len(facts)
    with (out / FILE).open("ab") as store:
        if stored and not stored.endswith(b"\n"):
            store.write(b"\n")  # after a line that a killed build left unfinished
        for group in spread(_measure, list(todo.values()), jobs):
            for path, measured in group:
                if isinstance(measured, Facts):
                    facts[path] = measured
                    store.write(msgspec.json.encode(measured) + b"\n")
                else:
                    broken.append(Finding(hygiene.GATE, path, measured))
            store.flush()
            done += len(group)
            progress("clips measured", done, len(shas))
    return facts, broken


class _Task(Struct, frozen=True):
    """One clip to measure."""

    path: str
    file: str
    words: str
    twin: str
    formants: float


def _formants(clip: ClipRecord) -> float:
    return 1.0 if clip.native else recipe_of(clip.cue, "" if clip.scene else clip.manner).formants


def _measure(group: Sequence[_Task]) -> list[tuple[str, Facts | str]]:
    """Measure the clips of one script; a file that fails yields its error. Runs in a worker process."""
    sounds: dict[str, Sound] = {}

    def sound(file: str) -> Sound:
        if file not in sounds:
            sounds[file] = read(Path(file))
        return sounds[file]

    out: list[tuple[str, Facts | str]] = []
    for task in group:
        try:
            twin = sound(task.twin) if task.twin else None
            out.append((task.path, measure_sound(sound(task.file), task.words, twin, task.formants)))
        except AudioError as error:
            out.append((task.path, str(error)))
    return out


def _load(stored: bytes) -> dict[Key, Facts]:
    """Read the facts that this version measured before. Broken or foreign lines are ignored."""
    out: dict[Key, Facts] = {}
    decoder = msgspec.json.Decoder(Facts)
    for line in stored.splitlines():
        try:
            facts = decoder.decode(line)
        except msgspec.DecodeError:
            continue
        if facts.version == VERSION:
            out[facts.key] = facts
    return out
