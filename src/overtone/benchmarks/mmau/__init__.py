"""MMAU: multiple-choice questions about sounds, music and speech, 27 skills, easy to hard; some answers are hidden.

Reads `mmau-test-mini.json` and `mmau-test.json` as released (v05.15.25), with the sounds at the paths they name. The
answers of the second are not published: it is asked, and its predictions are written to a file for submission.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from overtone.benchmarks._files import Fields, kind_of, read_objects, slugify, text
from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.mmau import word_match
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Option, Turn
from overtone.suite import Column, Facts, Headline, Published, Release, Suite

FILES = ("mmau-test-mini.json", "mmau-test.json")
FOLDERS = ("", "MMAU/", "data/")
TASKS = ("sound", "music", "speech")
DIFFICULTIES = ("easy", "medium", "hard")
PREDICTION = ("model_output", "model_prediction")  # the key that evaluation.py reads, and the documented one
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

# MMAU matches the words of a choice, so the prompt asks for words. A letter would count as another word.
ASKED = (
    "{role.plain} Listen to the recording and pick the one option that answers the question best. Give no explanation. "
    "Reply with the words of that option, exactly as they stand, without its letter and with nothing else."
)


def _topics(task: str = "", difficulty: str = "") -> dict[str, tuple[str | int, ...]]:
    """Return a filter for items of a task and a difficulty ("": any). An item's topic is TASK/DIFFICULTY."""
    tasks, grades = ((task,) if task else TASKS), ((difficulty,) if difficulty else (*DIFFICULTIES, ""))
    return {"topic": tuple(f"{t}/{d}" for t in tasks for d in grades)}


def _columns(score: str, how: str) -> tuple[Column, ...]:
    by_task = (Column(t, t.capitalize(), score, _topics(t), help=how) for t in TASKS)
    by_grade = (Column(d, d.capitalize(), score, _topics(difficulty=d), help=how) for d in DIFFICULTIES)
    return (Column("total", "All", score, help=how), *by_task, *by_grade)


MATCHED = (
    "MMAU's string match: the reply has all words of the right choice, and no word that is in wrong choices only; "
    "a reply that explains why it excludes a choice is wrong, and so is a bare letter"
)
READ = "The option that the reply chooses, read by our rules"
METRICS = {"mmau": word_match}
SUITE = Suite(
    Facts(
        title="MMAU",
        cues="none by name: sounds, music, speech in 27 skills",
        tasks="choose (2–8 options), 12 skills of hearing and 15 of reasoning",
        hears="audio",
        answers="the words of an option",
        turns="one",
        metrics="its string match by task, difficulty and skill; accuracy read by rule",
        data="Sakshi113/MMAU (GitHub), sounds gamma-lab-umd/MMAU-test-mini (hub)",
        licence="none stated; audio as the corpora state",
        offline="loading, scoring and writing predictions; the audio must be downloaded",
    ),
    release=Release(
        "Sakshi113/MMAU",
        "none is stated in the repository. Read its page first",
        "github",
        FILES,
        also=(
            Release(
                "gamma-lab-umd/MMAU-test-mini",
                "as on its dataset card; the sounds come from corpora with their own terms",
            ),
        ),
    ),
    headlines=(
        Headline("mmau", "MMAU, its own string match", _columns("mmau_match", MATCHED)),
        Headline("mmau-read", "MMAU, read by rule", _columns("accuracy", READ)),
        Headline(
            "mmau-skills",
            "MMAU by skill",
            (
                Column("match", "String match", "mmau_match", help=MATCHED),
                Column("read", "Read", "accuracy", help=READ),
            ),
            rows="category",
        ),
    ),
    published=(
        Published(
            "MMAU v05.15.25, test-mini",
            "MMAU's leaderboard (arXiv 2410.19168), as copied by DeSTA2.5-Audio's evaluation page",
            {"speech": "Speech", "sound": "Sound", "music": "Music", "total": "Average"},
            (
                ("Audio Flamingo 3", (66.37, 79.58, 66.77, 73.30)),
                ("Qwen2.5-Omni", (70.60, 78.10, 65.90, 71.50)),
                ("Gemini 2.5 Pro", (71.47, 75.08, 68.26, 71.60)),
                ("DeSTA2.5-Audio", (71.17, 70.57, 56.29, 66.00)),
                ("Kimi-Audio", (62.16, 75.68, 66.77, 68.20)),
                ("Audio Reasoner", (66.07, 67.87, 69.16, 67.70)),
                ("Phi-4-multimodal", (67.27, 65.47, 64.37, 65.70)),
                ("Gemini 2.5 Flash Lite", (72.07, 63.06, 63.47, 66.20)),
                ("Audio Flamingo 2", (44.74, 71.47, 70.96, 62.40)),
                ("GPT-4o Audio", (66.67, 64.56, 56.29, 62.50)),
                ("Qwen2-Audio-Instruct", (55.26, 67.27, 56.29, 59.60)),
                ("Gemma 3n", (61.26, 55.86, 56.89, 58.00)),
                ("GPT-4o mini Audio", (69.07, 50.75, 39.22, 53.00)),
                ("SALMONN", (26.43, 41.14, 37.13, 34.90)),
                ("GAMA-IT", (10.81, 30.93, 26.74, 22.83)),
                ("LTU", (15.92, 20.42, 15.97, 17.44)),
                ("Audio Flamingo Chat", (6.91, 25.23, 17.66, 16.60)),
            ),
            comparable="every model had its own prompt and the replies of some were parsed first; the match depends on "
            "both. Compare the string match over test-mini, and state your prompt. The average of Audio Flamingo 3 is "
            "not the mean of its columns (70.90), and the rows of Qwen2.5-Omni, GAMA-IT and LTU cannot be shares of "
            "333, 333 and 334 questions",
            digits=dict.fromkeys(("speech", "sound", "music", "total"), 2),
        ),
    ),
    layout=tuple(folder + name for folder in FOLDERS for name in FILES),
)


class Mmau(BenchmarkFolder):
    """A folder that holds one or both of the question files."""

    name = "mmau"
    prompts = {"choose.letters": "item", "choose.system": ASKED}  # noqa: RUF012

    def __init__(self, data: Path) -> None:
        super().__init__(data, " or ".join(FILES))
        for path in files_of(self.root):
            prefix = self.folder_of(path)
            for where, fields in read_objects(path):
                self._add(prefix, fields, where)

    def _add(self, prefix: str, fields: Fields, where: str) -> None:
        given = identity(fields, where)
        choices = fields.get("choices")
        if not isinstance(choices, list) or not all(isinstance(c, str) and c.strip() for c in choices):
            raise DataError(f"{where}: 'choices' holds {kind_of(choices)}, but a list of texts is expected")
        if not 2 <= len(choices) <= len(_LETTERS):
            raise DataError(f"{where}: {len(choices)} choices; between 2 and {len(_LETTERS)} are expected")
        question, named = text(fields, ("question",), where), text(fields, ("audio_id",), where)
        if not question or not named:
            raise DataError(f"{where}: 'question' and 'audio_id' are expected; fetch the file again")
        clip = self.clip(named, (prefix, ""), where)
        known = self._ids.claim(given, tuple(map(str, (question, *choices, named))), where) if clip else ""
        if clip is None or not known:
            return
        options = tuple(Option(letter, words.strip()) for letter, words in zip(_LETTERS, choices, strict=False))
        answer = text(fields, ("answer",), where)
        gold = next((o.letter for o in options if o.text.casefold() == answer.casefold()), "") if answer else ""
        if answer and not gold:
            self.notices.add("questions whose answer is not one of the choices are scored by string match only", known)
        elif not answer:
            self.notices.add("questions whose answer is hidden are asked but not scored", known)
        task, grade = (text(fields, (key,), where).lower() for key in ("task", "difficulty"))
        kinds = _kinds(fields.get("category"), where)
        self._items.append(
            Item(
                id=known,
                benchmark=self.name,
                level=2 if any("reason" in kind for kind in kinds) else 1,
                task="choose",
                category=slugify(text(fields, ("sub-category", "sub_category"), where) or " ".join(kinds)) or "unknown",
                case=clip,
                group=clip,
                style="",
                turns=(Turn(Clip(clip)),),
                source=text(fields, ("dataset",), where),
                topic=f"{task}/{grade}",
                question=question,
                options=options,
                gold=gold,
                references=(answer,) if answer else (),
            )
        )


def identity(fields: Fields, where: str) -> str:
    """Return the id of a question's item."""
    given = text(fields, ("id",), where)
    if not given:
        raise DataError(f"{where}: no 'id'; fetch the file again")
    return f"mmau/{text(fields, ('split',), where) or 'test-mini'}/{given}"


def files_of(root: Path) -> list[Path]:
    """Return the question files in the first folder that has any. Raises DataError if no folder has one."""
    for folder in FOLDERS:
        files = [inside(root, folder + name) for name in FILES if (root / folder / name).is_file()]
        if files:
            return files
    raise DataError(f"{shown(str(root))}: holds neither {' nor '.join(FILES)}; give the folder that contains them")


def _kinds(category: Any, where: str) -> list[str]:
    """Return the values of `category`, which is a text or, in some rows, a list of texts."""
    given = category if isinstance(category, list) else [category or ""]
    if not all(isinstance(kind, str) for kind in given):
        raise DataError(f"{where}: 'category' holds {kind_of(category)}, but text or a list of texts is expected")
    return [kind.strip().lower() for kind in given if kind.strip()]


def predictions(root: Path, replies: Iterable[tuple[Item, str]]) -> list[Fields]:
    """Return the input for MMAU's evaluation: its question objects with the model's reply, stored under both usual
    keys."""
    texts = {item.id: reply for item, reply in replies}
    rows = [row for path in files_of(root) for row in read_objects(path)]
    replied = [(fields, texts.get(identity(fields, where))) for where, fields in rows]
    return [{**fields, **dict.fromkeys(PREDICTION, reply)} for fields, reply in replied if reply is not None]


def load(data: Path) -> Mmau:
    """Load MMAU from the folder that holds its question files."""
    return Mmau(data)
