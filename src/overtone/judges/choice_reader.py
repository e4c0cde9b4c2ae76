"""A model that reads multiple-choice replies which the rules cannot read, and the check it must pass before use.

The model sees the options and the reply, never the question, the clip or the right answer. For the check, it reads a
set of replies whose meaning is known (`reader_set.jsonl`): some choose an option, some do not.
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
from overtone.judges.judgement import Judgement
from overtone.judges.panel import Sitting, each
from overtone.judges.policy import Judge, judge_of
from overtone.judges.rubric import Rubric
from overtone.schema import Option
from overtone.spec import Spec
from overtone.stats.binomial import exact_interval

RUBRIC = "reader"
NONE = "none"
SET = Path(__file__).with_name("reader_set.jsonl")
PRECISION, RECALL = 0.95, 0.5  # minimum on the set
_JUDGE_ONLY_KEYS = ("rubrics", "hears", "calls", "swap", "least")


def reader_of(spec: Spec) -> Judge:
    """Return the reader that a SPEC describes. Keys that make sense only for judges raise UsageError."""
    for key in _JUDGE_ONLY_KEYS:
        if key in spec.options:
            raise UsageError(f"--reader {spec}: a reader has no key {key!r}; it reads multiple-choice replies only")
    return msgspec.structs.replace(judge_of(spec), rubrics=(RUBRIC,))


@cache
def _rubric() -> Rubric:
    return rubric.load(RUBRIC)


def signature(reader: Judge, rules: str) -> str:
    """Return the signature of accuracy with a reader: the rules' signature and all settings of the reader."""
    policy = reader.policy
    temperature = "model" if policy.temperature is None else f"{policy.temperature:g}"
    return (
        f"{rules}|reader:{reader.label}|model:{reader.identity}|rubric:{_rubric().identity}"
        f"|temperature:{temperature}|seed:{'none' if policy.seed is None else policy.seed}"
        f"|repeats:{policy.repeats}|format:{policy.format}"
    )


# ── one reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Reading(Struct, frozen=True):
    """The reader's answer about a reply: a letter or `none`; "" and a problem if the answer is invalid or missing."""

    answer: str
    why: str = ""
    problem: str = ""


async def read(sitting: Sitting, name: str, item: str, options: Sequence[Option], reply: str) -> Reading:
    """Let the model read one reply. `item` decides the order of the options. The verdict is stored under `name`."""
    order = shuffled(item, [option.letter for option in options])
    lines = [f"{options[place].letter}. {options[place].text or '(a recording)'}" for place in order]
    subject = Subject(name, item, {"options": "\n".join(lines), "reply": reply})
    judgement = await sitting.judgement(_with_menu(tuple(option.letter for option in options)), subject)
    return _majority(judgement)


@cache
def _with_menu(letters: tuple[str, ...]) -> Rubric:
    """Return the rubric with these letters and `none` as the allowed answers."""
    rubric_ = _rubric()
    menu = {letter: float(place) for place, letter in enumerate((NONE, *letters))}
    (dimension,) = rubric_.dimensions
    dimension = msgspec.structs.replace(dimension, choices=(*letters, NONE), values=menu)
    return msgspec.structs.replace(rubric_, dimensions=(dimension,))


def _majority(judgement: Judgement) -> Reading:
    """Return the answer of more than half of the draws, or `none` if no answer has a majority."""
    (key,) = (dimension.key for dimension in _rubric().dimensions)
    draws = [draw for draw in judgement.draws if key in draw.values]
    if not draws:
        return Reading("", problem="; ".join(dict.fromkeys(draw.problem for draw in judgement.draws)))
    answer, count = Counter(str(draw.values[key]) for draw in draws).most_common(1)[0]
    why = next(draw.reasons.get(key, "") for draw in draws if draw.values[key] == answer)
    return Reading(answer if 2 * count > len(draws) else NONE, why)


# ── the check ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Known(Struct, frozen=True):
    """A reply of the checking set, with the options and the correct reading: the letter of an option, or `none`."""

    options: tuple[str, ...]
    reply: str
    answer: str


class Checked(Struct, frozen=True):
    """A reader's result on the checking set."""

    replies: int
    claims: int  # replies that choose an option
    said: int  # replies for which the reader named an option
    right: int  # replies for which it named the right one

    @property
    def passed(self) -> bool:
        return self.right >= PRECISION * self.said and self.right >= RECALL * self.claims

    @property
    def sentence(self) -> str:
        """Precision and recall with their 95 % intervals, and the size of the set."""
        return (
            f"precision {_share(self.right, self.said)}, recall {_share(self.right, self.claims)} on {self.replies} "
            f"replies of known meaning, {self.replies - self.claims} of them without a choice"
        )


def _share(part: int, whole: int) -> str:
    low, high = exact_interval(part, whole)
    return f"{part / whole:.2f} [{low:.2f} to {high:.2f}]" if whole else "unknown"


@cache
def known_replies() -> tuple[Known, ...]:
    """Read the checking set from its file."""
    return tuple(msgspec.json.decode(line, type=Known) for line in SET.read_bytes().splitlines())


@cache
def _kind_of_check() -> str:
    return f"read the known replies {hashlib.sha256(SET.read_bytes()).hexdigest()[:8]}"


def kept_check(reader: Judge) -> Checked | None:
    """Return the result of an earlier check of this reader on this machine, or None."""
    record = trust_record.kept(_identity(reader), _rubric(), how=_kind_of_check())
    return None if record is None else msgspec.convert(record.numbers, Checked, strict=False)


def _identity(reader: Judge) -> str:
    policy = reader.policy
    return f"{trust_record.identity(reader, _rubric())}|format:{policy.format}|repeats:{policy.repeats}"


async def check(sitting: Sitting) -> Checked | None:
    """Let the reader read the checking set, and store the result. Return None if an answer is missing (server error).

    A verdict that cannot be read counts as `none`.
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
    pairs = [(answers[number], known.answer) for number, known in enumerate(replies)]
    checked = Checked(
        replies=len(replies),
        claims=sum(meant != NONE for _, meant in pairs),
        said=sum(answer != NONE for answer, _ in pairs),
        right=sum(answer == meant != NONE for answer, meant in pairs),
    )
    sentence = checked.sentence + ("" if checked.passed else "; not good enough to be used")
    keys = tuple(dimension.key for dimension in _rubric().dimensions)
    numbers = {key: float(value) for key, value in msgspec.structs.asdict(checked).items()}
    trust_record.write(_identity(sitting.judge), _rubric(), keys, sentence, how=_kind_of_check(), numbers=numbers)
    return checked
