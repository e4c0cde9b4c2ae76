"""The question that a model is asked about a sentence of EmoBank. Training and evaluation use the same texts."""

from __future__ import annotations

WHO = {  # as many tokens each, so that all arms of the study of two perspectives learn from as many
    "reader": "How does a reader of this sentence feel?",
    "writer": "How does the writer of this sentence feel?",
    "merged": "Which feeling is there in this sentence overall?",
}
ASK = '{who} Rate valence, arousal and dominance from 1 to 9.\nSentence: "{text}"'


def asked(who: str, text: str) -> str:
    """Return the question about a sentence from one of the perspectives in `WHO`."""
    return ASK.format(who=WHO[who], text=text)
