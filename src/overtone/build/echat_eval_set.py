"""`overtone build echat-eval`: queries with all their labels in one recording, and replies in a fitting emotion.

Labels are applied one after the other: gender, age, emotion, sound. The recording after each label is a step. The gates
compare each step with the previous one, so that every label is measured separately. Steps are in `steps/`, outside the
set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overtone.build import echat_texts
from overtone.build.acceptance import GateReport
from overtone.build.datasheet import About
from overtone.build.echat_texts import CATEGORIES, Query, Spoken
from overtone.build.manifest import write, write_json
from overtone.build.script import SET_LICENCE, first_of_each
from overtone.build.sound_plan import PLAIN, Group, Job, Options, settled
from overtone.build.speak_set import Built, Source, speak_set
from overtone.build.voices import Cast, Speaker, cast
from overtone.cues import BY_SLUG
from overtone.errors import UsageError
from overtone.pool import Progress, no_progress
from overtone.spec import suggest

FILE = "echat_eval.json"
LIST = "data.list"
NAME = "echat-eval"
_ORDER = ("gender", "age", "emotion")  # categories of cues in the order in which they are applied; sounds come last
_SILENT = frozenset({"male", "female", "adult"})  # properties of the voice itself: nothing is applied
_RECORD = ("key", "txt", "wav", "extra", "task")  # EChat's own keys of a record
_EXTRA = ("dataset", "age", "gender", "caption", "q_emotion", "question", "a_wav_path")

_WHY = """
To measure whether a spoken reply uses what was heard besides the words: emotion, age, gender, a sound, or several at
once, in the design of EChat-eval (with which this set is not affiliated). Every sentence is said in two ways, and each
wants another reply.
""".strip()
_TEXTS = "The texts were written and read again by language models; no person has reviewed them yet."
_CHAIN = "Every query went through the same chain, replies with an emotion too;"
_INSTEAD = """takes of people speaking the same queries can be built in with
`--voice recordings:DIR`."""


def build(
    out: Path,
    *,
    options: Options | None = None,
    only: Sequence[str] = (),
    per_category: int | None = None,
    jobs: int | None = None,
    gates: bool = True,
    progress: Progress = no_progress,
) -> Built:
    """Build the set into `out`. `only` selects categories; `per_category` limits the number of sentences in each."""
    options = options or Options()
    for category in only:
        if category not in CATEGORIES:
            known = f"known: {', '.join(CATEGORIES)}"
            raise UsageError(f"no category {category!r}{suggest(category, CATEGORIES)}; {known}")
    queries = echat_texts.read()
    part = [q for q in first_of_each(queries, lambda q: q.category, per_category) if not only or q.category in only]

    def write_texts(checked: GateReport) -> About:
        kept = [one for one in echat_texts.spoken(part) if not checked.out(one.query.id, one.id)]
        records = [one.record() for one in kept]
        write_json(out / FILE, records)
        write(out / LIST, b"".join(msgspec.json.encode(_plain(record)) + b"\n" for record in records))
        planned = Counter(one.query.category for one in echat_texts.spoken(part))
        counts = Counter(one.query.category for one in kept)
        holds = ", ".join(f"{category} {counts[category]}" for category in planned)
        lines = tuple(f"{category}: {counts[category]} of {n} items" for category, n in planned.items())
        return About(NAME, _WHY, f"{len(kept)} items: {holds}. English.", _TEXTS, _CHAIN, _INSTEAD, lines=lines)

    return speak_set(
        out, Source(NAME, SET_LICENCE, frozenset(q.id for q in queries)), lambda takes: plan(options, takes, part),
        write_texts, file=FILE, options=options, jobs=jobs, gates=gates, alone_in=frozenset({PLAIN}), progress=progress,
    )  # fmt: skip


def plan(options: Options, takes: Mapping[str, int], queries: Iterable[Query] | None = None) -> list[Group]:
    """Return all sounds of the queries (default: the set's). `takes` maps the id of a query to its take number."""
    players = cast(options.voices)
    wanted = echat_texts.read() if queries is None else queries
    return settled([Group(q.id, "", tuple(_jobs(q, players, takes.get(q.id, 0)))) for q in wanted], options)


def _jobs(query: Query, players: Cast, take: int) -> Iterator[Job]:
    """Yield the jobs of a query: every rendering, each intermediate step once, and the replies."""
    items = list(echat_texts.spoken([query]))
    ordered = {one.id: _ordered_cues(one) for one in items}
    # as loud as the open set's scenes, unless the voice may get louder: anger needs headroom
    outdoors = all(len(cues) == 1 and BY_SLUG[cues[0]].dimension == "environment" for cues in ordered.values())
    steps: set[str] = set()
    for one in items:
        speaker = players.of(one.voice, query.id, take)
        cues = ordered[one.id]
        heard = [slug for slug in cues if slug not in _SILENT]
        own = tuple(slug for slug in cues if slug in _SILENT)
        before = ""
        for count in range(len(heard)):
            path = _step(query, speaker, heard[:count])
            if path not in steps:
                yield _job(path, query, PLAIN, speaker, (*own, *heard[:count]), outdoors, before, take)
                steps.add(path)
            before = path
        yield _job(one.clip, query, one.id, speaker, (*own, *heard), outdoors, before, take)
        emotion = "" if one.said.reply_emotion == "neutral" else one.said.reply_emotion
        yield Job(one.reply_clip, query.id, one.id, one.said.reply, cue=emotion, voice_style=one.said.style)


def _ordered_cues(one: Spoken) -> tuple[str, ...]:
    """Return the cues of an item in the order in which they are applied."""

    def place(slug: str) -> tuple[int, int]:
        cue = BY_SLUG[slug]
        return (cue.dimension == "environment", _ORDER.index(cue.category) if cue.category in _ORDER else len(_ORDER))

    return tuple(sorted((cue.slug for cue in one.said.cues), key=place))


def _step(query: Query, speaker: Speaker, cues: Sequence[str]) -> str:
    """Return the path of a step. Renderings with the same words, speaker and cues share a step."""
    return f"steps/{query.category}/{'_'.join((query.id, speaker.sex, *cues))}.wav"


def _job(
    path: str, query: Query, style: str, speaker: Speaker, cues: Sequence[str], outdoors: bool, twin: str, take: int
) -> Job:
    cue, also = (cues[0], tuple(cues[1:])) if cues else ("", ())
    scene = bool(cues) and BY_SLUG[cues[-1]].dimension == "environment"
    return Job(
        path, query.id, style, query.words, speaker, cue, outdoors=outdoors, twin=twin, take=take, also=also,
        drawn_as=twin if scene else "",
    )  # fmt: skip


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Reduce a record to the keys that EChat's own records have."""
    extra = {key: value for key, value in record["extra"].items() if key in _EXTRA}
    return {key: record[key] for key in _RECORD} | {"extra": extra}
