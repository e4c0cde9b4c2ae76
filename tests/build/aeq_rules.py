"""The rules of writing for the open set for AEQ-Bench: every text that breaks one is listed with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from overtone.build.aeq_texts import VARIANTS, Group
from overtone.build.gates._lexicon import tells, tones
from overtone.build.script import Dialogue, Script, read_collection
from overtone.cues import BY_SLUG, cues_in
from overtone.echat.making.evaluation_overlap import runs_of
from tests.build import authoring_rules

WORDS = (7, 16)  # how many an utterance may have
SENTENCES = {"context": 3, "tone": 2}  # how many a context may have at most
REPLY_WORDS = (15, 30)
REPLY_RATIO = 1.35  # of the longest to the shortest reply of a group, in words
SAME_SITUATION = 0.4  # shared words ÷ all words, from which on two contexts of a group are one
TOPICS = (  # those of the open set
    *("beauty", "entertainment", "family", "finance", "food", "games", "health"),
    *("home", "school", "sports", "technology", "travel", "work"),
)
BALANCED = 26  # groups of a setting from which on its topics are balanced: each within a factor 2 of the mean
OPENING = 0.06  # how many of a set's replies may begin with the same word, as a share; from 100 replies on
COLOURED = ("positive", "negative", "harsh", "feeling")  # kinds of words that lean towards a tone
MANNER = ("physiological", "emotion", "volume", "speed", "nonverbal")  # categories of cues that a voice carries
NAMES = re.compile(  # capitalised words that name nobody and no firm
    r"Grandpa|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|March|April|May|June|July|August|September|"
    r"October|November|December|Easter|New|Year|Italian|Europe|Mill|Street"
)
# what the lexicon's win\w*, won and mess\w* find, and does not mean
PLAIN = re.compile(r"\b(?:winter|windows?|wing|messages?|won't)\b", re.I)


def problems(groups: Sequence[Group], others: Iterable[str] = ()) -> list[str]:
    """Every broken rule, as `id: what is wrong`. `others` are texts of other sets, of which nothing is said again."""
    found = [f"{group.id}: {what}" for group in groups for what in _of_group(group)]
    found += authoring_rules.too_alike([(group.id, group.words) for group in groups])
    found += _said_again(groups)
    known = {run for text in others for run in runs_of(text)}
    for group in groups:
        for text in _texts(group):
            found += [
                f"{group.id}: also said in another set: {' '.join(run)!r}" for run in runs_of(text) if run in known
            ]
    return found + list(_of_topics(groups)) + list(_of_openings(groups))


def open_texts(name: str = "open") -> Iterator[str]:
    """Everything said and answered in a set of scripts."""
    for one in read_collection(name).everything:
        if isinstance(one, Script):
            yield from (one.words, *one.reply.values())
        elif isinstance(one, Dialogue):
            yield from (one.steady_reply, *(t.words for t in one.turn), *(t.reply for t in one.turn))


def _of_group(group: Group) -> Iterator[str]:
    count = len(group.words.split())
    if not WORDS[0] <= count <= WORDS[1]:
        yield f"{count} words; an utterance has {WORDS[0]} to {WORDS[1]}"
    for sex in ("male", "female"):
        if told := tells()[sex].search(group.words):
            yield f"{told[0]!r} says who speaks, and any voice may"
    contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
    for text in contexts:
        if (count := len(re.findall(r"[.!?](?:\s|$)", text))) not in range(1, SENTENCES[group.setting] + 1):
            yield f"a context of {count} sentences; at most {SENTENCES[group.setting]}"
        if runs_of(text) & runs_of(group.words):
            yield "a context says the utterance before it is said"
    yield from _of_replies(group)
    for i, text in enumerate(contexts):
        for other in contexts[:i]:
            if authoring_rules.alike(text, other) >= SAME_SITUATION:
                yield "two of its contexts are almost the same situation"
    for text in _texts(group):
        for name in sorted(names(text)):
            yield f"{name!r} may be the name of somebody or of a firm"
    if group.setting == "tone":
        for where, text in (("the words", group.words), ("the context", group.context)):
            yield from (f"{where} lean towards a tone: {word!r}" for word in leanings(text))
        yield from (f"the neutral reply names the cue {named!r}" for named in cues_in(group.variant[0].reply))


def _of_replies(group: Group) -> Iterator[str]:
    lengths = [len(variant.reply.split()) for variant in group.variant]
    if min(lengths) < REPLY_WORDS[0] or max(lengths) > REPLY_WORDS[1]:
        yield f"replies of {lengths} words; a reply has {REPLY_WORDS[0]} to {REPLY_WORDS[1]}"
    if max(lengths) > REPLY_RATIO * min(lengths):
        yield f"replies of {lengths} words: the longest may be {REPLY_RATIO} times the shortest"
    for i, one in enumerate(group.variant):
        for two in group.variant[:i]:
            if authoring_rules.alike(one.reply, two.reply) >= authoring_rules.ALIKE:
                yield f"the replies of {group.name_of(two)} and {group.name_of(one)} say almost the same"


def _said_again(groups: Sequence[Group]) -> Iterator[str]:
    first: dict[str, str] = {}
    for group in groups:
        contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
        for text in (*contexts, *(variant.reply for variant in group.variant)):
            key = " ".join(re.findall(r"\w+", text.lower()))
            if key in first:
                yield f"{group.id}: a context or reply that stands in {first[key]} too: {text!r}"
            first.setdefault(key, group.id)


def _of_topics(groups: Sequence[Group]) -> Iterator[str]:
    for setting in VARIANTS:
        counts = Counter(group.topic for group in groups if group.setting == setting)
        yield from (
            f"set: no topic {topic!r}; there is: {', '.join(TOPICS)}" for topic in counts if topic not in TOPICS
        )
        mean = counts.total() / len(TOPICS)
        for topic in TOPICS if counts.total() >= BALANCED else ():
            if not mean / 2 <= counts[topic] <= mean * 2:
                yield f"set: {counts[topic]} of {counts.total()} {setting} groups are about {topic}; balance them"


def _of_openings(groups: Sequence[Group]) -> Iterator[str]:
    """A reply that begins as all replies do is a template, and what a reply must show here is that it is none."""
    first = Counter(re.findall(r"[\w']+", v.reply)[0].lower() for group in groups for v in group.variant)
    for word, count in first.items():
        if first.total() >= 100 and count > OPENING * first.total():
            yield f"set: {count} of {first.total()} replies begin with {word!r}"


def leanings(text: str) -> list[str]:
    """The words of a text that would tell of a tone: by our lexicon of tones and cues, or by the taxonomy."""
    text = PLAIN.sub(" ", text)
    patterns = [tones()[kind] for kind in COLOURED]
    for cue in BY_SLUG.values():
        if cue.category in MANNER:
            patterns += [tells()[cue.slug], re.compile(cue.pattern, re.I)]
    return list(dict.fromkeys(match[0].lower() for pattern in patterns for match in pattern.finditer(text)))


def names(text: str) -> set[str]:
    """Capitalised words within a sentence that are no known name of a day, a month or the like."""
    inside = re.findall(r"(?<=[\w,;:] )[A-Z][\w]+", text)
    return {word for word in inside if not NAMES.fullmatch(word)}


def _texts(group: Group) -> list[str]:
    contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
    return [group.words, *contexts, *(variant.reply for variant in group.variant)]
