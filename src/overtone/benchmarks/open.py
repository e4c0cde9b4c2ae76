"""Overtone-Open: 468 scripts, 12 for each of the 39 cues, with conflicts, dialogues, controls and false-cue questions.

Built by `overtone build open`. Its files have EchoMind's layout, with three additions: parts that the headline does not
count, two-turn dialogues, and the status of every cue. A cue is validated if it was shown to be audible in the clips.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Fields, UniqueIds, language, read_objects, slugify, text
from overtone.benchmarks.echomind import LAYOUT, EchoMind, digest, dimension_of
from overtone.benchmarks.echomind import script_fields as read
from overtone.benchmarks.echomind.files import Source
from overtone.benchmarks.echomind.paper_tables import PAPER_TABLES
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown
from overtone.schema import PARTS, Clip, Item, Turn
from overtone.spec import suggest
from overtone.suite import Facts, Suite

KINDS = {"understanding": 1, "reasoning": 2, "false_cue": 1, "conflict": 2, "fixed": 2}
PART_OF_KIND = {"false_cue": "false-cue", "conflict": "conflict", "fixed": "fixed"}
VARIANTS = ("changed", "steady")  # of a dialogue: the second turn has another cue than the first, or the same
STATUSES = ("validated", "unvalidated")
_MANIFEST_BYTES = 100_000_000
SUITE = Suite(
    Facts(
        title="Overtone-Open",
        cues="all 39, of which some are validated",
        tasks="transcribe, choose (voice, reasoning), converse; false cues, conflicts, controls",
        hears="audio, or its transcript, both or silence",
        answers="text, a letter, speech",
        turns="both",
        metrics="all metrics and rubrics; the findings",
        data="built here: overtone build open",
        licence="scripts CC BY 4.0; clips as their voices allow",
        offline="everything",
    ),
    models=PAPER_TABLES,
    layout=LAYOUT,
)


class Manifest(Struct, frozen=True):
    """The part of a built set's manifest that is read here."""

    status: dict[str, str] = {}  # cue → validated or unvalidated


class Dialogue(Struct, frozen=True):
    """One variant of a dialogue: its turns, each with its reference reply."""

    source: str
    case_id: str
    variant: str
    topic: str
    turns: tuple[Turn, ...]
    other_cue: str  # the cue of the other variant's second turn, or of this one's first turn
    language: str = ""  # same as Item.language


class Open(EchoMind):
    """A folder that `overtone build` made."""

    kinds = KINDS

    def __init__(self, data: Path, name: str = "open") -> None:
        super().__init__(data, name)
        self._statuses = read_statuses(self.root)
        self.dialogues: list[Dialogue] = [d for source in self._sources for d in self._read_dialogues(source)]
        self.warnings = self.notices.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items of EchoMind's layout, then the dialogues if the selection includes target clips."""
        yield from super().items(selection)
        if "target" in selection.styles:
            yield from map(self._dialogue, self.dialogues)

    def _dialogue(self, d: Dialogue) -> Item:
        group = f"{d.source}/{d.case_id}"
        cue = d.turns[-1].cue
        statuses = {self._status(turn.cue) for turn in d.turns if turn.cue}
        return Item(
            id=f"{self.name}/{d.source}/dialogue/{d.case_id}/{d.variant}",
            benchmark=self.name,
            level=3,
            task="converse",
            category="dialogue",
            case=f"{group}/{d.variant}",
            group=group,
            style=d.variant,
            turns=d.turns,
            cue=cue,
            other_cue=d.other_cue,
            dimension=next((dimension_of(turn.cue) for turn in reversed(d.turns) if turn.cue), ""),
            source=d.source,
            topic=d.topic,
            part="dialogue",
            status=weakest(statuses),
            language=d.language,
        )

    def _status(self, cue: str) -> str:
        return self._statuses.get(cue, "")

    def _part(self, kind: str, fields: Fields, where: str) -> str:
        part = text(fields, ("part",), where) or PART_OF_KIND.get(kind, "")
        if part and part not in PARTS:
            raise DataError(f"{where}: unknown part {part!r}{suggest(part, PARTS)}; known: {', '.join(PARTS)}")
        return "" if part == "core" else part

    def _category(self, kind: str, level: int, fields: Fields, stem: str, identity: str, part: str) -> str:
        if kind not in PART_OF_KIND or part == "fixed":
            return super()._category(kind, level, fields, stem, identity, part)
        return next((slugify(kind) for kind in read.kinds_of(fields)), part)

    def _read_dialogues(self, source: Source) -> Iterator[Dialogue]:
        path = source.folder / "dialogues.json"
        if not path.is_file():
            return
        inside(self.root, path.relative_to(self.root).as_posix())
        ids = UniqueIds(self.notices, "dialogues")
        for where, fields in read_objects(path):
            case_id = text(fields, ("case_id", "id"), where)
            if not case_id:
                raise DataError(f"{where}: no 'case_id'; every dialogue needs one")
            case_id = ids.claim(case_id, digest(fields), where)
            variants = fields.get("variants")
            if not isinstance(variants, dict) or not variants:
                raise DataError(f"{where}: 'variants' must hold changed or steady, each a list of turns")
            if case_id:
                tag = language(fields, where)
                for one in self._variants(source, case_id, text(fields, ("topic",), where), variants, where):
                    yield msgspec.structs.replace(one, language=tag)

    def _variants(
        self, source: Source, case_id: str, topic: str, variants: dict[str, Any], where: str
    ) -> Iterator[Dialogue]:
        for variant in variants:
            if variant not in VARIANTS:
                raise DataError(f"{where}: unknown variant {variant!r}{suggest(variant, VARIANTS)}")
        turns = {v: self._turns(source, variants[v], f"{where}, {v}") for v in VARIANTS if v in variants}
        for variant, spoken in turns.items():
            if any(turn.clip is None for turn in spoken):
                self.notices.add("dialogues with a missing clip are left out", f"{source.name}/{case_id}/{variant}")
                continue
            cues = [turn.cue for one in turns.values() for turn in one]
            other = next((cue for cue in reversed(cues) if cue != spoken[-1].cue), "")
            yield Dialogue(source.name, case_id, variant, topic, spoken, other)

    def _turns(self, source: Source, given: Any, where: str) -> tuple[Turn, ...]:
        if not isinstance(given, list) or len(given) < 2 or not all(isinstance(turn, dict) for turn in given):
            raise DataError(f"{where}: a dialogue is a list of two or more turns")
        return tuple(self._turn(source, turn, f"{where}, turn {n}") for n, turn in enumerate(given, 1))

    def _turn(self, source: Source, fields: Fields, where: str) -> Turn:
        named = text(fields, read.AUDIO, where)
        if not named:
            raise DataError(f"{where}: 'audio_file' is missing; build the set again")
        clip = self._clip(named, source, where)
        label = text(fields, read.CUE, where)
        words = text(fields, ("words", *read.WORDS), where)
        spoken = self._spoken(clip or named, fields, source, where)
        cue = self._cue(label, where)[0] if label else ""
        return Turn(Clip(clip) if clip else None, words, cue, spoken.reply, spoken.reply_audio)


def read_statuses(root: Path) -> dict[str, str]:
    """Return cue → validated or unvalidated from the set's manifest; empty if the manifest or the entry is missing."""
    path = inside(root, "manifest.json")
    if not path.is_file():
        return {}
    name = shown(str(path))
    try:
        statuses = msgspec.json.decode(read_plain(path, _MANIFEST_BYTES), type=Manifest).status
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{name}: not a manifest ({error}); build the set again") from None
    for cue, status in statuses.items():
        if status not in STATUSES:
            raise DataError(f"{name}: the status of {shown(cue)} is {shown(status)!r}; known: {', '.join(STATUSES)}")
    return statuses


def weakest(statuses: Collection[str]) -> str:
    """Return the weakest status of an item's cues. If one cue is unvalidated, a reply cannot show that the model heard
    it."""
    return next((status for status in ("unvalidated", "", "validated") if status in statuses), "")


def load(data: Path) -> Open:
    """Load the set in `data`."""
    return Open(data)
