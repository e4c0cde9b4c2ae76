"""Turn English number words into digits: "thirty six dollars and seven cents" → "$36.07", "nineteen sixties" → "1960s".

It does the same as the part of Whisper's English normaliser that handles numbers: one pass over the words, in which at
most one number is pending.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

_ONES = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = (
    *("thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion"),
    *("octillion", "nonillion", "decillion"),
)
_IRREGULAR = {"first": (1, "st"), "second": (2, "nd"), "third": (3, "rd"), "fifth": (5, "th"), "twelfth": (12, "th")}

ZEROS = frozenset({"o", "oh", "zero"})
ONES = {word: n for n, word in enumerate(_ONES, start=1)}
TENS = {word: 10 * n for n, word in enumerate(_TENS, start=2)}
SCALES = {"hundred": 100} | {word: 1000**n for n, word in enumerate(_SCALES, start=1)}
ONES_ENDED: dict[str, tuple[int, str]] = (
    {"sixes" if w == "six" else f"{w}s": (n, "s") for w, n in ONES.items()}
    | {"zeroth": (0, "th")}
    | _IRREGULAR
    | {w + ("h" if w.endswith("t") else "th"): (n, "th") for w, n in ONES.items() if n > 3 and n not in (5, 12)}
)
TENS_ENDED = {w[:-1] + "ies": (n, "s") for w, n in TENS.items()} | {w[:-1] + "ieth": (n, "th") for w, n in TENS.items()}
SCALES_ENDED = {f"{w}s": (n, "s") for w, n in SCALES.items()} | {f"{w}th": (n, "th") for w, n in SCALES.items()}
SIGNS = {"minus": "-", "negative": "-", "plus": "+", "positive": "+"}
CURRENCIES = {"pound": "£", "euro": "€", "dollar": "$", "cent": "¢"}
CURRENCIES |= {f"{w}s": sign for w, sign in CURRENCIES.items()}
PREFIXES = frozenset("-+£€$¢")
AFTER_POINT = ZEROS | ONES.keys() | TENS.keys()
WORDS = frozenset(
    ZEROS.union(ONES, ONES_ENDED, TENS, TENS_ENDED, SCALES, SCALES_ENDED, SIGNS, CURRENCIES)
    | {"per", "percent", "and", "double", "triple", "point"}
)
_DIGITS = re.compile(r"\d+(\.\d+)?")
_HALF = re.compile(r"\band\s+a\s+half\b")
_TOO_LONG = 4000  # digits; Python refuses to convert more, so longer numbers are neither changed nor built


def words_to_digits(text: str) -> str:
    """Return the text with every number in digits. Expects lower case and no symbols except `.%$¢€£`."""
    has_digit = re.search(r"\d", text) is not None
    if "half" in text:
        text = _halves(text)
    if has_digit:
        text = re.sub(r"([a-z])([0-9])", r"\1 \2", text)
        text = re.sub(r"([0-9])([a-z])", r"\1 \2", text)
        text = re.sub(r"([0-9])\s+(st|nd|rd|th|s)\b", r"\1\2", text)  # but a suffix stays with its number
    words = text.split()
    if not has_digit and WORDS.isdisjoint(words):
        return " ".join(words)
    text = " ".join(_Walk(words).run())
    if "¢" in text or "0" in text:
        text = re.sub(r"([€£$])([0-9]+) (?:and )?¢([0-9]{1,2})\b", lambda m: f"{m[1]}{m[2]}.{int(m[3]):02d}", text)
        text = re.sub(r"[€£$]0.([0-9]{1,2})\b", lambda m: f"¢{int(m[1])}", text)
    return re.sub(r"\b1(s?)\b", r"one\1", text) if "1" in text else text


def _halves(text: str) -> str:
    """Replace `two and a half` by `two point five`; other halves stay."""
    pieces = _HALF.split(text)
    out = []
    for piece in pieces[:-1]:
        if piece.strip():
            last = piece.rsplit(maxsplit=2)[-1]
            out += [piece, "point five" if last in AFTER_POINT or last in SCALES else "and a half"]
    if pieces[-1].strip():
        out.append(pieces[-1])
    return " ".join(out)


def _fraction(text: str | int) -> Fraction | None:
    if isinstance(text, str) and len(text) > _TOO_LONG:
        return None
    try:
        return Fraction(text)
    except ValueError:
        return None


class _Walk:
    """One pass over the words. `value` is the pending number: an int, or text once digits are concatenated."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.value: int | str | None = None
        self.prefix = ""

    def run(self) -> Iterator[str]:
        skip = False
        for i, word in enumerate(self.words):
            if skip:
                skip = False
                continue
            if isinstance(self.value, str) and len(self.value) > _TOO_LONG:
                yield from self._flush()
            before = self.words[i - 1] if i else None
            after = self.words[i + 1] if i + 1 < len(self.words) else None
            bare = word[1:] if word[0] in PREFIXES else word
            if _DIGITS.fullmatch(bare) and (number := _fraction(bare)) is not None:
                yield from self._digits(word, bare, number)
            elif word not in WORDS:
                yield from self._flush()
                yield self._out(word)
            elif word in ZEROS:
                self.value = f"{self.value or ''}0"
            elif word in ONES:
                self.value = self._join(ONES[word], before)
            elif word in TENS:
                self.value = self._join(TENS[word], before)
            elif ended := ONES_ENDED.get(word) or TENS_ENDED.get(word):
                yield self._out(f"{self._join(ended[0], before)}{ended[1]}")
            elif word in SCALES:
                yield from self._scale(SCALES[word])
            elif word in SCALES_ENDED:
                yield from self._scale(SCALES_ENDED[word][0], SCALES_ENDED[word][1])
            elif word in SIGNS:
                yield from self._flush()
                if self._numeric(after):
                    self.prefix = SIGNS[word]
                else:
                    yield self._out(word)
            elif word in CURRENCIES:
                if self.value is None:
                    yield self._out(word)
                else:
                    self.prefix = CURRENCIES[word]
                    yield from self._flush()
            elif word in ("percent", "per"):
                skip = word == "per" and after == "cent" and self.value is not None
                if self.value is not None and (skip or word == "percent"):
                    yield self._out(f"{self.value}%")
                else:
                    yield from self._flush()
                    yield self._out(word)
            elif not self._numeric(after):  # and, double, triple, point: special only before a possible number
                yield from self._flush()
                yield self._out(word)
            elif word == "and":
                if before not in SCALES:
                    yield from self._flush()
                    yield self._out(word)
            elif word == "point":
                if after in AFTER_POINT or (after and _DIGITS.fullmatch(after)):
                    self.value = f"{self.value or ''}."
            elif after in ONES or after in ZEROS:  # double, triple
                self.value = f"{self.value or ''}{str(ONES.get(after or '', 0)) * (2 if word == 'double' else 3)}"
                skip = True
            else:
                yield from self._flush()
                yield self._out(word)
        yield from self._flush()

    def _out(self, text: int | str) -> str:
        text, self.value, self.prefix = f"{self.prefix}{text}", None, ""
        return text

    def _flush(self) -> Iterator[str]:
        if self.value is not None:
            yield self._out(self.value)

    @staticmethod
    def _numeric(word: str | None) -> bool:
        return word is not None and (word in WORDS or _DIGITS.fullmatch(word) is not None)

    def _digits(self, word: str, bare: str, number: Fraction) -> Iterator[str]:
        if isinstance(self.value, str) and self.value.endswith("."):
            self.value += word  # decimals, parts of an address
            return
        yield from self._flush()
        self.prefix = word[0] if word is not bare and word != bare else self.prefix
        self.value = number.numerator if number.denominator == 1 else bare

    def _join(self, n: int, before: str | None) -> int | str:
        """Return the pending number combined with `n`, which is below 100: added if possible, else concatenated."""
        value = self.value
        if value is None:
            return n
        if isinstance(value, str) or (n < 20 and before in ONES):
            if n < 10 and before in TENS:
                return f"{str(value)[:-1]}{n}"
            return f"{value}{n}"
        return value + n if value % (10 if n < 10 else 100) == 0 else f"{value}{n}"

    def _scale(self, scale: int, ending: str = "") -> Iterator[str]:
        """Multiply the pending number by `scale` (100, 1000, …). An ending, as in `hundredth`, completes the number."""
        value = self.value
        if value is None:
            self.value = scale
        elif isinstance(value, str) or (value == 0 and not ending):
            number = _fraction(value)
            product = number * scale if number is not None else None
            if product is not None and product.denominator == 1:
                self.value = product.numerator
            else:
                yield from self._flush()
                self.value = scale
        else:
            self.value = value // 1000 * 1000 + value % 1000 * scale
        if ending:
            yield self._out(f"{self.value}{ending}")
