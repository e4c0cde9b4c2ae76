"""VoxDialogue: dialogues of several turns in which twelve attributes of the sound, not of the words, call for a reply.

Both shapes of its JSON are read: its audio files (topic → dialogue → lines with a recording each; also one dialogue's
own file), and its generation files (history, current turn in three styles, three replies) where the recordings lie
beside them. The lines of the side that the model plays are given by the release: they stand in the history as the
model's own, and only the last is asked for. In three sets (volume, speed, fidelity) the line that is judged is A's
request after B's odd-sounding turn, so there the model plays A; in the others it plays B.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.benchmarks._files import MAX_BYTES, Fields, Warnings, kind_of, lowered, text
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Column, Facts, Headline, Release, Suite

ATTRIBUTES = {  # → dimension
    "gender": "speaker", "age": "speaker", "accent": "speaker", "language": "speaker",
    "emotion": "paralinguistic", "volume": "paralinguistic", "speed": "paralinguistic", "fidelity": "paralinguistic",
    "stress": "paralinguistic", "nonverbal": "paralinguistic", "audio": "environment", "music": "environment",
}  # fmt: skip
FOLDERS = {**{name: name for name in ATTRIBUTES}, "non": "nonverbal", "non-verbal": "nonverbal", "events": "audio"}
REQUESTS = ("volume", "speed", "fidelity")  # the model plays A and should ask B for a change
WORDS = {"surprised": "surprise", "fearful": "fear", "disgusted": "disgust"}  # its words for cues of ours
_LINE = re.compile(r"\s*([A-Z])\s*(\([^)]*\))?\s*[:：]?\s*(.*)", re.S)
_SPOKEN = re.compile(r"an? (\w+) speaker with (\w+) pitch, (\w+) speaking rate,? and (\w+) emotion", re.I)
_STRESS = re.compile(r"<(?:stress|strong)>\s*(.*?)\s*</(?:stress|strong)>", re.I | re.S)
_SOUND = re.compile(r"\[([a-z][a-z -]*)\]", re.I)
_STYLED = re.compile(r"(.*)_(\d+)")


class Line(Struct, frozen=True):
    """One line of a dialogue: who speaks, what (marks included), how (as the release says it), where it is recorded."""

    speaker: str
    said: str
    how: str
    wav: str

    @property
    def words(self) -> str:
        return " ".join(_SOUND.sub(" ", _STRESS.sub(r"\1", self.said)).split())


_HELP = {
    "music": "Mean of the verdicts, 1–5. Asks how well the line fits, and nothing about the music: its own prompt does "
    "not either.",
    "language": "Mean of the verdicts, 1–5. Asks how well a Chinese line fits; one in another language gets 1.",
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
                        help=_HELP.get(name, "Mean of the verdicts, 1–5: it fits, and attends to what was heard"),
                    )
                    for name in ATTRIBUTES
                ),
            ),
            hint="Verdicts of a judge, 1–5. There, ten draws at temperature 1.5 are averaged.",
        ),
    ),
    rubrics=("voxdialogue", "voxdialogue-told", "voxdialogue-request"),
    layout=tuple(f"{'*/' * depth}{file}" for depth in range(4) for file in ("processed_dialog*.json", "dialog.json")),
)  # fmt: skip


class VoxDialogue:
    """A folder with any of the release's JSON files, at any depth; a folder of their path names the attribute."""

    name = "voxdialogue"

    def __init__(self, data: Path) -> None:
        if not data.is_dir():
            raise DataError(f"{shown(str(data))}: no such folder; give the one with the dialogues and their sounds")
        self.root = data.resolve()
        self.prompts: dict[str, str] = {}
        self._met = Warnings()
        self._found: dict[str, tuple[Sequence[Line], Item]] = {}
        files = sorted(p for p in self.root.rglob("*.json") if p.is_file())
        trees = [(inside(self.root, p.relative_to(self.root).as_posix()), _read(p)) for p in files]
        for path, tree in trees:  # audio files first: a generation file tells of the same dialogues
            self._audio(path, tree)
        for path, tree in trees:
            self._generation(path, tree)
        self.warnings = self._met.lines()
        if not self._found and not self.warnings:
            raise DataError(f"{shown(str(data))}: holds no dialogue files; give the release's folder")

    def items(self, levels: frozenset[int], styles: frozenset[str], asr: Literal["target", "all"]) -> Iterator[Item]:
        """Every dialogue whose last heard line is recorded, by attribute; all of them are conversation."""
        if 3 in levels:
            order = {name: n for n, name in enumerate(ATTRIBUTES)}
            yield from sorted((item for _, item in self._found.values()), key=lambda i: (order[i.category], i.id))

    # ── the two shapes ──────────────────────────────────────────────────────────────────────────────────────────────

    def _audio(self, path: Path, tree: Any) -> None:
        where = shown(str(path))
        if isinstance(tree, list) and tree and all(isinstance(one, dict) and "turn_id" in one for one in tree):
            self._add(path, path.parent.parent.name, path.parent.name, _lines(tree, where), where)
        elif isinstance(tree, dict):
            for topic, dialogues in tree.items():
                if not isinstance(dialogues, dict) or "current_turn" in dialogues or "history turns" in dialogues:
                    continue
                for name, lines in dialogues.items():
                    if isinstance(lines, list) and name != "history_turns":
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
                places = [place for place in names if self._folder(path, topic, place)]
                if not places:
                    told = "dialogues of generation files are left out where their recordings are not here"
                    self._met.add(told, f"{topic}/{names[0]}")
                    continue
                folder = self._folder(path, topic, places[0])
                first = 0 if (self.root / folder / "000.wav").is_file() else 1
                wavs = [f"{topic}/{places[0]}/{n:03d}.wav" for n in range(first, first + len(lines))]
                lines = [msgspec.structs.replace(line, wav=wav) for line, wav in zip(lines, wavs, strict=True)]
                self._add(path, topic, places[0], lines, at)

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
            told = "dialogues in folders that name none of the twelve attributes are left out"
            self._met.add(told, path.relative_to(self.root).as_posix())
            return
        identity = f"{self.name}/{attribute}/{re.sub(r'[ /]', '_', topic)}/{name}"
        if identity in self._found:
            if [line.said for line in self._found[identity][0]] != [line.said for line in lines]:
                raise DataError(f"{where}: another dialogue is called {shown(identity)} too; keep one copy")
            return
        item = self._item(identity, attribute, path, lines[:-1] if attribute in REQUESTS else lines, where)
        if item is not None:
            self._found[identity] = lines, item

    def _item(self, identity: str, attribute: str, path: Path, lines: Sequence[Line], where: str) -> Item | None:
        if len(lines) < 2:
            raise DataError(f"{where}: a dialogue needs a line to hear and one to judge it by; fetch the file again")
        *heard, wanted = lines
        in_turn = all(one.speaker != other.speaker for one, other in itertools.pairwise(lines))
        if not in_turn or len({line.speaker for line in lines}) != 2:
            self._met.add("dialogues whose speakers do not take turns are left out", identity)
            return None
        opening = heard.pop(0) if heard[0].speaker == wanted.speaker else None
        pairs = [(heard[n], heard[n + 1].words if n + 1 < len(heard) else "") for n in range(0, len(heard), 2)]
        clips = [self._clip(path, line, where) for line, _ in pairs]
        if not clips or clips[-1] is None:
            self._met.add("dialogues whose last line to be heard is not recorded here are left out", identity)
            return None
        if None in clips:
            self._met.add("earlier lines that are not recorded here are told in writing", identity)
        if len(heard) > 1 and heard[-1].words == heard[-2].words:
            self._met.add("the last line heard is written down as that before it, a fault of the release", identity)
        label = _label(attribute, heard[-1], identity)
        slug = _cue(label)
        _, _, topic, name = identity.split("/", 3)
        group = f"{attribute}/{topic}/{_STYLED.sub(lambda m: m[1], name)}"  # the same dialogue in three styles
        last = len(pairs) - 1
        turns = [
            Turn(Clip(clip) if clip else None, line.words, slug if n == last else "", given=reply)
            for n, ((line, reply), clip) in enumerate(zip(pairs, clips, strict=True))
        ]
        return Item(
            id=identity,
            benchmark=self.name,
            level=3,
            task="converse",
            category=attribute,
            case=f"{attribute}/{topic}/{name}",
            group=group,
            style="",
            turns=tuple(turns),
            cue=slug,
            cue_text=label,
            dimension=ATTRIBUTES[attribute],
            topic=topic,
            context=f"Before this, you said: “{opening.words}”" if opening else "",
            references=(wanted.words,),
            language="zh" if attribute == "language" else "en",
        )

    def _clip(self, path: Path, line: Line, where: str) -> str | None:
        """Where a line's recording lies, seen from a folder its file is in. Paths on the makers' machines are cut down
        to topic, dialogue and file."""
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
        """The folders a file lies in, up to the root."""
        return [folder for folder in path.parents if folder.is_relative_to(self.root)]

    def _attribute(self, path: Path) -> str:
        relative = path.relative_to(self.root)
        names = [part for part in re.split(r"[_. ]", relative.stem) if part]
        named = (*reversed(names), *reversed(relative.parts[:-1]), self.root.name)
        found = [FOLDERS[name.lower()] for name in named if name.lower() in FOLDERS]
        return next((name for name in found if name != "audio"), found[0] if found else "")  # audio/ may hold sounds


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(path: Path) -> Any:
    name = shown(str(path))
    try:
        tree = msgspec.json.decode(read_plain(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{name}: not usable JSON: {error}; fetch the file again") from None
    if not isinstance(tree, list | dict):
        raise DataError(f"{name}: holds {kind_of(tree)}, but dialogues are expected")
    return tree


def _lines(given: Sequence[Any], where: str) -> list[Line]:
    """Of an audio file."""
    found = []
    for number, one in enumerate(given):
        at = f"{where}, line {number}"
        if not isinstance(one, dict):
            raise DataError(f"{at}: holds {kind_of(one)}, but an object is expected")
        fields = lowered(one)
        speaker, said = text(fields, ("speaker_id",), at), text(fields, ("content",), at)
        if not speaker or not said:
            raise DataError(f"{at}: no {'speaker_id' if not speaker else 'content'!r}; fetch the file again")
        how = text(fields, ("insturct_style", "instruct_style"), at)
        found.append(Line(speaker, said, how, text(fields, ("wav_path",), at)))
    return found


def _script(fields: Fields, history: object, style: int, where: str) -> list[Line]:
    """Of a generation file: the history, the current turn in one of its styles, and the reply to that."""
    if not isinstance(history, list):
        raise DataError(f"{where}: the history holds {kind_of(history)}, but a list of lines is expected")
    spoken = text(fields, (f"current_turn_style_{style}",), where)
    current = text(fields, ("current_turn",), where)
    reply = text(fields, (f"response_of_current_style_{style}",), where)
    whole = f"{current[:1]} {spoken}: {_parsed(current, where).said}" if current else spoken
    return [_parsed(str(line), where) for line in (*history, whole, reply)]


def _parsed(line: str, where: str) -> Line:
    found = _LINE.fullmatch(line)
    if found is None or not found[3].strip():
        raise DataError(f"{where}: {shown(line)[:80]!r} is no line of a dialogue, like 'A (female, sad): Hello.'")
    return Line(found[1], found[3].strip(), (found[2] or "").strip("() "), "")


def _label(attribute: str, line: Line, identity: str) -> str:
    """What is to be heard in a line, in the release's words: the mark in it, the part of its style, or its topic."""
    if attribute == "stress":
        marked = _STRESS.search(line.said)
        return f"stress on “{marked[1]}”" if marked else "stress"
    if attribute == "nonverbal":
        sound = _SOUND.search(line.said)
        return sound[1].lower() if sound else "a sound that is no word"
    if attribute in ("audio", "music"):
        return identity.split("/")[2].replace("_", " ")
    if attribute == "language":
        return "spoken in Chinese"
    spoken = _SPOKEN.search(line.how)
    parts = [part.strip().lower() for part in line.how.split(",") if part.strip()]
    if spoken is not None and attribute in ("gender", "emotion", "speed"):
        parts = [spoken[1].lower(), spoken[4].lower(), spoken[3].lower(), spoken[2].lower()]
    place = {"gender": 0, "emotion": 1, "age": 2, "speed": 2}.get(attribute, -1)
    if not parts or place >= len(parts):
        return line.how
    return f"{parts[place]} years old" if attribute == "age" and parts[place].isdigit() else parts[place]


def _cue(label: str) -> str:
    """The slug of the cue that a label stands for; "" where it is none of ours."""
    if years := re.match(r"(\d+) years old", label):
        return "elderly" if int(years[1]) >= 60 else "child" if int(years[1]) < 13 else "adult"
    cue = find_cue(WORDS.get(label.casefold(), label))
    return cue.slug if cue else ""


def load(data: Path) -> VoxDialogue:
    """The release, or the part of it, that lies in `data`."""
    return VoxDialogue(data)
