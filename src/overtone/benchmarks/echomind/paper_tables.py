"""The tables of EchoMind's paper as data: which columns each has, in which order, and how print abbreviates them.

Overtone-Open asks the same levels and has the same tables.
"""

from __future__ import annotations

from overtone import cues
from overtone.suite import ModelTable

HEARING = {"wer": "WER", "semsim": "SemSim"}
ANSWERS = {"voice_accuracy": "Voice ACC", "reasoning_accuracy": "Reas. ACC"}
WORDS = {"bleu": "BLEU", "rouge_l": "ROUGE-L", "meteor": "METEOR", "bertscore": "BERTScore"}
JUDGED = {"c1": "C1", "c2": "C2", "c3": "C3", "c4": "C4"}
SOUND = {"nisqa": "NISQA", "dnmos": "DNMOS", "emoalign": "EmoAlign"}
VES = {"ves": "VES"}
SHORT_SUBTASKS = {
    "Coarse-grained": "Coarse",
    "Age group": "Age",
    "Voice style": "Style",
    "Speaking pace": "Pace",
    "Non-verbal sound": "NVE",
    "Background sound": "Backgr.",
}
SHORT_REASONING = {
    "Multiple People Detection": "MPD",
    "Laughter Sentiment Detection": "LSD",
    "Shouting Sentiment Detection": "SSD",
    "Audio-Text Sentiment Consistency": "ATSC",
    "Response Style Matching": "RSM",
    "Personalized Recommendation Matching": "PRM",
    "Contextual Suggestion Generation": "CSG",
    "Preceding Event Inference": "PEI",
    "Speaker Intent Recognition": "SIR",
    "Empathy-Aware Response Selection": "EARS",
}
SCALES = "Accuracies, WER, SemSim, word overlap and EmoAlign in percent; C1 to C4, VES, NISQA and DNMOS from 1 to 5."
ACCURACY = "Right ÷ answered, in percent."
PAPER_TABLES = (
    ModelTable("main", "Main results", {**HEARING, **ANSWERS, **WORDS, **JUDGED, **SOUND, **VES}, SCALES),
    ModelTable("voice", "Voice understanding by sub-task", cues.VOICE_TASKS, ACCURACY, level=1, short=SHORT_SUBTASKS),
    ModelTable("reasoning", "Reasoning by category", cues.REASONING, ACCURACY, level=2, short=SHORT_REASONING),
    ModelTable(
        "text", "Conversation: text of the replies", {**WORDS, **JUDGED},
        "Word overlap with the references in percent; C1 to C4 by judges, from 1 to 5.",
    ),
    ModelTable(
        "audio", "Conversation: audio of the replies", {**SOUND, **VES},
        "NISQA and DNMOS are predicted quality and VES is a judge’s rating, from 1 to 5; EmoAlign in percent.",
    ),
    ModelTable(
        "rq1", "RQ1: the prompt", {**WORDS, **JUDGED, **VES, "emoalign": "EmoAlign"},
        "All replies under each prompt: none (zero), basic, or one that asks to heed the voice (enhance).",
        finding="prompts",
    ),
    ModelTable(
        "rq2", "RQ2: the source of the speech", {**HEARING, **ANSWERS, **JUDGED, **VES},
        "The same scripts in the same styles from both sources, case by case.", finding="source",
    ),
    ModelTable(
        "rq3", "RQ3: the upper bound", {**JUDGED, **VES, "emoalign": "EmoAlign"},
        "The same clips without the cue and with the cue stated in words.", finding="upper",
    ),
)  # fmt: skip
