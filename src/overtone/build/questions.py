"""Write the questions about clips. Distractors are never true of the clip; right answers spread over the letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from overtone.build.conflict_questions import conflict
from overtone.build.distractors import Fair, Measured, Orders, Question, arguable, true_of
from overtone.build.false_cues import false_cue
from overtone.build.script import TWO_WAY, Reasoning, Script
from overtone.build.tract import random_of
from overtone.cues import BY_SLUG, CUES, UNDERSTANDING, Cue
from overtone.schema import Style

__all__ = ["Question", "conflict", "false_cue", "fixed", "reasoning", "true_of", "understanding"]
_READINGS = ("target", "alternative", "words", "harmful")
_CUED: tuple[Style, ...] = ("target", "alternative")


_WIDTH = {"gender": 2, "pace": 2, "age": 3}  # number of options of a task (default: 4)


class _Draft(Struct, frozen=True):
    """A question before its wrong answers are drawn. It has the same options on one or two clips of a script."""

    script: Script
    task: str
    clips: dict[Style, Cue]  # style → the right cue of its clip

    @property
    def id(self) -> str:
        return "_".join((self.script.id, *self.clips, self.task))

    @property
    def cues(self) -> list[Cue]:
        return list(self.clips.values())


def understanding(
    scripts: Sequence[Script], seed: int, measured: Mapping[str, Measured] | None = None
) -> list[Question]:
    """Ask two questions on each target and alternative clip: the fine task of its cue, and a coarse question.

    The coarse question has the same options on both clips, including both cues, so its right answer changes with the
    voice. The same holds for the fine question if both cues belong to one task. If one cue may be true of the other's
    clip, each clip has its own question. `measured` replaces wrong answers that the clips' pace or level makes
    arguable; a question with too few wrong answers left is dropped.
    """
    drafts = [draft for script in scripts if not script.says for draft in _drafts(script)]
    wrong = _wrong(drafts, seed)
    orders = Orders(seed)
    out: list[Question] = []
    for draft in drafts:
        readings = [*draft.clips, *(f"wrong {i}" for i in range(len(wrong[draft.id])))]
        order = orders.next(draft.task, readings, tuple(draft.clips))
        others = wrong[draft.id]
        if measured:
            others = _unarguable(draft, others, measured, random_of(seed, draft.id, "measured"))
        if len(others) == len(wrong[draft.id]):
            out += _asked(draft, dict(zip(readings, [*draft.cues, *others], strict=True)), order)
    return out


def _drafts(script: Script) -> list[_Draft]:
    target, alternative = BY_SLUG[script.cue], BY_SLUG[script.alternative]
    alone: tuple[dict[Style, Cue], ...] = ({"target": target}, {"alternative": alternative})
    distinct = target.slug not in true_of(script, "alternative") and alternative.slug not in true_of(script, "target")
    both = [alone[0] | alone[1]] if distinct else list(alone)
    fine = both if target.task == alternative.task else alone
    return [
        *(_Draft(script, "coarse", clips) for clips in both),
        *(_Draft(script, next(iter(clips.values())).task, clips) for clips in fine),
    ]


def _asked(draft: _Draft, cues: dict[str, Cue], order: tuple[str, ...]) -> Iterator[Question]:
    by_cue = {draft.script.alternative: "alternative", draft.script.cue: "target"}
    provenance = tuple(r if r in draft.clips else by_cue.get(cues[r].slug, "") for r in order)
    for style in draft.clips:
        yield Question(
            f"{draft.script.id}_{style}_{draft.task}", draft.script, style, draft.task, UNDERSTANDING[draft.task],
            tuple(cues[reading].option for reading in order), provenance, order.index(style),
        )  # fmt: skip


def _wrong(drafts: Sequence[_Draft], seed: int) -> dict[str, list[Cue]]:
    """Draw the wrong answers of every draft, task by task. Drafts are visited in random order, so that scarce cues do
    not always miss the same scripts."""
    wrong: dict[str, list[Cue]] = {}
    for task in UNDERSTANDING:
        mine = [d for d in drafts if d.task == task]
        fair = Fair(c.slug for d in mine for c in d.cues)
        for i in random_of(seed, "drafts", task).permutation(len(mine)):
            draft = mine[i]
            rng = random_of(seed, draft.id)
            picked = _across(draft, fair, rng) if task == "coarse" else _within(draft, fair, rng)
            fair.count(draft.cues, picked)
            wrong[draft.id] = picked
    return wrong


def _pool(draft: _Draft) -> list[Cue]:
    """Return the cues of the draft's task that are certainly not true of its clips."""
    if draft.task == "age":  # all three ages are always offered: with two, a listener could only choose one
        return [c for c in BY_SLUG.values() if c.task == "age" and c not in draft.cues]
    taken = frozenset[str]().union(*(true_of(draft.script, style) for style in draft.clips))
    return [c for c in CUES if draft.task in ("coarse", c.task) and c.slug not in taken]


def _within(draft: _Draft, fair: Fair, rng: np.random.Generator) -> list[Cue]:
    """Pick distractors of the cue's own task. They include the script's other cue if it has the same task."""
    pool = _pool(draft)
    picked = [c for c in pool if c.slug in (draft.script.cue, draft.script.alternative)]
    while len(picked) < _WIDTH.get(draft.task, 4) - len(draft.clips):
        rest = [c for c in pool if c not in picked]
        if not rest:
            raise ValueError(f"{draft.id}: too few distractors; check cues.ALSO_TRUE")
        picked.append(fair.pick(draft.cues, rest, picked, rng))
    return picked


def _across(draft: _Draft, fair: Fair, rng: np.random.Generator) -> list[Cue]:
    """Pick distractors from other dimensions, so that the four options, with the script's two cues, cover all three
    dimensions."""
    picked: list[Cue] = []
    while len(picked) < 4 - len(draft.clips):
        picked.append(fair.pick(draft.cues, _apart(_pool(draft), [*draft.cues, *picked]), picked, rng))
    return picked


def _apart(pool: Sequence[Cue], chosen: Sequence[Cue]) -> list[Cue]:
    """Return the cues that may be offered beside the chosen ones in a coarse question.

    These are the cues with a dimension that no chosen cue has. If there are none, they are the cues with a category
    that no chosen cue has.
    """
    categories, dimensions = {c.category for c in chosen}, {c.dimension for c in chosen}
    fresh = [c for c in pool if c.category not in categories]
    return [c for c in fresh if c.dimension not in dimensions] or fresh


def _unarguable(
    draft: _Draft, others: list[Cue], measured: Mapping[str, Measured], rng: np.random.Generator
) -> list[Cue]:
    """Replace each distractor that a listener could defend as right, given the clips' measures.

    The result is shorter if replacements run out, and empty if the right answer on one clip is arguable on another.
    """
    avoid = {style: arguable(draft.script, style, measured) for style in draft.clips}
    if any(cue.slug in avoid[style] for style in draft.clips for cue in draft.cues if cue != draft.clips[style]):
        return []
    arguably = frozenset[str]().union(*avoid.values())
    kept = [c for c in others if c.slug not in arguably]
    while len(kept) < len(others):
        rest = [c for c in _pool(draft) if c.slug not in arguably and c not in kept]
        if draft.task == "coarse":
            rest = _apart(rest, [*draft.cues, *kept])
        if not rest:
            break
        kept.append(rest[int(rng.integers(len(rest)))])
    return kept


def reasoning(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Ask each script's reasoning questions, with the same options on every clip. The right one changes with the voice.

    They are asked on the target and the alternative clip. If the reading of the words alone is an option, they are also
    asked on the neutral clip and its control, where that option is right.
    """
    orders = Orders(seed)
    out: list[Question] = []
    for script, r in _written(scripts, moves=True):
        right: dict[Style, str] = {style: style for style in _CUED}
        if r.words and "neutral" in script.styles:
            right["neutral"] = "words"
        order = _order(r, orders, tuple(right.values()))
        if "neutral" in right:
            right["control"] = "words"
        out += [_reasoned(script, r, style, order, gold) for style, gold in right.items()]
    return out


def fixed(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Ask, on target clips, questions whose right answer does not depend on the voice. They form a separate part."""
    orders = Orders(seed)
    return [
        _reasoned(script, r, "target", _order(r, orders, ("target",)), "target", "fixed")
        for script, r in _written(scripts, moves=False)
    ]


def _written(scripts: Sequence[Script], *, moves: bool) -> list[tuple[Script, Reasoning]]:
    return [(s, r) for s in scripts if not s.says for r in s.reasoning if r.moves == moves]


def _order(r: Reasoning, orders: Orders, right: tuple[str, ...]) -> tuple[str, ...]:
    if r.category in TWO_WAY:
        return tuple("target" if option == r.target else "alternative" for option in TWO_WAY[r.category])
    return orders.next(r.category, _READINGS, right)


def _reasoned(
    script: Script, r: Reasoning, style: Style, order: tuple[str, ...], gold: str, part: str = ""
) -> Question:
    text = {"target": r.target, "alternative": r.alternative, "words": r.words, "harmful": r.harmful}
    return Question(
        f"{script.id}_{style}_{r.category}", script, style, r.category, r.question,
        tuple(text[reading] for reading in order), order, order.index(gold),
        part or ("control" if style == "control" else ""),
    )  # fmt: skip
