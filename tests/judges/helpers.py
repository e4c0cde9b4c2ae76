"""Subjects made in tests, and a judge that is not patient."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from overtone.judges import rubric
from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Judgement, Outcome
from overtone.judges.panel import Sitting
from overtone.judges.policy import parse_judge
from overtone.judges.verdict_cache import Verdicts
from overtone.runs.asker import Policy
from tests.servers import tone

QUICK = Policy(attempts=3, base=0.01, longest=0.05, patience=0.2)


def reply(number: int, style: str = "target", **texts: str) -> Subject:
    shown = {"cue": "a worn-out voice", "topic": "work", "words": "I am done for today.", "reply": f"Reply {number}."}
    return Subject(f"item-{number}", f"script-{number}", {**shown, **texts}, style=style)


def pair(number: int, a: str = "", b: str = "") -> Subject:
    shown = {"cue": "a worn-out voice", "topic": "work", "words": "I am done for today."}
    shown |= {"reply_a": a or f"First of {number}.", "reply_b": b or f"Second of {number}."}
    return Subject(f"pair-{number}", f"script-{number}", shown)


def sounds(folder: Path, *names: str) -> dict[str, Path]:
    """A WAV of its own pitch for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    out = {}
    for number, name in enumerate(names):
        out[name] = folder / f"{name}.wav"
        out[name].write_bytes(tone(50 * number + 1, 0.4, 16_000))
    return out


def sit(spec: str, name: str, subjects: Sequence[Subject], cache: Path) -> tuple[list[Judgement], Outcome]:
    """Judge one subject after the other, giving up quickly."""

    async def work() -> tuple[list[Judgement], Outcome]:
        with Verdicts(cache) as verdicts:
            sitting = Sitting(parse_judge(spec), verdicts, retries=QUICK)
            try:
                found = [await sitting.judgement(rubric.load(name), subject) for subject in subjects]
            finally:
                await sitting.close()
            return found, sitting.outcome

    return asyncio.run(work())
