"""Read the option that a reply states by the option's words, without a letter.

Every mention of an option is weighed by the words around it. It may be denied, or asserted more or less clearly. It is
not a claim of the reply if it is quoted, asked, conditional, a first impression, or part of the speaker's words. If the
reply corrects itself or concludes, its last clear assertion counts; otherwise two different assertions are not a
choice.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

from rapidfuzz.distance import OSA

from overtone.tasks.answers import phrases as say
from overtone.tasks.answers.option_words import TOKEN, Key, Mention, keys_of, mentions
from overtone.tasks.answers.positions import (
    Reader,
    Sentences,
    body_of,
    few,
    fold,
    is_cjk,
    is_void,
    quoted_in_part,
    words_of,
)

_QUOTED = re.compile(r"\"[^\"\n]+\"|(?<!\w)'[^'\n]{1,300}(?:'\w[^'\n]{0,300}){0,4}'(?!\w)")
_LIST = re.compile(
    r"(?:[\s,]*|[.;…?!]+\s*(?=or\b))(?:or|nor|and|and/or|/|&)?\s*(?:even\s+)?(?:an?\s+|the\s+|any\s+|of\s+|no\s+|not\s+)*"
)
_AND_MORE = re.compile(r"\s+(?:and|or)\s+(?:\w+\s+)?\w+\W*(?:$|[.;\n])")
_MASK = "ŋ"  # replaces a letter that does not name an option
_LONG = 4  # words; a reply does not contain an option's text of this length by chance
_SHORT = 25  # words; a reply up to this length hardly contains an option's word by chance
_SHORT_CLAIM = 20  # words; a longer sentence does not clearly assert an option

DENIED, VOID, WEAK, ABOUT, PLAIN, ALONE = range(-1, 5)


class _Text:
    """A reply split into sentences and clauses, for looking at the words around a mention."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sentences = Sentences(text)
        self.is_talk = say.TALK.search(say.NOT_TALK.sub(" ", text)) is not None
        self._rest_is_talk: dict[str, bool] = {}
        edges = [(m.start(), m.end()) for m in say.CLAUSE_END.finditer(text)]
        self._edge_starts, self._edge_ends = [e[0] for e in edges], [e[1] for e in edges]

    def rest_is_talk(self, words: str) -> bool:
        """Return whether the text, apart from `words`, is addressed to the speaker of the clip."""
        if words not in self._rest_is_talk:
            self._rest_is_talk[words] = _to_the_speaker(_finder(words).sub("_", self.text))
        return self._rest_is_talk[words]

    def clause(self, m: Mention) -> tuple[int, int]:
        """Return the bounds of the clause around a mention, inside its sentence."""
        low, high = self.sentences.around(m.start, m.end)
        before = bisect_right(self._edge_ends, m.start) - 1
        after = bisect_right(self._edge_starts, m.end - 1)
        if before >= 0:
            low = max(low, self._edge_ends[before])
        if after < len(self._edge_starts):
            high = min(high, self._edge_starts[after])
        return low, max(high, m.end)


@lru_cache(maxsize=4096)
def _finder(words: str) -> re.Pattern[str]:
    return re.compile(re.escape(words.strip()) if is_cjk(words) else rf"(?<![\w'-]){body_of(words)}(?![\w-])(?!'\w)")


def _keys(r: Reader) -> dict[str, Key]:
    return dict(keys_of(r.texts))


def _requoted(words: str, texts: list[str]) -> str:
    whole = quoted_in_part(words, texts)
    return f'"{whole.strip()}"' if whole else ""


def _unquoted(text: str, options: dict[str, str]) -> str:
    """Return the text with quoted speech blanked out, except quotations of an option's text."""

    def blank(m: re.Match[str]) -> str:
        words = words_of(m[0])
        own = any(t in words and (len(t.split()) >= _LONG or len(words.split()) <= len(t.split()) + 1) for t in given)
        return m[0] if own else _requoted(words, given) or " " * len(m[0])

    text = say.IDIOM.sub(lambda m: " " * len(m[0]), text)
    given = [t for t in options.values() if t.strip()]
    return _QUOTED.sub(blank, text) if '"' in text or "'" in text else text


def _all_mentions(r: Reader, text: _Text) -> list[Mention]:
    """Return every mention of an option. The whole text of a long option may extend over several sentences."""
    long: list[Mention] = []
    for letter, words in sorted(r.options.items(), key=lambda kv: -len(kv[1])):
        if len(words.split()) >= _LONG:
            for m in few(_finder(words).finditer(text.text)):
                if not any(m.start() < f.end and f.start < m.end() for f in long):
                    long.append(Mention(letter, m.start(), m.end(), True, True, 9))
    keyed = mentions(text.text, text.sentences.bounds, _keys(r))
    short = [m for m in keyed if not any(m.start < f.end and f.start < m.end for f in long)]
    return few(sorted([*long, *short], key=lambda m: m.start))


def _denied(text: _Text, m: Mention, previous: Mention | None, was_denied: bool) -> bool:
    low, high = text.clause(m)
    before = say.NOT_A_NEGATION.sub(" ", text.text[low : m.start])
    after = text.text[m.end : max(high, min(m.end + 60, text.sentences.around(m.start, m.end)[1]))]
    if say.NEGATION.search(before) or say.TEXT_NEGATION.search(before):
        return True
    if say.NEGATED_AFTER.match(after) or say.MARKED_NO.match(after):
        return True
    listed = previous is not None and previous.letter != m.letter and _LIST.fullmatch(text.text, previous.end, m.start)
    return bool(listed and was_denied)  # "not happy, sad or angry"


def _weight(text: _Text, m: Mention, r: Reader) -> int:
    """Return the weight of a mention: from WEAK to ALONE by how clearly it is asserted as the answer, or VOID."""
    whole = text.text
    low, high = text.sentences.around(m.start, m.end)
    clause_low, clause_high = text.clause(m)
    before, after = whole[low : m.start], whole[m.end : high]
    if say.TALK.search(r.options[m.letter]) and text.rest_is_talk(r.options[m.letter]):
        return VOID  # the option is talk, and so is the rest of the reply
    if len(r.options[m.letter].split()) >= _LONG and m.exact and m.roots == 9:
        opens = not _leftover(whole[clause_low : m.start])
        closes = not re.match(r"\s*[\"']?\s*[\w]", whole[m.end : m.end + 4])
        quoted = whole[m.start - 1 : m.start] == whole[m.end : m.end + 1] == '"'
        return PLAIN if (opens or closes or quoted) and not text.rest_is_talk(r.options[m.letter]) else VOID
    turn = [t.end() for t in say.TURN.finditer(before)]
    sentence = before[turn[-1] if turn else 0 :] + " ¤ " + after
    asked = after.rstrip().endswith("?") and not say.TAG_QUESTION.search(after) and not say.SUGGESTED.search(before)
    if asked or is_void(before, after) or say.HYPOTHETICAL.match(after):
        return VOID
    if not m.exact and text.is_talk and not say.ABOUT.search(sentence):
        return VOID  # "That's so exciting! Tell me more."
    frame_only = not _leftover(whole[clause_low : m.start] + " " + say.BESIDES.sub("", whole[m.end : clause_high]))
    if is_cjk(whole[low:high]):
        return PLAIN
    if say.TALK.search(say.NOT_TALK.sub(" ", sentence)):
        return PLAIN if frame_only and clause_low == low and m.exact and not _to_the_speaker(sentence) else VOID
    if re.search(r"\bfrom (?:the )?$", before) and re.match(r"\s+to\b", after):
        return VOID  # "moved from Monday to Friday"
    if (
        say.EXPLETIVE.search(before)
        and not re.search(r"\b(?:the|an?) $", before)
        and re.match(r"\s+(?:that|to|enough|if|when|how|why)\b", after)
    ):
        return VOID  # "It is clear that …"
    if frame_only and not _leftover(sentence.replace("¤", "")):
        return ALONE  # the sentence says nothing else
    if frame_only or say.CONCLUDING.search(whole[low:clause_low]):
        return PLAIN
    if say.REPORTED.search(before) and not (m.exact and m.roots > 1):
        return VOID
    if not before.strip(" \"'") and re.match(
        r"\s+(?:\w+\s+)?(?:is|are|means) (?:an?|when (?:you|we|one|someone|people)|defined|made|the (?:feeling|state|"
        r"act|sound|ability))\b",
        after,
    ):
        return VOID  # "Joy is a feeling of …"
    if len(sentence.split()) > _SHORT_CLAIM and not say.COMPLEMENT.search(before):
        return WEAK
    if m.exact and say.COMPLEMENT.search(before):
        return PLAIN
    if say.ABOUT.search(sentence):
        return ABOUT
    return VOID if m.roots == 1 and say.IMPERATIVE.match(before) else WEAK


def _leftover(text: str) -> list[str]:
    return [w for w in words_of(text).split() if w not in say.FRAME]


def _to_the_speaker(text: str) -> bool:
    """Return whether a text is addressed to the speaker of the clip, and so is not an answer to the question."""
    return bool(say.TALK.search(say.NOT_TALK.sub(" ", text))) and not say.ABOUT.search(text)


def _yes_or_no(r: Reader, text: str) -> tuple[str | None, str] | None:
    """Return (letter, rule) if the options are yes and no; (None, rule) if the reply is undecided.

    Returns None for other options, and for a reply that says neither yes nor no.
    """
    polar = {k: t.split()[0] for k, t in r.options.items() if t.strip() and t.split()[0] in ("yes", "no")}
    if set(polar.values()) != {"yes", "no"} or len(polar) != len(r.options):
        return None
    spoken: list[tuple[str, int]] = []
    if is_cjk(text):
        first = "no" if text.startswith(say.NO_CJK) else "yes" if text.startswith(say.YES_CJK) else ""
        spoken = [(first, 0)] if first else []
    for m in say.POLAR.finditer(text):
        word = "yes" if m[1] in say.YES else "no"
        before = re.split(r"[.!?\n]", text[max(0, m.start(1) - 80) : m.start(1)])[-1]
        if is_void(before, ""):
            continue
        follow = text[m.end() : m.end() + 30]
        if word == "no" and re.match(r"\s+(?:problem|worries|idea|doubt|way to|need|matter|one|other)\b", follow):
            continue
        if re.match(
            r"\s*(?:[^\w\s'\"]|\n|$)|\s+(?:it|there|the|he|she|they|this|that|way|more|multiple|one|to this|to that)\b",
            follow,
        ):
            spoken.append((word, m.start(1)))
    if not spoken:
        return None
    answer, at = spoken[-1]
    if len({word for word, _ in spoken}) > 1:
        other = max(place for word, place in spoken if word != answer)
        between = text[other:at]
        if not (say.CORRECTION.search(between) or say.CONCLUSION.search(between[-15:])):
            return None, "yes and no"
    low, high = Sentences(text).around(at, at + 1)
    if say.RETRACTION.search(text, at) or say.INDECISION.search(text):
        return None, ""
    if _to_the_speaker(text) or _to_the_speaker(text[low:high]):
        return None, ""
    letter = next(k for k, v in polar.items() if v == answer)
    rests = {k: " " + t.split(maxsplit=1)[1] for k, t in r.options.items() if len(t.split()) > 1}
    if any(k != letter and _finder(t).search(text) for k, t in rests.items()) and not (
        letter in rests and _finder(rests[letter]).search(text)
    ):
        return None, "yes or no and the words disagree"
    return letter, "yes-no"


def names_another(r: Reader, letter: str, at: int) -> bool:
    """Return whether the words from `at` to the end of the sentence or bracket name options, but never `letter`."""
    part = re.split(r"[.;\n)\]]", r.text[at : at + 200], maxsplit=1)[0]
    text = _Text(fold(part))
    weighed = _weighed(r, text)
    return bool(weighed) and all(m.letter != letter and m.exact and w == ALONE for m, w in weighed)


def _runs(words: str) -> set[tuple[str, ...]]:
    split = words.split()
    return set(zip(split, split[1:], split[2:], strict=False))


def _borrows(text: str, letter: str, stated: list[Mention], options: dict[str, str]) -> bool:
    """Return whether the reply, apart from the option that it states, has three successive words of another option."""
    parts, last = [], 0
    for m in stated:
        parts.append(text[last : m.start])
        last = max(last, m.end)
    other_runs = _runs(words_of(" ".join([*parts, text[last:]]))) - _runs(options[letter])
    return any(other_runs & _runs(t) for k, t in options.items() if k != letter and len(t.split()) >= _LONG)


def _in_part(body: str, options: dict[str, str]) -> str | None:
    """Return the option that the reply gives only in part: its beginning, or its distinctive words, even with a
    typo."""
    words = body.split()
    shared = set.intersection(*(set(t.split()) for t in options.values())) | say.FRAME
    distinctive = {k: [w for w in t.split() if w not in shared] for k, t in options.items()}
    content = [w for w in words if w not in say.FRAME]
    if not content:
        return None
    if len(words) > _LONG or len(content) > 2:
        hits = [k for k, t in options.items() if t.startswith(body)]
        if hits:
            return hits[0] if len(hits) == 1 else None
    first, last = words.index(content[0]), len(words) - words[::-1].index(content[-1])
    inside = [k for k, t in options.items() if f" {' '.join(words[first:last])} " in t]
    if inside:
        return inside[0] if len(inside) == 1 and 3 * len(content) >= len(distinctive[inside[0]]) else None
    near = {k: " ".join(t) for k, t in distinctive.items() if len(" ".join(t)) > _LONG}
    letters = [w for w in content if len(w) == 1]  # C minor is not a typo of D minor
    near = {k: t for k, t in near.items() if [w for w in t.split() if len(w) == 1] == letters}
    hits = [k for k, t in near.items() if OSA.distance(" ".join(content), t, score_cutoff=1) <= 1]
    return hits[0] if len(hits) == 1 else None


def _weighed(r: Reader, text: _Text) -> list[tuple[Mention, int]]:
    weighed: list[tuple[Mention, int]] = []
    previous, was_denied = None, False
    for m in _all_mentions(r, text):
        was_denied = _denied(text, m, previous, was_denied)
        previous = m
        weighed.append((m, DENIED if was_denied else _weight(text, m, r)))
    for i, (m, weight) in enumerate(weighed):
        if weight < WEAK:
            continue
        after = weighed[i + 1] if i + 1 < len(weighed) else None
        if after and after[1] >= WEAK and _LIST.fullmatch(text.text, m.end, after[0].start):
            both = max(weight, after[1])  # "a mix of anger and sadness"
            weighed[i : i + 2] = [(m, both), (after[0], both)]
        elif (
            m.roots == 1
            and len(r.options) > 2
            and (more := _AND_MORE.match(text.text, m.end))
            and (not after or after[0].start > more.end())
        ):
            weighed[i] = (m, VOID)  # "happy and tired": it is open which of the two
    return weighed


def _chosen(text: str, claims: list[tuple[Mention, int]]) -> Mention | None:
    """Return the claim that counts among claims of different options, or None if the reply does not decide."""
    last, weight = claims[-1]
    others = [(m, w) for m, w in claims if m.letter != last.letter]
    end = max(m.end for m, _ in others)
    if end < last.start:
        between = text[end : last.start]
        if say.CORRECTION.search(between):
            return last
        if weight >= min(max(w for _, w in others), ABOUT) and (
            say.CONCLUSION.search(between) or say.TURN.search(between)
        ):
            return last
    top = max(w for _, w in claims)
    best = [m for m, w in claims if w == top]
    if len({m.letter for m in best}) == 1 and all(w < top - 1 for m, w in claims if m.letter != best[0].letter):
        return best[-1]
    return None


def _is_retelling(text: _Text, claim: Mention, weighed: list[tuple[Mention, int]]) -> bool:
    """Return whether the sentence of a weak claim names other options too: "The waiter asks the customer about it"."""
    low, high = text.sentences.around(claim.start, claim.end)
    return any(w == VOID and m.whole and m.letter != claim.letter and low <= m.start < high for m, w in weighed)


def _solid(text: str, m: Mention) -> bool:
    """Return whether a mention is clear. A common word such as `he` or `it` names an option only if it is in quotes."""
    return bool(_leftover(text[m.start : m.end])) or (m.start > 0 and text[m.start - 1] in "\"'")


def stated(r: Reader) -> tuple[str | None, str]:
    """Return (letter, rule) for the only option whose text the reply states; (None, rule) if it states several."""
    whole = words_of(r.text)
    if equal := [k for k, t in r.options.items() if t == whole and t.strip()]:
        return (equal[0], "whole reply") if len(equal) == 1 else (None, "")
    text = _Text(_unquoted(fold(r.text), r.options))
    if polar := _yes_or_no(r, text.text):
        return polar
    if {t.strip() for t in r.options.values()} == {"yes", "no"}:
        return None, ""
    weighed = _weighed(r, text)
    count = len(whole.split())
    claims = [(m, w) for m, w in weighed if w > VOID]
    if solid := [(m, w) for m, w in claims if _solid(text.text, m)]:
        claims = solid
    if claims:
        if len({m.letter for m, _ in claims}) > 1:
            last = _chosen(text.text, claims)
            return (None, "several option texts") if last is None else (last.letter, "option-text")
        best = max(w for _, w in claims)
        short = _SHORT if any(m.exact for m, _ in claims) else _SHORT // 2
        least = WEAK if count <= short and not text.is_talk else ABOUT
        first = claims[0][0]
        if best == WEAK and _is_retelling(text, first, weighed):
            return None, ""
        if best >= least and (first.whole or best > WEAK):
            if _borrows(text.text, first.letter, [m for m, w in weighed if w != VOID], r.options):
                return None, "several option texts"
            return first.letter, "option-text" if first.exact else "option-words"
        return None, ""
    denied = {m.letter for m, w in weighed if w == DENIED and m.whole}
    left = [k for k, t in r.options.items() if t.strip() and k not in denied]
    if denied and len(left) == 1 and not any(w == VOID for _, w in weighed):
        return left[0], "exclusion"
    if not weighed and count <= 14 and (letter := _in_part(words_of(text.text), r.options)):
        return letter, "option-words"
    return None, ""


def without_own_letters(r: Reader) -> tuple[str, bool]:
    """Mask letters that belong to an option's words (`C major`, `Vitamin D`). Return the text, and whether a masked
    letter could also be a choice (option C is `major`, option B is `C major`)."""
    text, either = r.text, False
    for letter, words in r.texts:
        tokens = TOKEN.findall(words)
        if len(tokens) < 2 or not any(re.fullmatch(r"[a-h][#♯♭]?", t) for t in tokens):
            continue
        parts = "".join(re.escape(t) + (r"[\W_]{0,3}" if t[-1] in "#♯♭" else r"[\W_]{1,3}") for t in tokens[:-1])
        pattern = rf"(?<![\w-]){parts}{re.escape(tokens[-1])}(?![\w-])"
        masked = re.sub(pattern, lambda m: re.sub(r"(?<![^\W_])[a-h](?![^\W_])", _MASK, m[0]), text)
        named = TOKEN.findall(dict(r.texts).get(tokens[0], ""))
        either = either or (masked != text and tokens[0] != letter and named == tokens[1:])
        text = masked
    return text, either


def states_another(r: Reader, letter: str) -> bool:
    """Return whether a reply that names `letter` clearly states another option's text, but not the text of `letter`."""
    text = _Text(_unquoted(fold(r.text), r.options))
    if polar := _yes_or_no(r, text.text):
        return polar[0] not in (None, letter)
    plain: set[str] = set()
    for m, weight in _weighed(r, text):
        if m.letter == letter and weight >= WEAK:
            return False
        if weight == ALONE and m.whole:
            plain.add(m.letter)
    return bool(plain)
