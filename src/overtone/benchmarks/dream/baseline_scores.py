"""Score the baselines on exactly the questions that a model answered, so that tables show them beside the model."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.benchmarks.dream.baselines import LONGEST, OPTIONS, OVERLAP, WINDOW
from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import ScoreInfo

VERSION = 1
LABELS = {
    LONGEST: "Longest option",
    OPTIONS: "Options only",
    WINDOW: "Sliding window",
    OVERLAP: "idf overlap",
}
NAMES = {baseline: f"dream_{baseline}" for baseline in LABELS}
SCORES = {
    NAMES[baseline]: ScoreInfo(
        f"Baseline: {label}", reduce="share", tasks=("choose",), better="neither", headline=False, table="none"
    )
    for baseline, label in LABELS.items()
}


class BaselineScores:
    """Gives every reply the results of the baselines on its question: 1 if the baseline is right, 0 if not."""

    name = "dream"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return bool(item.guesses)

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[_score(a.item, guess.baseline, guess.letter) for guess in a.item.guesses] for a in answered]


def _score(item: Item, baseline: str, letter: str) -> Score:
    name = NAMES[baseline]
    return Score(name, f"{name}|v{VERSION}", float(letter == item.gold), "", {"answer": letter, "gold": item.gold})


def load() -> BaselineScores:
    return BaselineScores()
