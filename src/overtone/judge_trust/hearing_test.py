"""The known-answer test of hearing: recordings whose emotion and intensity are known, two at a time, in both orders.

The folder has RAVDESS's layout: `labels.csv` with file, actor, emotion, intensity and text. The two recordings of a
pair are of the same actor and the same sentence, so that nothing but the voice tells them apart.
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
LIMIT = 240  # pairs of each part, unless told otherwise
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
    """One judge on one part of the test. What it answered off the menu is wrong; what did not come is missing."""

    part: str
    accuracy: Measure
    by_emotion: dict[str, Measure]
    pairs: int
    verdicts: int
    missing: int
    unread: int
    first_place: float | None  # the share of verdicts for the recording put first; half is right by design

    @property
    def passed(self) -> bool:
        return self.accuracy.low is not None and self.accuracy.low > CHANCE

    @property
    def below_chance(self) -> bool:
        """Whether readable verdicts name the wrong recording far more often than chance would."""
        high = self.accuracy.high
        return high is not None and high < CHANCE - 0.1 and self.unread < 0.1 * self.verdicts


class Test(Struct, frozen=True):
    """What one judge heard."""

    __test__ = False  # pytest takes the name for its own

    judge: str
    identity: str
    parts: list[Heard]

    @property
    def passed(self) -> bool:
        return len(self.parts) == len(PARTS) and all(part.passed for part in self.parts)


def clips(folder: Path) -> list[Clip]:
    """The recordings of a folder in RAVDESS's layout. DataError with the line where something is wrong."""
    table = folder / "labels.csv"
    if not table.is_file():
        raise DataError(f"{shown(str(folder))} has no labels.csv (file, actor, emotion, intensity, text)")
    text = read_plain(table, _LARGEST).decode("utf-8-sig", errors="replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    wanted = ("file", "actor", "emotion", "intensity", "text")
    if missing := [name for name in wanted if name not in (reader.fieldnames or ())]:
        raise DataError(f"{shown(str(table))}: has no column {', '.join(missing)}")
    found = []
    for row in reader:
        if any(not row[name] for name in wanted):
            raise DataError(f"{shown(str(table))}, line {reader.line_num}: a field is empty")
        path = inside(folder, row["file"])
        if not path.is_file():
            raise DataError(f"{shown(str(table))}, line {reader.line_num}: there is no file {shown(row['file'])}")
        found.append(Clip(path, row["actor"], row["emotion"], row["intensity"], row["text"]))
    return found


def pairs(found: Sequence[Clip], part: str, *, limit: int | None, seed: int) -> list[Pair]:
    """Drawn by chance and balanced: every emotion as often, actors in turn, the right one A as often as B."""
    emotions: dict[str, dict[str, list[tuple[Clip, Clip]]]] = {}
    for right, wrong in _candidates(found, part):
        emotions.setdefault(right.emotion, {}).setdefault(right.actor, []).append((right, wrong))
    if not emotions:
        raise DataError(f"no two recordings make a pair for the {part} test: same actor, same text, another {part}")
    rng = np.random.default_rng(seed)
    queues = []
    for emotion in sorted(emotions):
        by_actor = []
        for actor in rng.permutation(sorted(emotions[emotion])):
            drawn = emotions[emotion][str(actor)]
            by_actor.append([drawn[place] for place in rng.permutation(len(drawn))])
        in_turn = [pair for row in itertools.zip_longest(*by_actor) for pair in row if pair is not None]
        queues.append(in_turn)
    even = min(map(len, queues))
    chosen = [pair for row in zip(*(queue[:even] for queue in queues), strict=True) for pair in row]
    chosen = chosen[: limit if limit is not None else None]
    sides = rng.permutation([place % 2 for place in range(len(chosen))])
    return [_pair(part, right, wrong, bool(side)) for (right, wrong), side in zip(chosen, sides, strict=True)]


def _candidates(found: Sequence[Clip], part: str) -> list[tuple[Clip, Clip]]:
    alike: dict[tuple[str, str], list[Clip]] = {}
    for clip in found:
        alike.setdefault((clip.actor, clip.text), []).append(clip)
    out = []
    for same in alike.values():
        for right, wrong in itertools.permutations(same, 2):
            if part == "emotion":
                good = right.emotion != wrong.emotion and right.intensity == wrong.intensity
                good = good and right.emotion != "neutral"  # nothing to be heard
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
    """How often the judge was right, by actor and by emotion."""
    key = rubric.dimensions[0].key
    right, actors, emotions, first = [], [], [], []
    missing = unread = 0
    for pair, judgement in zip(drawn, judgements, strict=True):
        for draw in judgement.draws:
            if key not in draw.values and did_not_come(draw.problem):
                missing += 1
                continue
            unread += key not in draw.values
            said = draw.values.get(key)
            right.append(float(said == pair.right))
            actors.append(pair.subject.group)
            emotions.append(pair.emotion)
            if said is not None:
                first.append(float((said == "A") != draw.swapped))
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


def did_not_come(problem: str) -> bool:
    """Whether a draw's problem is of the line or the files, not of the judge's answer."""
    return problem.startswith(("the judge did not answer", "not judged", "there is no sound", "the reply has no audio"))


def apart(rubric: Rubric, drawn: Sequence[Pair], one: Sequence[Judgement], other: Sequence[Judgement]) -> Measure:
    """How much more often the first judge is right than the second, on the pairs both answered, by actor."""
    key = rubric.dimensions[0].key
    gaps, actors = [], []
    for pair, first, second in zip(drawn, one, other, strict=True):
        shares = [_share(key, pair.right, judgement) for judgement in (first, second)]
        if shares[0] is not None and shares[1] is not None:
            gaps.append(shares[0] - shares[1])
            actors.append(pair.subject.group)
    return measure(cluster.mean(gaps, actors))


def _share(key: str, right: str, judgement: Judgement) -> float | None:
    came = [draw for draw in judgement.draws if key in draw.values or not did_not_come(draw.problem)]
    return sum(draw.values.get(key) == right for draw in came) / len(came) if came else None


def sentence(test: Test) -> str:
    """What the test showed, in one line."""
    said = [f"{part.part} {100 * (part.accuracy.value or 0):.1f} % ({_range(part.accuracy)})" for part in test.parts]
    result = f"Known answers, chance 50 %: {', '.join(said)}; {'passed' if test.passed else 'not passed'}."
    below = [part.part for part in test.parts if part.below_chance]
    return result + (f" Far below chance in {' and '.join(below)}: are A and B exchanged?" if below else "")


def _range(found: Measure) -> str:
    if found.low is None or found.high is None:
        return "no interval"
    return f"{100 * found.low:.1f} to {100 * found.high:.1f}"


Ask = Callable[[Rubric, Sequence[Subject]], Sequence[Judgement]]


def take(
    ask: Ask, rubrics: Mapping[str, Rubric], found: Sequence[Clip], *, limit: int | None, seed: int
) -> dict[str, tuple[list[Pair], list[Judgement]]]:
    """Both parts of the test: what was drawn and what was answered."""
    taken = {}
    for part, rubric in rubrics.items():
        drawn = pairs(found, part, limit=limit, seed=seed)
        taken[part] = (drawn, list(ask(rubric, [pair.subject for pair in drawn])))
    return taken
