"""Everything that the study's jobs read, built from the user's folders, as texts: no model's tokens, no torch.

EmoBank (or your own corpus with two label sets) is required; DREAM and Overtone-Open add their outcomes. Your own
corpus is a folder with two files in UTF-8:

    sentences.csv   id,text,document,genre,split            split: train, dev or test
    ratings.csv     id,perspective,V,A,D                    one row per rating, from 1 to 5; perspective: reader, writer
"""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from overtone.benchmarks.dream.baselines import Baselines
from overtone.benchmarks.emobank.bank_files import read_bank
from overtone.build.dream.dream_files import SPLITS, Dialogue, read_split
from overtone.cues import BY_SLUG
from overtone.errors import DataError
from overtone.paths import shown
from overtone.rated_sentences import DIMENSIONS, PERSPECTIVES, Bank
from overtone.text import count

SENTENCES, RATINGS = "sentences.csv", "ratings.csv"
PLAIN_DIALOGUES = 600  # of DREAM's dev part, for the perplexity
_OPEN_FIELDS = ("id", "group", "level", "cue", "words", "heard", "question", "options", "gold")
_ABOUT = ("level", "category", "cue", "style", "status")


@dataclass(frozen=True)
class Inputs:
    """The sentences and questions of a study's jobs."""

    bank: Bank
    general: Sequence[str]  # prompts that the base model answers, for the replay
    questions: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)  # open, dream, dream-train
    plain: Sequence[str] = ()  # texts for the perplexity
    baselines: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)  # set → name → 1 where right

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of all inputs, which every result contains."""
        bank = self.bank
        rated = {
            name: {who: [np.asarray(x).tolist() for x in values] for who, values in getattr(bank, name).items()}
            for name in ("means", "ratings")
        }
        rows = [bank.ids, bank.documents, bank.genres, bank.splits, rated]
        whole = [rows, bank.texts, list(self.general), dict(self.questions), list(self.plain)]
        return hashlib.sha256(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    @property
    def outcomes(self) -> set[str]:
        """The outcomes that can be evaluated with these inputs."""
        names = {"emobank"} | ({"perplexity"} if self.plain else set())
        return (
            names | set(self.questions) & {"open", "dream"} | ({"tuned"} if "dream-train" in self.questions else set())
        )


def read_inputs(corpus: Path, dream: Path | None = None, overtone_open: Path | None = None) -> Inputs:
    """Read the user's folders. Raises DataError with the file, the problem and a remedy.

    `overtone_open` is a folder of `overtone build open` with its recogniser's words (`facts.jsonl`), or a file of
    questions, one JSON object per line (.jsonl or .jsonl.xz).
    """
    bank = read_corpus(corpus)
    questions: dict[str, Sequence[dict[str, Any]]] = {}
    plain: list[str] = []
    baselines: dict[str, dict[str, list[int]]] = {}
    if overtone_open is not None:
        questions["open"] = read_open(overtone_open)
    if dream is not None:
        train, dev, test = (read_split(dream, split) for split in SPLITS)
        questions |= {"dream": dream_questions(test), "dream-train": dream_questions(train)}
        plain = [dialogue.text for dialogue in dev[:PLAIN_DIALOGUES]]
        baselines["dream"] = baseline_answers(train, test)
    return Inputs(bank, general_prompts(), questions, plain, baselines)


def general_prompts() -> list[str]:
    """Return the package's general prompts."""
    path = Path(__file__).parents[2] / "echat/making/texts/plain.toml"
    return [pair["question"] for pair in tomllib.loads(path.read_text(encoding="utf-8"))["plain"]]


# ── sentences with two label sets ─────────────────────────────────────────────────────────────────────────────────────
def read_corpus(folder: Path) -> Bank:
    """Read EmoBank or your own corpus. Raises DataError."""
    if (folder / SENTENCES).is_file():
        return read_own(folder)
    if not (folder / "emobank.csv").is_file():
        raise DataError(
            f"{shown(str(folder))} has neither emobank.csv (EmoBank's files) nor {SENTENCES} (your own corpus); "
            "name such a folder with --data"
        )
    return read_bank(folder)


def read_own(folder: Path) -> Bank:
    """Read the user's own corpus, in the format above. Raises DataError."""
    rows = list(_rows(folder / SENTENCES, ("id", "text", "document", "genre", "split")))
    ids = [row["id"] for row in rows]
    if twice := {i for i in ids if ids.count(i) > 1} if len(set(ids)) < len(ids) else set():
        raise DataError(f"{_at(folder / SENTENCES)}: the id {shown(min(twice))!r} occurs twice; make ids unique")
    wrong = next((row for row in rows if row["split"] not in ("train", "dev", "test") or not row["text"].strip()), None)
    if wrong:
        raise DataError(
            f"{_at(folder / SENTENCES)}: {shown(wrong['id'])!r} needs a text and a split: train, dev or test"
        )
    ratings: dict[str, dict[str, list[list[float]]]] = {who: {i: [] for i in ids} for who in PERSPECTIVES}
    for row in _rows(folder / RATINGS, ("id", "perspective", *DIMENSIONS)):
        if row["perspective"] not in ratings or row["id"] not in ratings["reader"]:
            raise DataError(
                f"{_at(folder / RATINGS)}: {shown(row['id'])!r}, {shown(row['perspective'])!r}: the id must be in "
                f"{SENTENCES} and the perspective one of {', '.join(PERSPECTIVES)}"
            )
        ratings[row["perspective"]][row["id"]].append(_numbers(row, folder / RATINGS))
    return _bank(folder, rows, ids, ratings)


def _bank(
    folder: Path, rows: list[dict[str, str]], ids: list[str], ratings: dict[str, dict[str, list[list[float]]]]
) -> Bank:
    for who, by_id in ratings.items():
        if bare := [i for i in ids if not by_id[i]]:
            raise DataError(
                f"{_at(folder)}: {count(len(bare), 'sentence')} without a rating by a {who}, first {shown(bare[0])!r}; "
                "every sentence needs both perspectives"
            )
    arrays = {who: [np.array(by_id[i], float) for i in ids] for who, by_id in ratings.items()}
    return Bank(
        ids=ids,
        documents=[row["document"] for row in rows],
        genres=[row["genre"] for row in rows],
        splits=[row["split"] for row in rows],
        means={who: np.array([r.mean(0) for r in values]) for who, values in arrays.items()},
        ratings=arrays,
        texts=[row["text"] for row in rows],
    )


def _rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
                raise DataError(f"{_at(path)}: no column {', '.join(missing)}; the header must be {','.join(columns)}")
            for row in reader:
                if any(row[name] is None for name in columns):
                    raise DataError(f"{_at(path)}: line {reader.line_num} has too few columns")
                yield row
    except OSError as error:
        raise DataError(f"{_at(path)}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{_at(path)}: not CSV in UTF-8 ({shown(str(error))})") from None


def _numbers(row: Mapping[str, str], path: Path) -> list[float]:
    try:
        values = [float(row[d]) for d in DIMENSIONS]
    except ValueError:
        values = []
    if not values or not all(1 <= value <= 5 for value in values):
        given = ", ".join(shown(row[d]) for d in DIMENSIONS)
        raise DataError(f"{_at(path)}: {shown(row['id'])!r} has the rating {given}; each must be from 1 to 5")
    return values


def _at(path: Path) -> str:
    return shown(str(path))


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def dream_questions(dialogues: Sequence[Dialogue]) -> list[dict[str, Any]]:
    """Return the questions about DREAM's dialogues."""
    return [
        {
            "dialogue": dialogue.text, "question": asked.text, "options": list(asked.choices), "gold": asked.answer,
            "about": {"cluster": dialogue.id},
        }
        for dialogue in dialogues
        for asked in dialogue.questions
    ]  # fmt: skip


def baseline_answers(train: Sequence[Dialogue], test: Sequence[Dialogue]) -> dict[str, list[int]]:
    """Return, for each baseline without understanding, 1 for every test question that it answers right, else 0."""
    baselines = Baselines(train)
    right: dict[str, list[int]] = {name: [] for name in baselines.names}
    for dialogue in test:
        for asked, chosen in zip(dialogue.questions, baselines.answers(dialogue), strict=True):
            for name, option in chosen.items():
                right[name].append(int(option == asked.answer))
    return right


def read_open(path: Path) -> list[dict[str, Any]]:
    """Return Overtone-Open's core questions of levels 1 and 2, with the recogniser's words. Raises DataError."""
    rows = list(_open_folder(path)) if path.is_dir() else _open_file(path)
    if not rows:
        raise DataError(f"{_at(path)}: no questions of level 1 or 2")
    for row in rows:
        if missing := [name for name in _OPEN_FIELDS if name not in row]:
            raise DataError(f"{_at(path)}: a question has no {', '.join(missing)}; build the set again")
        if row["cue"] not in BY_SLUG:
            raise DataError(f"{_at(path)}: {shown(str(row['id']))} has the unknown cue {shown(str(row['cue']))!r}")
        options = row["options"]
        if not isinstance(options, list) or len(options) < 2 or row["gold"] not in range(len(options)):
            raise DataError(
                f"{_at(path)}: {shown(str(row['id']))} needs two options or more, and the index of one as `gold`"
            )
        row["about"] = {"id": row["id"], "cluster": row["group"], **{name: row.get(name) for name in _ABOUT}}
    return rows


def _open_file(path: Path) -> list[dict[str, Any]]:
    try:
        raw = path.read_bytes()
        raw = lzma.decompress(raw) if path.suffix == ".xz" else raw
        rows = [json.loads(line) for line in raw.splitlines()]
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise DataError(f"{_at(path)}: not a file of questions ({shown(str(error))})") from None
    if not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{_at(path)}: not a file of questions: each line must be a JSON object")
    return rows


def _open_folder(folder: Path) -> Iterator[dict[str, Any]]:
    from overtone.benchmarks import Selection, selected
    from overtone.benchmarks.open import Open

    facts = folder / "facts.jsonl"
    if not facts.is_file():
        raise DataError(
            f"{_at(folder)} has no {facts.name} with the recogniser's words; run overtone build open with gates"
        )
    heard = {fact["sha256"]: fact["transcript"] for fact in map(json.loads, facts.read_text("utf-8").splitlines())}
    for item in selected(Open(folder), Selection(frozenset({1, 2}), frozenset({"target", "alternative"}))):
        if item.task != "choose" or item.part:
            continue
        said = item.turns[-1]
        clip = (folder / said.clip.path).read_bytes() if said.clip else b""
        digest = hashlib.sha256(clip).hexdigest()
        if digest not in heard:
            raise DataError(f"{_at(facts)} has no words for {shown(item.id)}; run overtone build open again")
        yield {
            "id": item.id, "group": item.group, "level": item.level, "category": item.category, "cue": item.cue,
            "style": item.style, "status": item.status, "words": said.words, "heard": heard[digest],
            "question": item.question, "options": [option.text for option in item.options],
            "gold": [option.letter for option in item.options].index(item.gold),
        }  # fmt: skip


def leads(row: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return, for each condition, the text that precedes a question. `name` is the name of the set of questions."""
    if name != "open":
        return {"words": f"{row['dialogue']}\n\n", "none": ""}
    return {
        "words": f'A person says: "{row["words"]}"\n\n',
        "heard": f'A person says: "{row["heard"]}"\n\n',
        "told": f'A person says: "{row["words"]}"\n{BY_SLUG[row["cue"]].option}\n\n',
        "none": "",
    }
