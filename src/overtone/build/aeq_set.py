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
from overtone.build.acceptance import Sifted
from overtone.build.datasheet import About
from overtone.build.gates import Finding
from overtone.build.licence import UNKNOWN
from overtone.build.manifest import write_json
from overtone.build.pool import Tell
from overtone.build.script import SET_LICENCE
from overtone.build.sound_plan import Group, Job, Options, settled
from overtone.build.speak_set import Said, Source, speak_set
from overtone.build.varied_corpora import LEAST_TONES, Variation, Way
from overtone.build.voices import Cast, cast
from overtone.errors import UsageError
from overtone.spec import suggest

FILE = "aeq.json"
NAME = "aeq"
SETTINGS = ("context", "tone")
SOURCE = "overtone"
NEUTRAL_TEXT = "a plain, neutral voice"
_LEAST = {"context": 2, "tone": LEAST_TONES}  # variants below which a group of recordings tells nothing
_GATE = "whole groups"

_WHY = """
To measure whether a reply changes where the situation or the voice changes: the same recorded words after other
contexts (context variation), or the same words and context in other tones (tone variation), in the design of AEQ-Bench
(with which this set is not affiliated).
""".strip()
_INSTEAD = """groups from real recordings can be built with
`--tones CSV` and `--meld DIR --clips DIR`."""
_OURS = "The texts were written and read again by language models; no person has reviewed them yet."


class Built(Said, frozen=True, kw_only=True):
    """The result of a build, with the groups in the set."""

    groups: dict[str, tuple[int, int, int]]  # setting → groups that are in, of how many, with how many variants

    @property
    def lines(self) -> list[str]:
        return [
            f"{setting} variation: {there} of {asked} groups, {variants} variants"
            for setting, (there, asked, variants) in self.groups.items()
        ]


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
    progress: Tell | None = None,
) -> Built:
    """Build the package's own groups, or those of the user's MELD or table of tones, into `out`. `only` selects
    settings, and `per_setting` the first groups of each. `licence` applies to the user's texts and recordings."""
    options = options or Options()
    if clips is not None and meld is None:
        raise UsageError("--clips are MELD's recordings: give --meld DIR too")
    for setting in only:
        if setting not in SETTINGS:
            raise UsageError(f"no setting {setting!r}{suggest(setting, SETTINGS)}; there is: {', '.join(SETTINGS)}")
    theirs = meld is not None or tones is not None
    if theirs:
        found = [*(varied_corpora.meld(meld, clips) if meld else ()), *(varied_corpora.tones(tones) if tones else ())]
        name = "-".join([NAME, *(["meld"] if meld else ()), *(["tones"] if tones else ())])
    else:
        found, name, licence = [_own(group) for group in aeq_texts.read()], NAME, SET_LICENCE
    part = _part(found, only, per_setting)
    wanted = {variation.id for variation in part}
    source = Source(name, licence, frozenset(variation.id for variation in found))
    sums = {file: varied_corpora.sha256(file) for v in part for file in (v.file, *(w.file for w in v.ways)) if file}

    def planned(takes: Mapping[str, int]) -> list[Group]:
        return _planned([(place, v) for place, v in _places(found) if v.id in wanted], options, takes, sums, licence)

    counted: dict[str, tuple[int, int, int]] = {}

    def write_texts(checked: Sifted) -> About:
        rows = [row for variation in part for row in _rows(variation, checked)]
        write_json(out / FILE, rows)
        for setting in SETTINGS:
            mine = [row for row in rows if row["setting"] == setting]
            if asked := sum(v.setting == setting for v in part):
                counted[setting] = len({row["group_id"] for row in mine}), asked, len(mine)
        holds = "; ".join(f"{s} variation: {n} groups with {rows} variants" for s, (n, _, rows) in counted.items())
        texts = "The texts are those of whoever built it." if theirs else _OURS
        chain = "Recordings were brought to one form and a level of their group's;" if sums else _chain(part)
        return About(name, _WHY, f"{holds}. English.", texts, chain, _INSTEAD)

    recorded = frozenset(w.name for v in part for w in v.ways if w.file)
    said = speak_set(
        out, source, planned, write_texts, file=FILE, options=options, jobs=jobs, gates=gates, recognise=recognise,
        alone_in=recorded, whole=lambda checked: _whole(checked, part), progress=progress,
    )  # fmt: skip
    return Built(**{field: getattr(said, field) for field in Said.__struct_fields__}, groups=counted)


def plan(options: Options, takes: Mapping[str, int]) -> list[Group]:
    """Return every sound of the package's own groups; `takes` gives the take of each group."""
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


def _chain(part: Sequence[Variation]) -> str:
    return "Every clip, the neutral ones too, went through the same chain;" if part else "Nothing was spoken;"


def _own(group: aeq_texts.Group) -> Variation:
    ways = []
    for place, variant in enumerate(group.variant, 1):
        cue = variant.cue
        told = "" if group.setting == "context" else cue.phrase if cue else NEUTRAL_TEXT
        ways.append(
            Way(
                variant.tone or str(place), group.context_of(variant), cue.slug if cue else "", told,
                variant.wants, variant.reply, variant.style,
            )
        )  # fmt: skip
    return Variation(group.id, group.setting, SOURCE, group.words, tuple(ways), group.topic)


def _part(found: Sequence[Variation], only: Sequence[str], most: int | None) -> list[Variation]:
    seen: Counter[str] = Counter()
    out = []
    for variation in found:
        seen[variation.setting] += 1
        if (not only or variation.setting in only) and (most is None or seen[variation.setting] <= most):
            out.append(variation)
    return out


def _places(found: Sequence[Variation]) -> Iterator[tuple[int, Variation]]:
    """Yield each variation with its index among those of its setting. Speakers take turns by this index."""
    seen: Counter[str] = Counter()
    for variation in found:
        yield seen[variation.setting], variation
        seen[variation.setting] += 1


# ── what is spoken, and what is written ─────────────────────────────────────────────────────────────────────────────


def _clip(v: Variation, way: Way) -> str:
    return f"audio/{v.id}.wav" if v.setting == "context" else f"audio/{v.id}_{way.name}.wav"


def _reply(v: Variation, way: Way) -> str:
    return f"audio/replies/{v.id}-{way.name}.wav"


def _jobs(v: Variation, place: int, players: Cast, take: int, sums: Mapping[str, str]) -> Iterator[Job]:
    recorded = v.file or any(way.file for way in v.ways)
    speaker = None if recorded else players.turn(place, v.id, take)
    plain = next((_clip(v, way) for way in v.ways if v.setting == "tone" and _is_plain(way)), "")
    for way in v.ways[:1] if v.setting == "context" else v.ways:
        path, file = _clip(v, way), v.file or way.file
        yield Job(
            path, v.id, "context" if v.setting == "context" else way.name, v.words, speaker, way.tone,
            twin=plain if way.tone else "", take=take, file=file, file_sha256=sums.get(file, ""),
            recorded_by=v.recorded_by if file else "",
        )  # fmt: skip
    for way in v.ways:
        if way.reply:
            style = "context" if v.setting == "context" else way.name
            yield Job(_reply(v, way), v.id, style, way.reply, voice_style=way.style or "plain")


def _is_plain(way: Way) -> bool:
    return not way.tone and way.tone_text.casefold() in ("neutral", NEUTRAL_TEXT)


def _rows(v: Variation, checked: Sifted) -> Iterator[dict[str, Any]]:
    """Yield the instances of a group, if it is in the set."""
    ways = _kept(v, checked)
    for place, way in enumerate(ways, 1):
        path = _clip(v, way)
        yield {
            "instance_id": f"{v.id}-{way.name}",
            "group_id": v.id,
            "setting": v.setting,
            "source": v.source,
            "context": way.context,
            "utterance_audio": path,
            "utterance_text": v.words,
            "recognised": checked.transcripts.get(path, ""),
            "variant_index": place,
            "n_variants": len(ways),
            "tone": way.tone or None,
            "tone_text": way.tone_text,
            "wants": way.wants,
            "reference": way.reply,
            "reference_audio": _reply(v, way) if way.reply else "",
            "topic": v.topic,
        }


def _kept(v: Variation, checked: Sifted) -> tuple[Way, ...]:
    if v.id in checked.scripts:
        return ()
    return tuple(way for way in v.ways if not checked.out(v.id, "context" if v.setting == "context" else way.name))


def _whole(checked: Sifted, part: Sequence[Variation]) -> Sifted:
    """Leave out groups of recordings in which too few variants passed to compare them."""
    thin = [v.id for v in part if v.id not in checked.scripts and len(_kept(v, checked)) < _LEAST[v.setting]]
    found = tuple(Finding(_GATE, name, "too few of its variants pass to compare them; see them above") for name in thin)
    if not thin:
        return checked
    return replace(checked, findings=(*checked.findings, *found), scripts=checked.scripts | set(thin))
