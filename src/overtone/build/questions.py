"""The questions asked about clips: distractors never true of the clip, right answers spread over the letters."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from overtone.build.script import TWO_WAY, Script
from overtone.cues import ALSO_TRUE, BY_SLUG, CUES, DIMENSIONS, UNDERSTANDING, Cue
from overtone.schema import Style

_FLAT = frozenset(
    {"tired", "slow", "sad", "disgust", "hoarse", "elderly"}
)  # what plain synthetic speech may be taken for


class Question(Struct, frozen=True):
    """One question about one clip. `provenance` says for each option under which reading it is right."""

    id: str
    script: Script
    style: Style
    category: str
    question: str
    options: tuple[str, ...]
    provenance: tuple[str, ...]
    gold: int  # position

    @property
    def answer(self) -> str:
        return chr(ord("A") + self.gold)

    @property
    def options_text(self) -> str:
        return "\n".join(f"{chr(ord('A') + i)}. {text}" for i, text in enumerate(self.options))


def true_of(script: Script, style: str) -> frozenset[str]:
    """Every cue that may be true of a clip, and so must not stand among its distractors."""
    cue, voice = script.cue_in(style), script.voice_in(style)
    facts = {voice.sex}
    if cue is not None:
        facts |= {cue.slug} | ALSO_TRUE.get(cue.slug, frozenset())
    if cue is None or cue.category != "age":
        facts.add("adult")
    if cue is None or cue.dimension != "paralinguistic":
        facts |= _FLAT
    return frozenset(facts)


def understanding(scripts: Sequence[Script], seed: int) -> list[Question]:
    """The fine task of each clip's cue, on target and alternative clips, and a coarse question on each target clip."""
    drafts: list[tuple[Script, Style, str, Cue, list[Cue]]] = []
    for script in scripts:
        for style in ("target", "alternative"):
            cue = script.cue_in(style)
            if cue is None:
                continue
            if style == "target":
                drafts.append((script, "target", "coarse", cue, _across(script, cue, _rng(seed, script.id, "coarse"))))
            drafts.append((script, style, cue.task, cue, _within(script, style, cue, _rng(seed, script.id, style))))
    letters = _Letters(seed)
    out: list[Question] = []
    for script, style, task, cue, others in drafts:
        gold = letters.next(task, len(others) + 1)
        options = [c.option for c in others]
        options.insert(gold, cue.option)
        provenance = [
            "target" if c.slug == script.cue else "alternative" if c.slug == script.alternative else "" for c in others
        ]
        provenance.insert(gold, style)
        out.append(
            Question(
                f"{script.id}_{style}_{task}",
                script,
                style,
                task,
                UNDERSTANDING[task],
                tuple(options),
                tuple(provenance),
                gold,
            )
        )
    return out


def reasoning(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Each script's questions, with the same options on the target and the alternative clip: the right one moves."""
    orders: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    rounds: dict[str, int] = defaultdict(int)
    out: list[Question] = []
    for script in scripts:
        for r in script.reasoning:
            text = {"target": r.target, "alternative": r.alternative, "words": r.words, "harmful": r.harmful}
            if r.category in TWO_WAY:
                order = tuple("target" if option == r.target else "alternative" for option in TWO_WAY[r.category])
            else:
                if not orders[r.category]:
                    orders[r.category] = _latin(_rng(seed, r.category, str(rounds[r.category])))
                    rounds[r.category] += 1
                order = orders[r.category].pop()
            for style in ("target", "alternative"):
                out.append(
                    Question(
                        f"{script.id}_{style}_{r.category}", script, style, r.category, r.question,
                        tuple(text[p] for p in order), order, order.index(style),
                    )
                )  # fmt: skip
    return out


class _Letters:
    """Hands out positions of the right answer so that, task by task, no letter is ever two ahead of another."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._left: dict[tuple[str, int], list[int]] = defaultdict(list)
        self._rounds: dict[tuple[str, int], int] = defaultdict(int)

    def next(self, task: str, options: int) -> int:
        key = (task, options)
        if not self._left[key]:
            rng = _rng(self._seed, task, str(options), str(self._rounds[key]))
            self._left[key] = [int(i) for i in rng.permutation(options)]
            self._rounds[key] += 1
        return self._left[key].pop()


def _latin(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Four orders of the four readings in which each stands once in every position."""
    names = [("target", "alternative", "words", "harmful")[i] for i in rng.permutation(4)]
    return [tuple(names[(i + shift) % 4] for i in range(4)) for shift in rng.permutation(4)]


def _within(script: Script, style: str, cue: Cue, rng: np.random.Generator) -> list[Cue]:
    """Distractors of the cue's own task. The script's other cue is one of them where it belongs to the same task."""
    taken = true_of(script, style)
    if cue.task == "age":  # the three ages stand there always: of two, an honest listener can only choose one
        pool = [c for c in BY_SLUG.values() if c.task == "age" and c.slug != cue.slug]
        return [pool[i] for i in rng.permutation(len(pool))]
    pool = [c for c in CUES if c.task == cue.task and c.slug != cue.slug and c.slug not in taken]
    wanted = 1 if cue.task in ("gender", "pace") else 3
    other = script.alternative if style == "target" else script.cue
    picked = [c for c in pool if c.slug == other]
    rest = [c for c in pool if c.slug != other]
    picked += [rest[i] for i in rng.permutation(len(rest))[: wanted - len(picked)]]
    if len(picked) < wanted:
        raise ValueError(f"{script.id} {style}: too few distractors for {cue.slug}")
    return [picked[i] for i in rng.permutation(len(picked))]


def _across(script: Script, cue: Cue, rng: np.random.Generator) -> list[Cue]:
    """Three distractors, one from each dimension, all of different categories and none of the cue's own.

    Of a child's voice no statement about the speaker's sex is surely false; then two come from one other dimension.
    """
    taken = true_of(script, "target")
    free = [c for c in CUES if c.slug not in taken]
    picked: list[Cue] = []
    for dimension in (*DIMENSIONS, "environment"):
        used = {cue.category, *(c.category for c in picked)}
        pool = [c for c in free if c.dimension == dimension and c.category not in used]
        if pool and len(picked) < 3:
            picked.append(pool[int(rng.integers(len(pool)))])
    return [picked[i] for i in rng.permutation(len(picked))]


def _rng(seed: int, *parts: str) -> np.random.Generator:
    digest = hashlib.sha256("/".join((str(seed), *parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def positions(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """How often each letter is right, per category."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for q in questions:
        counts[q.category][q.answer] += 1
    return {category: dict(sorted(letters.items())) for category, letters in counts.items()}
