"""URO-Bench: forty sets of spoken requests, basic and pro, English and Chinese, answered in speech.

It is read from the unpacked archive: `basic/` and `pro/` hold one folder per set, with `test.jsonl` and sounds. The
reply's audio is scored: a judge or a metric reads its transcript. `sets.py` lists how each set is scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from overtone.benchmarks._files import Fields, kind_of, lowered, read_rows, text
from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.uro_bench import uro_metrics
from overtone.benchmarks.uro_bench.sets import PUBLISHED, SETS, Set, headlines
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Facts, Release, Suite

EMOTIONS = {"fearful": "fear", "disgusted": "disgust", "surprised": "surprise"}  # URO-Bench's name → our cue

METRICS = {"uro": uro_metrics}
SUITE = Suite(
    Facts(
        title="URO-Bench",
        cues="emotion of the user; emotion and style of the reply; speaker, audio events, music",
        tasks="converse",
        hears="one utterance, or a dialogue",
        answers="speech (otherwise text)",
        turns="both",
        metrics="judge 1–5 × 20 or yes/no × 100 on the reply's transcript; emotion probability × (1 − WER); repeat",
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


class UroBench(BenchmarkFolder):
    """A folder that holds any of the sets, at any depth."""

    name = "uro-bench"

    def __init__(self, data: Path) -> None:
        super().__init__(data, "basic/ and pro/")
        by_set: dict[str, list[Item]] = {}
        known = {one.name.casefold(): one for one in SETS}
        for path in sorted(self.root.rglob("test.jsonl")):
            one = known.get(path.parent.name.casefold())
            if one is None:
                self.notices.add("sets of an unknown name are left out", path.parent.name)
                continue
            if one.name in by_set:
                raise DataError(f"{shown(str(path))}: the set {one.name} is here twice; keep the full or the mini one")
            by_set[one.name] = list(self._read(one, inside(self.root, path.relative_to(self.root).as_posix())))
        if not by_set:
            packed = sorted(p.name for p in self.root.glob("*.zip"))
            to_do = f"unpack {shown(packed[0])} there" if packed else "give the unpacked URO-Bench-data"
            raise DataError(f"{shown(str(data))}: no set with a test.jsonl in it; {to_do}")
        self._items = [item for one in SETS for item in by_set.get(one.name, ())]

    def _read(self, one: Set, path: Path) -> Iterator[Item]:
        seen: set[str] = set()
        for where, fields in read_rows(path):
            dialogue = fields.get("dialogue")
            turns = self._dialogue(dialogue, path, where) if dialogue is not None else [self._turn(fields, path, where)]
            wav = text(fields, ("source_wav",), where)
            name = text(fields, ("id",), where) or str(
                PurePosixPath(wav.replace("\\", "/")).with_suffix("") if wav else ""
            )
            if not name:
                raise DataError(f"{where}: neither 'id' nor 'source_wav'; fetch the file again")
            if name in seen:
                raise DataError(f"{where}: {shown(name)!r} is duplicated; fetch the file again")
            seen.add(name)
            if any(turn.clip is None for turn in turns):
                self.notices.add("requests without their recording are left out", f"{one.name}/{name}")
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
    """Return the references of a row. The row has one reference or a list; numbers become text."""
    rows = given if isinstance(given, list) else [given]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float | None) for one in rows):
        raise DataError(f"{where}: 'target_text' holds {kind_of(given)}, but text or a list of texts is expected")
    return tuple(str(one).strip() for one in rows if one is not None and str(one).strip())


def load(data: Path) -> UroBench:
    """Load the sets in `data`."""
    return UroBench(data)
