"""The terms of a report that a reader may not know. Each has one sentence, which is shown on hover and listed at the
end."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from overtone.html_page import visible

PROMPTS = {
    "task": "questions and transcripts, with the task's own prompt",
    "zero": "conversation without a system prompt",
    "basic": "conversation in which the model is told the topic and to give one reply",
    "enhance": "conversation in which the model is told to heed the person, the voice or the surroundings",
    "oracle": "conversation in which the model is told in words which cue the clip carries",
    "oracle-false": "conversation in which the model is told a wrong cue",
    "warm": "conversation in which the model is told to reply in a warm voice",
    "plain": "conversation in which the model is told to reply in a neutral voice",
}
INPUTS = {
    "audio": "the model hears the clip",
    "transcript": "the model reads the true words instead of hearing the clip",
    "both": "the model hears the clip and reads its words",
    "silence": "the model hears silence instead of the clip",
    "alone": "the model hears the clip without the context",
    "context": "the model gets the context without the clip",
    "recognised": "the model reads what a speech recogniser understood",
}
GLOSSARY = {
    "BERTScore": "Similarity of the reply and the reference reply, word by word, as a language model sees the words.",
    "BLEU": "Share of short word sequences that the reply shares with the reference reply.",
    "C1": "Judges' rating from 1 to 5: does the reply fit the context?",
    "C2": "Judges' rating from 1 to 5: does the reply sound natural?",
    "C3": "Judges' rating from 1 to 5: is the reply as colloquial as everyday speech?",
    "C4": "Judges' rating from 1 to 5: does the reply take up how the words were said?",
    "condition": "How the items were asked: the prompt, a slash, and the input.",
    "Context fit (C1)": "Judges' rating from 1 to 5: does the reply fit the context?",
    "corrected for guessing": "0 % is what blind guessing scores, 100 % is all correct.",
    "cue": "One of 39 vocal attributes that a clip carries, such as sad, whispering, elderly or rain nearby.",
    "d′": "How well clips with a cue are told from clips without one: 0 is guessing, 3 is nearly perfect.",
    "DNMOS": "Quality of the spoken reply from 1 to 5, predicted by a model.",
    "EmoAlign": "Share of spoken replies whose emotion is the one wanted.",
    "false cue": "A cue that the reply mentions although the clip carries none.",
    "funnel": "The share of cases that hear the words, hear the cue, reason from it, use it and sound right.",
    "Holm": "Holm's correction raises p-values so that many tests together do not find differences by chance.",
    "Krippendorff’s α": "Agreement between judges: 1 is perfect, 0 is chance.",
    "METEOR": "Share of words that the reply shares with the reference reply, also by stem and synonym.",
    "NISQA": "Quality of the spoken reply from 1 to 5, predicted by a model.",
    "p": "The probability of a difference at least this large if the runs did not differ.",
    "Reasoning ACC": "Share of correct answers to questions that need the words and the voice.",
    "Reasoning accuracy": "Share of correct answers to questions that need the words and the voice.",
    "Reply SemSim": "Similarity in meaning of the reply and the reference reply.",
    "ROUGE-L": "Longest sequence of words that the reply shares with the reference reply.",
    "script": "Neutral words that are spoken in several styles; intervals count scripts, not replies.",
    "SemSim": "Similarity in meaning of the transcript and the true words, or of the reply and the reference reply.",
    "Speech relevance (C4)": "Judges' rating from 1 to 5: does the reply take up how the words were said?",
    "style": "How a script is spoken: with the target cue, with an alternative cue, or neutral.",
    "style margin": "How much closer the reply is to the reference reply of its own style than to those of the others; "
    "above 0, the reply follows the delivery.",
    "style sensitivity": "How much more similar replies are to the reference of their own style than to others; 0 if "
    "they ignore the delivery.",
    "swapped": "Share of pairs of clips in which each clip got the answer that is right for the other.",
    "text-dominance": "Share of questions about the voice that are answered with the words, if words and voice differ.",
    "true pairing found": "Share of scripts whose replies are most similar to the references of their own styles.",
    "UTMOS": "Quality of the spoken reply from 1 to 5, predicted by a model.",
    "validated": "Evidence beyond its own recipe supports a validated cue; headline numbers are over validated cues.",
    "VES": "Judges' rating from 1 to 5: does the voice of the reply fit the speaker's delivery?",
    "Voice ACC": "Share of correct answers to questions about the voice.",
    "Voice accuracy": "Share of correct answers to questions about the voice.",
    "WER": "Word error rate: wrong, missing and added words per true word; lower is better.",
    "κ": "Agreement beyond chance: 1 is perfect, 0 is chance.",
}

_CONDITION = rf"({'|'.join(sorted(PROMPTS, key=len, reverse=True))})/({'|'.join(INPUTS)})"
_IN_TEXT = (
    "Reply SemSim", "style sensitivity", "style margin", "validated cues", "BERTScore", "ROUGE-L", "SemSim", "EmoAlign",
    "METEOR", "UTMOS", "NISQA", "DNMOS", "BLEU", "VES", "WER", "C1", "C2", "C3", "C4",
)  # fmt: skip
_TERMS = re.compile(rf"(?<![\w/-])(?:{_CONDITION}|{'|'.join(map(re.escape, _IN_TEXT))})(?![\w/])")
_BY_NAME = {name.casefold(): text for name, text in GLOSSARY.items()} | {
    "cues": GLOSSARY["cue"],
    "styles": GLOSSARY["style"],
    "validated cues": GLOSSARY["validated"],
    "cues not validated": GLOSSARY["validated"],
    "not validated": GLOSSARY["validated"],
    "p, holm": GLOSSARY["Holm"],
    "bleu-4": GLOSSARY["BLEU"],
    "corrected": GLOSSARY["corrected for guessing"],
}


def meaning(term: str) -> str:
    """Return the sentence on a term, a condition or a column head; "" if the glossary has none."""
    name = re.sub(r"\s*[↑↓]\s*|\s·.*", "", term.replace("\u00a0", " ")).strip()
    if found := re.fullmatch(rf"{_CONDITION}(?: \((.+)\))?", name):
        source = f" Clips of the source {found[3]}." if found[3] else ""
        return f"{PROMPTS[found[1]].capitalize()}; {INPUTS[found[2]]}.{source}"
    return _BY_NAME.get(name.casefold()) or _BY_NAME.get(name.casefold().partition(",")[0], "")


def gloss(text: str, term: str = "", tag: str = "span") -> Markup:
    """Return a text with its explanation on hover; plain text if the term (default: the text) is not in the
    glossary."""
    text = visible(str(text))
    told = meaning(term or text)
    if not told:
        return Markup("<code>{0}</code>").format(text) if tag == "code" else escape(text)
    return Markup('<{0} class="gloss" title="{1}">{2}</{0}>').format(tag, told, text)


def explained(text: str) -> Markup:
    """Return a sentence in which the first mention of each known term has its explanation on hover.

    The number and the % of a percentage stay on one line.
    """
    text = re.sub(r"(?<=\d) %", "\u00a0%", visible(str(text)))
    parts, at, seen = [], 0, set()
    for found in _TERMS.finditer(text):
        if found[0] in seen:
            continue
        seen.add(found[0])
        parts += [escape(text[at : found.start()]), gloss(found[0])]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])
