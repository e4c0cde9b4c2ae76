"""Real questions, dialogues and clips in the layouts of benchmarks whose own files are not at hand.

For `scripts/reference_runs.py`. The questions are SAKURA's, the sentences and voices SD-Eval's, the dialogues MELD's.
Which answer is right and which cue a clip carries follow from its place in the list: the numbers mean nothing.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Layouts:
    """Each layout is written once, under `data`."""

    def __init__(self, shared: Path) -> None:
        self.root = Path("data")
        self.asked = [
            row for track in ("Animal", "Gender") for row in rows_of(shared / f"sakura_sample/{track}/metadata.csv")
        ]
        self.said = json.loads((shared / "sd_eval/emo_ravdess80.json").read_text())
        self.lines = rows_of(shared / "meld_text/dev_sent_emo.csv")
        self.clips = sorted((shared / "sakura_sample").rglob("*.wav"))
        self.voices = sorted((shared / "sd_eval/audio").glob("*.flac"))

    def write(self) -> None:
        for name in ("mmau", "air-bench", "uro-bench", "voxdialogue", "empathyeval"):
            if not (self.root / name).exists():
                getattr(self, name.replace("-", "_"))(self.root / name)

    def copy(self, to: Path, number: int, voice: bool = False) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        pool = self.voices if voice else self.clips
        shutil.copy(pool[number % len(pool)], to)

    def questions(self) -> Iterator[tuple[int, str, list[str], str]]:
        """Number, question, choices and the text of the right one."""
        for number, row in enumerate(self.asked):
            question, *choices = re.split(r"\s*\([a-d]\) ", row["multi_instruction"])
            yield number, question, choices, row["multi_answer"][4:]

    def mmau(self, root: Path) -> None:
        rows, predictions = [], []
        for number, question, choices, right in self.questions():
            self.copy(root / f"test-mini-audios/q{number}.wav", number)
            rows.append({
                "id": f"q{number}", "audio_id": f"./test-mini-audios/q{number}.wav", "question": question,
                "choices": choices, "answer": "" if number % 11 == 10 else right, "dataset": "AudioSet",
                "task": ("sound", "music", "speech")[number % 3], "split": "test-mini",
                "category": ("Reasoning", "Information Extraction")[number % 2],
                "sub-category": ("Acoustic Source Inference", "Chord & Key", "Emotion State")[number % 3],
                "difficulty": ("easy", "medium", "hard")[number // 3 % 3],
            })  # fmt: skip
            predictions.append({"id": f"q{number}", "model_output": right if number % 4 else choices[0]})
        (root / "mmau-test-mini.json").write_text(json.dumps(rows))
        Path("data/mmau.jsonl").write_text("\n".join(map(json.dumps, predictions[:-3])))

    def air_bench(self, root: Path) -> None:
        tasks = ("Speaker_Gender_Recognition", "Sound_AQA", "Speech_Grounding", "Music_AQA")
        parts: dict[str, list[dict[str, Any]]] = {"Foundation": [], "Chat": []}
        for number, question, choices, right in self.questions():
            lettered = {f"choice_{letter}": text for letter, text in zip("abcd", choices, strict=False)}
            parts["Foundation"].append(
                {"task_name": tasks[number % 4], "question": question, "answer_gt": right, **lettered}
            )
        for number, row in enumerate(self.said[:24]):
            task = ("speech_dialogue_QA", "sound_QA", "music_QA", "speech_and_sound_QA")[number % 4]
            told = {
                "question": "What would you reply?",
                "answer_gt": row["target"][0]["reply"],
                "meta_info": row["transcript"],
            }
            parts["Chat"].append({"task_name": task, **told})
        for part, rows in parts.items():
            for number, row in enumerate(rows):
                row |= {"path": f"{number}.wav", "dataset_name": "made", "uniq_id": number}
                self.copy(root / part / f"{row['task_name']}_made" / f"{number}.wav", number)
            (root / part / f"{part}_meta.json").write_text(json.dumps(rows))

    def uro_bench(self, root: Path) -> None:
        sets = {
            "basic": "Repeat Summary TruthfulEval Gsm8kEval MLC AlpacaEval CommonEval Repeat-zh AlpacaEval-zh",
            "pro": "UnderEmotion-en Safety-en MtBenchEval-en SpeakerAware-en SRT-en GenEmotion-en GenStyle-en "
            "Multilingual",
        }
        for track, names in sets.items():
            for place, name in enumerate(names.split()):
                said = self.said[4 * place : 4 * place + 4]
                rows = [{
                    "source_wav": f"wavs/{n}.flac", "source_text": one["transcript"], "emotion": "sad",
                    "requirement": "French", "style": "formal",
                    "target_text": one["transcript" if "Repeat" in name else "target"],
                } for n, one in enumerate(said)]  # fmt: skip
                for number, row in enumerate(rows):
                    self.copy(root / track / name / f"wavs/{number}.flac", 4 * place + number, voice=True)
                    if isinstance(row["target_text"], list):
                        row["target_text"] = row["target_text"][0]["reply"]
                if name in ("MtBenchEval-en", "SpeakerAware-en"):
                    rows = [{"id": n, "num_round": 2, "dialogue": rows[2 * n : 2 * n + 2]} for n in range(2)]
                (root / track / name / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def voxdialogue(self, root: Path) -> None:
        feelings = ("happy", "sad", "fearful")
        for place, attribute in enumerate(("emotion", "age", "volume", "speed", "music", "gender")):
            dialogues = {}
            for number in range(5):
                name = f"dialog_{number:05d}_000"
                lines = self.lines[40 * place + 6 * number :][:6]
                for turn in range(6):
                    self.copy(root / attribute / "Talk" / name / f"{turn + 1:03d}.wav", place + turn)
                style = "A female speaker with {} pitch, fast speaking rate, and {} emotion."
                dialogues[name] = [{
                    "turn_id": turn, "speaker_id": "AB"[turn % 2], "content": line["Utterance"],
                    "insturct_style": style.format(("low", "normal")[turn % 2], feelings[number % 3]),
                    "spk_info": "英文女", "wav_path": f"Talk/{name}/{turn + 1:03d}.wav",
                } for turn, line in enumerate(lines)]  # fmt: skip
            (root / attribute / "processed_dialog_0.05.json").write_text(json.dumps({"Talk": dialogues}))

    def empathyeval(self, root: Path) -> None:
        for source in ("meld", "emovdb"):
            folder, rows = root / f"phase1-test_{source}", []
            for number in range(24):
                name = f"{source}_{number // 2}_{'e' if source == 'emovdb' else ''}{number % 2}"
                options = {f"opt-{letter}": f"./audio/{name}_{letter}.flac" for letter in "ABC"[: 2 + number // 2 % 2]}
                for place, path in enumerate((f"audio/{name}.flac", *options.values())):
                    self.copy(folder / path, number + place, voice=True)
                line = self.lines[number]
                rows.append({
                    "question_id": name, "context": self.lines[number + 1]["Utterance"], "utterance": line["Utterance"],
                    "utterance_audio": f"./audio/{name}.flac", "response": "How kind.", "options": options,
                    "answer": "" if number % 9 == 8 else "AB"[number // 4 % 2],
                })  # fmt: skip
            (folder / f"phase1-test_{source}_release.json").write_text(json.dumps(rows))
