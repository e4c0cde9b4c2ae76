"""AIR-Bench: 19 tasks of hearing speech, sound and music by letter (foundation), and open answers to questions (chat).

Reads `Foundation/Foundation_meta.json` and `Chat/Chat_meta.json` as released, either or both, with each recording in
`{task_name}_{dataset_name}/`. A judge rates an open answer together with the reference answer, in both orders.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from overtone.benchmarks._files import Fields, read_objects, slugify, text
from overtone.benchmarks._folder import BenchmarkFolder, cue_of
from overtone.benchmarks.air_bench import letter_rule
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Option, Turn
from overtone.suite import Column, Facts, Headline, Means, Published, Release, Suite, Wins

META = {"foundation": "Foundation_meta.json", "chat": "Chat_meta.json"}
FOUNDATION = {  # kind of recording → its tasks, named as in the files, misspellings included
    "speech": (
        "Speech_Grounding", "Spoken_Language_Identification", "Speaker_Gender_Recognition", "Speaker_Emotion_Recontion",
        "Speaker_Age_Prediction", "Speech_Entity_Reconition", "Speaker_Intent_Classification",
        "Speaker_Number_Verification", "Synthesized_Voice_Detection",
    ),
    "sound": ("Audio_Grounding", "vocal_sound_classification", "Acoustic_Scene_Classification", "Sound_AQA"),
    "music": (
        "Music_Instruments_Classfication", "Music_Genre_Recognition", "Music_Midi_Pitch_Analysis",
        "Music_Midi_Velocity_Analysis", "Music_AQA", "Music_Mood_Recognition",
    ),
}  # fmt: skip
CHAT = {
    "speech": ("speech_QA", "speech_dialogue_QA"),
    "sound": ("sound_QA", "sound_generation_QA"),
    "music": ("music_QA", "music_generation_analysis_QA"),
    "speech_and_sound": ("speech_and_sound_QA",),
    "speech_and_music": ("speech_and_music_QA",),
}
MIXED = ("speech_and_sound", "speech_and_music")
_ABOUT_A_CUE = ("gender", "emotion", "age-prediction", "vocal-sound")  # tasks whose answer is the name of a cue
PROMPTS = {
    "choose.letters": "item",
    "choose.system": "{role.plain} Listen to the recording and pick the one option that answers the question best. "
    "Give no explanation. Reply with its letter and nothing else: {letters}",
    "basic.system": "{role.plain}\nListen to the recording and answer the question about it.",
    "enhance.any.system": "{role.plain}\nListen to the recording and answer the question about it.",
}


slug = functools.cache(slugify)
_KIND_OF_TASK = {slug(t): kind for table in (FOUNDATION, CHAT) for kind, tasks in table.items() for t in tasks}

# ── the numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────


AVERAGE = Means(by="topic", parts=(("speech",), ("sound",), ("music",), MIXED))  # the mean of the four columns
LETTER = (
    "AIR-Bench's rule: the first character, otherwise the last but one; replies with no A–D there are skipped, so a "
    "model that answers in words is scored on fewer questions"
)
READ = "The option that the reply chooses, read by our rules; an unreadable reply is wrong"
_CHOOSE: dict[str, tuple[str | int, ...]] = {"task": ("choose",)}
_CHAT: dict[str, tuple[str | int, ...]] = {"task": ("converse",)}


def _foundation(score: str, label: str, how: str) -> Iterator[Column]:
    for kind in FOUNDATION:
        only = {**_CHOOSE, "topic": (kind,)}
        yield Column(f"{kind}_{score}", f"{kind.capitalize()}, {label}", score, only, help=how)
    yield Column(f"tasks_{score}", f"Mean of tasks, {label}", score, _CHOOSE, Means(by="category"), help=how)


def _chat(score: str) -> Iterator[Column]:
    for kind in ("speech", "sound", "music"):
        yield Column(kind, kind.capitalize(), score, {**_CHAT, "topic": (kind,)}, kind="number")
    help = "Mean of two means, speech with sound and speech with music"
    yield Column("mixed", "Mixed audio", score, {**_CHAT, "topic": MIXED}, Means(by="topic"), "number", help=help)
    yield Column("average", "Average", score, _CHAT, AVERAGE, "number", help="Mean of the four columns")


METRICS = {"air-bench": letter_rule}
SUITE = Suite(
    Facts(
        title="AIR-Bench",
        cues="gender, emotion, age, vocal sounds among 19 tasks of speech, sound and music",
        tasks="choose (foundation), answer openly (chat)",
        hears="audio and a written question",
        answers="a letter, or text",
        turns="one",
        metrics="accuracy by its first-letter rule and by ours; ratings 1–10 with the reference, in both orders",
        data="qyang1021/AIR-Bench-Dataset (hub)",
        licence="CC BY-NC 4.0; audio as the corpora state",
        offline="loading and scoring by letter; the audio must be downloaded",
    ),
    release=Release(
        "qyang1021/AIR-Bench-Dataset",
        "CC BY-NC 4.0: non-commercial, name the authors; each recording also has its corpus's terms. About 49 GB",
    ),
    headlines=(
        Headline(
            "air-foundation",
            "AIR-Bench, foundation",
            (*_foundation("air_letter", "its rule", LETTER), *_foundation("accuracy", "read", READ)),
        ),
        Headline(
            "air-foundation-tasks",
            "AIR-Bench, foundation by task",
            (
                Column("letter", "Its rule", "air_letter", _CHOOSE, help=LETTER),
                Column("read", "Read by rule", "accuracy", _CHOOSE, help=READ),
            ),
            rows="category",
        ),
        Headline(
            "air-chat",
            "AIR-Bench, chat",
            (
                *_chat("air_a"),
                Column("reference", "Reference's average", "air_b", _CHAT, AVERAGE, "number"),
                Column(
                    "ratio",
                    "Of the reference",
                    "air_a",
                    _CHAT,
                    Means(by="topic", parts=AVERAGE.parts, over="air_b"),
                    help="Model's average divided by the reference's, by the same judge",
                ),
            ),
            hint="Ratings from 1 to 10 by a judge that sees both answers, asked in both orders and averaged.",
        ),
        Headline(
            "air-chat-wins",
            "AIR-Bench, chat: against the reference",
            (
                Column(
                    "wins",
                    "Win rate",
                    "air_a",
                    _CHAT,
                    read=Wins("air_a", "air_b"),
                    ends=(0.0, 1.0),
                    help="Share of verdicts, in both orders, that rate the answer higher; a tie does not count",
                ),
                Column("model", "Model's mean", "air_a", _CHAT, kind="number"),
                Column("reference", "Reference's mean", "air_b", _CHAT, kind="number"),
            ),
            rows="topic",
            hint="By kind of recording, as AIR-Bench's script prints them, but it prints each order separately.",
        ),
    ),
    published=(
        Published(
            "AIR-Bench, chat",
            "AIR-Bench's leaderboard (arXiv 2402.07729); judge gpt-4-0125-preview",
            {"speech": "Speech", "sound": "Sound", "music": "Music", "mixed": "Mixed audio", "average": "Average"},
            (
                ("Qwen2-Audio", (7.18, 6.99, 6.79, 6.77, 6.93)),
                ("Qwen-Audio-Turbo", (7.04, 6.59, 5.98, 5.77, 6.34)),
                ("SALMONN", (6.16, 6.28, 5.95, 6.08, 6.11)),
                ("Qwen-Audio", (6.47, 6.95, 5.52, 5.38, 6.08)),
                ("Gemini-1.5-pro", (6.97, 5.49, 5.06, 5.27, 5.70)),
                ("BLSP", (6.17, 5.55, 5.08, 4.52, 5.33)),
                ("Pandagpt", (3.58, 5.46, 5.06, 2.93, 4.25)),
                ("Next-gpt", (3.86, 4.76, 4.18, 2.92, 4.13)),
                ("SpeechGPT", (1.57, 0.95, 0.95, 1.14, 1.15)),
                ("Macaw-LLM", (0.97, 1.01, 0.91, 1.00, 1.01)),
                ("Whisper+GPT 4", (7.54, None, None, None, None)),
            ),
            comparable="another judge with another prompt; the averages of Next-gpt and Macaw-LLM are not the means "
            "of their columns",
            digits=dict.fromkeys(("speech", "sound", "music", "mixed", "average"), 2),
        ),
        Published(
            "AIR-Bench, foundation: the nine tasks of speech",
            "AIR-Bench's leaderboard (arXiv 2402.07729), in per cent, as another project repeats it",
            {slug(task): task.replace("_", " ") for task in FOUNDATION["speech"]},
            (
                ("Qwen-Audio-Turbo", (45.4, 95.9, 82.5, 60.0, 58.8, 48.1, 56.4, 54.3, 69.3)),
                ("Qwen-Audio", (56.1, 92.8, 67.2, 43.2, 36.0, 71.2, 77.8, 35.3, 48.3)),
                ("Pandagpt", (23.0, 34.6, 66.5, 26.0, 42.5, 34.0, 28.5, 43.2, 53.1)),
                ("SALMONN", (25.3, 28.1, 35.5, 29.9, 48.7, 51.7, 36.7, 34.3, 50.0)),
                ("Next-gpt", (25.4, 23.7, 57.0, 25.7, 62.4, 26.1, 25.6, 25.4, 30.8)),
                ("BLSP", (25.0, 30.8, 33.2, 27.4, 51.2, 37.2, 46.6, 28.1, 50.0)),
                ("SpeechGPT", (28.8, 39.6, 29.2, 37.6, 20.4, 35.9, 45.8, 32.6, 39.2)),
                ("Whisper+GPT 4", (35.0, 96.8, 21.9, 59.5, 41.1, 69.8, 87.7, 30.0, 40.5)),
            ),
            comparable="another model mapped replies without a letter to one, at random if none fitted",
            digits={slug(task): 1 for task in FOUNDATION["speech"]},
        ),
    ),
    rubrics=("air-bench",),
    speech=False,
    layout=tuple(f"{folder}{file}" for part, file in META.items() for folder in ("", f"{part.capitalize()}/")),
)


# ── the files ───────────────────────────────────────────────────────────────────────────────────────────────────────


class AirBench(BenchmarkFolder):
    """A folder that holds Foundation/ or Chat/ or both, or is itself Foundation/ or Chat/."""

    name = "air-bench"
    prompts = PROMPTS

    def __init__(self, data: Path) -> None:
        super().__init__(data, "Foundation/ and Chat/")
        for part, file in META.items():
            for prefix in (f"{part.capitalize()}/", ""):
                if (self.root / prefix / file).is_file():
                    self._read(part, inside(self.root, prefix + file), prefix)
                    break
        if not self._items and not self.warnings:
            raise DataError(
                f"{shown(str(data))}: holds neither Foundation/{META['foundation']} nor Chat/{META['chat']}; "
                "give the folder of the release"
            )

    def _read(self, part: str, path: Path, prefix: str) -> None:
        for where, fields in read_objects(path):
            task, dataset, named, question, number = (
                text(fields, (key,), where) for key in ("task_name", "dataset_name", "path", "question", "uniq_id")
            )
            if not (task and dataset and named and question and number):
                raise DataError(f"{where}: task_name, dataset_name, path, question and uniq_id are expected")
            folder = f"{prefix}{task}_{dataset}/"
            clip = self._clip(named, folder, where)
            content = (question, *(str(fields.get(key)) for key in sorted(fields)))
            identity = self._ids.claim(f"air-bench/{part}/{task}_{dataset}/{number}", content, where) if clip else ""
            if clip is None or not identity:
                continue
            if slug(task) not in _KIND_OF_TASK:
                self.notices.add("tasks that are not known are counted in no column", task)
            about: dict[str, Any] = {
                "id": identity, "benchmark": self.name, "category": slug(task), "case": clip, "group": clip,
                "style": "", "source": dataset, "topic": _KIND_OF_TASK.get(slug(task), ""),
            }  # fmt: skip
            self._items.append(
                self._choice(about, clip, question, fields, where)
                if part == "foundation"
                else self._open(about, clip, question, fields, where)
            )

    def _clip(self, named: str, folder: str, where: str) -> str | None:
        """Return the recording's path, or None. Some recordings are FLAC files, although the list calls them .wav."""
        if named.endswith(".wav") and not named.startswith("/") and ".." not in folder + named:
            flac = f"{folder}{named[:-4]}.flac"
            if not (self.root / folder / named).is_file() and (self.root / flac).is_file():
                return self.clip(flac, ("",), where)
        return self.clip(named, (folder,), where)

    def _choice(self, about: dict[str, Any], clip: str, question: str, fields: Fields, where: str) -> Item:
        given = [(letter, text(fields, (f"choice_{letter.lower()}",), where)) for letter in "ABCD"]
        options = tuple(Option(letter, words) for letter, words in given if words)
        if len(options) < 2 or [o.letter for o in options] != list("ABCD"[: len(options)]):
            raise DataError(f"{where}: choice_a, choice_b and perhaps choice_c, choice_d are expected, without a gap")
        answer = text(fields, ("answer_gt",), where)
        gold = next((o.letter for o in options if o.text == answer), "")  # the first match, as in AIR-Bench
        if not gold and answer in {o.letter for o in options}:
            gold = answer
        if not gold:
            self.notices.add("questions whose answer is not one of their choices are asked but not scored", about["id"])
        cue, dimension = cue_of(answer) if any(kind in about["category"] for kind in _ABOUT_A_CUE) else ("", "")
        return Item(
            level=1, task="choose", turns=(Turn(Clip(clip), cue=cue),), question=question, options=options, gold=gold,
            cue=cue, cue_text=answer if cue else "", dimension=dimension, **about,
        )  # fmt: skip

    def _open(self, about: dict[str, Any], clip: str, question: str, fields: Fields, where: str) -> Item:
        answer = text(fields, ("answer_gt",), where)
        if not answer:
            self.notices.add("questions without a reference answer are asked but not rated", about["id"])
        described = fields.get("meta_info") or ""
        if not isinstance(described, str):
            described = msgspec.json.encode(described).decode()
        if not described:
            self.notices.add("recordings without a description give a judge nothing to check answers by", about["id"])
        # The description of the recording takes the place of its words: a judge reads it, and a model that gets the
        # transcript instead of the audio gets the text that the authors gave to text models.
        return Item(
            level=3, task="converse", turns=(Turn(Clip(clip), words=described.strip()),), context=question,
            references=(answer,) if answer else (), **about,
        )  # fmt: skip


def load(data: Path) -> AirBench:
    """Load AIR-Bench from the folder of the release, or from its Foundation or Chat folder."""
    return AirBench(data)
