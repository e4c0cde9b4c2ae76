"""A stored reply, and the texts that a rubric may show a judge about it."""

from __future__ import annotations

from msgspec import Struct

from overtone.cues import PLAIN
from overtone.schema import UNKNOWN, Item, Key
from overtone.tasks import heard

TEXTS = (  # names of the texts
    "cue", "topic", "words", "context", "question", "options", "answer", "wanted", "reply", "reference", "references",
    "reply_a", "reply_b", "emotion",
)  # fmt: skip
SOUNDS = ("clip", "reply")
NO_CUE = "nothing in particular: an ordinary voice, no background sound"


class Reply(Struct, frozen=True):
    """One stored reply to judge, with the replies before it."""

    ask: int
    key: Key
    item: Item
    text: str
    audio: str = ""
    before: tuple[str, ...] = ()  # replies to earlier turns, by the model or given by the benchmark
    before_audio: tuple[str, ...] = ()  # their audio, "" if missing


def texts(reply: Reply) -> dict[str, str]:
    """Return the texts about a reply by the names of TEXTS, except the emotion, which is added later."""
    item, turn = reply.item, reply.item.turns[-1]
    reference = turn.reference or (item.references[0] if item.references else "")
    return {
        "cue": heard(item, len(item.turns) - 1) or NO_CUE,
        "topic": item.topic.replace("_", " "),
        "words": turn.words,
        "context": _context(reply),
        "question": item.question,
        "options": "\n".join(f"{o.letter}. {o.text}" for o in item.options if o.text),
        "answer": next((f"{o.letter}. {o.text}" for o in item.options if o.letter == item.gold), ""),
        "wanted": "" if item.options else item.gold,
        "reply": reply.text,
        "reference": reference,
        "references": _references(item),
        "reply_a": reply.text,  # a pair of the reply and the reference
        "reply_b": reference,
    }


def style(item: Item) -> str:
    """Return the style that decides which of a rubric's dimensions are asked.

    Control clips, dialogues and benchmarks without styles get "target" if the clip carries a cue, else "neutral".
    """
    if item.style in ("target", "alternative", "neutral"):
        return item.style
    if item.status == UNKNOWN:
        return UNKNOWN
    carried = heard(item, len(item.turns) - 1)
    return "neutral" if carried.casefold() in ("", *PLAIN) else "target"


def _context(reply: Reply) -> str:
    lines = [reply.item.context] if reply.item.context else []
    for turn, earlier in zip(reply.item.turns, reply.before, strict=False):
        lines += [f"The user said: {turn.words}", f"The reply was: {earlier}"]
    return "\n".join(lines)


def _references(item: Item) -> str:
    """Return all reference replies: one per turn of a dialogue, or several for a single turn."""
    if len(item.turns) > 1:
        return "\n".join(f"{number}. {turn.reference}" for number, turn in enumerate(item.turns, 1) if turn.reference)
    return " / ".join(item.references)
