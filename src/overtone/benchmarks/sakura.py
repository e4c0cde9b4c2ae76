"""SAKURA: two questions on one recording, about what is heard (single-hop) and what follows from it (multi-hop).

Each of the four tracks is a folder with `metadata.csv`, `metadata.json` and `audio/`; the two tables must agree. The
two questions belong together: a model that recognises an animal by its sound, but cannot say what the animal eats, does
not use what it heard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from overtone.benchmarks._files import lowered, read_csv, read_json, text
from overtone.benchmarks._folder import BenchmarkFolder, cue_of
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Option, Turn
from overtone.suite import Column, Facts, Headline, Means, Published, Release, Suite

TRACKS = ("gender", "language", "emotion", "animal")
HOMES = ("", "data/", "SAKURA/data/")  # folders that may hold the tracks
HOPS = {"single": 1, "multi": 2}  # → level
FIELDS = ("attribute_label", "single_instruction", "single_answer", "multi_instruction", "multi_answer")
_MARK = re.compile(r"(?:(?<=\s)|^)\(([a-z])\)\s*")
_ANSWER = re.compile(r"\(([a-z])\)\s*(.*)", re.S)


# ── the numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────


_METHOD = {"accuracy": "read by our rules", "sakura_correct": "by a judge who knows the right answer, as in the paper"}


def _hop_columns(score: str) -> tuple[Column, ...]:
    how = _METHOD[score]
    return (
        Column("single", "Single-hop", score, {"level": (1,)}, help=f"Questions about what is heard; {how}"),
        Column("multi", "Multi-hop", score, {"level": (2,)}, help=f"Questions about what follows from it; {how}"),
        Column(
            "used", "Multi-hop where single-hop is right", score, if_right=(1, 2),
            help=f"Facts heard and used: only recordings whose single-hop question is right; {how}",
        ),
    )  # fmt: skip


def _as_printed() -> Iterator[Column]:
    for track in TRACKS:
        for hop, level in HOPS.items():
            only: dict[str, tuple[str | int, ...]] = {"category": (track,), "level": (level,)}
            yield Column(f"{track}_{hop}", f"{track.capitalize()}, {hop}", "sakura_correct", only)
    for hop, level in HOPS.items():
        yield Column(
            f"average_{hop}", f"Average, {hop}", "sakura_correct", {"level": (level,)}, Means(by="category"),
            help="Mean of the tracks that were asked",
        )  # fmt: skip


SUITE = Suite(
    Facts(
        title="SAKURA",
        cues="gender, emotion (5), language (8), animal (9)",
        tasks="choose: what is heard, and what follows from it, about one recording",
        hears="audio",
        answers="a letter or words",
        turns="one",
        metrics="accuracy single-hop, multi-hop, and multi-hop if single-hop is right; by rule and by a judge",
        data="ckyang1124/SAKURA (GitHub)",
        licence="none stated",
        offline="loading and scoring by rule; the audio must be downloaded",
    ),
    release=Release(
        "ckyang1124/SAKURA",
        "none is stated: the authors keep all rights, and the corpora have their own terms. Read its page first",
        "github",
        ("data",),
    ),
    headlines=(
        Headline(
            "sakura", "SAKURA", _hop_columns("accuracy"), hint="Replies read by rule; every question counts the same."
        ),
        Headline("sakura-tracks", "SAKURA by track", _hop_columns("accuracy"), rows="category"),
        Headline("sakura-judged", "SAKURA, judged", _hop_columns("sakura_correct")),
        Headline("sakura-judged-tracks", "SAKURA by track, judged", _hop_columns("sakura_correct"), rows="category"),
        Headline(
            "sakura-paper",
            "SAKURA, as its authors print it",
            tuple(_as_printed()),
            hint="By a judge (rubric sakura). The average is the mean of the tracks, not of the questions.",
        ),
    ),
    published=(
        Published(
            "SAKURA, single- and multi-hop accuracy",
            "SAKURA's leaderboard (arXiv 2505.13237)",
            {f"{track}_{hop}": f"{track.capitalize()}, {hop}" for track in (*TRACKS, "average") for hop in HOPS},
            (
                ("LTU-AS", (52.4, 19.6, 16.8, 11.4, 28.6, 19.6, 65.6, 21.8, 40.9, 18.1)),
                ("GAMA-IT", (76.4, 39.8, 5.6, 19.4, 5.6, 24.2, 85.2, 51.4, 43.2, 33.7)),
                ("SALMONN", (59.8, 48.6, 21.8, 29.6, 19.8, 28.2, 68.6, 34.6, 42.5, 35.3)),
                ("DeSTA2", (88.4, 85.2, 94.2, 75.4, 34.8, 36.4, 34.4, 31.2, 63.0, 57.1)),
                ("Qwen-Audio-Chat", (49.6, 43.8, 87.6, 40.6, 63.2, 37.0, 92.2, 66.0, 73.2, 46.9)),
                ("Qwen2-Audio-Instruct", (88.0, 47.2, 83.8, 48.0, 64.2, 39.8, 88.8, 61.4, 81.2, 49.1)),
                ("GPT-4o Audio", (None, None, 95.2, 83.6, 38.2, 23.8, 80.6, 55.4, 71.3, 54.3)),
                ("Gemini-1.5-flash", (77.0, 24.2, 98.2, 79.8, 24.6, 19.4, 27.2, 16.2, 56.8, 34.9)),
                ("Gemini-1.5-pro", (74.0, 43.4, 97.2, 90.6, 39.2, 24.0, 42.0, 28.6, 63.1, 46.6)),
            ),
            comparable="the judge was gpt-4o-2024-11-20 with the authors' prompt, and the question included the "
            "options; compare a run with these only if it was judged with rubric sakura",
            digits={f"{track}_{hop}": 1 for track in (*TRACKS, "average") for hop in HOPS},
        ),
    ),
    rubrics=("sakura",),
    layout=tuple(
        f"{home}{track}/metadata.*" for home in HOMES for name in TRACKS for track in (name, name.capitalize())
    ),
)


# ── the files ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Sakura(BenchmarkFolder):
    """A folder with track folders, or the repository's folder, which holds such a folder."""

    name = "sakura"
    prompts = {"choose.letters": "item"}  # noqa: RUF012  (a question with two options lists two letters)

    def __init__(self, data: Path) -> None:
        super().__init__(data, "the tracks (Animal/, Emotion/, Gender/, Language/)")
        home = next((h for h in HOMES if self._tracks(h)), None)
        if home is None:
            raise DataError(
                f"{shown(str(data))}: no folder in it has a metadata.csv or .json; give the release's data folder"
            )
        for folder in self._tracks(home):
            self._read(folder, f"{home}{folder.name}/")

    def _tracks(self, home: str) -> list[Path]:
        root = self.root / home
        folders = sorted(f for f in root.iterdir() if f.is_dir()) if root.is_dir() else []
        return [f for f in folders if any((f / f"metadata.{kind}").is_file() for kind in ("csv", "json"))]

    def _read(self, folder: Path, prefix: str) -> None:
        track = folder.name.lower()
        if track not in TRACKS:
            self.notices.add(f"tracks other than {', '.join(TRACKS)} keep their own name", folder.name)
        tables = {
            path: read(path)
            for kind, read in (("csv", _read_csv), ("json", _read_json))
            if (path := inside(self.root, f"{prefix}metadata.{kind}")).is_file()
        }
        _check_agree(tables)
        for name, (where, fields) in next(iter(tables.values())).items():
            clip = self.clip(name, (f"{prefix}audio/", prefix), where)
            if clip is not None:
                for hop, level in HOPS.items():
                    self._add(track, name, clip, hop, level, fields, where)

    def _add(
        self, track: str, name: str, clip: str, hop: str, level: int, fields: Mapping[str, str], where: str
    ) -> None:
        stem, options = _split(fields[f"{hop}_instruction"])
        identity = f"sakura/{track}/{name}/{hop}"
        if len(options) < 2:
            self.notices.add("questions without two options, (a) … (b) …, are left out", identity)
            return
        gold = _gold(fields[f"{hop}_answer"], options)
        if not gold:
            self.notices.add("questions whose answer is not one of their options are asked but not scored", identity)
        label = fields["attribute_label"]
        cue, dimension = cue_of(label)
        self._items.append(
            Item(
                id=identity,
                benchmark=self.name,
                level=level,
                task="choose",
                category=track,
                case=f"{track}/{name}",
                group=f"{track}/{name}",
                style="",
                turns=(Turn(Clip(clip), cue=cue),),
                cue=cue,
                cue_text=label,
                dimension=dimension,
                question=stem,
                options=options,
                gold=gold,
            )
        )


Rows = dict[str, tuple[str, dict[str, str]]]  # name of a recording → its place in the table, and its fields


def _read_csv(path: Path) -> Rows:
    rows: Rows = {}
    for where, row in read_csv(path, ("file", *sorted(FIELDS))):
        _keep(rows, row["file"], row, where)
    return rows


def _read_json(path: Path) -> Rows:
    name, tree = shown(str(path)), read_json(path)
    if not isinstance(tree, dict) or not all(isinstance(fields, dict) for fields in tree.values()):
        raise DataError(f"{name}: an object of recordings is expected, each with its questions; fetch the file again")
    rows: Rows = {}
    for key, fields in tree.items():
        # The keys are paths within the repository: data/Animal/audio/dog27.wav.
        before, audio, file = key.rpartition("/audio/")
        _keep(rows, file if audio and ".." not in before else key, lowered(fields), f"{name}: {shown(key)}")
    return rows


def _keep(rows: Rows, file: str, fields: Mapping[str, Any], where: str) -> None:
    if not file:
        raise DataError(f"{where}: the name of the recording is missing; fetch the file again")
    if file in rows:
        raise DataError(f"{where}: {shown(file)} is duplicated; keep one")
    values = {field: text(dict(fields), (field,), where) for field in FIELDS}
    if empty := [field for field, value in values.items() if not value]:
        raise DataError(f"{where}: {empty[0]!r} is missing or empty; fetch the file again")
    rows[file] = (where, values)


def _check_agree(tables: Mapping[Path, Rows]) -> None:
    """Raise DataError if the two tables of a track differ, because one of them must be damaged."""
    if len(tables) < 2:
        return
    (_, first), (other, second) = tables.items()
    for file in [*first, *second]:
        if file not in first or file not in second:
            where = (first if file in first else second)[file][0]
            raise DataError(f"{where}: {shown(file)} is in one of the two tables only; fetch both again")
        (where, values), (_, other_values) = first[file], second[file]
        if differing := [field for field in FIELDS if values[field] != other_values[field]]:
            raise DataError(f"{where}: {differing[0]!r} differs from {shown(other.name)}; fetch both again")


def _split(instruction: str) -> tuple[str, tuple[Option, ...]]:
    """Split an instruction like `Which animal? (a) pig (b) crow` into the question and its options."""
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(instruction):
        if mark[1] == chr(ord("a") + len(marks)):
            marks.append(mark)
    ends = [*(mark.start() for mark in marks[1:]), len(instruction)]
    texts = [instruction[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)]
    if not marks or not all(texts):
        return instruction.strip(), ()
    options = tuple(Option(mark[1].upper(), words) for mark, words in zip(marks, texts, strict=True))
    return instruction[: marks[0].start()].strip(), options


def _gold(answer: str, options: tuple[Option, ...]) -> str:
    """Return the letter of an answer like `(b) crow`; "" if no option has both this letter and these words."""
    match = _ANSWER.fullmatch(answer.strip())
    if match is None:
        return ""
    letter, words = match[1].upper(), match[2].strip()
    return next((o.letter for o in options if o.letter == letter and o.text.casefold() == words.casefold()), "")


def load(data: Path) -> Sakura:
    """Load SAKURA from its data folder, or from the folder above it."""
    return Sakura(data)
