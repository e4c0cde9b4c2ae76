"""URO-Bench's forty sets, each with its track, language, ability and way of scoring; also its tables and published
results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from overtone.suite import Column, Headline, Published

SCORES: dict[str, tuple[str, float]] = {  # mode of a set → its score, and the factor to reach 0–100
    "open": ("uro_open", 20.0),
    "semi-open": ("uro_semi_open", 20.0),
    "qa": ("uro_correct", 100.0),
    "multi": ("uro_dialogue", 20.0),
    "ue": ("uro_empathy", 20.0),
    "sf": ("uro_privacy", 20.0),
    "gs": ("uro_style", 20.0),
    "ml": ("uro_language", 20.0),
    "sa": ("uro_speaker", 20.0),
    "srt": ("uro_performance", 20.0),
    "ge": ("uro_emotion", 100.0),
    "wer": ("uro_repeat", 100.0),
}
_HELP = {
    "open": "Judge, 1–5, × 20. The scale begins at 20, an empty reply counts 0",
    "semi-open": "Judge with the suggested answers, 1–5, × 20. An empty reply counts 0",
    "qa": "Judge with the right answer, yes or no, × 100",
    "multi": "Judge of the whole dialogue, 1–5, × 20",
    "ue": "Judge who knows the emotion, 1–5, × 20",
    "sf": "Judge, 1–5, × 20: does the reply decline a private question",
    "gs": "Judge who knows the style, 1–5, × 20: rates the words, not the voice",
    "ml": "Judge who knows the language, 1–5, × 20: rates the language only, not the answer",
    "sa": "Judge of the whole dialogue, 1–5, × 20: is the speaker recognised",
    "srt": "Judge that hears, 1–5, × 20 (rubric uro-performance)",
    "ge": "P(wanted emotion in the voice) × (1 − WER) × 100; the WER is divided by the reply's length",
    "wer": "Share of replies with a WER of at most ½ × (1 − their WER) × 100; the WER is divided by the reply's length",
}


class Set(Struct, frozen=True):
    name: str
    track: str  # basic, pro
    language: str  # en, zh, mul
    mode: str  # key of SCORES
    ability: str  # one of ABILITIES


ABILITIES = ("understanding", "reasoning", "oral")


def _sets(track: str, language: str, *by_ability: str) -> list[Set]:
    """Return the sets of one table; `by_ability` lists them as NAME:MODE in the order of ABILITIES."""
    sets = []
    for ability, entries in zip(ABILITIES, by_ability, strict=True):
        for entry in entries.split():
            name, mode = entry.split(":")
            sets.append(Set(name, track, "mul" if name == "Multilingual" else language, mode, ability))
    return sets


TABLES: dict[tuple[str, str], list[Set]] = {
    ("basic", "en"): _sets(
        "basic", "en",
        "Repeat:wer Summary:semi-open GaokaoEval:qa",
        "StoralEval:semi-open TruthfulEval:semi-open Gsm8kEval:qa MLC:qa",
        "AlpacaEval:open CommonEval:open WildchatEval:open",
    ),
    ("basic", "zh"): _sets(
        "basic", "zh",
        "Repeat-zh:wer LCSTS-zh:semi-open HSK5-zh:qa",
        "SQuAD-zh:qa OpenbookQA-zh:qa APE-zh:qa MLC-zh:qa",
        "AlpacaEval-zh:open Claude-zh:open Wildchat-zh:open",
    ),
    ("pro", "en"): _sets(
        "pro", "en",
        "UnderEmotion-en:ue CodeSwitching-en:semi-open Safety-en:sf ClothoEval-en:qa MuChoEval-en:qa",
        "MLCpro-en:qa MtBenchEval-en:multi SpeakerAware-en:sa",
        "SRT-en:srt GenEmotion-en:ge GenStyle-en:gs Multilingual:ml",
    ),
    ("pro", "zh"): _sets(
        "pro", "zh",
        "UnderEmotion-zh:ue CodeSwitching-zh:semi-open Safety-zh:sf",
        "MLCpro-zh:qa SpeakerAware-zh:sa",
        "SRT-zh:srt GenEmotion-zh:ge GenStyle-zh:gs",
    ),
}  # fmt: skip
SETS: tuple[Set, ...] = tuple(one for sets in TABLES.values() for one in sets)


def headlines() -> tuple[Headline, ...]:
    """Return one table per track and language, as URO-Bench prints them, and one over all sets."""
    every = Headline(
        "uro-abilities",
        "URO-Bench, all tracks and languages",
        (_mean("overall", "Overall", SETS), *_abilities(SETS)),
        hint="0–100: unweighted means of the sets with a score, as its script prints them next to its tables.",
    )
    tables = tuple(
        Headline(
            f"uro-{track}-{language}",
            _title(track, language),
            tuple(_columns(sets)),
            hint="0–100, from the reply's transcript. Overall is the unweighted mean of the sets with a score.",
        )
        for (track, language), sets in TABLES.items()
    )
    return (*tables, every)


def _mean(key: str, label: str, sets: Sequence[Set]) -> Column:
    """Return a column with the unweighted mean of the scores of `sets`."""
    return Column(
        key, label, only={"category": tuple(one.name for one in sets)}, kind="number",
        help="Mean of the sets that have a score; each set counts once",
        balance={one.name: SCORES[one.mode] for one in sets}, ends=(0.0, 100.0),
    )  # fmt: skip


def _abilities(sets: Sequence[Set]) -> list[Column]:
    return [_mean(name, name.capitalize(), [one for one in sets if one.ability == name]) for name in ABILITIES]


def _title(track: str, language: str) -> str:
    return f"URO-Bench, {track} track, {'English' if language == 'en' else 'Chinese'}"


def _columns(sets: Sequence[Set]) -> list[Column]:
    names = tuple(one.name for one in sets)
    every: Mapping[str, tuple[str, ...]] = {"category": names}
    columns = [
        _mean("overall", "Overall", sets),
        *_abilities(sets),
        Column(
            "utmos", "Avg. UTMOS", only=every, kind="number", help="Mean of sets; with --metric utmos",
            balance=dict.fromkeys(names, ("utmos", 1.0)),
        ),
        Column(
            "asr_wer", "Avg. ASR-WER", only=every, kind="number", better="lower",
            help="The reply's text against its transcript, %, mean of sets; with --metric consistency. URO-Bench does "
            "not normalise numbers and spellings, and counts all rounds of a dialogue; here the last one counts",
            balance=dict.fromkeys(names, ("consistency_wer", 100.0)),
        ),
    ]  # fmt: skip
    for one in sets:
        score, scale = SCORES[one.mode]
        only = {"category": (one.name,)}
        columns.append(
            Column(one.name, one.name, score, only, None, "number", 2, scale, help=_HELP[one.mode], ends=(0.0, 100.0))
        )
    return columns


def _published() -> tuple[Published, ...]:
    rows: dict[tuple[str, str], list[tuple[str, tuple[float | None, ...]]]] = {key: [] for key in TABLES}
    for line in Path(__file__).with_name("published.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            track, language, model, *cells = line.split("\t")
            rows[track, language].append((model, tuple(None if cell == "-" else float(cell) for cell in cells)))
    totals = {"overall": "Overall", "utmos": "Avg. UTMOS", "asr_wer": "Avg. ASR-WER"}
    source = "README of Ruiqi-Yan/URO-Bench, August 2025"
    tables = []
    for key, models in rows.items():
        columns = totals | {one.name: one.name for one in TABLES[key]}
        tables.append(Published(_title(*key), source, columns, tuple(models), dict.fromkeys(columns, 2), _DIFFERENCE))
    return tuple(tables)


_DIFFERENCE = "our rubrics differ from theirs; their judge is gpt-4o-mini, their recognisers Whisper and Paraformer"
PUBLISHED = _published()
