"""Hygiene: a clip has the promised format, is not clipped, silent or offset, and is not a copy of another clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from overtone.build.gates import DIALOGUE, Finding
from overtone.build.gates.facts import ClipRecord, Facts

GATE = "hygiene"
RATE, CHANNELS, BITS = 24_000, 1, 16
SHORTEST, LONGEST = 0.8, 30.0  # seconds
LONGEST_DIALOGUE = 600.0  # of a whole dialogue in one clip
QUIETEST_DBFS = -45.0
PEAK = 0.999
DC = 0.003  # of full scale; 50 dB under it
SILENT = 0.5  # share of 10 ms frames below -60 dBFS
EDGE = 1.0  # seconds of silence at either end
COPY_DB, COPY_SECONDS = 0.5, 0.02  # two clips are copies if every part of their outlines is closer than this
PLAIN = "plain"  # style of clips for the gates only, which are not part of the set


def check(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Finding]:
    """Return findings on faulty files, and on files that are stored under two names."""
    findings = [finding for clip in clips if clip.path in facts for finding in _file(clip, facts[clip.path])]
    return findings + _copies([c for c in clips if c.style != PLAIN and c.path in facts], facts)


def _file(clip: ClipRecord, f: Facts) -> list[Finding]:
    findings: list[Finding] = []

    def say(reason: str, value: float, bound: float) -> None:
        findings.append(Finding(GATE, clip.path, reason, round(value, 4), bound))

    if (f.rate, f.channels, f.bits) != (RATE, CHANNELS, BITS):
        say(
            f"its format is {f.rate} Hz, {f.channels} channels, {f.bits} bits; a set has {RATE} Hz, mono, {BITS} bits: "
            "build it again",
            f.rate,
            RATE,
        )
    seconds = f.measures.seconds
    longest = LONGEST_DIALOGUE if clip.style == DIALOGUE else LONGEST
    if not SHORTEST <= seconds <= longest:
        bound = SHORTEST if seconds < SHORTEST else longest
        say(f"lasts {seconds:.2f} s, not {SHORTEST} to {longest:g} s; shorten or lengthen the words", seconds, bound)
    if f.clipped or f.peak > PEAK:
        say(f"clipped: {f.clipped} samples at full scale, peak {f.peak:.3f}; make it at a lower level", f.peak, PEAK)
    if f.measures.rms_dbfs < QUIETEST_DBFS:
        say(
            f"as good as silent at {f.measures.rms_dbfs:.1f} dBFS; at least {QUIETEST_DBFS:g} is expected: "
            "check the voice engine",
            f.measures.rms_dbfs,
            QUIETEST_DBFS,
        )
    if abs(f.dc) > DC:
        say(f"shifted off zero by {f.dc:+.4f} of full scale, at most {DC} is expected; remove the offset", f.dc, DC)
    if f.silent > SILENT:
        say(f"silent for {f.silent:.0%} of its length, at most {SILENT:.0%} is expected; cut it", f.silent, SILENT)
    for name, value in (("begins", f.lead), ("ends", f.trail)):
        if EDGE < value < seconds:
            say(f"{name} with {value:.2f} s of silence, at most {EDGE:g} s is expected; trim it", value, EDGE)
    return findings


def _copies(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Finding]:
    """Find clips that are identical or nearly identical to an earlier clip; only the later clip is reported."""
    findings: list[Finding] = []
    first: dict[str, str] = {}
    for clip in clips:
        same = first.setdefault(facts[clip.path].sha256, clip.path)
        if same != clip.path:
            reason = f"the same bytes as {same}; one of the two is not what its name says"
            findings.append(Finding(GATE, clip.path, reason))
    rest = list(first.values())
    if len(rest) < 2:
        return findings
    seconds = np.array([facts[p].measures.seconds for p in rest])
    outline = np.maximum(np.array([facts[p].envelope for p in rest]), -70.0)
    outline -= outline.mean(1, keepdims=True)
    order = np.argsort(seconds, kind="stable")
    for at, k in enumerate(order):
        end = int(np.searchsorted(seconds[order], seconds[k] + COPY_SECONDS, side="right"))
        near = order[at + 1 : end]
        apart = np.abs(outline[near] - outline[k]).max(axis=1, initial=0.0)
        for other, value in zip(near[apart < COPY_DB], apart[apart < COPY_DB], strict=True):
            one, two = sorted((int(k), int(other)))
            reason = (
                f"a near copy of {rest[one]}: no part of its outline differs by {COPY_DB} dB; "
                "one of the two is not what its name says"
            )
            findings.append(Finding(GATE, rest[two], reason, round(float(value), 3), COPY_DB))
    return findings
