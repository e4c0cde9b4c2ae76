"""The known-answer test of hearing: pairs of recordings with known emotion and intensity, asked in both orders.

The folder has RAVDESS's layout: `labels.csv` with file, actor, emotion, intensity and text. The two recordings of a
pair have the same actor and the same sentence, so that they differ only in the voice.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from overtone.errors import DataError
from overtone.judge_trust.people_agreement import Measure, measure
from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Judgement, NoVerdicts
from overtone.judges.rubric import Rubric
from overtone.paths import inside, read_plain, shown
from overtone.stats import cluster

CHANCE = 0.5
PARTS = {"emotion": "hears-emotion", "intensity": "hears-intensity"}  # part → its rubric
LIMIT = 240  # default number of pairs per part
_LARGEST = 64 * 1024 * 1024


class Clip(Struct, frozen=True):
    path: Path
    actor: str
    emotion: str
    intensity: str
    text: str


class Pair(Struct, frozen=True):
    """Two recordings and the right answer."""

    subject: Subject
    right: str  # A or B
    emotion: str


class Heard(Struct, frozen=True):
    """One judge's result on one part of the test. Invalid answers count as wrong; missing answers do not count."""

    part: str
    accuracy: Measure
    by_emotion: dict[str, Measure]
    pairs: int
    verdicts: int
    missing: int
    unread: int
    first_place: float | None  # share of verdicts for the first recording; it is right in half of the pairs

    @property
    def passed(self) -> bool:
        return self.accuracy.low is not None and self.accuracy.low > CHANCE

    @property
    def below_chance(self) -> bool:
        """Whether the judge names the wrong recording far more often than by chance, with few unreadable verdicts."""
        high = self.accuracy.high
        return high is not None and high < CHANCE - 0.1 and self.unread < 0.1 * self.verdicts


class Test(Struct, frozen=True):
    """One judge's result on all parts of the hearing test."""

    __test__ = False  # not a test class of pytest

    judge: str
    identity: str
    parts: list[Heard]

    @property
    def passed(self) -> bool:
        return len(self.parts) == len(PARTS) and all(part.passed for part in self.parts)


def clips(folder: Path) -> list[Clip]:
    """Read the list of recordings of a folder in RAVDESS's layout. Raises DataError with the line of a mistake."""
    table = folder / "labels.csv"
    if not table.is_file():
        raise DataError(f"{shown(str(folder))} has no labels.csv (file, actor, emotion, intensity, text)")
    text = read_plain(table, _LARGEST).decode("utf-8-sig", errors="replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    wanted = ("file", "actor", "emotion", "intensity", "text")
    if missing := [name for name in wanted if name not in (reader.fieldnames or ())]:
        raise DataError(f"{shown(str(table))}: has no column {', '.join(missing)}")
    recordings = []
    for row in reader:
        if any(not row[name] for name in wanted):
            raise DataError(f"{shown(str(table))}, line {reader.line_num}: a field is empty")
        path = inside(folder, row["file"])
        if not path.is_file():
            raise DataError(f"{shown(str(table))}, line {reader.line_num}: there is no file {shown(row['file'])}")
        recordings.append(Clip(path, row["actor"], row["emotion"], row["intensity"], row["text"]))
    return recordings


def pairs(recordings: Sequence[Clip], part: str, *, limit: int | None, seed: int) -> list[Pair]:
    """Draw balanced pairs at random: each emotion equally often, actors in turn, the right answer A as often as B."""
    emotions: dict[str, dict[str, list[tuple[Clip, Clip]]]] = {}
    for right, wrong in _candidates(recordings, part):
        emotions.setdefault(right.emotion, {}).setdefault(right.actor, []).append((right, wrong))
    if not emotions:
        raise DataError(f"the {part} test needs two recordings with the same actor and text but another {part}")
    rng = np.random.default_rng(seed)
    queues = []
    for emotion in sorted(emotions):
        by_actor = []
        for actor in rng.permutation(sorted(emotions[emotion])):
            drawn = emotions[emotion][str(actor)]
            by_actor.append([drawn[place] for place in rng.permutation(len(drawn))])
        queues.append([pair for row in itertools.zip_longest(*by_actor) for pair in row if pair is not None])
    chosen = [pair for row in zip(*queues, strict=False) for pair in row][:limit]
    sides = rng.permutation([place % 2 for place in range(len(chosen))])
    return [_pair(part, right, wrong, bool(side)) for (right, wrong), side in zip(chosen, sides, strict=True)]


def _candidates(recordings: Sequence[Clip], part: str) -> list[tuple[Clip, Clip]]:
    by_words: dict[tuple[str, str], list[Clip]] = {}
    for clip in recordings:
        by_words.setdefault((clip.actor, clip.text), []).append(clip)
    out = []
    for same in by_words.values():
        for right, wrong in itertools.permutations(same, 2):
            if part == "emotion":
                good = right.emotion != wrong.emotion and right.intensity == wrong.intensity
                good = good and right.emotion != "neutral"  # neutral cannot be the answer
                good = good and {right.emotion, wrong.emotion} != {"calm", "neutral"}
            else:
                good = right.emotion == wrong.emotion and (right.intensity, wrong.intensity) == ("strong", "normal")
            if good:
                out.append((right, wrong))
    return out


def _pair(part: str, right: Clip, wrong: Clip, swapped: bool) -> Pair:
    a, b = (wrong, right) if swapped else (right, wrong)
    subject = Subject(
        f"{part}/{right.emotion}/{a.path.parent.name}/{a.path.stem}/{b.path.stem}",
        right.actor,
        {"words": right.text, "cue": right.emotion},
        {"a": a.path, "b": b.path},
    )
    return Pair(subject, "B" if swapped else "A", right.emotion)


def heard(part: str, rubric: Rubric, drawn: Sequence[Pair], judgements: Sequence[Judgement]) -> Heard:
    """Compute how often the judge was right, in total and by emotion, with intervals by actor."""
    key = rubric.dimensions[0].key
    right, actors, emotions, first = [], [], [], []
    missing = unread = 0
    for pair, judgement in zip(drawn, judgements, strict=True):
        for draw in judgement.draws:
            if key not in draw.values and is_missing(draw.problem):
                missing += 1
                continue
            unread += key not in draw.values
            answer = draw.values.get(key)
            right.append(float(answer == pair.right))
            actors.append(pair.subject.group)
            emotions.append(pair.emotion)
            if answer is not None:
                first.append(float((answer == "A") != draw.swapped))
    if not right or unread == len(right):
        problems = [d.problem for j in judgements for d in j.draws if d.problem]
        why = f": {shown(problems[0][:300])}" if problems else ""
        raise NoVerdicts(f"the judge answered none of the {part} test's {len(drawn)} pairs{why}")
    by_emotion = {}
    for emotion in sorted(set(emotions)):
        rows = [place for place, name in enumerate(emotions) if name == emotion]
        by_emotion[emotion] = measure(cluster.proportion([right[r] for r in rows], [actors[r] for r in rows]))
    accuracy = measure(cluster.proportion(right, actors))
    place = float(np.mean(first)) if first else None
    return Heard(part, accuracy, by_emotion, len(drawn), len(right), missing, unread, place)


def is_missing(problem: str) -> bool:
    """Return whether a draw failed because of the connection or the files, not because of the judge's answer."""
    return problem.startswith(("the judge did not answer", "not judged", "there is no sound", "the reply has no audio"))


def difference(rubric: Rubric, drawn: Sequence[Pair], one: Sequence[Judgement], other: Sequence[Judgement]) -> Measure:
    """Return the first judge's accuracy minus the second's on the pairs that both answered, clustered by actor."""
    key = rubric.dimensions[0].key
    gaps, actors = [], []
    for pair, first, second in zip(drawn, one, other, strict=True):
        shares = [_share(key, pair.right, judgement) for judgement in (first, second)]
        if shares[0] is not None and shares[1] is not None:
            gaps.append(shares[0] - shares[1])
            actors.append(pair.subject.group)
    return measure(cluster.mean(gaps, actors))


def _share(key: str, right: str, judgement: Judgement) -> float | None:
    answers = [draw for draw in judgement.draws if key in draw.values or not is_missing(draw.problem)]
    return sum(draw.values.get(key) == right for draw in answers) / len(answers) if answers else None


def sentence(test: Test) -> str:
    """Return the result of the test in one line."""
    shares = [f"{part.part} {100 * (part.accuracy.value or 0):.1f} % ({_range(part.accuracy)})" for part in test.parts]
    result = f"Known answers, chance 50 %: {', '.join(shares)}; {'passed' if test.passed else 'not passed'}."
    below = [part.part for part in test.parts if part.below_chance]
    return result + (f" Far below chance in {' and '.join(below)}: are A and B exchanged?" if below else "")


def _range(m: Measure) -> str:
    return "no interval" if m.low is None or m.high is None else f"{100 * m.low:.1f} to {100 * m.high:.1f}"


Ask = Callable[[Rubric, Sequence[Subject]], Sequence[Judgement]]


def take(
    ask: Ask, rubrics: Mapping[str, Rubric], recordings: Sequence[Clip], *, limit: int | None, seed: int
) -> dict[str, tuple[list[Pair], list[Judgement]]]:
    """Run both parts of the test. Return the drawn pairs and the judgements of each part."""
    results = {}
    for part, rubric in rubrics.items():
        drawn = pairs(recordings, part, limit=limit, seed=seed)
        results[part] = (drawn, list(ask(rubric, [pair.subject for pair in drawn])))
    return results
