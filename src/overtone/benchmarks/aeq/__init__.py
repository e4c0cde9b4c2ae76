"""AEQ-Bench: does a reply to a situation and a voice change where either changes? Groups vary context or tone.

Two layouts are read. The set that `overtone build aeq` makes (`aeq.json`) is held to its fields. AEQ-Bench's own
release was not seen: any other JSON or JSON Lines file whose rows have a context and a recording is read by the keys in
NAMES, and what such rows lack is a line in the warnings. Rows with candidate replies that people chose from or rated
are questions to a model as a judge (`judge_items.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Fields, Sounds, Warnings, kind_of, read_objects, read_rows, text
from overtone.benchmarks.aeq.judge_items import Judged, judged
from overtone.benchmarks.aeq.tables import SUITE as SUITE
from overtone.cues import BY_SLUG, PLAIN, find_cue
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn

FILE = "aeq.json"
SETTINGS = ("context", "tone")  # what varies within a group
NAMES: dict[str, tuple[str, ...]] = {  # of a release we have not seen: what a field may be called
    "id": ("instance_id", "question_id", "item_id", "uid", "id"),
    "group": ("group_id", "group", "utterance_id"),
    "setting": ("setting", "variation", "subset", "type"),
    "source": ("source", "dataset", "corpus"),
    "context": ("context", "background", "situation", "scenario"),
    "audio": (
        "utterance_audio",
        "user_audio",
        "audio",
        "audio_path",
        "wav",
        "wav_path",
        "audio_file",
        "file_name",
        "file",
        "path",
    ),
    "words": ("utterance_text", "utterance", "transcript", "sentence", "words", "text"),
    "tone": ("tone", "emotion"),
    "reference": ("reference", "reference_response", "response", "reply"),
    "topic": ("topic",),
}
REQUIRED = ("instance_id", "group_id", "setting", "context", "utterance_audio", "utterance_text", "n_variants")
CUES = {  # words of other corpora for our cues; EmoV-DB's five tones are neutral, amused, angry, sleepy and disgust
    "amused": "laughter", "amusement": "laughter", "laughing": "laughter", "happiness": "happy", "joy": "happy",
    "anger": "angry", "sleepy": "tired", "sleepiness": "tired", "fatigue": "tired", "disgusted": "disgust",
    "sadness": "sad", "fearful": "fear", "surprised": "surprise", "crying": "sobbing", "whispering": "whisper",
}  # fmt: skip
_TONE_NAME = re.compile(r"tone|emotion|emov", re.I)
_CONTEXT_NAME = re.compile(r"context|meld|gigaspeech|a-c\b", re.I)


class Aeq:
    """A folder that holds a built set, or a release's files at any depth."""

    name = "aeq"

    def __init__(self, data: Path) -> None:
        if not data.is_dir():
            raise DataError(f"{shown(str(data))}: no such folder; 'overtone build aeq --out DIR' makes a set")
        self.root = data.resolve()
        self.prompts: dict[str, str] = {}
        self._met = Warnings()
        self._sounds = Sounds(self.root)
        built = self.root / FILE
        files = [built] if built.is_file() else self._files()
        self._items: list[Item] = []
        self._sizes: dict[str, int] = {}  # of a built set: how many variants each group says it has
        for path in files:
            inside(self.root, path.relative_to(self.root).as_posix())  # a link that leads out is refused
            self._items += self._read(path, strict=path == built)
        if not self._items:
            why = "; ".join(self._met.lines()) or "no row has a context and a recording"
            raise DataError(
                f"{shown(str(data))}: holds neither {FILE} nor rows of AEQ-Bench ({why}); "
                "'overtone build aeq --out DIR' makes a set"
            )
        self._check()
        self.warnings = self._met.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items by level, in the order of the files: what a model judges (2), then what it replies to (3)."""
        yield from sorted(self._items, key=lambda item: item.level)

    # ── files and rows ──────────────────────────────────────────────────────────────────────────────────────────────

    def _files(self) -> list[Path]:
        found = [p for p in self.root.rglob("*") if p.suffix in (".json", ".jsonl") and p.is_file()]
        return sorted(p for p in found if p.name != "manifest.json")

    def _read(self, path: Path, *, strict: bool) -> Iterator[Item]:
        lines = path.suffix == ".jsonl"
        try:
            rows = list(read_rows(path) if lines else read_objects(path))
        except DataError as error:
            if strict:
                raise
            self._met.add("files that hold no rows are left out", str(error))  # a release has other files as well
            return
        for position, fields in enumerate(rows, int(lines)):
            where = f"{shown(str(path))}, line {position}" if lines else f"{shown(str(path))}: position {position}"
            if strict:
                yield self._built(fields, where)
            else:
                yield from self._found(path, fields, where)

    def _built(self, fields: Fields, where: str) -> Item:
        """A row of our own set: every field is there and means what it says."""
        for key in REQUIRED:
            if fields.get(key) in (None, "") and not (key == "context" and key in fields):
                raise DataError(f"{where}: {key!r} is missing; 'overtone build aeq' writes it: build the set again")
        setting = text(fields, ("setting",), where)
        if setting not in SETTINGS:
            raise DataError(f"{where}: the setting is {shown(setting)!r}, but {' or '.join(SETTINGS)} is expected")
        variants = fields["n_variants"]
        if isinstance(variants, bool) or not isinstance(variants, int) or variants < 2:
            raise DataError(f"{where}: 'n_variants' holds {kind_of(variants)}, but a number from 2 on is expected")
        self._sizes[text(fields, ("group_id",), where)] = variants
        tone = text(fields, ("tone",), where)
        if tone and tone not in BY_SLUG and tone not in PLAIN:
            raise DataError(f"{where}: the tone {shown(tone)!r} is no cue of ours; 'overtone list cues' has them")
        reply = text(fields, ("reference_audio",), where)
        return self._item(
            text(fields, ("instance_id",), where), text(fields, ("group_id",), where), setting,
            self._there(text(fields, ("utterance_audio",), where), where),
            context=text(fields, ("context",), where),
            words=text(fields, ("utterance_text",), where),
            tone=tone, tone_text=text(fields, ("tone_text",), where) or tone,
            source=text(fields, ("source",), where),
            reference=text(fields, ("reference",), where),
            reference_audio=self._there(reply, where) if reply else "",
            heard=text(fields, ("recognised",), where),
            wants=text(fields, ("wants",), where),
            topic=text(fields, ("topic",), where),
        )  # fmt: skip

    def _there(self, named: str, where: str) -> str:
        found = self._sounds.find(named, ("",))
        if found is None:
            raise DataError(f"{where}: {shown(named)} does not exist; build the set again")
        if not inside(self.root, found).stat().st_size:
            raise DataError(f"{where}: {shown(named)} is empty; build the set again")
        return found

    def _found(self, path: Path, fields: Fields, where: str) -> Iterator[Item]:
        """A row of a release whose layout was not seen: what it offers a speaker, and what it asks a judge."""
        told = {key: self._text(fields, names, where) for key, names in NAMES.items()}
        if not told["audio"] or not told["context"]:
            self._met.add("rows without a context or a recording are left out", where)
            return
        folder = f"{path.parent.relative_to(self.root).as_posix()}/".removeprefix("./")
        said = self._sounds.find(told["audio"], (folder, ""))
        if said is None:
            self._met.add("rows whose recording does not exist are left out", told["audio"])
            return
        setting = _setting(told["setting"], told["tone"], f"{told['source']} {path.stem} {said}")
        if not setting:
            setting = "context"
            self._met.add("rows that do not say what varies are taken as context variation", told["id"] or where)
        content = hashlib.sha256(f"{told['audio']}|{told['context']}".encode()).hexdigest()[:12]
        name = told["id"] or f"{Path(said).stem}-{content}"
        group = told["group"] or _group(name, setting, said)
        questions = judged(
            self.name, fields, name, group, setting, said,
            lambda named: self._sounds.find(named, (folder, "")), told["context"], told["words"], where,
        )  # fmt: skip
        for one in questions:
            if isinstance(one, Judged):
                yield one.item
            else:
                self._met.add("questions with a missing recording are left out", one)
        if not questions:
            yield self._item(
                name, group, setting, said, context=told["context"], words=told["words"], tone=_cue(told["tone"]),
                tone_text=told["tone"], source=told["source"], reference=told["reference"], topic=told["topic"],
            )  # fmt: skip

    def _text(self, fields: Fields, names: tuple[str, ...], where: str) -> str:
        """The first of the names that holds text; a list or an object under such a name means something else."""
        plain = {key: fields[key] for key in names if isinstance(fields.get(key), str | int | float)}
        return text({k: v for k, v in plain.items() if not isinstance(v, bool)}, names, where)

    def _item(
        self, name: str, group: str, setting: str, said: str, *, context: str, words: str, tone: str, tone_text: str,
        source: str, reference: str, reference_audio: str = "", heard: str = "", wants: str = "", topic: str = "",
    ) -> Item:  # fmt: skip
        cue = tone if tone in BY_SLUG else ""
        return Item(
            id=f"{self.name}/{name}",
            benchmark=self.name,
            level=3,
            task="converse",
            category=setting,
            case=name,
            group=group,
            style="",
            turns=(Turn(Clip(said), words, cue=cue, heard=heard),),
            cue=cue,
            cue_text=tone_text or (tone if tone in PLAIN else ""),
            source=source,
            topic=topic,
            context=context,
            gold=wants,
            references=(reference,) if reference else (),
            reference_audio=reference_audio,
            language="en",
        )

    def _check(self) -> None:
        """No id twice, groups whole; where one variant is left of a group, there is nothing to tell apart."""
        seen: set[str] = set()
        sizes: dict[str, int] = {}
        for item in self._items:
            if item.id in seen:
                raise DataError(f"{shown(str(self.root))}: {shown(item.id)} comes twice; keep one copy of each file")
            seen.add(item.id)
            if item.level == 3:
                sizes[item.group] = sizes.get(item.group, 0) + 1
        for group, size in sizes.items():
            if (whole := self._sizes.get(group, size)) != size:
                told = f"group {shown(group)} has {size} of its {whole} variants"
                raise DataError(f"{shown(str(self.root / FILE))}: {told}; build the set again")
            if size < 2:
                self._met.add("groups of one variant have no discrimination", group)


def _setting(said: str, tone: str, names: str) -> str:
    """What varies: as the row says, else as its source and files are called, else by whether it names a tone."""
    for given in (said, names):
        if _TONE_NAME.search(given):
            return "tone"
        if _CONTEXT_NAME.search(given):
            return "context"
    return "tone" if tone else ""


def _group(name: str, setting: str, said: str) -> str:
    """As in EmpathyEval: variants of a tone group share their name, those of a context group their recording."""
    cut = re.sub(r"_e?\d+$" if setting == "tone" else r"_\d+$", "", name)
    return cut if cut != name else Path(said).stem


def _cue(tone: str) -> str:
    """The slug of our cue that a corpus's word for a tone stands for; the word itself where it is plain; else ""."""
    plain = tone.strip().lower()
    if plain in PLAIN:
        return plain
    known = CUES.get(plain)
    found = BY_SLUG[known] if known else find_cue(plain)
    return found.slug if found else ""


def load(data: Path) -> Aeq:
    """The set or the release that lies in `data`."""
    return Aeq(data)
