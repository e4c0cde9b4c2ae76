"""The English normaliser equals Whisper's, string for string, on edge cases and on thousands of generated texts."""

from __future__ import annotations

import random
import string
import time

import pytest
from whisper_normalizer.english import EnglishTextNormalizer

from overtone.metrics import _numbers
from overtone.metrics.normalise import english

whisper = EnglishTextNormalizer()

# Where we differ on purpose: text → (ours, why). Whisper raises on each of these.
DIFFERENCES: dict[str, tuple[str, str]] = {
    "9" * 5000: ("9" * 5000, "Python converts no number of more than 4,300 digits; it stays as it is"),
}

EDGES = """
thirty six | twenty-one | one oh one | nineteen sixties | the nineteen eighties | two thousand and seven
twenty twenty four | nine one one | double oh seven | triple five two | three point one four | point five
two and a half million | one and a half | half past two and a half | a hundred and one | hundred hundred
ten thousand dollars | twenty dollars and seven cents | $20 million | £3.50 | €0.99 | two euros five cents
fifty percent | fifty per cent | per se | five per hour | minus three | negative twenty | plus or minus
first | twenty first | the second time | thirtieth | two hundredth | one millionth | a million | millions
the 1960s | 274th | 32 nd | b12 | x2y | 1,000,000 | 1,2,3 | 3.0 | 007 | 1 | 1s | ones | one | 0.5 % | 5 %
I'm gonna | he'd been there | she's gone | it's got | they'd done | won't | can't | ain't | y'all | i'ma go
'cause why | ma'am | let's | couldn't've | 'sn't | the dog 's bone | o'clock | mr. smith | dr jones st. james
colour | analyse the grey theatre | Colour, GREY | organisation | flyer / flier | (laughs) hello | [noise] hi <unk>
um, hmm, so | mm-hmm | uh | naïve Œuvre | straße | Ångström | Þórr | łódź | ½ cup | x² | ٣ apples | ﬁne
“quoted” ’s | don’t | e.g. this. | end. | 10:30 a.m. | http://a.b/c?d=1 | a_b | a-b | 🙂 ok | ... | - | '
""".replace("\n", "|").split("|")


def test_edge_cases_equal_whispers() -> None:
    for text in (e.strip() for e in EDGES):
        assert english(text) == whisper(text), text


def generated(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    tokens = [
        *_numbers.WORDS,
        *" ".join(EDGES).split(),
        *["the", "cat", "sat", "on", "a", "mat", "and", "then", "it's", "fine"],
    ] * 2
    tokens.sort()
    out = []
    for _ in range(n):
        text = " ".join(rng.choices(tokens, k=rng.randint(1, 9)))
        if rng.random() < 0.3:
            text = "".join(c.upper() if rng.random() < 0.3 else c for c in text)
        if rng.random() < 0.2:
            text = "".join(rng.choice(string.printable) if rng.random() < 0.1 else c for c in text)
        out.append(text)
    return out


def test_five_thousand_generated_texts_equal_whispers() -> None:
    texts = generated(5000, 7)
    different = [(t, whisper(t), english(t)) for t in texts if english(t) != whisper(t)]
    assert different == []


def test_every_character_of_the_first_planes_is_treated_as_whisper_treats_it() -> None:
    for code in [*range(0x0, 0x2C00), *range(0xFB00, 0xFB07), *range(0xFF00, 0xFFEF)]:
        text = f"a{chr(code)}b 1{chr(code)}2"
        assert english(text) == whisper(text), hex(code)


@pytest.mark.parametrize("text", DIFFERENCES)
def test_deliberate_differences_are_where_whisper_raises(text: str) -> None:
    assert english(text) == DIFFERENCES[text][0]
    with pytest.raises((AssertionError, ValueError)):
        whisper(text)


def test_known_traps_are_read_right() -> None:
    assert english("thirty six") == "36"
    assert english("Twenty dollars and seven cents.") == "$20.07"
    assert english("The nineteen-sixties, Mr. Grey's colour") == "the 1960s mister gray is color"


def test_it_is_not_slower_than_a_quarter_of_its_goal() -> None:
    texts = ["So I was hoping we could go to the new gallery on Friday, it's free."] * 2000
    start = time.perf_counter()
    for text in texts:
        english(text)
    assert 2000 / (time.perf_counter() - start) > 5_000
