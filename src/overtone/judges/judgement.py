"""A judge's verdicts on one subject, the outcome of its work, and the signature of its scores."""

from __future__ import annotations

from msgspec import Struct

from overtone.errors import EXIT_FAILURES, DataError
from overtone.judges import voice_description
from overtone.judges.judge_input import Subject
from overtone.judges.policy import Judge
from overtone.judges.rubric import Dimension, Rubric

Detail = dict[str, float | int | str | None]


class NoVerdicts(DataError):
    """Raised if a judge that should be measured gave no verdict at all."""

    exit_code = EXIT_FAILURES


class Draw(Struct, frozen=True):
    """One verdict. In a pair, A always means the subject's reply A, even if B was shown first.

    `values` lacks a dimension whose verdict did not arrive or could not be read, and `problem` says why. `unread` lists
    the dimensions whose verdict arrived but could not be read.
    """

    repeat: int
    swapped: bool
    values: dict[str, int | str]
    reasons: dict[str, str]
    problem: str = ""
    skipped: bool = False  # there was nothing to show the judge
    unread: tuple[str, ...] = ()


class Judgement(Struct, frozen=True):
    """All verdicts of one judge on one subject, by one rubric."""

    subject: Subject
    rubric: str
    judge: str
    draws: tuple[Draw, ...]

    def numbers(self, dimension: Dimension) -> list[float]:
        """Return the readable verdicts as numbers."""
        return [dimension.number(d.values[dimension.key]) for d in self.draws if dimension.key in d.values]

    def value(self, dimension: Dimension, least: int = 1) -> float | None:
        """Return the mean of the readable verdicts, or None if there are fewer than `least`."""
        numbers = self.numbers(dimension)
        return sum(numbers) / len(numbers) if len(numbers) >= max(1, least) else None

    def score_parts(self, dimension: Dimension, least: int = 1) -> tuple[float | None, str, Detail]:
        """Return the parts of a score: the value, the reason if there is no value, and the details of the verdicts."""
        read = [draw for draw in self.draws if dimension.key in draw.values]
        problems = "; ".join(dict.fromkeys(x.problem for x in self.draws if x.problem))[:1000]
        value = self.value(dimension, least)
        unread = sum(dimension.key in draw.unread for draw in self.draws)
        skipped = sum(draw.skipped for draw in self.draws)
        detail: Detail = {
            "why": next((draw.reasons.get(dimension.key, "") for draw in read), ""),
            "values": ",".join(str(draw.values[dimension.key]) for draw in read),
            "draws": len(self.draws),
            "unread": unread,
            "skipped": skipped,
            "missing": len(self.draws) - len(read) - unread - skipped,
            "problems": problems,
        }
        return value, "" if value is not None else problems or f"{len(read)} valid verdicts of {least} wanted", detail


class Outcome(Struct):
    """Counts and costs of a judge's work. `stopped` is the cause: "", budget, interrupted, fatal or unreadable."""

    asked: int = 0  # verdicts needed
    answered: int = 0
    cached: int = 0  # verdicts that were already stored
    unread: int = 0
    failed: int = 0
    skipped: int = 0  # verdicts with nothing to show the judge, such as the audio of a reply without audio
    requests: int = 0
    cost: float = 0.0
    stopped: str = ""
    detail: str = ""
    by_rule: int = 0  # replies that the rubric scores without asking the judge

    @property
    def empty(self) -> bool:
        """Whether the judge produced nothing: no verdict, and no reply scored by rule."""
        return not self.answered and not self.by_rule


def signature(
    judge: Judge, rubric: Rubric, dimension: Dimension, *, transcript: bool, heard_by: str = "", felt_by: str = ""
) -> str:
    """Return the signature of a judge's score on one dimension: everything that the score depends on."""
    policy = judge.policy
    hears = {"audio": "audio", "description": voice_description.NAME, "nothing": "nothing"}[policy.hears]
    fields = [
        f"{dimension.key}@{judge.label}",
        f"v{rubric.version}",
        f"rubric:{rubric.identity}",
        f"judge:{judge.identity}",
        f"temperature:{'model' if policy.temperature is None else f'{policy.temperature:g}'}",
        f"seed:{'none' if policy.seed is None else policy.seed}",
        f"repeats:{policy.repeats}",
        f"least:{policy.least}",
        f"calls:{policy.calls}",
        f"format:{policy.format}",
        f"hears:{hears if rubric.hears else 'nothing'}",
        f"text:{_text_source(rubric, transcript)}{f':{heard_by}' if heard_by and transcript else ''}",
    ]
    if felt_by:
        fields.append(f"emotion:{felt_by}")
    if rubric.subject == "pair":
        fields.append(f"swap:{'yes' if policy.swap else 'no'}")
    return "|".join(fields)


def _text_source(rubric: Rubric, transcript: bool) -> str:
    """Return the source of the reply's words: `transcript` or `stream`; `none` if the judge does not read the reply."""
    if not any(key.startswith("reply") for key in rubric.shows):
        return "none"
    return "transcript" if transcript else "stream"
