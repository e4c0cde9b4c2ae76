"""What a stored reply offers a rubric: the texts it may show, by name."""

from __future__ import annotations

from msgspec import Struct

from overtone.cues import PLAIN
from overtone.schema import UNKNOWN, Item, Key
from overtone.tasks import heard

TEXTS = (  # what a stored reply offers a rubric
    "cue", "topic", "words", "context", "question", "options", "answer", "wanted", "reply", "reference", "references",
    "reply_a", "reply_b", "emotion",
)  # fmt: skip
SOUNDS = ("clip", "reply")
NO_CUE = "nothing in particular: an ordinary voice, no background sound"


class Reply(Struct, frozen=True):
    """One stored reply to be judged, with what was said before it."""

    ask: int
    key: Key
    item: Item
    text: str
    audio: str = ""
    before: tuple[str, ...] = ()  # the replies to earlier turns: the model's, or given by the benchmark
    before_audio: tuple[str, ...] = ()  # their sounds; "" where there is none


def texts(reply: Reply) -> dict[str, str]:
    """What a stored reply offers a rubric to show, by the names of TEXTS; what its voice carries comes to it later."""
    item, said = reply.item, reply.item.turns[-1]
    reference = said.reference or (item.references[0] if item.references else "")
    return {
        "cue": heard(item, len(item.turns) - 1) or NO_CUE,
        "topic": item.topic.replace("_", " "),
        "words": said.words,
        "context": _context(reply),
        "question": item.question,
        "options": "\n".join(f"{o.letter}. {o.text}" for o in item.options if o.text),
        "answer": next((f"{o.letter}. {o.text}" for o in item.options if o.letter == item.gold), ""),
        "wanted": "" if item.options else item.gold,
        "reply": reply.text,
        "reference": reference,
        "references": _references(item),
        "reply_a": reply.text,  # of a pair whose other half is the reference
        "reply_b": reference,
    }


def style(item: Item) -> str:
    """Return the style a rubric goes by. A control clip is a second rendering, a dialogue has variants, and other
    benchmarks have no styles: what the clip carries decides for those, be it one of our cues or not."""
    if item.style in ("target", "alternative", "neutral"):
        return item.style
    if item.status == UNKNOWN:
        return UNKNOWN
    carried = heard(item, len(item.turns) - 1)
    return "neutral" if carried.casefold() in ("", *PLAIN) else "target"


def _context(reply: Reply) -> str:
    lines = [reply.item.context] if reply.item.context else []
    for turn, said in zip(reply.item.turns, reply.before, strict=False):
        lines += [f"The user said: {turn.words}", f"The reply was: {said}"]
    return "\n".join(lines)


def _references(item: Item) -> str:
    """All reference replies: to each turn of a dialogue, or those that were written for one turn."""
    if len(item.turns) > 1:
        return "\n".join(f"{number}. {turn.reference}" for number, turn in enumerate(item.turns, 1) if turn.reference)
    return " / ".join(item.references)
