"""VoxDialogue: dialogues of several turns in which twelve attributes of the sound, not of the words, call for a reply.

Both forms of its JSON are read: audio files (topic → dialogue → lines with a recording each; also one file per
dialogue), and generation files (history, current turn in three styles, three replies) with the recordings next to them.
An audio file lists the recorded lines; a generation file adds labels that the audio file lacks (`line_labels.py`).

The model plays one side of the dialogue. Earlier lines of this side come from the release and are in the history as the
model's own; the model is asked only for the last line. In three sets (volume, speed, fidelity) the judged line is A's
request after B's odd-sounding turn, so the model plays A; in the others it plays B.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from overtone.benchmarks._files import Fields, kind_of, lowered, read_json, text
from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.voxdialogue.line_labels import SOURCES, Label, Line, label_of, read_ages
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import UNKNOWN, Clip, Item, Turn
from overtone.suite import Column, Facts, Headline, Release, Suite

ATTRIBUTES = {  # attribute → dimension
    "gender": "speaker", "age": "speaker", "accent": "speaker", "language": "speaker",
    "emotion": "paralinguistic", "volume": "paralinguistic", "speed": "paralinguistic", "fidelity": "paralinguistic",
    "stress": "paralinguistic", "nonverbal": "paralinguistic", "audio": "environment", "music": "environment",
}  # fmt: skip
FOLDERS = {**{name: name for name in ATTRIBUTES}, "non": "nonverbal", "non-verbal": "nonverbal", "events": "audio"}
REQUESTS = ("volume", "speed", "fidelity")  # the model plays A and should ask B for a change
_LINE = re.compile(r"\s*([A-Z])\s*(\([^)]*\))?\s*[:：]?\s*(.*)", re.S)
_STYLED = re.compile(r"(.*)_(\d+)")


_HELP = {
    "music": "Mean of the verdicts, 1–5. Like VoxDialogue's prompt, asks how well the line fits, not about the music.",
    "language": "Mean of the verdicts, 1–5. Asks how well a Chinese line fits; a line in another language gets 1.",
    **dict.fromkeys(REQUESTS, "Mean of the verdicts, 1–5. The model plays A, who should ask B for a change."),
}

SUITE = Suite(
    Facts(
        title="VoxDialogue",
        cues="gender, age, accent, language; emotion, volume, speed, fidelity, stress, non-verbal; audio events, music",
        tasks="converse",
        hears="recorded dialogue, the model's side given in words",
        answers="text or speech",
        turns="several",
        metrics="judge 1–5 per attribute, mean of ten draws",
        data="Exgc/VoxDialogue (repository), VoxDialogue/VoxDialogue.github.io (sounds, 11.5 GB)",
        licence="none stated",
        offline="loading, asking and reference metrics; the verdicts need a judge",
    ),
    release=Release("VoxDialogue/VoxDialogue.github.io", "none stated: ask the authors before use", host="github"),
    headlines=(
        Headline(
            "voxdialogue",
            "VoxDialogue",
            (
                Column(
                    "mean", "Mean", kind="number", help="Each attribute counts once",
                    balance={name: (f"vox_{name}", 1.0) for name in ATTRIBUTES},
                ),
                *(
                    Column(
                        name, name.capitalize(), f"vox_{name}", {"category": (name,)}, kind="number",
                        help=_HELP.get(name, "Mean of the verdicts, 1–5: the line fits and responds to the sound"),
                    )
                    for name in ATTRIBUTES
                ),
            ),
            hint="Verdicts of a judge, 1–5. VoxDialogue averages ten draws at temperature 1.5.",
        ),
    ),
    rubrics=("voxdialogue", "voxdialogue-told", "voxdialogue-request"),
    layout=tuple(f"{'*/' * depth}{file}" for depth in range(4) for file in ("processed_dialog*.json", "dialog.json")),
)  # fmt: skip


class VoxDialogue(BenchmarkFolder):
    """A folder with any of the release's JSON files, at any depth; a folder above each file names the attribute."""

    name = "voxdialogue"

    def __init__(self, data: Path) -> None:
        super().__init__(data, "the dialogues and their sounds")
        self._dialogues: dict[str, tuple[Sequence[Line], Item]] = {}
        self._ages = read_ages(self.root)
        files = sorted(p for p in self.root.rglob("*.json") if p.is_file())
        trees = [(inside(self.root, p.relative_to(self.root).as_posix()), _read(p)) for p in files]
        for path, tree in trees:  # audio files first: a generation file describes the same dialogues
            self._audio(path, tree)
        for path, tree in trees:
            self._generation(path, tree)
        for identity, (_, item) in self._dialogues.items():
            if item.status == UNKNOWN:
                problem = f"{item.category}: the files do not say what is heard, so metrics that need it skip these"
                self.notices.add(f"{problem}; {SOURCES.get(item.category, 'fetch the files again')}", identity)
        if not self._dialogues and not self.warnings:
            raise DataError(f"{shown(str(data))}: holds no dialogue files; give the release's folder")
        order = {name: n for n, name in enumerate(ATTRIBUTES)}
        self._items = sorted((item for _, item in self._dialogues.values()), key=lambda i: (order[i.category], i.id))

    # ── the two forms of files ──────────────────────────────────────────────────────────────────────────────────────

    def _audio(self, path: Path, tree: Any) -> None:
        where = shown(str(path))
        if isinstance(tree, list) and tree and all(isinstance(one, dict) and "turn_id" in one for one in tree):
            self._add(path, path.parent.parent.name, path.parent.name, _lines(tree, where), where)
        elif isinstance(tree, dict):
            for topic, dialogues in tree.items():
                if not isinstance(dialogues, dict) or "current_turn" in dialogues or "history turns" in dialogues:
                    continue
                for name, lines in dialogues.items():
                    if lines == []:
                        self.notices.add("dialogues without a line are left out", f"{shown(topic)}/{shown(name)}")
                    elif isinstance(lines, list) and name != "history_turns":
                        at = f"{where}: {shown(topic)}, {shown(name)}"
                        self._add(path, topic, name, _lines(lines, at), at)

    def _generation(self, path: Path, tree: Any) -> None:
        where = shown(str(path))
        rows = list(tree.items()) if isinstance(tree, dict) else [("", one) for one in tree]
        counts: Counter[str] = Counter()
        for position, (topic, row) in enumerate(rows):
            if not isinstance(row, dict):
                continue
            fields = lowered(row)
            aspects = fields.get("aspect_list", topic)
            topic = ", ".join(map(str, aspects)) if isinstance(aspects, list) else str(aspects)
            history = fields.get("history_turns", fields.get("history turns"))
            if history is None:
                continue
            at = f"{where}: position {position}"
            topic = topic.strip().replace(" ", "_")
            counts[topic] += 1
            for style in (1, 2, 3):
                lines = _script(fields, history, style, at)
                names = [f"dialog_{number:05d}_{style - 1:03d}" for number in (counts[topic], counts[topic] - 1)]
                if self._joined(path, topic, names, lines):
                    continue
                places = [place for place in names if self._folder(path, topic, place)]
                if not places:
                    problem = "dialogues of generation files whose recordings are missing are left out"
                    self.notices.add(problem, f"{topic}/{names[0]}")
                    continue
                folder = self._folder(path, topic, places[0])
                first = 0 if (self.root / folder / "000.wav").is_file() else 1
                wavs = [f"{topic}/{places[0]}/{n:03d}.wav" for n in range(first, first + len(lines))]
                lines = [msgspec.structs.replace(line, wav=wav) for line, wav in zip(lines, wavs, strict=True)]
                self._add(path, topic, places[0], lines, at)

    def _joined(self, path: Path, topic: str, names: Sequence[str], lines: Sequence[Line]) -> bool:
        """Return whether an audio file has this dialogue. If it does, but the dialogue has no label there, add that of
        `lines`."""
        known = [one for one in (self._identity(path, topic, name) for name in names) if one in self._dialogues]
        for identity in known:
            recorded, item = self._dialogues[identity]
            if not _same(recorded, lines):
                continue
            if item.status == UNKNOWN:
                heard = lines[-3 if item.category in REQUESTS else -2]
                item = msgspec.structs.replace(item, **_labelled(item, label_of(item.category, heard, item.topic)))
                self._dialogues[identity] = recorded, item
            return True
        if known:
            self.notices.add("dialogues of generation files whose recording has other words are not used", known[0])
        return bool(known)

    def _identity(self, path: Path, topic: str, name: str) -> str:
        return f"{self.name}/{self._attribute(path)}/{re.sub(r'[ /]', '_', topic)}/{name}"

    def _folder(self, path: Path, topic: str, name: str) -> str:
        for base in self._above(path):
            relative = f"{base.relative_to(self.root).as_posix()}/{topic}/{name}".removeprefix("./")
            if inside(self.root, relative).is_dir():
                return relative
        return ""

    # ── one dialogue ────────────────────────────────────────────────────────────────────────────────────────────────

    def _add(self, path: Path, topic: str, name: str, lines: Sequence[Line], where: str) -> None:
        attribute = self._attribute(path)
        if not attribute:
            problem = "dialogues in folders that name none of the twelve attributes are left out"
            self.notices.add(problem, path.relative_to(self.root).as_posix())
            return
        identity = self._identity(path, topic, name)
        if identity in self._dialogues:
            if [line.content for line in self._dialogues[identity][0]] != [line.content for line in lines]:
                raise DataError(f"{where}: another dialogue is called {shown(identity)} too; keep one copy")
            return
        item = self._item(identity, attribute, path, lines[:-1] if attribute in REQUESTS else lines, where)
        if item is not None:
            self._dialogues[identity] = lines, item

    def _item(self, identity: str, attribute: str, path: Path, lines: Sequence[Line], where: str) -> Item | None:
        if len(lines) < 2:
            raise DataError(f"{where}: a dialogue needs at least two lines; fetch the file again")
        *heard, wanted = lines
        alternate = all(one.speaker != other.speaker for one, other in itertools.pairwise(lines))
        if not alternate or len({line.speaker for line in lines}) != 2:
            self.notices.add("dialogues whose speakers do not take turns are left out", identity)
            return None
        opening = heard.pop(0) if heard[0].speaker == wanted.speaker else None
        pairs = [(heard[n], heard[n + 1].words if n + 1 < len(heard) else "") for n in range(0, len(heard), 2)]
        clips = [self._clip(path, line, where) for line, _ in pairs]
        if not clips or clips[-1] is None:
            self.notices.add("dialogues whose last heard line has no recording are left out", identity)
            return None
        if None in clips:
            self.notices.add("earlier lines without a recording are given in writing", identity)
        if len(heard) > 1 and heard[-1].words == heard[-2].words:
            self.notices.add("the last heard line repeats the words before it, a fault of the release", identity)
        _, _, topic, name = identity.split("/", 3)
        label = label_of(attribute, heard[-1], topic, self._ages)
        group = f"{attribute}/{topic}/{_STYLED.sub(lambda m: m[1], name)}"  # the same dialogue in three styles
        turns = [
            Turn(Clip(clip) if clip else None, line.words, given=reply)
            for (line, reply), clip in zip(pairs, clips, strict=True)
        ]
        item = Item(
            id=identity,
            benchmark=self.name,
            level=3,
            task="converse",
            category=attribute,
            case=f"{attribute}/{topic}/{name}",
            group=group,
            style="",
            turns=tuple(turns),
            dimension=ATTRIBUTES[attribute],
            topic=topic,
            context=f"Before this, you said: “{opening.words}”" if opening else "",
            references=(wanted.words,),
            language="zh" if attribute == "language" else "en",
        )
        return msgspec.structs.replace(item, **_labelled(item, label))

    def _clip(self, path: Path, line: Line, where: str) -> str | None:
        """Return the path of a line's recording, looked up from every folder above the file, or None.

        An absolute path is a path on the authors' machine; only its topic, dialogue and file name are used.
        """
        pure = PurePosixPath(line.wav.replace("\\", "/"))
        named = "/".join(pure.parts[-3:]) if pure.is_absolute() else str(pure)
        for base in self._above(path):
            relative = f"{base.relative_to(self.root).as_posix()}/{named}".removeprefix("./")
            try:
                if line.wav and inside(self.root, relative).is_file():
                    return relative
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        return None

    def _above(self, path: Path) -> list[Path]:
        """Return the folders above a file, up to the root."""
        return [folder for folder in path.parents if folder.is_relative_to(self.root)]

    def _attribute(self, path: Path) -> str:
        relative = path.relative_to(self.root)
        names = [part for part in re.split(r"[_. ]", relative.stem) if part]
        named = (*reversed(names), *reversed(relative.parts[:-1]), self.root.name)
        known = [FOLDERS[name.lower()] for name in named if name.lower() in FOLDERS]
        return next((name for name in known if name != "audio"), known[0] if known else "")  # audio/ may hold sounds


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(path: Path) -> Any:
    tree = read_json(path)
    if not isinstance(tree, list | dict):
        raise DataError(f"{shown(str(path))}: holds {kind_of(tree)}, but dialogues are expected")
    return tree


def _lines(given: Sequence[Any], where: str) -> list[Line]:
    """Return the lines of a dialogue in an audio file."""
    lines = []
    for number, one in enumerate(given):
        at = f"{where}, line {number}"
        if not isinstance(one, dict):
            raise DataError(f"{at}: holds {kind_of(one)}, but an object is expected")
        fields = lowered(one)
        speaker, content = text(fields, ("speaker_id",), at), text(fields, ("content",), at)
        if not speaker or not content:
            raise DataError(f"{at}: no {'speaker_id' if not speaker else 'content'!r}; fetch the file again")
        how, voice = text(fields, ("insturct_style", "instruct_style"), at), text(fields, ("reference_speaker",), at)
        lines.append(Line(speaker, content, how, text(fields, ("wav_path",), at), voice))
    return lines


def _script(fields: Fields, history: object, style: int, where: str) -> list[Line]:
    """Return the lines of a dialogue in a generation file: history, current turn in one of its styles, and reply."""
    if not isinstance(history, list):
        raise DataError(f"{where}: the history holds {kind_of(history)}, but a list of lines is expected")
    styled = text(fields, (f"current_turn_style_{style}",), where)
    current = text(fields, ("current_turn",), where)
    reply = text(fields, (f"response_of_current_style_{style}",), where)
    line = f"{current[:1]} {styled}: {_parsed(current, where).content}" if current else styled
    return [_parsed(str(one), where) for one in (*history, line, reply)]


def _parsed(line: str, where: str) -> Line:
    match = _LINE.fullmatch(line)
    if match is None or not match[3].strip():
        raise DataError(f"{where}: {shown(line)[:80]!r} is not a line of a dialogue, like 'A (female, sad): Hello.'")
    return Line(match[1], match[3].strip(), (match[2] or "").strip("() "), "")


def _labelled(item: Item, label: Label | None) -> dict[str, Any]:
    """Return field → new value for the fields of an item that depend on the label of its last turn."""
    if label is None:
        return {"status": UNKNOWN}
    *before, last = item.turns
    turns = (*before, msgspec.structs.replace(last, cue=label.cue))
    return {"turns": turns, "cue": label.cue, "cue_text": label.text, "status": ""}


def _same(recorded: Sequence[Line], written: Sequence[Line]) -> bool:
    """Return whether an audio file and a generation file describe the same dialogue.

    In the repository's audio file, the current turn repeats the words of the turn before it. So this turn may differ.
    """
    if len(recorded) != len(written):
        return False
    differing = [n for n, (one, other) in enumerate(zip(recorded, written, strict=True)) if one.words != other.words]
    current = len(recorded) - 2
    return not differing or (differing == [current] and recorded[current].words == recorded[current - 1].words)


def load(data: Path) -> VoxDialogue:
    """Load the release, or a part of it, from `data`."""
    return VoxDialogue(data)
