"""Find the differences between two runs, besides their models, that make their numbers incomparable.

Only relevant differences count: in the signatures of the compared scores, in the benchmark, in the items and clips that
both runs asked, and in the prompts of conditions that both runs have. If Overtone changed a prompt because one of the
models needs another form, the runs stay comparable, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.results.load import Answer, Reading, signature_differences
from overtone.results.measures import Measure
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Store
from overtone.schema import Condition

CHANGED_FOR_MODEL = "changed for this model"  # marks the origin of a prompt that was changed
ASK_AGAIN = "run one of the models again with the same benchmark data and prompts as the other"
SCORE_ALIKE = "score both runs in the same way with 'overtone score'"
_OF_PROMPT = {p: (f"{p}.",) for p in ("zero", "basic", "enhance", "warm", "plain")} | {"task": (), "likelihood": ()}


class Unlike(Struct, frozen=True):
    """One difference, with the value in each run. `remedy` describes how to make the runs comparable."""

    what: str
    first: str
    second: str
    remedy: str = ASK_AGAIN

    def __str__(self) -> str:
        return f"{self.what}: {self.first} against {self.second}"


def unlike(
    first: Reading, second: Reading, measures: Iterable[Measure], shared: Sequence[tuple[Answer, Answer]]
) -> tuple[list[Unlike], list[str]]:
    """Return the differences that make the runs incomparable, and notes. `shared` are the asks that both runs have."""
    differences: list[Unlike] = []
    if first.benchmark != second.benchmark:
        differences.append(Unlike("benchmark", first.benchmark or "not named", second.benchmark or "not named"))
    changed = {a.item_id for a, b in shared if a.content != b.content}
    if changed:
        what = f"{len(changed)} of {len({a.item_id for a, _ in shared})} shared items"
        differences.append(Unlike(f"{what}, e.g. {min(changed)}", "one version", "another"))
    differences += _clips(first, second)
    differences += signatures_apart(first, second, {score for m in measures for score in m.scores})
    prompts, prompt_notes = _prompts(first, second, shared)
    return [*differences, *prompts], prompt_notes


def refuse(differences: Sequence[Unlike], of_scores: str = "", always: str = "") -> None:
    """Raise UsageError with all differences and their remedies; do nothing without differences.

    `of_scores` is one more remedy if the runs differ only in how scores were computed. `always` is added in any case.
    """
    if differences:
        lines = "".join(f"\n  {one}" for one in differences)
        remedies = dict.fromkeys(one.remedy for one in differences)
        others = [of_scores if set(remedies) == {SCORE_ALIKE} else "", always]
        raise UsageError(
            f"these runs are not comparable:{lines}\n{', or '.join(['; '.join(remedies), *filter(None, others)])}"
        )


def signatures_apart(first: Reading, second: Reading, scores: set[str]) -> list[Unlike]:
    """Return a difference for each of these scores that the two runs computed differently."""
    return [
        Unlike(f"signature of {metric}", first.signatures[metric], second.signatures[metric], SCORE_ALIKE)
        for metric, _ in signature_differences([first, second])
        if metric in scores and not same_signature(first.signatures[metric], second.signatures[metric])
    ]


def _clips(first: Reading, second: Reading) -> list[Unlike]:
    """Return one difference if clips with the same path have different bytes, otherwise an empty list."""
    with Store.read(first.folder) as one, Store.read(second.folder) as other:
        here, there = one.clips(), other.clips()
    changed = sorted(path for path in here.keys() & there.keys() if here[path][0] != there[path][0])
    if not changed:
        return []
    what = f"{len(changed)} of {len(here.keys() & there.keys())} shared clips, e.g. {changed[0]}"
    return [Unlike(what, f"SHA-256 {here[changed[0]][0][:12]}", there[changed[0]][0][:12])]


def _prompts(
    first: Reading, second: Reading, shared: Sequence[tuple[Answer, Answer]]
) -> tuple[list[Unlike], list[str]]:
    here, there = _prompt_texts(first), _prompt_texts(second)
    if here is None or there is None:
        hashes = first.meta.get("prompts", ""), second.meta.get("prompts", "")
        if all(hashes) and hashes[0] != hashes[1]:
            return [Unlike("prompts", *hashes)], []
        return [], []
    used = _prefixes(shared)
    keys = [k for k in {**here[0], **there[0]} if k.startswith(used) and here[0].get(k) != there[0].get(k)]
    differences, notes = [], []
    for key in sorted(keys):
        if any(CHANGED_FOR_MODEL in origins.get(key, "") for _, origins in (here, there)):
            notes.append(f"the prompt {key} was changed for one of the models, which needs to be asked differently")
        else:
            differences.append(Unlike(f"prompt {key}", _short(here[0].get(key)), _short(there[0].get(key))))
    return differences, notes


def _prefixes(shared: Sequence[tuple[Answer, Answer]]) -> tuple[str, ...]:
    """Return prefixes that match the keys of all prompts that the shared asks used."""
    used: set[str] = set()
    for task, name in {(a.item.task, a.condition) for a, _ in shared}:
        used.add(f"{task}.")
        if task == "transcribe":
            used.add("choose.words")
        try:
            condition = Condition.parse(name)
        except ValueError:  # a condition of another program, whose prompts are unknown
            continue
        if task == "converse":
            used |= set(_OF_PROMPT[condition.prompt])
            if condition.oracle != "none":
                used.add("oracle.")
    return tuple(used)


def _prompt_texts(reading: Reading) -> tuple[dict[str, str], dict[str, str]] | None:
    """Return prompt → text and prompt → origin, or None if the run did not record its prompts."""
    try:
        stored: Any = msgspec.json.decode(reading.meta.get("prompt_texts", ""))
        return msgspec.convert((stored["texts"], stored.get("origins", {})), tuple[dict[str, str], dict[str, str]])
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _short(text: str | None) -> str:
    return "none" if text is None else repr(text if len(text) <= 60 else f"{text[:57]}…")
