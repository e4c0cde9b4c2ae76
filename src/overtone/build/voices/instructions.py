"""Written instructions for engines that follow them: one sentence per cue and manner."""

from __future__ import annotations

PLAIN = "Speak in an ordinary, even, everyday voice, without any particular feeling."
_ONLY = " Say exactly the given words and add no other words."

INSTRUCTIONS: dict[str, str] = {  # "cue" or "cue manner" → instruction to the speaker
    "male": "Speak in an ordinary grown man's voice, even and without any particular feeling.",
    "female": "Speak in an ordinary grown woman's voice, even and without any particular feeling.",
    "adult": "Speak in the ordinary voice of a grown person in the middle of life.",
    "child": "Speak like a child of about seven: a high, small, light voice with a child's melody.",
    "elderly": "Speak like a person well over eighty: slow, a little thin and shaky, with longer pauses.",
    "hoarse": "Speak with a hoarse, raw, scratchy throat, as if you had a bad cold and had nearly lost your voice.",
    "breath": "Speak out of breath, panting between phrases, as if you had just run up several flights of stairs.",
    "tired": "Speak dead tired: low, flat, slack and slow, hardly finding the strength to finish the sentence.",
    "sobbing": "Speak through tears: sob before and between the words, sniff, and let your voice break.",
    "happy": "Speak with open happiness: bright, lively, smiling, with a wide and rising melody.",
    "sad": "Speak with deep sadness: soft, slow, low and heavy, with falling phrases.",
    "surprise": "Speak with great surprise: start high, jump in pitch, and end as if you could not believe it.",
    "angry": "Speak with open anger: hard, loud, tense and clipped, biting off the words.",
    "fear": "Speak in fear: high, tight, quick and trembling, with shallow breath.",
    "disgust": "Speak with disgust: drawn out, low and pressed, as if the very thought turned your stomach.",
    "shout": "Shout the words as loudly as you can, across a wide street.",
    "shout angry": "Shout the words in fury, as loudly as you can, with a hard and straining voice.",
    "shout joyful": "Shout the words for joy, as loudly as you can, as if you had just won.",
    "whisper": "Whisper all of it, with breath only and no voice at all.",
    "fast": "Speak very fast, almost twice your ordinary pace, without any particular feeling.",
    "slow": "Speak very slowly, at about half your ordinary pace, without any particular feeling.",
    "cough": "Cough out loud before the words and once more among them, and speak plainly otherwise.",
    "sigh": "Let out one long, audible sigh, then say the words.",
    "laughter": "Laugh out loud before and after the words, and keep the laugh in your voice.",
    "laughter hearty": "Laugh heartily and freely before and after the words, full of warmth and fun.",
    "laughter nervous": "Laugh nervously before and after the words: short, thin and uneasy, not amused at all.",
    "yawn": "Yawn wide and audibly first, then say the words while the yawn fades.",
    "moan": "Moan with pain before and after the words, and speak with effort.",
}


def instructions(cue: str, manner: str = "") -> str:
    """Return an instruction of one sentence for a cue. Without a cue of the voice, it asks for a plain voice."""
    return INSTRUCTIONS.get(f"{cue} {manner}") or INSTRUCTIONS.get(cue, PLAIN)


def spoken_instructions(cue: str, manner: str, given: str) -> str:
    """Return an engine's instructions: `given` or else the table's sentence, and a request to keep the words."""
    return (given.strip() or instructions(cue, manner)) + _ONLY
