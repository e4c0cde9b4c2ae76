"""Same words, same speaker: the clips of a script say its words in one voice, unless the cue changes the speaker.

A control clip is the opposite: it must say the same words in another voice. Voices are compared frame by frame on the
same words (`Pair.voice_db`), after removing level, slope, pitch and the recipe's own change of the resonances. In a
clip with a scene, the voice must equal the twin's sample for sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overtone.build.gates import Finding
from overtone.build.gates.facts import ClipRecord, Facts, heard
from overtone.cues import BY_SLUG

GATE = "same words, same speaker"
SAME_DB = 3.5  # highest distance of two deliveries of one voice; docs/reference/gates-audio.md has the error rates
OTHER_DB = 1.0  # lowest distance of a script's voice and its control's
UNDER_DB = 3.0  # a voice this far above the rest of the clip is in it sample for sample
DOUBTED = 0.35  # a clip with a lower WER says its own words and is not compared with other scripts
TOGETHER = 1.2  # highest WER between the transcripts of a clip and its twin: hardly a word in common
FITS = 0.5  # a transcript with a lower WER against another script's words is a clip of that script


def check(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Finding]:
    """Return findings on clips with the wrong words or speaker, and on controls with the same speaker."""
    measured = [c for c in clips if c.path in facts]
    return _words(measured, facts) + [finding for clip in measured for finding in _speaker(clip, facts)]


def _words(clips: Sequence[ClipRecord], facts: Mapping[str, Facts]) -> list[Finding]:
    findings: list[Finding] = []
    scripts = sorted({c.words for c in clips})
    for clip in clips:
        f = facts[clip.path]
        if f.wer <= DOUBTED or not f.transcript:
            continue
        nearest = min(scripts, key=lambda words: _rate(words, f.transcript))
        value = _rate(nearest, f.transcript)
        if value < min(f.wer, FITS):
            reason = (
                f"sounds more like {nearest!r} (WER {value:.2f}) than like its own words (WER {f.wer:.2f}); check "
                "which file lies there"
            )
            findings.append(Finding(GATE, clip.path, reason, round(f.wer, 4), round(value, 4)))
        elif clip.twin in facts and facts[clip.twin].transcript:
            apart = _rate(facts[clip.twin].transcript, f.transcript)
            if apart > TOGETHER:
                reason = (
                    f"what is heard of it and of its neutral twin differs by a WER of {apart:.2f}, at most {TOGETHER} "
                    "is expected; check that both say the script's words"
                )
                findings.append(Finding(GATE, clip.path, reason, round(apart, 4), TOGETHER))
    return findings


def _rate(words: str, transcript: str) -> float:
    counts = heard(words, transcript)
    return counts.errors / max(counts.reference_words, 1)


def _speaker(clip: ClipRecord, facts: Mapping[str, Facts]) -> list[Finding]:
    pair = facts[clip.path].pair
    if pair is None:
        return []
    apart = pair.voice_db
    if clip.style == "control":
        if apart is None or apart >= OTHER_DB:
            return []
        reason = (
            f"its voice is {apart:.1f} dB from the neutral clip's, at least {OTHER_DB} is expected of a control in "
            "another voice; choose another"
        )
        return [Finding(GATE, clip.path, reason, apart, OTHER_DB)]
    if clip.cue in BY_SLUG and BY_SLUG[clip.cue].dimension == "speaker":
        return []
    if clip.scene and not clip.native:
        if pair.snr_db is not None and pair.snr_db >= UNDER_DB:
            return []
        state = "is not in it" if pair.snr_db is None else f"is {pair.snr_db:.1f} dB above the rest of it"
        reason = (
            f"its neutral twin's voice {state}, at least {UNDER_DB:g} dB is expected; the voice under a scene has to "
            "be the same take"
        )
        return [Finding(GATE, clip.path, reason, pair.snr_db, UNDER_DB)]
    if apart is None or apart <= SAME_DB or clip.native or clip.scene:
        return []
    reason = (
        f"its voice is {apart:.1f} dB from its neutral twin's, at most {SAME_DB} is expected of one speaker; check "
        f"that both are spoken by {clip.speaker or 'the same voice'}"
    )
    return [Finding(GATE, clip.path, reason, apart, SAME_DB)]
