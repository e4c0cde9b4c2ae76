"""The metric `vad`: a model's valence, arousal and dominance on EmoBank's scale from 1 to 5, beside the people's mean.

In the condition `likelihood`, a rating is the expected value over the digits 1 to 9; otherwise it is the number that
the model wrote. A digit d is (d + 1) / 2 on the scale from 1 to 5. An answer that does not state three numbers from 1
to 9 is unscored, with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from overtone.metrics import Answered, ReplyMetric
from overtone.schema import Likelihood, Score
from overtone.scores import ScoreInfo
from overtone.tasks.rate import DIGITS, DIMENSIONS

VERSION = 1
SIGNATURE = f"vad|v{VERSION}|scale:1-5|from:digits"
SCORES = {
    name: ScoreInfo(
        name.capitalize(), "plain", "neither", 1.0, 5.0, tasks=("rate",), headline=False, table="none", dialogue=False
    )
    for name in DIMENSIONS
}

_SCALE = re.compile(r"\(?\b(?:from |between )?1\s*(?:to|and|[-–])\s*9\b\)?|(?:\s*/\s*|\s+out of\s+)9\b", re.I)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")


class Vad(ReplyMetric):
    """Scores the replies to items of the task `rate`."""

    name = "vad"
    version = VERSION
    task = "rate"

    def one(self, a: Answered) -> list[Score]:
        people = [float(value) for value in a.reference.split()]
        if a.likelihoods:
            rated: list[float] | str = [expected_digit(step) for step in a.likelihoods]
            signature = f"{SIGNATURE}|text:likelihood"
        else:
            rated, signature = read_rating(a.text), SIGNATURE
        if isinstance(rated, str):
            return [Score(name, signature, None, rated) for name in DIMENSIONS]
        return [
            Score(name, signature, (digit + 1) / 2, "", {"people": label, "digit": digit})
            for name, digit, label in zip(DIMENSIONS, rated, people, strict=True)
        ]


def expected_digit(step: Sequence[Likelihood]) -> float:
    """Return the expected value over the digits 1 to 9. Their probabilities are normalised to a sum of 1."""
    most = max(one.total for one in step)
    weights = [math.exp(one.total - most) for one in step]
    return sum(int(digit) * weight for digit, weight in zip(DIGITS, weights, strict=True)) / sum(weights)


def read_rating(answer: str) -> list[float] | str:
    """Return the three numbers that an answer states, or the reason why it is unreadable.

    Numbers after the names (or initials) of all three dimensions are used; otherwise there must be exactly three.
    """
    text = _SCALE.sub(" ", answer)
    numbers = _named(text)
    if numbers is None:
        numbers = [float(found) for found in _NUMBER.findall(text)]
        if len(numbers) != len(DIMENSIONS):
            return f"unreadable: the answer states {len(numbers)} numbers, not 3"
    outside = [number for number in numbers if not 1 <= number <= 9]
    return f"unreadable: {outside[0]:g} is not between 1 and 9" if outside else numbers


def _named(text: str) -> list[float] | None:
    """Return the number after each dimension's name, or None unless every dimension has exactly one number."""
    numbers = []
    for name in DIMENSIONS:
        pattern = rf"\b(?:{name}|{name[0]})\b[^\w\d.-]*(?:(?:rating|score|is|of)\b[^\w\d.-]*)*(-?\d+(?:\.\d+)?)(?!\w)"
        found = {float(number) for number in re.findall(pattern, text, re.I)}
        if len(found) != 1:
            return None
        numbers.append(found.pop())
    return numbers


def load() -> Vad:
    return Vad()
