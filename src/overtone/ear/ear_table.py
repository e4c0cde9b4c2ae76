"""An ear's report as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from overtone.ear.make_ear import Made
from overtone.embedded.fitted_ear import ABSENT, HeadFacts, Recall

_WIDTH = 24
_LINE = 100


def lines(made: Made) -> Iterator[str]:
    """Yield the report of a fit, line by line."""
    facts = made.facts
    for corpus in facts.corpora:
        licence = ", ".join(corpus.licences)
        kind = "open" if corpus.open else "not open"
        yield f"{corpus.name}: {corpus.clips} clips, {len(corpus.speakers)} speakers, {licence} ({kind})"
    for head in facts.heads:
        yield from _head(head)
    for name, classes in made.left_out.items():
        for one, why in classes.items():
            yield f"not fitted: {name} {one}: {why}"
    absent = [slug for slug, why in facts.cannot_hear.items() if why == ABSENT]
    unsure = {slug: why for slug, why in facts.cannot_hear.items() if why != ABSENT}
    if unsure:
        yield ""
        yield "Not shown to be heard:"
        yield from (f"  {slug}: {why}" for slug, why in unsure.items())
    if absent:
        yield ""
        yield "Not in the recordings; Overtone's own classifier answers, which heard only synthetic voices:"
        yield from textwrap.wrap(", ".join(absent), _LINE, initial_indent="  ", subsequent_indent="  ")
    if not facts.open:
        yield ""
        yield "Some licences are not open: use this ear yourself, and check them before you give it away."


def _head(head: HeadFacts) -> Iterator[str]:
    report = head.report
    yield ""
    yield f"{head.name}: recall on speakers left out, with 95 % intervals over speakers (chance {report.chance:.2f})"
    yield _row("mean of the classes", report.whole)
    yield from (_row(f"  {one.name}", one) for one in report.classes)
    yield from _parts("the same, by corpus", report.by_corpus if len(report.by_corpus) > 1 else ())
    yield from _parts("corpora left out of the fit as a whole", report.without_corpus)


def _parts(title: str, parts: Sequence[Recall]) -> Iterator[str]:
    if parts:
        yield f"{title}:"
        yield from (_row(f"  {one.name}", one) for one in parts)


def _row(name: str, one: Recall) -> str:
    edges = "" if one.low is None or one.high is None else f" [{one.low:.2f}, {one.high:.2f}]"
    people = "speaker" if one.speakers == 1 else "speakers"
    return f"{name:<{_WIDTH}} {one.recall:.2f}{edges:<14}  {one.clips} clips, {one.speakers} {people}"
