"""How much the prompt matters: the numbers of each prompt, a fair choice of the best, and instructions not followed.

If the best prompt of each model is chosen on the same replies that are reported, models with more prompts gain. Here
the scripts are split into two halves, and each half is reported under the best prompt of the other half. The biased
number, from the choice on the same replies, is reported too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.results import measure_names
from overtone.results.case_names import KeyedCases, Names, unique
from overtone.results.judge_scores import by_status, replies_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure, estimate, status
from overtone.results.wording import Sentence, shortfall
from overtone.stats.minimums import BEST_PROMPT, RATE
from overtone.text import rate

SEED = 5
SIGNATURE = f"prompts|v1|split:scripts-in-half|crossfit:2|choice:highest-mean,ties-to-the-plainer|seed:{SEED}"
SHOWN = (
    measure_names.C1,
    measure_names.C4,
    measure_names.VES,
    "cspeechrel_implicit",
    "reply_semsim",
    "style_margin",
    "emoalign_reference",
)
PROMPTS = ("zero", "basic", "enhance")
CRITERIA = ((measure_names.C4, measure_names.VES), (measure_names.C4,), (measure_names.VES,))  # the paper's first
KINDS = {
    "failed": "no reply",
    "empty": "empty",
    "refused": "refused",
    "cut off": "cut off",
    "unparsable": "no readable option",
}
UNKNOWN = "unknown"
_CUT = frozenset({"cut short before the answer", "unfinished thinking"})  # rules of the answer extractor
_ENDS = frozenset({"length", "max_tokens", "MAX_TOKENS"})  # finish reasons of replies that were cut off

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class PromptRow(Struct, frozen=True):
    """The numbers of all replies under one prompt. The key of a number is `key`, "/" and the name of the measure."""

    key: str
    basis: str
    prompt: str
    measures: dict[str, Estimate]


class Choice(Struct, frozen=True):
    """The best prompt by the measures `by`, over the cases that have these measures under every prompt.

    `halves` are the best prompts on the first and on the second half of the scripts. `fair` reports each half under the
    best prompt of the other half. `in_sample` reports all scripts under the best prompt on all scripts, as the paper
    does. `optimism` is in_sample minus fair, reply by reply.
    """

    key: str
    basis: str
    by: tuple[str, ...]
    prompts: tuple[str, ...]
    overall: str
    halves: tuple[str, str]
    in_sample: dict[str, Estimate]
    fair: dict[str, Estimate]
    optimism: dict[str, Estimate]


class FailureRow(Struct, frozen=True):
    """Instructions not followed under one prompt: the share of requests with each kind of problem."""

    key: str
    basis: str
    prompt: str
    task: str
    kinds: dict[str, Estimate]  # kind of problem → share


class Prompts(Struct, frozen=True):
    """The prompts of one run."""

    rows: list[PromptRow]
    choices: list[Choice]
    failures: list[FailureRow]
    notes: list[str]
    signature: str = SIGNATURE


def prompts(reading: Reading, *, input: str = "audio") -> Prompts:
    """Compute the effect of the prompt in one run. With one prompt, or without C4 and VES, no best prompt is chosen."""
    measures = _measures(reading)
    rows: list[PromptRow] = []
    choices: list[Choice] = []
    for basis, asked in _by_prompt(reading, input):
        for prompt, replies in asked.items():
            estimates = {n: e for n, m in measures.items() if (e := m.estimate(replies)).asked}
            rows.append(PromptRow(_row_key(basis, prompt), basis, prompt, estimates))
        choices += [_choice(basis, picked) for picked in _picked(asked, measures)]
    notes = []
    prompted = {row.prompt for row in rows}
    if rows and len(prompted) < 2:
        notes.append(f"The replies have one prompt only ({', '.join(prompted)}): nothing to choose from.")
    elif rows and not choices:
        notes.append("No best prompt: no reply has C4 or VES under every prompt; score the run with a judge.")
    return Prompts(rows, choices, _failures(reading, input), notes)


def cases_by_key(reading: Reading, *, input: str = "audio") -> Iterator[KeyedCases]:
    """Yield the key of every number with the cases that the number counts.

    The key of a prompt's row gives all replies under the prompt; with a measure appended, the replies with a value. The
    key of a choice gives the cases that decided it; with a measure appended, the cases that its numbers count. The key
    of instructions not followed gives all requests; with a kind of problem appended, the requests with this problem.
    """
    measures = _measures(reading)
    for basis, asked in _by_prompt(reading, input):
        for prompt, replies in asked.items():
            key = _row_key(basis, prompt)
            yield key, unique(a.item.case for a in replies)
            for name, measure in measures.items():
                belonging = [a for a in replies if measure.belongs(a.item)]
                if belonging:
                    yield f"{key}/{name}", unique(a.item.case for a in belonging if measure.read(a) is not None)
        for picked in _picked(asked, measures):
            key = _choice_key(basis, picked.by)
            names = Names([case for case, _ in picked.table.keys])
            yield key, names.of(picked.rows)
            for name in picked.table.values:
                if (rows := picked.shown(name)).size:
                    yield f"{key}/{name}", names.of(rows)
    for basis, prompt, task, answers in _tasks(reading, input):
        key = _failure_key(basis, prompt, task)
        outcomes = [(_problems(a), a.item.case) for a in answers]
        yield key, unique(case for _, case in outcomes)
        for kind in (kind for kind in KINDS if _applies(kind, task)):
            yield f"{key}/{kind}", unique(case for problems, case in outcomes if _is(kind, problems) == 1.0)


def sentences(data: Prompts) -> list[Sentence]:
    """Return sentences on the best prompt by the paper's measures, and on instructions not followed."""
    chosen = [choice for choice in data.choices if choice.by == data.choices[0].by]
    enough = [choice for choice in chosen if choice.fair[choice.by[0]].scripts >= BEST_PROMPT.least]
    lines = [Sentence(_choice_sentence(choice), choice.key) for choice in enough]
    lacking = [(f"the best prompt by {_by(c)}", c.fair[c.by[0]].scripts) for c in chosen if c not in enough]
    lines += shortfall(BEST_PROMPT, lacking)
    few: list[tuple[str, int]] = []
    for row in data.failures:
        bad = {k: e for k, e in row.kinds.items() if e.value}
        if bad:
            noun = {"converse": "replies", "choose": "answers to questions", "transcribe": "transcripts"}.get(row.task)
            subject = f"Under {row.prompt}, among the {noun or row.task}{_over(row.basis)}"
            scripts = max(e.scripts for e in bad.values())
            each = ", ".join(f"{KINDS[k]} {rate(e)}" for k, e in bad.items())
            if scripts >= RATE.least:
                lines.append(Sentence(f"{subject}: {each}.", row.key))
            else:
                few.append((f"{row.prompt}, the rate of {', '.join(KINDS[k] for k in bad)}{_over(row.basis)}", scripts))
    return [*lines, *shortfall(RATE, few)]


def _by(choice: Choice) -> str:
    return " and ".join(measure_names.short(n) for n in choice.by) + _over(choice.basis)


def _choice_sentence(choice: Choice) -> str:
    name = choice.by[0]
    first, second = choice.halves
    picked = f"{first} is chosen" if first == second else f"one half of the scripts chooses {first}, the other {second}"
    fair, favoured, gap = (d[name] for d in (choice.fair, choice.in_sample, choice.optimism))
    text = (
        f"Best prompt by {_by(choice)}: {picked}. {measure_names.short(name)} is {measure_names.write(name, fair)} on "
        f"scripts that did not choose it, and {measure_names.write(name, favoured)} if chosen on the scripts shown"
    )
    if not gap.value:
        return f"{text}: no optimism with this split."
    return f"{text}: an optimism of {measure_names.write(name, gap, difference=True)}."


def _over(basis: str) -> str:
    return " (cues not validated)" if basis == "unvalidated" else ""


def _row_key(basis: str, prompt: str) -> str:
    return f"prompts/{basis or 'all'}/{prompt}"


def _choice_key(basis: str, by: Sequence[str]) -> str:
    return f"prompts/{basis or 'all'}/best/{'+'.join(by)}"


def _failure_key(basis: str, prompt: str, task: str) -> str:
    return f"prompts/{basis or 'all'}/failures/{prompt}/{task}"


def _measures(reading: Reading) -> dict[str, Measure]:
    return {n: m for n, m in measure_names.measures_of([reading]).items() if m.task == "converse"}


# ── the best prompt ─────────────────────────────────────────────────────────────────────────────────────────────────


def _by_prompt(reading: Reading, input: str) -> list[tuple[str, dict[str, list[Answer]]]]:
    """Return (basis, prompt → replies) for each basis, the plainest prompt first."""
    conditions = {f"{prompt}/{input}": prompt for prompt in PROMPTS}
    replies = [a for a in replies_of(reading.answers) if a.condition in conditions]
    by_basis = []
    for basis, answers in by_status(replies):
        by_prompt: dict[str, list[Answer]] = {}
        for answer in answers:
            by_prompt.setdefault(conditions[answer.condition], []).append(answer)
        by_basis.append((basis, {p: by_prompt[p] for p in PROMPTS if p in by_prompt}))
    return by_basis


def _value(measure: Measure, answer: Answer) -> float | None:
    return measure.read(answer) if measure.belongs(answer.item) else None


class _Table:
    """The values of all cases with a reply under every prompt: a row for each case and repeat, a column per prompt."""

    def __init__(self, by_prompt: Mapping[str, Sequence[Answer]], measures: Mapping[str, Measure]) -> None:
        keyed = [{(a.item.case, a.repeat): a for a in answers} for answers in by_prompt.values()]
        self.keys = [key for key in keyed[0] if all(key in k for k in keyed)] if keyed else []
        self.groups = np.array([keyed[0][key].item.group for key in self.keys])
        self.measures = measures
        self.values: dict[str, Array] = {}  # (rows, prompts), NaN for a missing value
        for name, measure in measures.items():
            rows = [[_value(measure, k[key]) for k in keyed] for key in self.keys]
            self.values[name] = np.array(rows, dtype=np.float64).reshape(len(rows), len(keyed))

    def complete(self, names: Sequence[str]) -> Rows:
        """Return the rows with values of all these measures under every prompt."""
        known = [~np.isnan(self.values[n]).any(1) for n in names]
        return np.flatnonzero(np.logical_and.reduce(known)) if self.keys else np.empty(0, dtype=np.intp)


class _Picked(NamedTuple):
    """The positions of the best prompts: on all scripts (`overall`), on each half (`halves`), and for each row on the
    half that the row is not in (`used`)."""

    by: tuple[str, ...]
    prompts: tuple[str, ...]
    table: _Table
    rows: Rows  # rows with all measures in `by` under every prompt
    overall: int
    halves: tuple[int, int]
    used: Rows

    def shown(self, name: str) -> Rows:
        """Return the rows with a value under the best prompt overall and under the best prompt of the other half."""
        return self.rows[self.both(name)]

    def both(self, name: str) -> npt.NDArray[np.bool_]:
        values = self.table.values[name]
        missing: npt.NDArray[np.bool_] = np.isnan(values[self.rows, self.overall] + values[self.rows, self.used])
        return ~missing


def _picked(by_prompt: Mapping[str, list[Answer]], measures: Mapping[str, Measure]) -> Iterator[_Picked]:
    shown = {n: m for n, m in measures.items() if n in SHOWN}
    if len(by_prompt) < 2 or not any(n in shown for by in CRITERIA for n in by):
        return
    table = _Table(by_prompt, shown)
    for by in CRITERIA:
        rows = table.complete(by) if all(n in shown for n in by) else np.empty(0, dtype=np.intp)
        scripts = np.unique(table.groups[rows]) if rows.size else np.empty(0)
        if len(scripts) < 2:
            continue
        first = scripts[np.random.default_rng(SEED).permutation(len(scripts))[: len(scripts) // 2]]
        inside = np.isin(table.groups[rows], first)
        values = np.mean([table.values[n][rows] for n in by], axis=0)  # (rows, prompts)
        halves = (_best(values[inside]), _best(values[~inside]))
        used = np.where(inside, halves[1], halves[0])  # each half uses the best prompt of the other half
        yield _Picked(by, tuple(by_prompt), table, rows, _best(values), halves, used)


def _best(values: Array) -> int:
    """Return the position of the prompt with the highest mean; in a tie, that of the plainest prompt."""
    return int(np.argmax(np.round(values.mean(0), 9)))


def _choice(basis: str, picked: _Picked) -> Choice:
    in_sample, fair, optimism = {}, {}, {}
    note = "over one split of the scripts; the interval ignores the uncertainty of the choice"
    table, rows = picked.table, picked.rows
    for name, values in table.values.items():
        both = picked.both(name)
        if both.any():
            one, other = (values[rows, place][both].tolist() for place in (picked.overall, picked.used))
            groups, measure = table.groups[rows[both]].tolist(), table.measures[name]
            in_sample[name] = measure.side(list(zip(one, groups, strict=True)))
            fair[name] = _noted(measure.side(list(zip(other, groups, strict=True))), note)
            optimism[name] = _noted(measure.gap(zip(one, other, groups, strict=True)), note)
    names = picked.prompts
    chosen = (names[picked.halves[0]], names[picked.halves[1]])
    key = _choice_key(basis, picked.by)
    return Choice(key, basis, picked.by, names, names[picked.overall], chosen, in_sample, fair, optimism)


def _noted(e: Estimate, note: str) -> Estimate:
    return msgspec.structs.replace(e, note=note)


# ── instructions not followed ───────────────────────────────────────────────────────────────────────────────────────


def _tasks(reading: Reading, input: str) -> Iterable[tuple[str, str, str, list[Answer]]]:
    """Yield (basis, prompt, task, answers) for the answers of the benchmark's core."""
    conditions = {f"{prompt}/{input}": prompt for prompt in ("task", *PROMPTS)}
    core = [a for a in reading.answers if not a.item.part and a.condition in conditions]
    for basis, answers in by_status(core):
        parts: dict[tuple[str, str], list[Answer]] = {}
        for answer in answers:
            parts.setdefault((conditions[answer.condition], answer.item.task), []).append(answer)
        for (prompt, task), own in parts.items():
            yield basis, prompt, task, own


def _failures(reading: Reading, input: str) -> list[FailureRow]:
    rows = []
    for basis, prompt, task, answers in _tasks(reading, input):
        outcomes = [(_problems(a), a.item.group) for a in answers]
        kinds = {
            kind: estimate([(_is(kind, p), group) for p, group in outcomes], kind="proportion", good=0.0, bad=1.0)
            for kind in KINDS
            if _applies(kind, task)
        }
        rows.append(FailureRow(_failure_key(basis, prompt, task), basis, prompt, task, kinds))
    return rows


def _applies(kind: str, task: str) -> bool:
    """Return whether a kind of problem can be seen in a task. Light readings do not hold the texts of transcripts,
    so only failures and refusals can be seen in transcription."""
    if task == "transcribe":
        return kind in ("failed", "refused")
    return kind != "unparsable" or task == "choose"


def _problems(answer: Answer) -> tuple[str, ...] | None:
    """Return the problems of an answer; None if it is still pending, UNKNOWN if its problems cannot be determined."""
    if answer.failed:
        return ("failed",)
    if not answer.answered:
        return None
    if answer.item.task == "choose":
        how = status(answer)
        if how == "parsed":
            return ()
        if not how:
            return (UNKNOWN,)
        if answer.scores["accuracy"].detail.get("rule") in _CUT:
            return ("cut off",)
        return (how if how in ("empty", "refused") else "unparsable",)
    if any(r.refused for r in answer.replies):
        return ("refused",)
    empty = any(not r.text.strip() and not r.audio for r in answer.replies)
    cut = any(r.finish in _ENDS for r in answer.replies)
    return (("empty",) if empty else ()) + (("cut off",) if cut else ())


def _is(kind: str, problems: tuple[str, ...] | None) -> float | None:
    if problems is None or (kind != "failed" and problems in (("failed",), (UNKNOWN,))):
        return None
    return float(kind in problems)
