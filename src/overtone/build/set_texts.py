"""Write the texts of a built set (scripts, questions and dialogues with clips) as JSON with EchoMind's keys.

Questions are drawn over all scripts of the set, even if only a part is built. So the part has the same questions as the
whole set.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from overtone.build import questions as ask
from overtone.build.acceptance import GateReport
from overtone.build.manifest import write_json
from overtone.build.questions import Question
from overtone.build.script import Collection, Dialogue, Script
from overtone.build.sound_plan import HUMAN, SYNTHESIS, dialogue_file


def write_texts(
    out: Path, whole: Collection, part: Collection, checked: GateReport, seed: int, home_name: str = SYNTHESIS
) -> list[Question]:
    """Write the scripts, dialogues and questions about the clips in `out`; return the questions.

    `home_name` is the folder of the clips. Texts of the other folder, from a build with other voices, are deleted.
    """
    home = out / home_name
    for stale in (out / name for name in (SYNTHESIS, HUMAN) if name != home_name):
        for path in (*stale.glob("script_info_*.json"), *stale.glob("dialogues.json"), *stale.glob("MCQ/*.json")):
            path.unlink()
    source = home_name.removeprefix("data_")
    scripts = [s for s in (*part.scripts, *part.conflicts) if s.id not in checked.scripts]
    write_json(home / f"script_info_{source}.json", [_script_info(s, checked) for s in scripts])
    dialogues = [d for d in part.dialogues if d.id not in checked.scripts]
    write_json(home / "dialogues.json", [_dialogue_info(d) for d in dialogues])
    ids = {s.id for s in scripts}
    everything: list[Question] = []
    for kind, drawn in _drawn(whole, checked, seed):
        questions = [q for q in drawn if q.script.id in ids and not _dropped(q, checked)]
        write_json(home / "MCQ" / f"{kind}.json", [_question_info(q) for q in questions])
        everything += questions
    return everything


def _drawn(whole: Collection, checked: GateReport, seed: int) -> Iterator[tuple[str, list[Question]]]:
    yield "understanding", ask.understanding(whole.scripts, seed, checked.measures)
    yield "reasoning", ask.reasoning(whole.scripts, seed)
    yield "false_cue", ask.false_cue(whole.scripts, seed)
    yield "fixed", ask.fixed(whole.scripts, seed)
    yield "conflict", ask.conflict(whole.conflicts, seed)


def _dropped(q: Question, checked: GateReport) -> bool:
    """Return whether the question's clip is left out; a false-cue question needs the neutral clip too."""
    return checked.out(q.script.id, q.style) or (q.part == "false-cue" and checked.out(q.script.id, "neutral"))


def _script_info(script: Script, checked: GateReport) -> dict[str, Any]:
    info: dict[str, Any] = {
        "case_id": script.id,
        "spoken_info": script.cue,
        "topic": script.topic,
        "speak_A": script.words,
    }
    if script.language:
        info["language"] = script.language
    if script.says:
        info |= {"part": "conflict", "says": script.says}
    for style in script.styles if script.says else (*script.styles, "control"):
        if checked.out(script.id, style):
            continue
        answered = script.control_of if style == "control" else style  # a control needs the same reply
        clip = {
            f"{style}_input_audio_file": script.file_name(style),
            f"{style}_response_audio_file": script.file_name(answered, "_response.wav"),
            f"{style}_response_text": script.reply[answered],
            "style_profile": script.style[answered],
        }
        if style == "alternative":
            clip["alternative_spoken_info"] = script.alternative
        if manner := script.manner_in(style):
            clip["manner"] = manner
        info[f"{style}_audio_info"] = clip
    return info


def _dialogue_info(dialogue: Dialogue) -> dict[str, Any]:
    first, second = dialogue.turn
    turns = {
        "first": (0, "changed", first.words, first.cue, first.reply, first.style),
        "changed": (1, "changed", second.words, second.cue, second.reply, second.style),
        "steady": (1, "steady", second.words, first.cue, dialogue.steady_reply, dialogue.steady_style),
    }
    info = {
        name: {
            "audio_file": dialogue_file(dialogue, turn, style),
            "words": words,
            "spoken_info": cue,
            "response_text": reply,
            "response_audio_file": dialogue_file(dialogue, turn, style, "_response.wav"),
            "style_profile": voice,
        }
        for name, (turn, style, words, cue, reply, voice) in turns.items()
    }
    variants = {style: [info["first"], info[style]] for style in ("changed", "steady")}
    language = {"language": dialogue.language} if dialogue.language else {}
    return {"case_id": dialogue.id, "topic": dialogue.topic, **language, "variants": variants}


def _question_info(q: Question) -> dict[str, Any]:
    folder, _, name = q.script.file_name(q.style).partition("/")
    return {
        "question_id": q.id,
        "question_type": q.category,
        "part": q.part,
        "case_id": q.script.id,
        "style": q.style,
        "audio_dir": folder,
        "audio_name": name,
        "script": q.script.words,
        "question": q.question,
        "options_text": q.options_text,
        "answer": q.answer,
        "option_provenance": list(q.provenance),
    }
