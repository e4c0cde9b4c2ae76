"""AEQ-Bench: does the reply change if the situation or the tone of voice changes? Each group varies one of the two.

Two layouts are read. In the set that `overtone build aeq` makes (`aeq.json`), every field is required. The layout of
AEQ-Bench's own release is not known: any other JSON or JSON Lines file whose rows have a context and a recording is
read by the keys in NAMES, with warnings about missing fields. Rows with candidate replies that people chose from or
rated become questions to a model as a judge (`judge_items.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from overtone.benchmarks._files import Fields, kind_of, read_objects, read_rows, text
from overtone.benchmarks._folder import BenchmarkFolder, check_ids
from overtone.benchmarks.aeq.judge_items import judge_items
from overtone.benchmarks.aeq.suite_tables import SUITE as SUITE
from overtone.cues import BY_SLUG, PLAIN, find_cue
from overtone.errors import DataError
from overtone.heard import Origin
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn

FILE = "aeq.json"
SETTINGS = ("context", "tone")  # the variable within a group
NAMES: dict[str, tuple[str, ...]] = {  # field → the keys it may have in a release of unknown layout
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
CUES = {  # name of a tone in other corpora → our cue; EmoV-DB has neutral, amused, angry, sleepy and disgust
    "amused": "laughter", "amusement": "laughter", "laughing": "laughter", "happiness": "happy", "joy": "happy",
    "anger": "angry", "sleepy": "tired", "sleepiness": "tired", "fatigue": "tired", "disgusted": "disgust",
    "sadness": "sad", "fearful": "fear", "surprised": "surprise", "crying": "sobbing", "whispering": "whisper",
}  # fmt: skip
CORPORA = {  # corpus of AEQ-Bench's recordings → how its sources and files name it
    "EmoV-DB": re.compile(r"emo-?v", re.I),
    "MELD": re.compile(r"meld|dia\d+_utt\d+", re.I),
    "GigaSpeech": re.compile(r"giga-?speech", re.I),
}
EMOV_SPEAKERS = frozenset({"bea", "jenie", "josh", "sam"})
_TONE_NAME = re.compile(r"tone|emotion|emov", re.I)
_CONTEXT_NAME = re.compile(r"context|meld|gigaspeech|a-c\b", re.I)


class Aeq(BenchmarkFolder):
    """A folder that holds a built set, or a release's files at any depth."""

    name = "aeq"

    def __init__(self, data: Path) -> None:
        super().__init__(data, f"{FILE} ('overtone build aeq --out DIR' makes a set)")
        built = self.root / FILE
        self._built = built.is_file()
        files = [built] if self._built else self._files()
        self._sizes: dict[str, int] = {}  # in a built set: group → the number of variants that its rows state
        for path in files:
            inside(self.root, path.relative_to(self.root).as_posix())  # refuses a link that leads out of the root
            self._items += self._read(path, strict=path == built)
        if not self._items:
            reason = "; ".join(self.warnings) or "no row has a context and a recording"
            raise DataError(
                f"{shown(str(data))}: holds neither {FILE} nor rows of AEQ-Bench ({reason}); "
                "'overtone build aeq --out DIR' makes a set"
            )
        check_ids(self._items, self.root)
        self._check_groups()

    def origins(self, item: Item) -> Iterator[Origin]:
        """Yield the corpus of an item's recording. A release that does not name it has tones from EmoV-DB and contexts
        from MELD. A built set is synthesised."""
        clip = item.turns[0].clip
        if self._built or clip is None:
            return
        named = f"{item.source} {item.id} {clip.path}"
        usual = "EmoV-DB" if "tone" in (item.category, item.source) else "MELD"  # a judge's question has it as source
        corpus = next((name for name, pattern in CORPORA.items() if pattern.search(named)), usual)
        words = set(re.split(r"[\W_]+", clip.path.casefold()))
        speaker = next(iter(sorted(words & EMOV_SPEAKERS)), "") if corpus == "EmoV-DB" else ""
        yield Origin(corpus, speaker, clip.path)

    # ── files and rows ──────────────────────────────────────────────────────────────────────────────────────────────

    def _files(self) -> list[Path]:
        files = [p for p in self.root.rglob("*") if p.suffix in (".json", ".jsonl") and p.is_file()]
        return sorted(p for p in files if p.name != "manifest.json")

    def _read(self, path: Path, *, strict: bool) -> Iterator[Item]:
        try:
            rows = list(read_rows(path) if path.suffix == ".jsonl" else read_objects(path))
        except DataError as error:
            if strict:
                raise
            self.notices.add("files without rows are left out", str(error))  # a release has other files as well
            return
        for where, fields in rows:
            if strict:
                yield self._built_row(fields, where)
            else:
                yield from self._released_row(path, fields, where)

    def _built_row(self, fields: Fields, where: str) -> Item:
        """Return the item of a row of our own set. Raises DataError if a field is missing or invalid."""
        for key in REQUIRED:
            if fields.get(key) in (None, "") and not (key == "context" and key in fields):
                raise DataError(f"{where}: {key!r} is missing; 'overtone build aeq' writes it: build the set again")
        setting = text(fields, ("setting",), where)
        if setting not in SETTINGS:
            raise DataError(f"{where}: the setting is {shown(setting)!r}, but {' or '.join(SETTINGS)} is expected")
        variants = fields["n_variants"]
        if isinstance(variants, bool) or not isinstance(variants, int) or variants < 2:
            raise DataError(f"{where}: 'n_variants' holds {kind_of(variants)}, but a number of at least 2 is expected")
        self._sizes[text(fields, ("group_id",), where)] = variants
        tone = text(fields, ("tone",), where)
        if tone and tone not in BY_SLUG and tone not in PLAIN:
            raise DataError(f"{where}: the tone {shown(tone)!r} is not a known cue; see 'overtone list cues'")
        reply = text(fields, ("reference_audio",), where)
        return self._item(
            text(fields, ("instance_id",), where), text(fields, ("group_id",), where), setting,
            self._existing(text(fields, ("utterance_audio",), where), where),
            context=text(fields, ("context",), where),
            words=text(fields, ("utterance_text",), where),
            tone=tone, tone_text=text(fields, ("tone_text",), where) or tone,
            source=text(fields, ("source",), where),
            reference=text(fields, ("reference",), where),
            reference_audio=self._existing(reply, where) if reply else "",
            heard=text(fields, ("recognised",), where),
            wants=text(fields, ("wants",), where),
            topic=text(fields, ("topic",), where),
        )  # fmt: skip

    def _existing(self, named: str, where: str) -> str:
        path = self._sounds.find(named, ("",), where)
        if path is None:
            raise DataError(f"{where}: {shown(named)} does not exist; build the set again")
        if not inside(self.root, path).stat().st_size:
            raise DataError(f"{where}: {shown(named)} is empty; build the set again")
        return path

    def _released_row(self, path: Path, fields: Fields, where: str) -> Iterator[Item]:
        """Yield the items of a row of a release: its questions to a judge, otherwise its request for a reply."""
        row = {key: self._text(fields, names, where) for key, names in NAMES.items()}
        if not row["audio"] or not row["context"]:
            self.notices.add("rows without a context or a recording are left out", where)
            return
        folder = self.folder_of(path)
        utterance = self._sounds.find(row["audio"], (folder, ""), where)
        if utterance is None:
            self.notices.add("rows whose recording does not exist are left out", row["audio"])
            return
        setting = _setting(row["setting"], row["tone"], f"{row['source']} {path.stem} {utterance}")
        if not setting:
            setting = "context"
            self.notices.add("rows that do not say what varies count as context variation", row["id"] or where)
        content = hashlib.sha256(f"{row['audio']}|{row['context']}".encode()).hexdigest()[:12]
        name = row["id"] or f"{Path(utterance).stem}-{content}"
        group = row["group"] or _group(name, setting, utterance)
        questions = judge_items(
            self.name, fields, name, group, setting, utterance,
            lambda named: self._sounds.find(named, (folder, ""), where), row["context"], row["words"], where,
        )  # fmt: skip
        if questions is None:
            self.notices.add("questions with a missing recording are left out", name)
        elif questions:
            yield from questions
        else:
            yield self._item(
                name, group, setting, utterance, context=row["context"], words=row["words"], tone=_cue(row["tone"]),
                tone_text=row["tone"], source=row["source"], reference=row["reference"], topic=row["topic"],
            )  # fmt: skip

    def _text(self, fields: Fields, names: tuple[str, ...], where: str) -> str:
        """Return the first text under one of `names`. A list or an object under such a name means something else and is
        skipped."""
        plain = {key: fields[key] for key in names if isinstance(fields.get(key), str | int | float)}
        return text({k: v for k, v in plain.items() if not isinstance(v, bool)}, names, where)

    def _item(
        self, name: str, group: str, setting: str, utterance: str, *, context: str, words: str, tone: str,
        tone_text: str, source: str, reference: str, reference_audio: str = "", heard: str = "", wants: str = "",
        topic: str = "",
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
            turns=(Turn(Clip(utterance), words, cue=cue, heard=heard),),
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

    def _check_groups(self) -> None:
        """Raise DataError if a group of a built set lacks a variant; warn about groups of one variant."""
        for group, size in Counter(item.group for item in self._items if item.level == 3).items():
            if (expected := self._sizes.get(group, size)) != size:
                problem = f"group {shown(group)} has {size} of its {expected} variants"
                raise DataError(f"{shown(str(self.root / FILE))}: {problem}; build the set again")
            if size < 2:
                self.notices.add("groups of one variant have no discrimination", group)


def _setting(stated: str, tone: str, names: str) -> str:
    """Return what varies in a row's group: "tone", "context", or "" if unknown.

    The row may state it. Otherwise the names of its source and files decide; otherwise a row with a tone varies the
    tone.
    """
    for given in (stated, names):
        if _TONE_NAME.search(given):
            return "tone"
        if _CONTEXT_NAME.search(given):
            return "context"
    return "tone" if tone else ""


def _group(name: str, setting: str, utterance: str) -> str:
    """Return the group of a row: the row's name without the variant's number, or the recording if it has no number."""
    stem = re.sub(r"_e?\d+$" if setting == "tone" else r"_\d+$", "", name)
    return stem if stem != name else Path(utterance).stem


def _cue(tone: str) -> str:
    """Return the slug of our cue for a tone. A tone without a cue, such as "neutral", is returned unchanged, an unknown
    tone as ""."""
    name = tone.strip().lower()
    if name in PLAIN:
        return name
    known = CUES.get(name)
    cue = BY_SLUG[known] if known else find_cue(name)
    return cue.slug if cue else ""


def load(data: Path) -> Aeq:
    """Load the set or the release in `data`."""
    return Aeq(data)
