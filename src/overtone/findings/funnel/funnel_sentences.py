"""The funnel in sentences: how many cases pass each stage, where most are lost, and the effect of a stated cue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overtone.findings.funnel.compute import LABELS, MOVABLE, Funnel, Gain, StageRow, Step
from overtone.results import significance
from overtone.results.wording import Sentence, headline, shortfall
from overtone.stats.minimums import DIFFERENCE, LARGEST_LOSS, RATE
from overtone.text import percent, points, rate


def sentences(data: Funnel) -> list[Sentence]:
    """Return the sentences on the overall rows, condition by condition."""
    losses = list(_losses(headline(data.rows)))
    lines = [sentence for sentence in losses if sentence.key]
    few: list[tuple[str, int]] = []  # subjects with too few scripts for a sentence
    seen: set[tuple[str, str]] = set()  # stages before the reply are the same under every prompt
    for row in headline(data.rows):
        given = row.condition if row.stage in MOVABLE else row.condition.partition("/")[2]
        if row.reached.value is None or (given, row.stage) in seen:
            continue
        seen.add((given, row.stage))
        if row.reached.scripts < RATE.least:
            few.append((f"{given}, {LABELS[row.stage]}", row.reached.scripts))
            continue
        lines.append(Sentence(f"{given}: {_reached(row)}.", row.key, _about(row)))
        if row.step is not None and row.step.difference.value is not None:
            scripts = min(row.step.given.scripts, row.step.otherwise.scripts)
            if scripts < RATE.least:
                few.append((f"{given}, {LABELS[row.stage]} with and without “{LABELS[row.step.after]}”", scripts))
            else:
                lines.append(Sentence(f"{given}: {_step(row.stage, row.step)}.", row.key, _about(row)))
    lines += [sentence for sentence in losses if not sentence.key]
    return [*lines, *shortfall(RATE, few), *_gains(headline(data.gains))]


def _about(row: StageRow) -> str:
    """Return the condition that a sentence on this stage is about. Stages before the reply have `task/INPUT`,
    because no prompt can change them."""
    return row.condition if row.stage in MOVABLE else f"task/{row.condition.partition('/')[2]}"


def _reached(row: StageRow) -> str:
    repeated = "" if row.cases == row.reached.scored else f", asked {row.reached.scored} times,"
    text = f"{rate(row.reached)} of {row.cases} cases{repeated} {LABELS[row.stage]}"
    if row.corrected is not None:
        text += f", {rate(row.corrected)} corrected for guessing"
        if row.stage == "used":
            text += f" (a model that ignores the delivery scores {percent(row.chance or 0.0)})"
    return text + (f"; {row.reached.missing} more lack this stage" if row.reached.missing else "")


def _step(stage: str, step: Step) -> str:
    return (
        f"of cases that {LABELS[step.after]}, {rate(step.given)} also {LABELS[stage]}; of those that did "
        f"not, {rate(step.otherwise)}: a difference of {points(step.difference)}"
        f"{significance.by_interval(step.difference)}"
    )


def _losses(rows: Sequence[StageRow]) -> Iterator[Sentence]:
    """Yield a sentence on the stage with the lowest pass rate among the cases that passed all earlier stages."""
    conditions = dict.fromkeys(row.condition for row in rows)
    prompts = [c for p in ("enhance", "basic", "zero") for c in (f"{p}/audio", f"{p}/transcript") if c in conditions]
    for condition in (prompts or [c for c in conditions if not c.startswith("oracle")])[:1]:
        stages = [(row, row.onward) for row in rows if row.condition == condition and row.onward is not None]
        steps = [(row, onward) for row, onward in stages if onward.value is not None]
        if len(steps) < 2:
            continue
        subjects = [(f"where most is lost: {condition}, {LABELS[row.stage]}", e.scripts) for row, e in steps]
        if lacking := [(subject, scripts) for subject, scripts in subjects if scripts < LARGEST_LOSS.least]:
            yield from shortfall(LARGEST_LOSS, lacking)
            continue
        (lost, share), (second, other) = sorted(steps, key=lambda step: step[1].value or 0.0)[:2]
        text = (
            f"of the cases that passed all previous stages, {rate(share)} of {share.scored} {LABELS[lost.stage]}; the "
            f"next lowest share is {rate(other)} of {other.scored}, at “{LABELS[second.stage]}”"
        )
        if (share.high or 0.0) < (other.low or 0.0):
            line = f"most is lost at “{LABELS[lost.stage]}”: {text}"
        else:
            line = f"no stage clearly loses most: {text}, and their intervals overlap"
        yield Sentence(f"{condition}: {line}.", lost.key, _about(lost))


def _gains(gains: Sequence[Gain]) -> list[Sentence]:
    known = [gain for gain in gains if gain.difference.value is not None]
    enough = [gain for gain in known if gain.difference.scripts >= DIFFERENCE.least]
    few = [
        (f"{gain.condition} against {gain.base}, {LABELS[gain.stage]}", gain.difference.scripts)
        for gain in known
        if gain not in enough
    ]
    return [*(Sentence(f"{_gain(gain)}.", gain.key) for gain in enough), *shortfall(DIFFERENCE, few)]


def _gain(gain: Gain) -> str:
    return (
        f"{gain.condition} against {gain.base}: with the cue stated, {rate(gain.told)} of replies "
        f"{LABELS[gain.stage]}, without {rate(gain.untold)}, on the same {gain.difference.scored} cases: a difference "
        f"of {points(gain.difference)}{significance.by_interval(gain.difference)}"
    )
