"""Results that others claim for DREAM. No result was verified here: prompts, ways of reading answers and recordings
differ."""

from __future__ import annotations

from overtone.suite import Published

_CLAIMS = "claims that were not verified"

PUBLISHED = (
    Published(
        "Spoken DREAM (AudioBench, dream_tts_mcq): claims, not verified",
        "AudioBench's leaderboard (arXiv 2406.16020), task dream_tts_mcq",
        {"accuracy": "Score"},
        (
            ("Whisper + Gemma-2-9B", (89.3,)),
            ("Whisper + Llama-3-8B", (86.5,)),
            ("MERaLiON", (84.3,)),
            ("Phi-4-multimodal", (72.6,)),
            ("Qwen2-Audio", (66.5,)),
            ("SALMONN", (56.5,)),
        ),
        comparable=f"{_CLAIMS}: other voices, other prompts, and replies rated by a judge. Cascades that hear only "
        "words lead, which shows what DREAM measures",
        digits={"accuracy": 1},
    ),
    Published(
        "DREAM in text: claims, not verified",
        "DREAM's leaderboard (dataset.org/dream), as copied in public lists of datasets",
        {"accuracy": "Test"},
        (
            ("People", (95.5,)),
            ("ALBERT-xxlarge + HRCA+ + multi-task", (92.6,)),
            ("ALBERT-xxlarge + DUMA + multi-task", (91.8,)),
            ("ALBERT-xxlarge + HRCA+", (91.6,)),
            ("ALBERT-xxlarge + DUMA", (90.4,)),
            ("RoBERTa-large + MMM", (88.9,)),
            ("XLNet-large", (72.0,)),
            ("BERT-large + WAE", (69.0,)),
        ),
        comparable=f"{_CLAIMS}: these models were trained on DREAM's train split, some also on other questions",
        digits={"accuracy": 1},
    ),
)
