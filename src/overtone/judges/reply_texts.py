"""A stored reply, and the texts that a rubric may show a judge about it."""

from __future__ import annotations

from overtone.cues import PLAIN
from overtone.runs.store import Ask
from overtone.schema import UNKNOWN, Item
from overtone.tasks import heard

TEXTS = (  # names of the texts
    "cue", "topic", "words", "context", "question", "options", "answer", "wanted", "reply", "reference", "references",
    "reply_a", "reply_b", "emotion",
)  # fmt: skip
SOUNDS = ("clip", "reply")
NO_CUE = "nothing in particular: an ordinary voice, no background sound"


def before(ask: Ask) -> list[str]:
    """Return the replies to all turns but the last. Some may come from the benchmark instead of the model."""
    by_turn = {reply.key.turn: reply.text for reply in ask.replies}
    return [by_turn.get(number, turn.given) for number, turn in enumerate(ask.item.turns[:-1])]


def texts(ask: Ask) -> dict[str, str]:
    """Return name in TEXTS → text, for an ask's last reply. The emotion is missing here and added later."""
    item, turn = ask.item, ask.item.turns[-1]
    reference = turn.reference or (item.references[0] if item.references else "")
    return {
        "cue": heard(item, len(item.turns) - 1) or NO_CUE,
        "topic": item.topic.replace("_", " "),
        "words": turn.words,
        "context": _context(ask),
        "question": item.question,
        "options": "\n".join(f"{o.letter}. {o.text}" for o in item.options if o.text),
        "answer": next((f"{o.letter}. {o.text}" for o in item.options if o.letter == item.gold), ""),
        "wanted": "" if item.options else item.gold,
        "reply": ask.reply.text,
        "reference": reference,
        "references": _references(item),
        "reply_a": ask.reply.text,  # a pair of the reply and the reference
        "reply_b": reference,
    }


def style(item: Item) -> str:
    """Return an item's style, which decides about which of a rubric's dimensions the judge is asked.

    Control clips, dialogues and benchmarks without styles get "target" if the clip carries a cue, else "neutral".
    """
    if item.style in ("target", "alternative", "neutral"):
        return item.style
    if item.status == UNKNOWN:
        return UNKNOWN
    carried = heard(item, len(item.turns) - 1)
    return "neutral" if carried.casefold() in ("", *PLAIN) else "target"


def _context(ask: Ask) -> str:
    lines = [ask.item.context] if ask.item.context else []
    for turn, earlier in zip(ask.item.turns, before(ask), strict=False):
        lines += [f"The user said: {turn.words}", f"The reply was: {earlier}"]
    return "\n".join(lines)


def _references(item: Item) -> str:
    """Return all reference replies: one per turn of a dialogue, or several for a single turn."""
    if len(item.turns) > 1:
        return "\n".join(f"{number}. {turn.reference}" for number, turn in enumerate(item.turns, 1) if turn.reference)
    return " / ".join(item.references)
