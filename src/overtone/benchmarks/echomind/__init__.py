"""EchoMind: the same scripts in three vocal styles, asked at three levels: understand, reason, converse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Fields, Sounds, UniqueIds, Warnings, language, read_objects, slugify, text
from overtone.benchmarks.echomind import script_fields as read
from overtone.benchmarks.echomind.files import KINDS, Source, find_sources, read_prompts
from overtone.benchmarks.echomind.paper_tables import PAPER_TABLES
from overtone.benchmarks.echomind.script_records import Question, Script, Spoken
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.schema import STYLES, Clip, Item, Turn
from overtone.suite import Facts, Published, Release, Suite

T = TypeVar("T")


def _published() -> Published:
    """Return the paper's results from published.json, with None for a dash."""
    table: Any = msgspec.json.decode(Path(__file__).with_name("published.json").read_bytes())
    columns: dict[str, str] = table["columns"]
    return Published(
        "EchoMind, main results",
        table["source"],
        columns,
        tuple((row["model"], tuple(row[column] for column in columns)) for row in table["rows"]),
        dict.fromkeys(columns, 2),
        "the authors used other judges and scoring models, and read answers by other rules: a guide only",
        measures={
            "wer": "wer_raw", "semsim": "semsim", "voice_accuracy": "voice_accuracy",
            "reasoning_accuracy": "reasoning_accuracy", "bleu": "bleu", "rouge_l": "rouge_l", "meteor": "meteor",
            "bertscore": "bertscore", "c1": "cctxfit", "c2": "crespnat", "c3": "ccolloqdeg", "c4": "cspeechrel",
            "nisqa": "nisqa_mos", "dnmos": "utmos", "emoalign": "emoalign_reference", "ves": "ves",
        },
        radar=("voice_accuracy", "reasoning_accuracy", "c1", "c2", "c3", "c4", "ves", "emoalign", "nisqa", "semsim"),
        radar_more=("wer", "bertscore", "dnmos", "rouge_l", "meteor"),
        short={
            "voice_accuracy": "Voice", "reasoning_accuracy": "Reason.", "emoalign": "Emo", "semsim": "Sem",
            "bertscore": "BERT",
        },
    )  # fmt: skip


LAYOUT = tuple(
    f"{folder}{kind}"
    for folder in ("data_*/", "dataset/data_*/", "EchoMind/dataset/data_*/", "EchoMind/data_*/", "")
    for kind in ("script_info*.json", "MCQ/*.json")
)
SUITE = Suite(
    Facts(
        title="EchoMind",
        cues="all 39: speaker, voice, surroundings",
        tasks="transcribe, choose (voice, reasoning), converse; the same scripts in three vocal styles",
        hears="audio, or its transcript, both or silence",
        answers="text, a letter, speech",
        turns="one",
        metrics="WER, SemSim, accuracy; BLEU, ROUGE-L, METEOR, BERTScore; C1–C4, VES; NISQA, DNSMOS, EmoAlign",
        data="hlt-cuhksz/EchoMind (hub)",
        licence="CC BY-NC-SA 4.0",
        offline="loading, asking local models, all scores except those of judges and predictors",
    ),
    release=Release("hlt-cuhksz/EchoMind", "CC BY-NC-SA 4.0: non-commercial, share alike, name the authors"),
    models=PAPER_TABLES,
    published=(_published(),),
    layout=LAYOUT,
)


class EchoMind:
    """A folder in EchoMind's layout. `warnings` reports the records that were left out or guessed. No sound is
    opened."""

    kinds: Mapping[str, int] = KINDS

    def __init__(self, data: Path, name: str = "echomind") -> None:
        self.name = name
        self.root, self._sources = find_sources(Path(data), self.kinds)
        self.prompts: Mapping[str, str] = read_prompts(self.root)
        self.notices = Warnings()
        self._sounds = Sounds(self.root)
        self._common: dict[Any, Any] = {}  # texts and options that many questions share
        self.scripts: dict[str, list[Script]] = {}
        self.questions: dict[str, list[Question]] = {}
        for source in self._sources:
            self.scripts[source.name] = self._read_scripts(source)
            self.questions[source.name] = self._read_questions(source)
        self._common.clear()
        self.warnings: list[str] = self.notices.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items by level, source and position in the file; a script's styles in the order of STYLES."""
        for source, scripts in self.scripts.items():
            yield from self._transcriptions(source, scripts)
        for level in (1, 2):
            for source, questions in self.questions.items():
                yield from (self._choice(source, q) for q in questions if q.level == level)
        for source, scripts in self.scripts.items():
            yield from self._conversations(source, scripts)

    def _transcriptions(self, source: str, scripts: list[Script]) -> Iterator[Item]:
        for script in scripts:
            for style, spoken in script.styles.items():
                if script.words:
                    yield self._item(
                        source, f"asr/{script.case_id}/{style}", script, style, spoken.clip, script.words,
                        level=1, task="transcribe", category="asr", references=(script.words,),
                    )  # fmt: skip

    def _conversations(self, source: str, scripts: list[Script]) -> Iterator[Item]:
        for script in scripts:
            for style, spoken in script.styles.items():
                yield self._item(
                    source, f"conversation/{script.case_id}/{style}", script, style, spoken.clip, script.words,
                    level=3, task="converse", category="conversation",
                    references=(spoken.reply,) if spoken.reply else (), reference_audio=spoken.reply_audio,
                )  # fmt: skip

    def _choice(self, source: str, q: Question) -> Item:
        return self._item(
            source, f"{q.kind}/{q.id}", q.script, q.style, q.clip, q.words,
            level=q.level, task="choose", category=q.category, question=q.question, options=q.options, gold=q.gold,
            part=q.part,
        )  # fmt: skip

    def _item(self, source: str, path: str, script: Script, style: str, clip: str, words: str, **rest: Any) -> Item:
        group = f"{source}/{script.case_id}"
        cue, cue_text, other_cue, other_cue_text = script.cues(style)
        rest["part"] = rest.get("part") or ("control" if style == "control" else script.part)
        return Item(
            id=f"{self.name}/{source}/{path}",
            benchmark=self.name,
            case=f"{group}/{style}",
            group=group,
            style=style,
            turns=(Turn(Clip(clip), words, cue),),
            dimension=script.dimension,
            source=source,
            topic=script.topic,
            cue=cue,
            cue_text=cue_text,
            other_cue=other_cue,
            other_cue_text=other_cue_text,
            status=self._status(cue),
            language=script.language,
            **rest,
        )

    def _status(self, cue: str) -> str:
        """Return whether this cue was shown to be audible in the clips. EchoMind does not say so, hence ""."""
        return ""

    def _part(self, kind: str, fields: Fields, where: str) -> str:
        """Return the part of the benchmark that a script or question belongs to. All of EchoMind is the core part,
        hence ""."""
        return ""

    def _read_scripts(self, source: Source) -> list[Script]:
        if source.scripts is None:
            return []
        scripts: list[Script] = []
        ids = UniqueIds(self.notices, "scripts")
        for where, fields in read_objects(source.scripts):
            case_id = text(fields, ("case_id", "id", "script_id", "caseid"), where)
            if not case_id:
                raise DataError(f"{where}: no 'case_id'; every script needs one")
            case_id = ids.claim(case_id, digest(fields), where)
            if case_id:
                scripts.append(self._read_script(source, fields, case_id, where))
        return scripts

    def _read_script(self, source: Source, fields: Fields, case_id: str, where: str) -> Script:
        words = text(fields, read.WORDS, where)
        if not words:
            self.notices.add("scripts without text are not transcribed", f"{source.name}/{case_id}")
        label = text(fields, read.CUE, where)
        cue, cue_text = self._cue(label, f"{source.name}/{case_id}")
        other = other_text = ""
        styles: dict[str, Spoken] = {}
        for style in STYLES:
            block = read.block(fields, style, where)
            named = read.clip_of(block, style, where)
            if style == "alternative" and block:
                other, other_text = self._alternative(block, named, cue, case_id, source, where)
            if not named:
                continue
            clip = self._clip(named, source, where)
            if clip is not None:
                styles[style] = self._spoken(clip, block, source, where)
        topic = text(fields, ("topic", "scenario"), where)
        return Script(
            case_id, words, topic, cue, cue_text, other, other_text, dimension_of(cue_text), styles,
            part=self._part("script", fields, where),
            control_of=_control_of(fields, where),
            language=language(fields, where),
        )  # fmt: skip

    def _spoken(self, clip: str, block: Fields, source: Source, where: str) -> Spoken:
        reply, named = read.reply_of(block)
        audio = None
        if named:
            folders = ("audio_response/", f"{source.prefix}audio_response/", source.prefix)
            audio = self._sounds.find(named, tuple(dict.fromkeys(folders)), where)
            if audio is None:
                self.notices.add("sounds of reference replies that do not exist are left out", named)
        if not reply:
            self.notices.add("clips have no reference reply", clip)
        return Spoken(clip, reply=reply, reply_audio=audio or "")

    def _alternative(
        self, block: Fields, named: str, cue: str, case_id: str, source: Source, where: str
    ) -> tuple[str, str]:
        """Return the cue of the alternative clip: its label, or the cue in its file name if that differs from `cue`."""
        label = read.cue_of(block, "alternative", where)
        if not label and named:
            parsed = read.parse_name(named)
            label = parsed.cue_text if parsed and parsed.cue and parsed.cue.slug != cue else ""
        if not label:
            self.notices.add("scripts do not say which cue their alternative carries", f"{source.name}/{case_id}")
            return "", ""
        return self._cue(label, f"{source.name}/{case_id}")

    def _cue(self, label: str, which: str) -> tuple[str, str]:
        cue = find_cue(label)
        if cue is None:
            self.notices.add("cues outside the taxonomy are asked but counted under no cue", f"{which} {label!r}")
            return "", label
        return cue.slug, label

    def _clip(self, named: str, source: Source, where: str) -> str | None:
        folders = tuple(dict.fromkeys((f"{source.prefix}audio/", source.prefix, "")))
        clip = self._sounds.find(named, folders, where)
        if clip is None:
            self.notices.add("clips that are named but do not exist are left out", named)
        return clip

    def _read_questions(self, source: Source) -> list[Question]:
        links = {
            spoken.clip: (script, style)
            for script in self.scripts[source.name]
            for style, spoken in script.styles.items()
        }
        cases = {script.case_id: script for script in self.scripts[source.name]}
        questions: list[Question] = []
        for kind, level, path in source.questions:
            ids = UniqueIds(self.notices, f"{kind} questions")
            for position, (where, fields) in enumerate(read_objects(path)):
                identity = text(fields, read.QUESTION_ID, where) or f"{kind}_at_{position}"
                identity = ids.claim(identity, digest(fields), where)
                question = self._read_question(source, kind, level, identity, fields, links, cases, where)
                if question is not None:
                    questions.append(question)
        return questions

    def _read_question(
        self, source: Source, kind: str, level: int, identity: str, fields: Fields,
        links: Mapping[str, tuple[Script, str]], cases: Mapping[str, Script], where: str,
    ) -> Question | None:  # fmt: skip
        if not identity:
            return None
        folder = text(fields, ("audio_dir", "audio_folder"), where)
        name = text(fields, ("audio_name", "audio_filename", *read.AUDIO), where)
        if not name:
            self.notices.add(f"{kind} questions that name no clip are left out", identity)
            return None
        clip = self._clip(f"{folder}/{name}" if folder and not name.startswith(f"{folder}/") else name, source, where)
        if clip is None:
            self.notices.add(f"{kind} questions whose clip is missing are left out", identity)
            return None
        given = next((fields[key] for key in read.OPTIONS if fields.get(key)), None)
        options = self._shared(read.options_of(given, fields.get("option_provenance")))
        if len(options) < 2:
            self.notices.add(f"{kind} questions without readable options are left out", identity)
            return None
        script, style = links.get(clip) or self._by_name(source, clip, folder, cases, identity)
        stem = self._shared(text(fields, read.QUESTION, where))
        part = self._part(kind, fields, where)
        category = self._category(kind, level, fields, stem, identity, part)
        gold = read.gold_of(text(fields, read.GOLD, where), options)
        if not gold:
            self.notices.add(f"{kind} questions without a usable answer count in no accuracy", identity)
        words = self._shared(text(fields, read.WORDS, where) or script.words)
        return Question(identity, kind, level, category, script, style, clip, words, stem, options, gold, part)

    def _category(self, kind: str, level: int, fields: Fields, stem: str, identity: str, part: str) -> str:
        types = read.kinds_of(fields)
        category = read.category_of(level, (*types, stem, identity))
        if not category:
            category = slugify(types[0] if types else "") or "unknown"
            self.notices.add(f"{kind} questions of an unknown type have it as their category", f"{identity} {types}")
        return category

    def _shared(self, value: T) -> T:
        """Return the first equal value that was passed, so that equal texts are stored once. Most questions share a few
        texts."""
        shared: T = self._common.setdefault(value, value)
        return shared

    def _by_name(
        self, source: Source, clip: str, folder: str, cases: Mapping[str, Script], identity: str
    ) -> tuple[Script, str]:
        """Return the script and style of a clip from its file name, for a clip that is not listed in any script."""
        parsed = read.parse_name(clip, folder)
        if parsed is None:
            self.notices.add(
                "questions on clips whose names lack case and style count as target, without a script", clip
            )
            return Script(clip.rsplit("/", 1)[-1].rsplit(".", 1)[0]), "target"
        if parsed.case_id in cases:
            return cases[parsed.case_id], parsed.style
        self.notices.add(
            "questions on scripts that are missing in the script file take their case from the clip's name",
            f"{source.name}/{parsed.case_id} ({identity})",
        )
        cue = parsed.cue
        script = Script(
            parsed.case_id, topic=parsed.topic, cue=cue.slug if cue else "", cue_text=parsed.cue_text,
            dimension=dimension_of(parsed.cue_text),
        )  # fmt: skip
        return script, parsed.style


def digest(fields: Fields) -> int:
    """Return a hash of a record's fields. Records with equal fields have the same hash."""
    return hash(msgspec.json.encode(fields))


def _control_of(fields: Fields, where: str) -> str:
    """Return the style whose delivery the control clip repeats, from the file name of its reference reply."""
    parsed = read.parse_name(read.reply_of(read.block(fields, "control", where))[1])
    return parsed.style if parsed and parsed.style != "control" else "neutral"


def dimension_of(label: str) -> str:
    """Return the dimension of a benchmark's cue label, or "". An unknown label "sound of …" is in "environment"."""
    cue = find_cue(label)
    if cue is not None:
        return cue.dimension
    return "environment" if label.casefold().startswith("sound of ") else ""


def load(data: Path) -> EchoMind:
    """Load EchoMind from its dataset folder, the folder above it, or one of its data_* folders."""
    return EchoMind(data)
