"""Words survive: the embedded recogniser must understand a clip well enough, measured by WER as in a run.

The bounds are specific to this recogniser (Moonshine tiny), which makes more errors than people do. Cues that make
words harder for people too have a wider bound. The bounds limit damage and do not promise quality:
`docs/reference/gates-audio.md` has the measured rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from overtone.build.gates import DIALOGUE, Finding
from overtone.build.gates.facts import ClipRecord, Facts
from overtone.cues import BY_SLUG

GATE = "words survive"
LEAST = 6  # clips of a style and cue that are needed to check their common rate


class Bound(Struct, frozen=True):
    """The maximum WER of a single clip, the maximum WER over all clips of a style and cue, and the reason for both."""

    clip: float
    corpus: float
    why: str


PLAIN = Bound(
    0.60, 0.30, "a plain synthetic voice, the easiest there is; what fails here is mostly a rare name or word"
)
BOUNDS: dict[str, Bound] = {
    "prosody": Bound(0.65, 0.35, "pitch, pace and level move away from what the recogniser was trained on"),
    "haste": Bound(0.75, 0.45, "sounds run into each other: harder for people too"),
    "timbre": Bound(0.75, 0.45, "the voice itself is damaged, shaken or strained: harder for people too"),
    "events": Bound(0.75, 0.45, "coughs, laughs and sobs are heard as words, so insertions are expected"),
    "scene": Bound(0.75, 0.45, "a steady or a single sound 10 dB under the voice"),
    "dialogue": Bound(0.35, 0.20, "plain voices in turn: questions about a dialogue need most of its words"),
    "babble": Bound(0.85, 0.55, "other voices, or a roar in the band of speech, 10 dB under the voice"),
}
_KIND = {
    "prosody": "happy sad surprise angry disgust slow",
    "haste": "fast",
    "timbre": "child elderly hoarse tired fear shout whisper",
    "events": "breath sobbing cough sigh laughter yawn moan",
    "babble": "applause cheering chatter children rain wind waves",
}
KIND: dict[str, str] = {slug: kind for kind, slugs in _KIND.items() for slug in slugs.split()}


class Rate(Struct, frozen=True):
    """The WER of all clips of one style and cue that passed individually, and how many failed."""

    style: str
    cue: str
    clips: int
    failed: int
    errors: int
    words: int
    bound: float

    @property
    def wer(self) -> float:
        return self.errors / self.words if self.words else 0.0


def bound(cue: str, style: str = "") -> Bound:
    """Return the bound of a cue; "" is a plain voice. A whole dialogue has a bound of its own."""
    if style == DIALOGUE:
        return BOUNDS["dialogue"]
    if cue in KIND:
        return BOUNDS[KIND[cue]]
    known = BY_SLUG.get(cue)
    return BOUNDS["scene"] if known is not None and known.dimension == "environment" else PLAIN


def check(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Finding]:
    """Return findings on clips above their bound, and on styles of a cue whose passing clips exceed the joint bound."""
    findings: list[Finding] = []
    for clip in clips:
        if clip.path not in facts:
            continue
        f, most = facts[clip.path], bound(clip.cue, clip.style)
        if f.wer > most.clip:
            reason = (
                f"the recogniser hears {f.transcript!r} for {clip.words!r}: WER {f.wer:.2f}, at most {most.clip:.2f} "
                "is expected; reword what it mishears, or use a clearer voice"
            )
            findings.append(Finding(GATE, clip.path, reason, round(f.wer, 4), most.clip))
    for rate in rates(clips, facts):
        if rate.wer > rate.bound and rate.clips >= LEAST:
            reason = (
                f"WER {rate.wer:.2f} over {rate.clips} clips, at most {rate.bound:.2f} is expected; use a clearer "
                "voice, or a gentler delivery"
            )
            subject = f"{rate.style}/{rate.cue or 'plain'}"
            findings.append(Finding(GATE, subject, reason, round(rate.wer, 4), rate.bound))
    return findings


def rates(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Rate]:
    """Return the word error rates by style and cue, over the clips that pass individually."""
    groups: dict[tuple[str, str], list[Facts]] = {}
    for clip in clips:
        if clip.path in facts:
            groups.setdefault((clip.style, clip.cue), []).append(facts[clip.path])
    out = []
    for (style, cue), members in sorted(groups.items()):
        most = bound(cue, style)
        kept = [f.heard for f in members if f.wer <= most.clip]
        errors, words = sum(h.errors for h in kept), sum(h.reference_words for h in kept)
        out.append(Rate(style, cue, len(kept), len(members) - len(kept), errors, words, most.corpus))
    return out
