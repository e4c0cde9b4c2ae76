"""A built set small enough to count by hand: three scripts, a conflict, a dialogue, every kind of question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overtone.audio import encode_wav

OPTIONS = "A. one\nB. two\nC. three\nD. four"
READINGS = ["target", "alternative", "words", "harmful"]
FALSE_CUE = ["target", "alternative", "", "nothing"]
CONFLICT = ["words", "voice", "", ""]
STATUS = {"sad": "validated", "happy": "validated", "rain": "unvalidated", "wind": "unvalidated", "male": "validated"}


def write_built(root: Path, status: dict[str, str] | None = STATUS) -> Path:
    """Write the folder: script s1 (sad, validated), s2 (rain, unvalidated), s3 (male, without neutral), c1, d1."""
    scripts = [
        _script("s1", "sad", "happy"),
        _script("s2", "rain", "wind"),
        _script("s3", "male", "female", neutral=False),
        _script("c1", "sad", "happy", neutral=False, control=False) | {"part": "conflict", "says": "happy"},
    ]
    home = root / "data_synthesis"
    put_json(home / "script_info_synthesis.json", scripts)
    put_json(home / "dialogues.json", [_dialogue("d1", "sad", "happy")])
    mcq = home / "MCQ"
    cued = [("s1", "sad", "target", "A"), ("s1", "sad", "alternative", "B"), ("s2", "rain", "target", "A")]
    put_json(mcq / "understanding.json", [_question("emotion", *c, READINGS) for c in cued])
    more = [
        ("s1", "sad", "neutral", "C"), ("s1", "sad", "control", "C"), ("s2", "rain", "alternative", "B"),
        ("s3", "male", "target", "A"), ("s3", "male", "alternative", "B"), ("s3", "male", "control", "A"),
    ]  # fmt: skip
    put_json(mcq / "reasoning.json", [_question("empathy", *c, READINGS) for c in (*cued, *more)])
    pairs = [
        ("s1", "sad", "target", "A"), ("s1", "sad", "neutral", "D"),
        ("s2", "rain", "alternative", "B"), ("s2", "rain", "neutral", "D"),
    ]  # fmt: skip
    put_json(mcq / "false_cue.json", [_question("false-cue", *c, FALSE_CUE, part="false-cue") for c in pairs])
    asked = [
        _question(f"conflict-{about}", "c1", "sad", style, gold, CONFLICT, part="conflict")
        for style, heard in (("target", "B"), ("alternative", "A"))
        for about, gold in (("words", "A"), ("voice", heard))
    ]
    asked += [
        _question("conflict-agreement", "c1", "sad", style, gold, ["alternative", "target"], part="conflict")
        | {"options_text": "A. Consistent\nB. Inconsistent"}
        for style, gold in (("target", "B"), ("alternative", "A"))
    ]
    put_json(mcq / "conflict.json", asked)
    put_json(mcq / "fixed.json", [_question("intent", "s1", "sad", "target", "A", READINGS, part="fixed")])
    manifest: dict[str, Any] = {"name": "open", "licence": "CC-BY-4.0", "clips": []}
    put_json(root / "manifest.json", manifest if status is None else manifest | {"status": status})
    return root


def put_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))
    _put_sounds(path.parent.parent if path.parent.name == "data_synthesis" else path.parent.parent.parent, value)


def _put_sounds(root: Path, value: Any) -> None:
    """A short tone for every clip and reply that is named, each its own."""
    if isinstance(value, list):
        for one in value:
            _put_sounds(root, one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str) and one.endswith(".wav") and key != "audio_name":
                folder = "audio_response" if "response" in key else "data_synthesis/audio"
                file = root / folder / one
                file.parent.mkdir(parents=True, exist_ok=True)
                pitch = 150 + sum(map(ord, one)) % 400
                file.write_bytes(encode_wav(0.2 * np.sin(2 * np.pi * pitch * np.arange(1600) / 16000), 16000))
            _put_sounds(root, one)


def _script(name: str, cue: str, other: str, *, neutral: bool = True, control: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = {"case_id": name, "spoken_info": cue, "topic": "work", "speak_A": f"Words of {name}."}
    styles = ["target", "alternative", *(["neutral"] if neutral else []), *(["control"] if control else [])]
    for style in styles:
        answered = ("neutral" if neutral else "target") if style == "control" else style
        stem = f"{cue}/{name}_{cue}_work_"
        made[f"{style}_audio_info"] = {
            f"{style}_input_audio_file": f"{stem}{style}.wav",
            f"{style}_response_audio_file": f"{stem}{answered}_response.wav",
            f"{style}_response_text": f"Reply to the {answered} voice of {name}.",
        }
    made["alternative_audio_info"]["alternative_spoken_info"] = other
    return made


def _question(
    category: str, script: str, cue: str, style: str, gold: str, provenance: list[str], part: str = ""
) -> dict[str, Any]:
    return {
        "question_id": f"{script}_{style}_{category}",
        "question_type": category,
        "part": part,
        "case_id": script,
        "style": style,
        "audio_dir": cue,
        "audio_name": f"{script}_{cue}_work_{style}.wav",
        "script": f"Words of {script}.",
        "question": "What is it?",
        "options_text": OPTIONS,
        "answer": gold,
        "option_provenance": provenance,
    }


def _dialogue(name: str, first: str, second: str) -> dict[str, Any]:
    def turn(number: int, variant: str, cue: str, reply: str) -> dict[str, str]:
        stem = f"dialogue/{name}_{number}_{variant}"
        return {
            "audio_file": f"{stem}.wav",
            "words": f"Turn {number} of {name}.",
            "spoken_info": cue,
            "response_text": reply,
            "response_audio_file": f"{stem}_response.wav",
            "style_profile": "warm",
        }

    opening = turn(1, "changed", first, "I am sorry to hear that.")
    variants = {
        "changed": [opening, turn(2, "changed", second, "Now that is good news!")],
        "steady": [opening, turn(2, "steady", first, "Still hard, I see.")],
    }
    return {"case_id": name, "topic": "home", "variants": variants}
