"""Makes a benchmark of any size in EchoMind's layout, for measuring: real clips, and questions about them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.servers import tone


def make(folder: Path, *, scripts: int, questions: int, seconds: float = 3.0, rate: int = 16_000) -> Path:
    """A folder with `scripts` × 3 clips and `questions` multiple-choice questions about them."""
    base = folder / "data_synthesis"
    audio = base / "audio" / "sad"
    audio.mkdir(parents=True)
    (base / "MCQ").mkdir()
    rows, names = [], []
    for number in range(scripts):
        row = {
            "case_id": f"id_{number}",
            "spoken_info": "sad",
            "topic": "work",
            "speak_A": f"This is line number {number}.",
        }
        for style in ("target", "alternative", "neutral"):
            name = f"id_{number}_sad_work_{style}.wav"
            (audio / name).write_bytes(tone(number * 3 + len(style), seconds, rate))
            names.append(name)
            row[f"{style}_audio_info"] = {
                f"{style}_input_audio_file": f"sad/{name}",
                f"{style}_response_text": "I see.",
            }
        rows.append(row)
    asked = [
        {
            "question_id": f"understanding_{number}",
            "question_type": "emotion",
            "audio_dir": "sad",
            "audio_name": names[number % len(names)],
            "question": "Which emotion does the speaker's voice most likely carry?",
            "options_text": "A. Joy\nB. Anger\nC. Sadness\nD. Fear",
            "answer": "C",
        }
        for number in range(questions)
    ]
    (base / "script_info_synthesis.json").write_bytes(msgspec.json.encode(rows))
    (base / "MCQ" / "understanding.json").write_bytes(msgspec.json.encode(asked))
    return folder
