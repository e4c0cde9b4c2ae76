"""The measures that findings speak of, level by level, ready to be read off any reply of a run.

The headline's measures, then what judges said of the replies (the panel's mean where several judged), then metrics of
the replies' words and voices. All are of the benchmark's core; parts kept apart have no place in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from overtone.analysis import said
from overtone.analysis.judged import ORDER, Dimension, judges_of, read_dimensions
from overtone.analysis.measures import MEASURES, METRICS, Estimate, Measure
from overtone.analysis.reading import Answer, Reading, reader, same_signature
from overtone.errors import UsageError
from overtone.schema import Item

C1, C4, VES = "cctxfit", "cspeechrel", "ves"
REPLY = (
    "emoalign_reference", "emoalign_profile", "style_margin", "bleu", "rouge_l", "meteor", "bertscore", "nisqa_mos",
    "utmos", "dnsmos_ovrl", "expressiveness", "prosody_fit",
)  # fmt: skip
SHORT = {
    "cctxfit": "C1",
    "crespnat": "C2",
    "ccolloqdeg": "C3",
    "cspeechrel": "C4",
    "cspeechrel_implicit": "C4, implicit use counted",
    "ves": "VES",
    "emoalign_reference": "EmoAlign",
}
PERCENT = frozenset(
    {*(m.name for m in MEASURES), *(name for name, about in METRICS.items() if about.scale == "percent")}
)  # shown times 100


def outcomes(reading: Reading) -> dict[str, Measure]:
    """Name → measure, of everything that was scored in the core of this run."""
    by_style: dict[str, set[str]] = {}  # style → metrics that scored replies of it
    for answer in reading.answers:
        if answer.item.task == "converse" and not answer.item.part and answer.scores:
            by_style.setdefault(answer.item.style, set()).update(answer.scores)
    scored: dict[str, set[str]] = {}  # metric → styles of the replies it has scored
    for style, names in by_style.items():
        for name in names:
            scored.setdefault(name, set()).add(style)
    found = {m.name: _of_core(m) for m in MEASURES if m.name != "reply_semsim" or "semsim" in scored}
    for key, dimension in read_dimensions(reading.meta, scored).items():
        found[key] = _judged(dimension, judges_of(key, scored), scored)
    for name in REPLY:
        if name in scored:
            about = METRICS[name]
            ends = (about.high, about.low) if about.better == "higher" else (about.low, about.high)
            found[name] = Measure(name, label(name), _is_reply, reader([name]), "mean", *ends)
    return found


def label(name: str) -> str:
    """What a measure is called in a sentence."""
    known = {m.name: m.label for m in MEASURES}
    return SHORT.get(name) or known.get(name) or (METRICS[name].label if name in METRICS else name)


def task_of(name: str) -> str:
    """The task whose answers a measure is read off."""
    tasks = {
        "voice_accuracy": "choose",
        "reasoning_accuracy": "choose",
        "semsim": "transcribe",
        "wer_raw": "transcribe",
    }
    return tasks.get(name, "converse")


def measured_by(reading: Reading, name: str) -> tuple[str, ...]:
    """The signatures behind a measure of a run: one, or one for each judge of a panel; none where it was not scored."""
    metric = {"voice_accuracy": "accuracy", "reasoning_accuracy": "accuracy", "reply_semsim": "semsim"}.get(name, name)
    if metric in reading.signatures:
        return (reading.signatures[metric],)
    judges = judges_of(name, reading.signatures)
    return tuple(reading.signatures[f"{name}@{judge}"] for judge in judges)


def comparable(readings: Sequence[Reading], name: str) -> tuple[list[int], list[int]]:
    """Which runs measure something in the same way, the way of most runs; and which measure it in another."""
    ways: list[tuple[tuple[str, ...], list[int]]] = []
    for number, reading in enumerate(readings):
        signatures = measured_by(reading, name)
        if not signatures:
            continue
        for known, numbers in ways:
            if len(known) == len(signatures) and all(map(same_signature, known, signatures)):
                numbers.append(number)
                break
        else:
            ways.append((signatures, [number]))
    ways.sort(key=lambda way: (-len(way[1]), way[1][0]))
    return (ways[0][1] if ways else []), [n for _, numbers in ways[1:] for n in numbers]


def talk_condition(readings: Sequence[Reading], prompt: str = "", input: str = "audio") -> list[str]:
    """The condition whose replies stand for each run: the prompt asked for, else the first all runs have in common.

    Where they have none in common each has its own first; "" for a run without replies. Oracles are never chosen.
    """
    order = ("enhance", "basic", "zero")
    if prompt and prompt not in order:
        raise UsageError(f"no prompt is called {prompt!r}; known: {', '.join(reversed(order))}")
    sets = []
    for reading in readings:
        sets.append({a.condition for a in reading.answers if a.item.task == "converse" and not a.item.part})
    wanted = [f"{p}/{input}" for p in ((prompt,) if prompt else order)]
    talking = [found for found in sets if found & set(wanted)]
    common = [c for c in wanted if all(c in found for found in talking)]
    return [next((c for c in (common or wanted) if c in found), "") for found in sets]


def prompt_notes(readings: Sequence[Reading], conditions: Sequence[str]) -> list[str]:
    """What has to be said where `talk_condition` found no prompt in common."""
    if len({c for c in conditions if c}) < 2:
        return []
    each = ", ".join(f"{r.name}: {c}" for r, c in zip(readings, conditions, strict=True) if c)
    return [f"The runs have no prompt in common; replies are of {each}."]


def headline(answers: Iterable[Answer]) -> list[Answer]:
    """The core, less clips whose cue is not validated; all of the core where no cue is validated."""
    core = [a for a in answers if not a.item.part]
    sure = [a for a in core if a.item.status != "unvalidated"]
    return sure if len(sure) == len(core) or any(a.item.status == "validated" for a in sure) else core


def difference(rows: Iterable[tuple[float | None, float | None, str]]) -> list[tuple[float | None, str]]:
    """Pairs (here, there, script) as differences, None where one of the two is missing."""
    return [(None if a is None or b is None else a - b, group) for a, b, group in rows]


def told(name: str, e: Estimate, *, difference: bool = False) -> str:
    """An estimate of a measure as it stands in a sentence; a difference of rates is in points."""
    if name not in PERCENT:
        return said.plain(e)
    return said.points(e) if difference else said.percent(e)


def _is_reply(item: Item) -> bool:
    return item.task == "converse" and not item.part and len(item.turns) <= 1


def _of_core(measure: Measure) -> Measure:
    def belongs(item: Item) -> bool:
        return not item.part and measure.belongs(item)

    return Measure(measure.name, measure.label, belongs, measure.read, measure.kind, measure.good, measure.bad)


def _judged(dimension: Dimension, judges: list[str], scored: dict[str, set[str]]) -> Measure:
    asked = set(dimension.styles) or {s for judge in judges for s in scored[f"{dimension.key}@{judge}"]}
    ends = (dimension.high, dimension.low) if dimension.better != "lower" else (dimension.low, dimension.high)

    def belongs(item: Item) -> bool:
        return item.task == "converse" and not item.part and item.style in asked

    text = SHORT.get(dimension.key, dimension.label)
    read = reader([f"{dimension.key}@{judge}" for judge in judges])
    return Measure(dimension.key, text, belongs, read, "mean", *ends)


def safe_key(text: str) -> str:
    """A name as one step of a key's path."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-") or "-"


def order_of(name: str) -> tuple[int, str]:
    """Hearing, reasoning, what judges said, then what was measured."""
    known = (*(m.name for m in MEASURES), *ORDER, *REPLY)
    return (known.index(name) if name in known else len(known), name)


def pooled(readings: Sequence[Reading]) -> tuple[list[Answer], dict[str, Measure], list[str]]:
    """Several runs read as one, such as one model asked twice: the answers, the measures that all of them took in the
    same way, and what was left out."""
    answers = [a for reading in readings for a in reading.answers]
    found: dict[str, Measure] = {}
    notes = []
    for reading in reversed(readings):  # where a name is in several, the first run's reading of it counts
        found |= outcomes(reading)
    for name in list(found):
        if comparable(readings, name)[1]:
            del found[name]
            notes.append(f"{label(name)} was measured in different ways in the runs: left out.")
    models = sorted({reading.meta.get("model", "") or reading.name for reading in readings})
    if len(models) > 1:
        notes.append(f"The runs are of different models ({', '.join(models)}): differences are theirs too.")
    return answers, {n: found[n] for n in sorted(found, key=order_of)}, notes
