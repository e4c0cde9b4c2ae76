"""Languages by BCP-47 tag: which languages are written without spaces, which language to assume without a tag, and
which tags are invalid or do not fit their texts."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

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
    "portuguese": "pt",
    "dutch": "nl",
    "polish": "pl",
    "turkish": "tr",
    "arabic": "ar",
    "hindi": "hi",
    "vietnamese": "vi",
}
_THREE_LETTERS = {  # of languages that have two, which BCP-47 wants
    **{"eng": "en", "zho": "zh", "chi": "zh", "jpn": "ja", "kor": "ko", "tha": "th", "lao": "lo", "khm": "km"},
    **{"mya": "my", "bur": "my", "bod": "bo", "tib": "bo", "dzo": "dz", "deu": "de", "ger": "de", "spa": "es"},
    **{"fra": "fr", "fre": "fr", "ita": "it", "por": "pt", "nld": "nl", "dut": "nl", "rus": "ru", "pol": "pl"},
    **{"tur": "tr", "ara": "ar", "hin": "hi", "vie": "vi"},
}
_ISO_639_1 = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io "
    "is it iu iw ja ji jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml "
    "mn mo mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd "
    "se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi "
    "vo wa wo xh yi yo za zh zu"
)
_TWO_LETTERS = frozenset(_ISO_639_1.split())
_COUNTRIES = {  # codes of countries that are not codes of languages → the language that was meant
    **{"jp": "ja", "cn": "zh", "hk": "zh", "cz": "cs", "dk": "da", "gr": "el", "ua": "uk", "vn": "vi", "us": "en"},
    **{"gb": "en", "at": "de", "mx": "es", "il": "he", "ir": "fa", "eg": "ar", "by": "be", "rs": "sr", "pk": "ur"},
    **{"al": "sq", "kh": "km", "mm": "my", "bd": "bn"},
}
_LATIN = {  # frequent words and letters that English hardly has; only a hint depends on this rough guide
    "de": (
        "ab aber am auch auf bei bin das dass dem der du ein eine einen er es für haben ich ihr ist ja kann mein "
        "mich mir mit nicht noch oder schon sehr sie sind und von war wie wir zu zum zur über",
        "äöüß",
    ),
    "es": (
        "al como con cómo de del el ella en es esta este estoy está están hay la las lo los más me mi muy pero "
        "por porque puedo que qué se sí su también te tengo tu un una y ya yo",
        "ñ¿¡áíóú",
    ),
    "fr": (
        "au avec bien c'est ce ces dans de des du elle en est et il je j'ai la le les mais mon ne nous par pas "
        "pour que qui sa se suis sur très tu un une vous ça",
        "çèêàùœ",
    ),
    "it": (
        "anche che come con cosa del della di e ho gli il io la le lo ma mi molto non per perché più questo "
        "questa se si sono su ti un una è",
        "èòìù",
    ),
    "pt": (
        "a as ao com como da de do e ela ele em estou está eu isso mais mas me meu muito na no não o os para por "
        "que se sua também um uma você é",
        "ãõçáéêó",
    ),
    "nl": (
        "aan als dat de deze die dit een en er het hij ik is je kan maar met mijn naar niet nog of om ook op te "
        "van voor wat we wel zijn zo",
        "ĳë",
    ),
}
_ENGLISH_WORDS = (
    "a about all am an and are as at be been but by can come could did do does for from get go had has have he "
    "her him his how i i'm if in is it it's its just know like may me my no not now of off on one or our out over "
    "see she so some that that's the their them there they this to too um up us was we well were what when where "
    "which who will with would yes you your"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_FREQUENT = {language: frozenset(frequent.split()) for language, (frequent, _) in _LATIN.items()}
_FRAGMENT = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_MOST_NAMED = 3  # maximum number of ids in a warning
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_SAMPLE = 1000  # characters of a text that are examined


def is_tag(text: str) -> bool:
    """Return whether a text has the form of a BCP-47 tag: `de`, `zh`, `zh-Hant`, `en-US`."""
    return _TAG.fullmatch(text) is not None


def tag_problem(tag: str) -> str:
    """Return why a tag is invalid, with a suggestion; "" for a valid tag."""
    if not is_tag(tag):
        return f"{tag!r} is not a BCP-47 tag such as de or zh"
    code = primary(tag)
    if code in _THREE_LETTERS:
        return f"{tag!r} has a shorter code; write {_THREE_LETTERS[code]!r}"
    if code in _TWO_LETTERS or len(code) == 3:  # ISO 639-3 has nearly 8,000 of three letters
        return ""
    if code in _COUNTRIES:
        return f"{tag!r} is the code of a country, not of a language; did you mean {_COUNTRIES[code]!r}?"
    near = difflib.get_close_matches(code, [*_NAMES, *sorted(_TWO_LETTERS)], n=1, cutoff=0.6)
    meant = f"; did you mean {_NAMES.get(near[0], near[0])!r}?" if near else "; use a BCP-47 tag such as de or zh"
    return f"there is no language {tag!r}{meant}"


def primary(tag: str) -> str:
    """Return the primary language of a tag in lower case: `zh` of `zh-Hant`. Common English names are known too."""
    first = re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]
    return _NAMES.get(first, first)


def is_unspaced(language: str) -> bool:
    """Return whether a language is written without spaces between words, so that characters are counted instead."""
    return primary(language) in UNSPACED


def error_rate(languages: Iterable[str]) -> str:
    """Return the name of the error rate for texts in these languages.

    "CER" if all are written without spaces between words, "WER/CER" if some are, else "WER".
    """
    kinds = {is_unspaced(language) for language in languages}
    return "WER/CER" if len(kinds) > 1 else "CER" if kinds == {True} else "WER"


def language_of(tag: str, text: str) -> str:
    """Return the primary language of a text: the one that its tag names, else the one that its script suggests.

    Without a tag, a text in Latin letters is taken as English, so a set in German or Spanish needs tags. A script
    with spaces that several languages share (Cyrillic, Arabic, …) gives `und`: spaced, and not English.
    """
    stated = primary(tag)
    if stated and stated not in SEVERAL:
        return stated
    return _suggested(text) or stated or DEFAULT


class _Spaces(dict[int, str]):
    """A `str.translate` table, filled on demand: symbols and punctuation become spaces, combining marks stay."""

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
    """Return the words of a text, separated at spaces. For a language written without spaces, return its characters."""
    words = text.split()
    return list("".join(words)) if is_unspaced(language) else words


def words(text: str, language: str = DEFAULT) -> list[str]:
    """Return the words of a text in lower case; the characters where a language is written without spaces.

    An English word is a sequence of letters and digits; an apostrophe or hyphen inside a word belongs to it. In other
    languages, words are separated by spaces, symbols and punctuation.
    """
    return _WORD.findall(text.lower()) if language == DEFAULT else split(plain(text), language)


def text_length(text: str) -> int:
    """Return a text's length in words between spaces, or in letters and digits where its script has no spaces.

    The lengths of texts in different scripts are not comparable.
    """
    if is_unspaced(language_of("", text)):
        return sum(map(str.isalnum, text))
    return len(text.split())


def _suggested(text: str) -> str:
    """Return the language that most letters of a text suggest; "" for Latin letters or none."""
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


class LanguageCheck:
    """Collects texts with the languages that their items name, and warns about texts in another language."""

    def __init__(self) -> None:
        self._texts: Counter[str] = Counter()  # stated language → number of items
        self._doubtful: dict[tuple[str, str], list[str]] = {}  # stated, likely → ids

    def add(self, name: str, tag: str, texts: Iterable[str]) -> None:
        """Add an item: its id, the language that it names ("" for none), and its texts."""
        stated, text = primary(tag), " ".join(texts)
        if stated in SEVERAL or not text:
            return
        self._texts[stated] += 1
        likely = likely_language(text)
        if likely and _contradicts(stated, likely):
            self._doubtful.setdefault((stated, likely), []).append(name)

    def warnings(self) -> list[str]:
        """Return a warning for each pair of stated and likely language. A few exceptions among many texts cause no
        warning."""
        lines = []
        for (stated, likely), names in sorted(self._doubtful.items()):
            share = len(names) / self._texts[stated]
            if share < 0.01 or (share < 0.1 and len(names) < 3):
                continue
            some = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
            items = f"{len(names):,} of {self._texts[stated]:,} items"
            stating = f"with the language {stated!r}" if stated else "without a language"
            lines.append(
                f"Language: {items} {stating} seem to be in {likely!r} ({some}). They are scored as "
                f'{stated or DEFAULT!r}; if that is wrong, write "language": "{likely}" in the data.'
            )
        return lines


def likely_language(text: str) -> str:
    """Guess a text's language by its script or by frequent words and letters; "" if they are inconclusive."""
    suggested = _suggested(text)
    if suggested:
        return "" if suggested == "und" else suggested
    fragments = [fragment.replace("’", "'") for fragment in _FRAGMENT.findall(text[:_SAMPLE].lower())]
    if len(fragments) < 2:
        return ""
    foreign = "" if text.isascii() else [char for char in text[:_SAMPLE].lower() if not char.isascii()]
    english = sum(fragment in _ENGLISH for fragment in fragments)
    best, most = "", 0
    for language, (_, letters) in _LATIN.items():
        frequent = _FREQUENT[language]
        hits = sum(fragment in frequent for fragment in fragments) + sum(letter in letters for letter in foreign)
        if hits > most:
            best, most = language, hits
    if most >= 2 and most > 2 * english and most >= 0.2 * len(fragments):
        return best
    return DEFAULT if english >= 2 and english > most else ""


def _contradicts(stated: str, likely: str) -> bool:
    """Return whether a text that looks like language `likely` should not be treated as language `stated`.

    This is so if the two languages are scored by different rules, or are written in different scripts.
    """
    by_script = likely in _SCRIPTS.values()
    if stated in ("", DEFAULT):
        return likely != DEFAULT and not (stated == "" and by_script)  # without a tag the script decides
    if is_unspaced(stated):
        return not is_unspaced(likely)
    return by_script and likely != stated and (stated, likely) != ("ko", "zh")  # Korean may have Chinese characters
