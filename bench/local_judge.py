"""The offline language model as a judge: how many of its verdicts can be read, and whether they mean anything.

Ten scripts of Overtone-Open, each with the reference reply to its target cue and the one to a neutral voice, are judged
by two rubrics through the model's local endpoint: 40 verdicts. A judge worth its name gives the first of each two more.
Run as `python -m bench.local_judge [text|schema]`; about five minutes on one core.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from overtone.build.script import read_set
from overtone.embedded.language import identity
from overtone.judges import rubric
from overtone.judges.judge_input import Subject
from overtone.judges.panel import judge_all
from overtone.judges.policy import parse_judge
from tests.embedded.serving import serving

SCRIPTS = 10


def subjects() -> list[Subject]:
    """Scripts spread over the whole set, each with two replies to its target clip."""
    scripts = [s for s in read_set("open") if {"target", "neutral"} <= set(s.reply)]
    found = []
    for script in scripts[:: len(scripts) // SCRIPTS][:SCRIPTS]:
        cue = script.cue_in("target")
        assert cue is not None
        shown = {"cue": cue.phrase, "topic": script.topic, "words": script.words}
        for style in ("target", "neutral"):
            texts = {**shown, "reply": script.reply[style]}
            found.append(Subject(f"{script.id}/{style}", script.id, texts, style="target"))
    return found


def main() -> None:
    with serving() as url:
        _measure(url)


def _measure(url: str) -> None:
    form = sys.argv[1] if len(sys.argv) > 1 else "text"
    options = f"max_tokens=300&again=0&connections=1&timeout=300&format={form}"
    judge = parse_judge(f"openai:smollm2?base_url={url}&{options}")
    replies, read, asked = subjects(), 0, 0
    print(identity())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("echomind", "implicit"):
            one = rubric.load(name)
            found, outcome = judge_all(judge, one, replies, Path(folder) / "verdicts.db")
            asked, read = asked + outcome.asked, read + outcome.answered
            print(f"{name}: {outcome.answered} of {outcome.asked} verdicts can be read")
            for problem in sorted({d.problem.partition(":")[0] for j in found for d in j.draws if d.problem}):
                print(f"  unread: {problem}")
            for dimension in one.dimensions:
                values = {j.subject.id: v for j in found if (v := j.value(dimension)) is not None}
                both = [g for g in {j.subject.group for j in found} if {f"{g}/target", f"{g}/neutral"} <= values.keys()]
                apart = [values[f"{g}/target"] - values[f"{g}/neutral"] for g in both]
                if apart:
                    mean = sum(apart) / len(apart)
                    print(f"  {dimension.key}: fitting reply less neutral reply {mean:+.2f} in {len(apart)} pairs")
    print(f"{read} of {asked} verdicts can be read")


if __name__ == "__main__":
    main()
