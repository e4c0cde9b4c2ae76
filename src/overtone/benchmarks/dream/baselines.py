"""Baselines that answer DREAM's questions without understanding them, computed from the files.

- longest: the option with the most characters.
- options: uses question and options, but not the dialogue. Each pair of a question word and an option word has the
  value log((r + 1) / (w / 2 + 1)), where r and w are the numbers of right and wrong options of the train split with
  this pair; the option with the highest mean over pairs wins. (Two of three options are wrong, hence w / 2.)
- window: the sliding window of MCTest (Richardson et al., 2013). A window has as many words as question and option
  have distinct words. Its score is the sum of log(1 + 1 / c) over its words that occur in question or option, where c
  is a word's count in the dialogue. The best window of the dialogue is the option's score.
- overlap: the mean inverse document frequency, log((N + 1) / (n + 1)) over the train dialogues, of the option's words;
  words that are not in the dialogue count 0.

Words are runs of letters, digits, _ and ' in lower case, without speaker labels. Ties go to the first option.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, product

from overtone.build.dream.dream_files import Dialogue, Question

LONGEST, OPTIONS, WINDOW, OVERLAP = "longest", "options", "window", "overlap"
_WORD = re.compile(r"[\w']+")

Score = Callable[[str], float]  # of one option's text


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def dialogue_words(dialogue: Dialogue) -> list[str]:
    """Return the words of all turns, without the labels of the speakers."""
    return [word for line in dialogue.lines for word in words(line.words)]


class Baselines:
    """All baselines. Two of them learn from the train split; without it they are left out."""

    def __init__(self, train: Sequence[Dialogue] | None) -> None:
        self._train = train
        if train is not None:
            self._documents = len(train)
            self._frequency = Counter(word for d in train for word in set(dialogue_words(d)))
            self._right, self._wrong = _pair_counts(train)

    @property
    def names(self) -> tuple[str, ...]:
        return (LONGEST, WINDOW) if self._train is None else (LONGEST, OPTIONS, WINDOW, OVERLAP)

    def answers(self, dialogue: Dialogue) -> list[dict[str, int]]:
        """Return, for every question of a dialogue, the index of the option that each baseline chooses."""
        said = dialogue_words(dialogue)
        return [self._answer(question, said) for question in dialogue.questions]

    def _answer(self, question: Question, said: list[str]) -> dict[str, int]:
        scores: dict[str, Score] = {
            LONGEST: len,
            WINDOW: lambda option: window_score(said, question.text, option),
            OPTIONS: lambda option: self._pair_score(question.text, option),
            OVERLAP: lambda option: self._overlap(frozenset(said), option),
        }
        return {name: _first_best([scores[name](option) for option in question.choices]) for name in self.names}

    def _overlap(self, said: frozenset[str], option: str) -> float:
        distinct = set(words(option))
        shared = (math.log((self._documents + 1) / (self._frequency[word] + 1)) for word in distinct & said)
        return math.fsum(shared) / max(len(distinct), 1)

    def _pair_score(self, question: str, option: str) -> float:
        pairs = _pairs(question, option)
        logs = (math.log((self._right[pair] + 1) / (self._wrong[pair] / 2 + 1)) for pair in pairs)
        return math.fsum(logs) / max(len(pairs), 1)


def window_score(said: Sequence[str], question: str, option: str) -> float:
    """Return the score of the best window of a dialogue for a question and an option."""
    wanted = {*words(question), *words(option)}
    counts = Counter(said)
    values = [math.log1p(1 / counts[word]) if word in wanted else 0.0 for word in said]
    sums = [0.0, *accumulate(values)]
    size = max(len(wanted), 1)
    return max((sums[min(start + size, len(said))] - sums[start] for start in range(len(said))), default=0.0)


Pair = tuple[str, str]


def _pairs(question: str, option: str) -> set[Pair]:
    return set(product(words(question), words(option)))


def _pair_counts(train: Sequence[Dialogue]) -> tuple[Counter[Pair], Counter[Pair]]:
    right: Counter[Pair] = Counter()
    wrong: Counter[Pair] = Counter()
    for question in (q for dialogue in train for q in dialogue.questions):
        for index, option in enumerate(question.choices):
            (right if index == question.answer else wrong).update(_pairs(question.text, option))
    return right, wrong


def _first_best(scores: Sequence[float]) -> int:
    best = max(scores)
    return next(index for index, score in enumerate(scores) if math.isclose(score, best, rel_tol=1e-12))
