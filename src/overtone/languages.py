"""Languages by BCP-47 tag: which are written without spaces between words, and what to assume where no tag is given."""

from __future__ import annotations

import re
import unicodedata

DEFAULT = "en"
SEVERAL = ("mul", "und")  # several languages; not known
UNSPACED = frozenset(
    {"zh", "cmn", "yue", "wuu", "nan", "hak", "gan", "hsn", "cdo", "lzh", "ja", "th", "lo", "km", "my", "bo", "dz"}
)

_TAG = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_SCRIPTS = {  # how the Unicode name of a letter begins → the language that the script suggests
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "TIBETAN": "bo",
    "HANGUL": "ko",
    "LATIN": "",
}
_NAMES = {
    "english": "en",
    "chinese": "zh",
    "mandarin": "zh",
    "cantonese": "yue",
    "japanese": "ja",
    "korean": "ko",
    "thai": "th",
    "german": "de",
    "spanish": "es",
    "french": "fr",
    "italian": "it",
    "russian": "ru",
}
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_SAMPLE = 1000  # characters of a text that its script is judged by


def is_tag(text: str) -> bool:
    """Whether a text has the form of a BCP-47 tag: `de`, `zh`, `zh-Hant`, `en-US`."""
    return _TAG.fullmatch(text) is not None


def primary(tag: str) -> str:
    """Return the primary language of a tag in lower case: `zh` of `zh-Hant`. Common English names are known too."""
    first = re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]
    return _NAMES.get(first, first)


def is_unspaced(language: str) -> bool:
    """Whether a language is written without spaces between words, so that characters are counted instead."""
    return primary(language) in UNSPACED


def language_of(tag: str, text: str) -> str:
    """Return the primary language of a text: the one that its tag names, else the one that its script suggests.

    Without a tag a text in Latin letters is taken as English, so a set in German or Spanish has to say so. A script
    that several languages share and that has spaces (Cyrillic, Arabic, …) gives `und`: spaced, and not English.
    """
    stated = primary(tag)
    if stated and stated not in SEVERAL:
        return stated
    return _suggested(text) or stated or DEFAULT


class _Spaces(dict[int, str]):
    """A `str.translate` table filled as characters are met: symbols and punctuation become spaces, marks stay."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        out = " " if unicodedata.category(char)[0] in "SP" else char
        self[code] = out
        return out


_SPACES = _Spaces()


def plain(text: str) -> str:
    """Return a text in lower case without symbols and punctuation, in compatibility form (NFKC). Accents stay."""
    return unicodedata.normalize("NFKC", text).lower().translate(_SPACES)


def split(text: str, language: str) -> list[str]:
    """Return the words between spaces, or the characters where a language is written without spaces."""
    words = text.split()
    return list("".join(words)) if is_unspaced(language) else words


def words(text: str, language: str = DEFAULT) -> list[str]:
    """Return the words of a text in lower case; the characters where a language is written without spaces.

    An English word is a run of letters and digits; an apostrophe or hyphen inside a word belongs to it. A word of
    another language is what stands between spaces and marks.
    """
    return _WORD.findall(text.lower()) if language == DEFAULT else split(plain(text), language)


def text_length(text: str) -> int:
    """Return a text's length in words between spaces, or in letters and digits where its script has no spaces.

    The lengths of texts in different scripts do not compare.
    """
    if is_unspaced(language_of("", text)):
        return sum(map(str.isalnum, text))
    return len(text.split())


def _suggested(text: str) -> str:
    """The language that most letters of a text suggest; "" for Latin letters, or none."""
    if text.isascii():
        return ""
    counts: dict[str, int] = {}
    for char in text[:_SAMPLE]:
        if char.isalpha():
            script = unicodedata.name(char, "").partition(" ")[0].partition("-")[0]
            language = _SCRIPTS.get(script, "und")
            counts[language] = counts.get(language, 0) + 1
    if "ja" in counts and "zh" in counts:  # kana beside Chinese characters: Japanese
        counts["ja"] += counts.pop("zh")
    return max(counts, key=lambda language: counts[language], default="")
