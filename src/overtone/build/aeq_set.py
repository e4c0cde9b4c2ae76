"""`overtone build aeq`: utterances that vary in their context or their tone, for AEQ-Bench's questions.

The texts are the package's own, or come from the user's corpora (`varied_corpora.py`). In a context group one plain
clip serves all variants. In a tone group one speaker says the words in every tone. A group is complete or left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from overtone.build import aeq_texts, varied_corpora
from overtone.build.acceptance import GateReport
from overtone.build.datasheet import About
from overtone.build.gates import Finding
from overtone.build.licence import UNKNOWN
from overtone.build.manifest import write_json
from overtone.build.script import SET_LICENCE, first_of_each
from overtone.build.sound_plan import Group, Job, Options, settled
from overtone.build.speak_set import Built, Source, speak_set
from overtone.build.varied_corpora import LEAST_TONES, Variant, Variation
from overtone.build.voices import Cast, cast
from overtone.errors import UsageError
from overtone.pool import Progress, no_progress
from overtone.spec import suggest

FILE = "aeq.json"
NAME = "aeq"
SETTINGS = ("context", "tone")
SOURCE = "overtone"
NEUTRAL_TEXT = "a plain, neutral voice"
_LEAST = {"context": 2, "tone": LEAST_TONES}  # variants that a group of recordings needs for a comparison
_GATE = "whole groups"

_WHY = """
To measure whether a reply changes where the situation or the voice changes: the same recorded words after other
contexts (context variation), or the same words and context in other tones (tone variation), in the design of AEQ-Bench
(with which this set is not affiliated).
""".strip()
_INSTEAD = """groups from real recordings can be built with
`--tones CSV` and `--meld DIR --clips DIR`."""
_OURS = "The texts were written and read again by language models; no person has reviewed them yet."
_SPOKEN = "Every clip, the neutral ones too, went through the same chain;"
_RECORDED = "Recordings were brought to one form and a level of their group's;"


def build(
    out: Path,
    *,
    options: Options | None = None,
    meld: Path | None = None,
    clips: Path | None = None,
    tones: Path | None = None,
    licence: str = UNKNOWN,
    only: Sequence[str] = (),
    per_setting: int | None = None,
    jobs: int | None = None,
    gates: bool = True,
    recognise: bool = False,
    progress: Progress = no_progress,
) -> Built:
    """Build groups into `out`: the package's own, or those from the user's MELD folder or table of tones. `only`
    selects settings; `per_setting` is the maximum number of groups per setting. `licence` applies to the user's texts
    and recordings."""
    options = options or Options()
    if clips is not None and meld is None:
        raise UsageError("--clips needs --meld: these are MELD's recordings; add --meld DIR")
    for setting in only:
        if setting not in SETTINGS:
            raise UsageError(f"no setting {setting!r}{suggest(setting, SETTINGS)}; known: {', '.join(SETTINGS)}")
    theirs = meld is not None or tones is not None
    if theirs:
        variations = varied_corpora.meld(meld, clips) if meld else []
        variations += varied_corpora.tones(tones) if tones else []
        name = "-".join([NAME, *(["meld"] if meld else ()), *(["tones"] if tones else ())])
    else:
        variations, name, licence = [_own(group) for group in aeq_texts.read()], NAME, SET_LICENCE
    part = [v for v in first_of_each(variations, lambda v: v.setting, per_setting) if not only or v.setting in only]
    wanted = {variation.id for variation in part}
    source = Source(name, licence, frozenset(variation.id for variation in variations))
    files = {file for v in part for file in (v.file, *(one.file for one in v.variants)) if file}
    sums = {file: varied_corpora.sha256(file) for file in sorted(files)}

    def planned(takes: Mapping[str, int]) -> list[Group]:
        placed = [(place, v) for place, v in _places(variations) if v.id in wanted]
        return _planned(placed, options, takes, sums, licence)

    def write_texts(checked: GateReport) -> About:
        rows = [row for variation in part for row in _rows(variation, checked)]
        write_json(out / FILE, rows)
        holds, lines = [], []
        for setting in SETTINGS:
            mine = [row for row in rows if row["setting"] == setting]
            groups = len({row["group_id"] for row in mine})
            if asked := sum(v.setting == setting for v in part):
                holds.append(f"{setting} variation: {groups} groups with {len(mine)} variants")
                lines.append(f"{setting} variation: {groups} of {asked} groups, {len(mine)} variants")
        texts = "The texts are those of whoever built it." if theirs else _OURS
        chain = _RECORDED if sums else _SPOKEN if part else "Nothing was spoken;"
        return About(name, _WHY, f"{'; '.join(holds)}. English.", texts, chain, _INSTEAD, lines=tuple(lines))

    recorded = frozenset(one.name for v in part for one in v.variants if one.file)
    return speak_set(
        out, source, planned, write_texts, file=FILE, options=options, jobs=jobs, gates=gates, recognise=recognise,
        alone_in=recorded, whole=lambda checked: _whole(checked, part), progress=progress,
    )  # fmt: skip


def plan(options: Options, takes: Mapping[str, int]) -> list[Group]:
    """Return all sounds of the package's own groups. `takes` maps the id of a group to its take number."""
    return _planned(_places([_own(group) for group in aeq_texts.read()]), options, takes, {}, "")


def _planned(
    placed: Iterable[tuple[int, Variation]],
    options: Options,
    takes: Mapping[str, int],
    sums: Mapping[str, str],
    licence: str,
) -> list[Group]:
    players = cast(options.voices)
    groups = [
        Group(v.id, "", tuple(_jobs(v, place, players, takes.get(v.id, 0), sums)), v.source, licence)
        for place, v in placed
    ]
    return settled(groups, options)


def _own(group: aeq_texts.Group) -> Variation:
    variants = []
    for place, written in enumerate(group.variant, 1):
        cue = written.cue
        tone_text = "" if group.setting == "context" else cue.phrase if cue else NEUTRAL_TEXT
        variants.append(
            Variant(
                written.tone or str(place), group.context_of(written), cue.slug if cue else "", tone_text,
                written.wants, written.reply, written.style,
            )
        )  # fmt: skip
    return Variation(group.id, group.setting, SOURCE, group.words, tuple(variants), group.topic)


def _places(variations: Sequence[Variation]) -> Iterator[tuple[int, Variation]]:
    """Yield each variation with its index within its setting. Speakers take turns by this index."""
    seen: Counter[str] = Counter()
    for variation in variations:
        yield seen[variation.setting], variation
        seen[variation.setting] += 1


# ── clips and instances ─────────────────────────────────────────────────────────────────────────────────────────────


def _style(v: Variation, variant: Variant) -> str:
    return "context" if v.setting == "context" else variant.name


def _clip(v: Variation, variant: Variant) -> str:
    return f"audio/{v.id}.wav" if v.setting == "context" else f"audio/{v.id}_{variant.name}.wav"


def _reply(v: Variation, variant: Variant) -> str:
    return f"audio/replies/{v.id}-{variant.name}.wav"


def _jobs(v: Variation, place: int, players: Cast, take: int, sums: Mapping[str, str]) -> Iterator[Job]:
    recorded = v.file or any(variant.file for variant in v.variants)
    speaker = None if recorded else players.turn(place, v.id, take)
    neutral = [one for one in v.variants if not one.tone and one.tone_text.casefold() in ("neutral", NEUTRAL_TEXT)]
    twin = _clip(v, neutral[0]) if neutral and v.setting == "tone" else ""
    for variant in v.variants[:1] if v.setting == "context" else v.variants:
        file = v.file or variant.file
        yield Job(
            _clip(v, variant), v.id, _style(v, variant), v.words, speaker, variant.tone,
            twin=twin if variant.tone else "", take=take, file=file, file_sha256=sums.get(file, ""),
            recorded_by=v.recorded_by if file else "",
        )  # fmt: skip
    for variant in v.variants:
        if variant.reply:
            path, style = _reply(v, variant), _style(v, variant)
            yield Job(path, v.id, style, variant.reply, voice_style=variant.style or "plain")


def _rows(v: Variation, checked: GateReport) -> Iterator[dict[str, Any]]:
    """Yield one JSON row for each variant of a group, without the variants that are left out."""
    kept = _kept(v, checked)
    for place, variant in enumerate(kept, 1):
        path = _clip(v, variant)
        yield {
            "instance_id": f"{v.id}-{variant.name}",
            "group_id": v.id,
            "setting": v.setting,
            "source": v.source,
            "context": variant.context,
            "utterance_audio": path,
            "utterance_text": v.words,
            "recognised": checked.transcripts.get(path, ""),
            "variant_index": place,
            "n_variants": len(kept),
            "tone": variant.tone or None,
            "tone_text": variant.tone_text,
            "wants": variant.wants,
            "reference": variant.reply,
            "reference_audio": _reply(v, variant) if variant.reply else "",
            "topic": v.topic,
        }


def _kept(v: Variation, checked: GateReport) -> tuple[Variant, ...]:
    return tuple(variant for variant in v.variants if not checked.out(v.id, _style(v, variant)))


def _whole(checked: GateReport, part: Sequence[Variation]) -> GateReport:
    """Leave out each group in which too few variants passed for a comparison."""
    thin = [v.id for v in part if v.id not in checked.scripts and len(_kept(v, checked)) < _LEAST[v.setting]]
    reason = "too few of its variants pass to compare them; see them above"
    findings = (*checked.findings, *(Finding(_GATE, name, reason) for name in thin))
    return replace(checked, findings=findings, scripts=checked.scripts | set(thin))
