"""The questions asked about clips: distractors never true of the clip, right answers spread over the letters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from overtone.build.conflict_questions import conflict
from overtone.build.draw import Fair, Letters, Measured, Orders, Question, arguable, random_of, true_of
from overtone.build.false_cues import false_cue
from overtone.build.script import TWO_WAY, Reasoning, Script
from overtone.cues import BY_SLUG, CUES, UNDERSTANDING, Cue
from overtone.schema import Style

__all__ = [
    "Question", "conflict", "counts", "false_cue", "fixed", "positions", "reasoning", "true_of", "understanding",
]  # fmt: skip
_READINGS = ("target", "alternative", "words", "harmful")
_CUED: tuple[Style, ...] = ("target", "alternative")


class _Draft(Struct, frozen=True):
    """A question about one clip's cue, before its wrong answers are drawn."""

    script: Script
    style: Style
    task: str
    cue: Cue

    @property
    def id(self) -> str:
        return f"{self.script.id}_{self.style}_{self.task}"

    @property
    def other(self) -> str:
        return self.script.alternative if self.style == "target" else self.script.cue


def understanding(
    scripts: Sequence[Script], seed: int, measured: Mapping[str, Measured] | None = None
) -> list[Question]:
    """The fine task of each clip's cue and a coarse question, on target and alternative clips.

    With the clips' measures, paces and levels that a clip's own make arguable are replaced among its wrong answers;
    a question for which too few wrong answers are left is not asked.
    """
    drafts: list[_Draft] = []
    for script in (s for s in scripts if not s.says):
        for style in _CUED:
            if cue := script.cue_in(style):
                drafts += [_Draft(script, style, "coarse", cue), _Draft(script, style, cue.task, cue)]
    wrong = _wrong(drafts, seed)
    letters = Letters(seed)
    out: list[Question] = []
    for draft in drafts:
        others = wrong[draft.id]
        gold = letters.next(draft.task, len(others) + 1)
        avoid = arguable(draft.script, draft.style, measured) if measured else frozenset()
        if avoid & {c.slug for c in others}:
            others = _replaced(draft, others, avoid, random_of(seed, draft.id, "measured"))
            if not others:
                continue
        cues = [*others[:gold], draft.cue, *others[gold:]]
        provenance = [
            draft.style if i == gold else "target" if c.slug == draft.script.cue
            else "alternative" if c.slug == draft.script.alternative else ""
            for i, c in enumerate(cues)
        ]  # fmt: skip
        out.append(
            Question(
                draft.id, draft.script, draft.style, draft.task, UNDERSTANDING[draft.task],
                tuple(c.option for c in cues), tuple(provenance), gold,
            )
        )  # fmt: skip
    return out


def _wrong(drafts: Sequence[_Draft], seed: int) -> dict[str, list[Cue]]:
    """The wrong answers of every draft, task by task. They are drawn in a random order of the drafts: what is scarce
    at the end shall not always meet the same scripts."""
    found: dict[str, list[Cue]] = {}
    for task in UNDERSTANDING:
        mine = [d for d in drafts if d.task == task]
        fair = Fair(d.cue.slug for d in mine)
        for i in random_of(seed, "drafts", task).permutation(len(mine)):
            draft = mine[i]
            rng = random_of(seed, draft.id)
            picked = _across(draft, fair, rng) if task == "coarse" else _within(draft, fair, rng)
            fair.count(picked)
            found[draft.id] = [picked[j] for j in rng.permutation(len(picked))]
    return found


def _pool(draft: _Draft) -> list[Cue]:
    """The cues of the draft's task that are surely not true of its clip."""
    if draft.task == "age":  # the three ages stand there always: of two, an honest listener can only choose one
        return [c for c in BY_SLUG.values() if c.task == "age" and c.slug != draft.cue.slug]
    taken = true_of(draft.script, draft.style)
    return [c for c in CUES if draft.task in ("coarse", c.task) and c.slug not in taken]


def _within(draft: _Draft, fair: Fair, rng: np.random.Generator) -> list[Cue]:
    """Distractors of the cue's own task. The script's other cue is one of them where it belongs to the same task."""
    pool = _pool(draft)
    wanted = {"gender": 1, "pace": 1, "age": 2}.get(draft.task, 3)
    picked = [c for c in pool if c.slug == draft.other]
    while len(picked) < wanted:
        rest = [c for c in pool if c not in picked]
        if not rest:
            raise ValueError(f"{draft.id}: too few distractors for {draft.cue.slug}; look into cues.ALSO_TRUE")
        picked.append(fair.pick(rest, [draft.cue, *picked], rng))
    return picked


def _across(draft: _Draft, fair: Fair, rng: np.random.Generator) -> list[Cue]:
    """Three distractors of different categories, none of them the cue's own, from two dimensions at least.

    One from each dimension every time would give the answer away: it would be one of the two that share theirs.
    """
    pool = _pool(draft)
    picked: list[Cue] = []
    while len(picked) < 3:
        chosen = [draft.cue, *picked]
        free = [c for c in pool if c.category not in {o.category for o in chosen}]
        if len(picked) == 2 and len({c.dimension for c in chosen}) == 1:
            free = [c for c in free if c.dimension != draft.cue.dimension]
        picked.append(fair.pick(free, chosen, rng))
    return picked


def _replaced(draft: _Draft, others: list[Cue], avoid: frozenset[str], rng: np.random.Generator) -> list[Cue]:
    """The distractors without those to avoid and with others in their places; none where there are too few."""
    out = list(others)
    for i in (i for i, c in enumerate(others) if c.slug in avoid):
        rest = [c for c in _pool(draft) if c.slug not in avoid and c not in out]
        if draft.task == "coarse":
            used = {draft.cue.category, *(c.category for j, c in enumerate(out) if j != i)}
            alone = {draft.cue.dimension, *(c.dimension for j, c in enumerate(out) if j != i)}
            rest = [c for c in rest if c.category not in used and (len(alone) > 1 or c.dimension not in alone)]
        if not rest:
            return []
        out[i] = rest[int(rng.integers(len(rest)))]
    return out


def reasoning(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Each script's questions, with the same options on every clip: the right one moves with the voice.

    They are asked on the target and the alternative clip, and on the neutral one and its control where the reading of
    the words alone is an option, which is right there.
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
    """The questions whose right answer does not move with the voice, asked on the target clip and kept apart."""
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


def positions(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """How often each letter is right, per category."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for q in questions:
        found[q.category][q.answer] += 1
    return {category: dict(sorted(letters.items())) for category, letters in found.items()}


class Counts(Struct, frozen=True):
    """How many questions there are: of each part and category by style and by right letter; of each cue a clip
    carries ("" is none) by category. A category outside the headline goes by its part as well."""

    style: dict[str, dict[str, int]]
    position: dict[str, dict[str, int]]
    cue: dict[str, dict[str, int]]

    def rows(self) -> list[dict[str, str | int]]:
        """One row for a category: its name, how many, then styles and letters."""
        return [
            {"category": name, "questions": sum(styles.values()), **styles, **self.position[name]}
            for name, styles in self.style.items()
        ]


def counts(questions: Iterable[Question]) -> Counts:
    """Count questions by cue, category, style and position of the right answer."""
    table = Counts({}, {}, {})
    for q in questions:
        name = q.category if not q.part or q.category.startswith(q.part) else f"{q.category} ({q.part})"
        cue = q.script.cue_in(q.style)
        for where, row, column in (
            (table.style, name, q.style),
            (table.position, name, q.answer),
            (table.cue, cue.slug if cue else "", name),
        ):
            where.setdefault(row, {})
            where[row][column] = where[row].get(column, 0) + 1
    return table
