"""The part `words`: example sentences from WordNet to transcribe.

Overtone's questions have about a thousand different words, and a model trained on them alone recognises no others.
WordNet's examples have twenty thousand.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Sequence

from overtone.echat.data.labels import Labels
from overtone.echat.making.compose import Exchange, key_of, sex_of
from overtone.echat.making.reply_speech import read_in
from overtone.embedded.wordnet import wordnet
from overtone.errors import MissingExtra

PART = "words"
LENGTH = (5, 12)  # words of a sentence
ENOUGH = 3  # occurrences of a word; a sentence without a rarer word is used last
# Some old examples mention violence, or describe peoples in an outdated way. Exclude harsh words, and exclude names:
# only the first word may be capitalised, and only if it is a function word.
_HARSH = re.compile(
    r"\b(abus|assault|attack|batter|beaten|behead|blood|bomb|breast|corpse|crim|cruel|dead|death|drug|drunk|enem|execut"
    r"|genital|impregn|kill|murder|naked|nude|poison|prostitut|rapist|sex|slave|soldier|stabb|suicid|terror|tortur"
    r"|victim|violen|weapon|whip|wound|(die[ds]?|dying|wars?|guns?|shot|hell|hate[ds]?|rape[ds]?|knife|black|whites)\b)",
    re.I,
)
_BEGINS = re.compile(
    r"an?|the|this|that|these|those|i|he|she|it|they|we|you|his|her|its|their|our|your|my|don't|do|can|could|will|would"
    r"|please|let|there|all|some|no|how|what|when|where|who|why|if|in|on|at|to|for|with|after|before",
    re.I,
)


def source() -> str:
    """Return the version of the installed WordNet, or "" if it is not installed."""
    try:
        return f"WordNet {wordnet().identity}"
    except MissingExtra:
        return ""


def notice() -> str:
    """Return WordNet's licence notice, which must accompany its sentences."""
    short = "WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved. (wordnet.princeton.edu)"
    text = wordnet().licence() if source() else short
    return f"The parts `words` and `aloud` contain examples from WordNet. Its notice:\n\n{text}\n"


def chosen(examples: Sequence[str], seed: int, size: int) -> list[str]:
    """Choose `size` sentences in random order, preferring sentences with a word that is still rare."""
    plain = [
        f"{text[0].upper()}{text[1:]}."
        for text in dict.fromkeys(example.strip() for example in examples)
        if LENGTH[0] <= len(text.split()) <= LENGTH[1] and _plain(text)
    ]
    plain.sort(key=lambda text: hashlib.sha256(f"{seed}/{text}".encode()).digest())
    heard: Counter[str] = Counter()
    first: list[str] = []
    others: list[str] = []
    for text in plain:
        new = re.findall(r"[a-z']+", text.lower())
        if any(heard[word] < ENOUGH for word in new):
            heard.update(new)
            first.append(text)
        else:
            others.append(text)
    return [*first, *others][:size]


def to_read(seed: int, share: float) -> list[tuple[str, str]]:
    """Return a share of all sentences, each with a random emotion to read it aloud in; none if WordNet is missing.

    A voice that has read only Overtone's own texts knows few words and says the others wrong.
    """
    if not source():
        return []
    every = chosen(wordnet().examples(), seed, sys.maxsize)
    return [(text, read_in(text)) for text in every[: round(min(share, 1.0) * len(every))]]


def _plain(text: str) -> bool:
    """Return whether a text has only words and commas, no names, and no harsh words."""
    first, _, rest = text.partition(" ")
    known = first == first.lower() or _BEGINS.fullmatch(first) is not None
    return bool(known and re.fullmatch(r"(?:[a-z',]|\bI\b| )+[a-z]", rest)) and not _HARSH.search(text)


def compose(seed: int, size: int) -> list[Exchange]:
    """Return the exchanges of the part `words`: neutral speech to transcribe, without replies."""
    exchanges = []
    for text in chosen(wordnet().examples(), seed, size):
        key, sex = key_of(PART, "wordnet", text), sex_of(seed, text)
        heard = Labels(age="adult", gender=sex)
        exchanges.append(
            Exchange(
                key, PART, f"{PART}/{text}", PART, text, Labels(), heard, sex=sex, voice=text, person=key, txt=text
            )
        )
    return exchanges
