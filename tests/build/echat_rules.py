"""The rules of writing for the open set for EChat-eval: every text that breaks one is listed with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from overtone.build.echat_texts import CATEGORIES, Query
from overtone.build.gates._lexicon import tells
from overtone.cues import cues_in
from overtone.echat.making.evaluation_overlap import runs_of
from tests.build import authoring_rules

REPLY_WORDS = (15, 30)
LEAST = 40  # of each category


def problems(queries: Sequence[Query], others: Iterable[str] = ()) -> list[str]:
    """Every broken rule, as `id: what is wrong`. `others` are texts of other sets, of which nothing is said again."""
    found = [f"{query.id}: {what}" for query in queries for what in _of_query(query)]
    found += authoring_rules.too_alike([(query.id, query.words) for query in queries])
    known = {run for text in others for run in runs_of(text)}
    for query in queries:
        for text in (query.words, *(said.reply for said in query.said)):
            found += [
                f"{query.id}: also said in another set: {' '.join(run)!r}" for run in runs_of(text) if run in known
            ]
    counts = Counter(query.category for query in queries for _ in query.said)
    return found + [f"set: {counts[c]} of {c}; at least {LEAST}" for c in CATEGORIES if counts[c] < LEAST]


def _of_query(query: Query) -> Iterator[str]:
    count = len(query.words.split())
    if not authoring_rules.WORDS[0] <= count <= authoring_rules.WORDS[1]:
        yield f"{count} words; a query has {authoring_rules.WORDS[0]} to {authoring_rules.WORDS[1]}"
    for named in cues_in(query.words):
        yield f"the words name the cue {named!r}"
    for cue in dict.fromkeys(cue for said in query.said for cue in said.cues):
        if cue.slug in tells() and (told := tells()[cue.slug].search(query.words)):
            yield f"{told[0]!r} would tell a reader of {cue.phrase}"
    lengths = [len(said.reply.split()) for said in query.said]
    if min(lengths) < REPLY_WORDS[0] or max(lengths) > REPLY_WORDS[1]:
        yield f"replies of {lengths} words; a reply has {REPLY_WORDS[0]} to {REPLY_WORDS[1]}"
    if max(lengths) > authoring_rules.REPLY_RATIO * min(lengths):
        yield f"replies of {lengths} words: the longest may be {authoring_rules.REPLY_RATIO} times the shortest"
    if len({said.reply for said in query.said}) < len(query.said):
        yield "two ways of saying it have the same reply"
