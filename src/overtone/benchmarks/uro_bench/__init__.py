"""URO-Bench: forty sets of spoken requests, basic and pro, English and Chinese; what the spoken reply says is scored.

Read from its unpacked archive: `basic/` and `pro/`, in each a folder per set with `test.jsonl` and its sounds. The
reply's audio is what counts: a judge or a metric reads what a recogniser hears in it (`sets.py` says which).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Fields, Warnings, kind_of, lowered, read_rows, text
from overtone.benchmarks.uro_bench import protocol
from overtone.benchmarks.uro_bench.sets import PUBLISHED, SETS, Set, headlines
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Facts, Release, Suite

EMOTIONS = {"fearful": "fear", "disgusted": "disgust", "surprised": "surprise"}  # its words for cues of ours

METRICS = {"uro": protocol}
SUITE = Suite(
    Facts(
        title="URO-Bench",
        cues="emotion of the user; emotion and style of the reply; speaker, audio events, music",
        tasks="converse",
        hears="one utterance, or a dialogue",
        answers="speech (otherwise text)",
        turns="both",
        metrics="judge 1–5 × 20 or yes/no × 100 of the reply as heard; emotion probability × (1 − WER); repeat",
        data="Honggao/URO-Bench (hub)",
        licence="MIT",
        offline="loading, asking, repeat and emotion in English; the rest needs a judge",
    ),
    release=Release("Honggao/URO-Bench", "MIT; its sets come from other corpora, see the paper"),
    headlines=headlines(),
    published=PUBLISHED,
    rubrics=("uro-open", "uro-reference", "uro-empathy", "uro-wanted", "uro-dialogue"),
    layout=tuple(f"{above}{track}/*/test.jsonl" for above in ("", "*/") for track in ("basic", "pro")),
)


class UroBench:
    """A folder that holds any of the sets, at any depth."""

    name = "uro-bench"

    def __init__(self, data: Path) -> None:
        if not data.is_dir():
            raise DataError(f"{shown(str(data))}: no such folder; give the one that holds basic/ and pro/")
        self.root = data.resolve()
        self.prompts: dict[str, str] = {}
        self._met = Warnings()
        self._items: dict[str, list[Item]] = {}
        known = {one.name.casefold(): one for one in SETS}
        for path in sorted(self.root.rglob("test.jsonl")):
            one = known.get(path.parent.name.casefold())
            if one is None:
                self._met.add("sets of an unknown name are left out", path.parent.name)
                continue
            if one.name in self._items:
                raise DataError(f"{shown(str(path))}: the set {one.name} is here twice; keep the whole or the mini one")
            self._items[one.name] = list(self._read(one, inside(self.root, path.relative_to(self.root).as_posix())))
        if not self._items:
            packed = sorted(p.name for p in self.root.glob("*.zip"))
            to_do = f"unpack {shown(packed[0])} there" if packed else "give the unpacked URO-Bench-data"
            raise DataError(f"{shown(str(data))}: holds no set's test.jsonl; {to_do}")
        self.warnings = self._met.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield all sets in the order of its tables, each in the order of its file; all of them are conversation."""
        for one in SETS:
            yield from self._items.get(one.name, ())

    def _read(self, one: Set, path: Path) -> Iterator[Item]:
        seen: set[str] = set()
        for number, fields in enumerate(read_rows(path), 1):
            where = f"{shown(str(path))}, line {number}"
            dialogue = fields.get("dialogue")
            turns = self._dialogue(dialogue, path, where) if dialogue is not None else [self._turn(fields, path, where)]
            wav = text(fields, ("source_wav",), where)
            name = text(fields, ("id",), where) or str(
                PurePosixPath(wav.replace("\\", "/")).with_suffix("") if wav else ""
            )
            if not name:
                raise DataError(f"{where}: neither 'id' nor 'source_wav'; fetch the file again")
            if name in seen:
                raise DataError(f"{where}: {shown(name)!r} comes twice; fetch the file again")
            seen.add(name)
            if any(turn.clip is None for turn in turns):
                self._met.add("requests without their recording are left out", f"{one.name}/{name}")
                continue
            yield self._item(one, name, tuple(turns), fields, where)

    def _item(self, one: Set, name: str, turns: tuple[Turn, ...], fields: Fields, where: str) -> Item:
        label = text(fields, ("emotion",), where) if one.mode == "ue" else ""
        cue = find_cue(EMOTIONS.get(label.casefold(), label)) if label else None
        wanted = {"ge": "emotion", "gs": "style", "ml": "requirement"}.get(one.mode, "")
        gold = text(fields, (wanted,), where) if wanted else ""
        if wanted and not gold:
            raise DataError(f"{where}: no {wanted!r}, which every line of {one.name} has; fetch the file again")
        given = fields["target_text"] if "target_text" in fields else fields.get("source_text")
        references = () if len(turns) > 1 or one.mode == "ml" else _texts(given, where)
        slug = cue.slug if cue else ""
        return Item(
            id=f"{self.name}/{one.name}/{name}",
            benchmark=self.name,
            level=3,
            task="converse",
            category=one.name,
            case=f"{one.name}/{name}",
            group=f"{one.name}/{name}",
            style="",
            turns=turns,
            cue=slug,
            cue_text=label,
            dimension="paralinguistic" if label else "",
            source=one.track,
            gold=gold,
            references=references,
            language=one.language,
        )

    def _dialogue(self, given: object, path: Path, where: str) -> list[Turn]:
        if not isinstance(given, list) or not given or not all(isinstance(row, dict) for row in given):
            raise DataError(f"{where}: 'dialogue' holds {kind_of(given)}, but a list of rounds is expected")
        turns = []
        for number, row in enumerate(given, 1):
            fields, at = lowered(row), f"{where}, round {number}"
            turn = self._turn(fields, path, at)
            turns.append(Turn(turn.clip, turn.words, reference=" / ".join(_texts(fields.get("target_text"), at))))
        return turns

    def _turn(self, fields: Fields, path: Path, where: str) -> Turn:
        named, words = text(fields, ("source_wav",), where), text(fields, ("source_text",), where)
        if not named:
            raise DataError(f"{where}: no 'source_wav'; fetch the file again")
        plain = named.replace("\\", "/").removeprefix("./")
        try:
            here = "" if plain.startswith("/") else f"{path.parent.relative_to(self.root).as_posix()}/"
            real = inside(self.root, f"{here}{plain}".removeprefix("./"))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        return Turn(Clip(real.relative_to(self.root).as_posix()) if real.is_file() else None, words)


def _texts(given: object, where: str) -> tuple[str, ...]:
    """One reference, or a list of them; numbers are text."""
    rows = given if isinstance(given, list) else [given]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float | None) for one in rows):
        raise DataError(f"{where}: 'target_text' holds {kind_of(given)}, but text or a list of texts is expected")
    return tuple(str(one).strip() for one in rows if one is not None and str(one).strip())


def load(data: Path) -> UroBench:
    """The sets that lie in `data`."""
    return UroBench(data)
