"""A model that reads multiple-choice replies which the rules cannot read: what it is shown, and how it is checked.

It sees the options and the reply, never the question, the clip or the right answer. Before it is used, it reads a set
of replies whose meaning is known (`reader_set.jsonl`), of which some choose an option and some do not.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.judges import rubric, trust_record
from overtone.judges.groups import shuffled
from overtone.judges.judge_input import Subject
from overtone.judges.panel import Judgement, Sitting, each
from overtone.judges.policy import Judge, judge_of
from overtone.judges.rubric import Rubric
from overtone.schema import Option
from overtone.spec import Spec
from overtone.stats.binomial import exact_interval

RUBRIC = "reader"
NONE = "none"
SET = Path(__file__).with_name("reader_set.jsonl")
PRECISION, RECALL = 0.95, 0.5  # what a reader must reach on the set before it is used
_NOT_ITS_KEYS = ("rubrics", "hears", "calls", "swap", "least")


def reader_of(spec: Spec) -> Judge:
    """Return the reader that a SPEC stands for. It takes a judge's keys, but for those that only judges have."""
    for key in _NOT_ITS_KEYS:
        if key in spec.options:
            raise UsageError(f"--reader {spec}: a reader has no key {key!r}; it reads multiple-choice replies only")
    return msgspec.structs.replace(judge_of(spec), rubrics=(RUBRIC,))


@cache
def _rubric() -> Rubric:
    return rubric.load(RUBRIC)


def signature(reader: Judge, rules: str) -> str:
    """Return the signature of accuracy with a reader: that of the rules, and what the reader's answers depend on."""
    policy = reader.policy
    temperature = "model" if policy.temperature is None else f"{policy.temperature:g}"
    return (
        f"{rules}|reader:{reader.label}|model:{reader.identity}|rubric:{_rubric().identity}"
        f"|temperature:{temperature}|seed:{'none' if policy.seed is None else policy.seed}"
        f"|repeats:{policy.repeats}|format:{policy.format}"
    )


# ── one reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Reading(Struct, frozen=True):
    """What the reader made of a reply: a letter, `none`, or "" with the problem that kept it from being read."""

    answer: str
    why: str = ""
    problem: str = ""


async def read(sitting: Sitting, name: str, item: str, options: Sequence[Option], reply: str) -> Reading:
    """Have one reply read. `name` identifies the reply among the verdicts; the options' order is drawn from `item`."""
    order = shuffled(item, [option.letter for option in options])
    lines = [f"{options[place].letter}. {options[place].text or '(a recording)'}" for place in order]
    subject = Subject(name, item, {"options": "\n".join(lines), "reply": reply})
    judgement = await sitting.judgement(_with_menu(tuple(option.letter for option in options)), subject)
    return _settled(judgement)


@cache
def _with_menu(letters: tuple[str, ...]) -> Rubric:
    """The rubric, with these letters and `none` as the answers it allows."""
    found = _rubric()
    menu = {letter: float(place) for place, letter in enumerate((NONE, *letters))}
    (asked,) = found.dimensions
    asked = msgspec.structs.replace(asked, choices=(*letters, NONE), values=menu)
    return msgspec.structs.replace(found, dimensions=(asked,))


def _settled(judgement: Judgement) -> Reading:
    """The answer of more than half of the draws; `none` where no answer has that many."""
    (key,) = (dimension.key for dimension in _rubric().dimensions)
    draws = [draw for draw in judgement.draws if key in draw.values]
    if not draws:
        return Reading("", problem="; ".join(dict.fromkeys(draw.problem for draw in judgement.draws)))
    answer, count = Counter(str(draw.values[key]) for draw in draws).most_common(1)[0]
    why = next(draw.reasons.get(key, "") for draw in draws if draw.values[key] == answer)
    return Reading(answer if 2 * count > len(draws) else NONE, why)


# ── whether it can be trusted ───────────────────────────────────────────────────────────────────────────────────────


class Known(Struct, frozen=True):
    """A reply of the set, its options and what it says: the letter of an option, or `none`."""

    options: tuple[str, ...]
    reply: str
    answer: str


class Checked(Struct, frozen=True):
    """How a reader did on the set: of `replies`, `claims` choose an option; it named one in `said` and was `right`."""

    replies: int
    claims: int
    said: int
    right: int

    @property
    def passed(self) -> bool:
        return self.right >= PRECISION * self.said and self.right >= RECALL * self.claims

    @property
    def sentence(self) -> str:
        """Precision and recall with their 95 % intervals, and on what."""
        return (
            f"precision {_share(self.right, self.said)}, recall {_share(self.right, self.claims)} on {self.replies} "
            f"replies of known meaning, {self.replies - self.claims} of them without a choice"
        )


def _share(part: int, whole: int) -> str:
    low, high = exact_interval(part, whole)
    return f"{part / whole:.2f} [{low:.2f} to {high:.2f}]" if whole else "unknown"


@cache
def known_replies() -> tuple[Known, ...]:
    """Read the set."""
    return tuple(msgspec.json.decode(line, type=Known) for line in SET.read_bytes().splitlines())


@cache
def _how() -> str:
    return f"read the known replies {hashlib.sha256(SET.read_bytes()).hexdigest()[:8]}"


def kept_check(reader: Judge) -> Checked | None:
    """The result of an earlier check of this reader on this machine, None without one."""
    found = trust_record.kept(_identity(reader), _rubric(), how=_how())
    return None if found is None else msgspec.convert(found.numbers, Checked, strict=False)


def _identity(reader: Judge) -> str:
    policy = reader.policy
    return f"{trust_record.identity(reader, _rubric())}|format:{policy.format}|repeats:{policy.repeats}"


async def check(sitting: Sitting) -> Checked | None:
    """Have the reader read the set, and keep the result; None where an answer did not come, as from a failing server.

    A verdict that cannot be read counts as `none`: it makes nothing of the reply.
    """
    answers: dict[int, str] = {}
    failed = sitting.outcome.failed

    async def one(entry: tuple[int, Known]) -> None:
        number, known = entry
        options = [Option(chr(ord("A") + place), text) for place, text in enumerate(known.options)]
        name = f"known reply {number}"
        answers[number] = (await read(sitting, name, name, options, known.reply)).answer or NONE

    replies = known_replies()
    await each(one, enumerate(replies), sitting.judge.policy.connections)
    if sitting.outcome.failed > failed and sitting.outcome.stopped != "unreadable":
        return None
    said = [(answers[number], known.answer) for number, known in enumerate(replies)]
    checked = Checked(
        replies=len(replies),
        claims=sum(meant != NONE for _, meant in said),
        said=sum(answer != NONE for answer, _ in said),
        right=sum(answer == meant != NONE for answer, meant in said),
    )
    found = _rubric()
    sentence = checked.sentence + ("" if checked.passed else "; not good enough to be used")
    keys = tuple(dimension.key for dimension in found.dimensions)
    numbers = {key: float(value) for key, value in msgspec.structs.asdict(checked).items()}
    trust_record.write(_identity(sitting.judge), found, keys, sentence, how=_how(), numbers=numbers)
    return checked
