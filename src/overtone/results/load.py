"""Read a run into memory once: every ask with its replies, its failure and the scores that count.

All other modules of this package work on a `Reading`, so that e.g. summary and case browser agree on every reply. A run
may have hundreds of thousands of asks, so a light reading keeps little of each ask; `whole` reads some asks in full.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import operator
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct

from overtone.languages import DEFAULT, is_unspaced, language_of
from overtone.runs.marks import read_marks
from overtone.runs.people_labels import Label, LabelStudy, read_labels, read_studies
from overtone.runs.read_only import Rewritten
from overtone.runs.records import Beside
from overtone.runs.run_shards import shard_note
from overtone.runs.store import ANSWERED, FAILED, Failure, Part, Store, StoredReply
from overtone.schema import Item, Key, Option, Score, Turn
from overtone.scores import CHOICE, ScoreInfo, with_tasks
from overtone.suite import Suite

Scores = Mapping[str, Score]  # metric → score
_NONE: Scores = MappingProxyType({})
_NO_TURN: Mapping[int, Scores] = MappingProxyType({})
_SHARED = 20_000  # number of sets of scores to remember, so that equal sets can share one object


class Answer(Struct, gc=False):
    """The outcome of one ask: an item under a condition, in one repeat. Answers may share their scores."""

    ask: int
    item: Item
    condition: str
    repeat: int
    state: int
    replies: tuple[StoredReply, ...] = ()
    failure: Failure | None = None
    scores: Scores = _NONE  # scores of the last reply
    earlier: Mapping[int, Scores] = _NO_TURN  # earlier turn → scores of the reply to this turn
    item_id: str = ""  # set also in a light reading, to pair the asks of two runs
    language: str = DEFAULT  # main language of the item's texts
    content: int = 0  # hash of the full item, valid in this process: equal if two runs asked the same
    choice: str = ""  # in a light reading, a name for the words of the chosen option
    labels: tuple[Label, ...] = ()  # what people said about the last reply
    heard: str = ""  # what the model heard of the item in training: one of `heard.MARKS`, or ""

    @property
    def answered(self) -> bool:
        return self.state == ANSWERED

    @property
    def failed(self) -> bool:
        return self.state == FAILED

    def value(self, metric: str, turn: int | None = None) -> float | None:
        """Return the metric's value for the last reply, or for the reply to an earlier `turn`; None without a score."""
        score = (self.scores if turn is None else self.earlier.get(turn, {})).get(metric)
        return None if score is None or self.state != ANSWERED else score.value


class Reading(Struct):
    """A run in memory. `signatures` maps each metric to the signature whose scores are used; `notes` says which scores
    are not used."""

    folder: Path
    meta: dict[str, str]
    events: list[tuple[float, str, str]]
    answers: list[Answer]
    signatures: dict[str, str]
    notes: list[str]
    items: int  # number of items in the run
    audio_path: Callable[[str], Path]  # returns the path of a reply's audio; rejects a name that is not hex
    source: str = ""  # the source of clips that the user chose, or "all"; see `headline_condition`
    measured_twice: dict[str, str] = {}  # metric → note that says which of several measurements is shown
    language_note: str = ""  # names languages in which metrics count characters; "" if all count words
    silent: frozenset[str] = frozenset()  # judges' scores without any value: not in `signatures`
    declared: dict[str, ScoreInfo] = {}  # score → description; only if the whole run was read
    suite: Suite | None = None  # the benchmark's own description; only if the whole run was read
    heard: str = ""  # heard items that count in the headline; see `heard_items`
    marked: int = 0  # number of items that the model heard in training
    studies: dict[str, LabelStudy] = {}  # id → a study whose labels the run holds

    @property
    def name(self) -> str:
        return self.meta.get("label") or self.folder.resolve().name

    @property
    def benchmark(self) -> str:
        return self.meta.get("benchmark") or (self.answers[0].item.benchmark if self.answers else "")

    @property
    def root(self) -> Path | None:
        """The folder that the clips' paths are relative to; None if the run did not record it."""
        return Path(self.meta["root"]) if self.meta.get("root") else None


def read(store: Store, part: Part | None = None, *, light: bool = False) -> Reading:
    """Read a whole run, or a part of it.

    A `light` reading holds only the data of a summary, so that a long run fits into memory: equal items share one
    object without words, texts or id, and the replies to questions and transcriptions are left out.
    """
    selection = store.selection()
    silent = store.silent_judges() if part is None else {}
    languages: Counter[str] = Counter()
    in_characters: set[str] = set()
    counted: set[str] = set()  # ids of the items that are counted in `languages`
    replies = Beside((reply.ask, reply) for reply in store.replies(part, light=light))
    failures = Beside((failure.ask, failure) for failure in store.failures(part))
    scores = Beside(store.scores(part))
    studies = read_studies(store)
    marks = read_marks(store)
    labels = Beside((label.ask, label) for label in (read_labels(store) if studies else ()))
    lighten, share = _Lightening(), _Sharing()
    answers: list[Answer] = []
    last: Item | None = None
    for ask, state in store.asks(part):
        if last is not ask.item:
            last = item = ask.item
            content = hash(last)
            language = sys.intern(language_of(last.language, _sample(last)))
            if last.id not in counted:
                counted.add(last.id)
                languages[language] += 1
                if last.task != "choose" and is_unspaced(language):
                    in_characters.add(language)
            if light:
                item = lighten(last)
        failed = failures.of(ask.id)
        answers.append(
            Answer(
                ask.id,
                item,
                sys.intern(ask.condition),
                ask.repeat,
                state,
                tuple(replies.of(ask.id)),
                failed[0] if failed else None,
                share(scores.of(ask.id)),
                item_id=last.id,
                language=language,
                content=content,
                labels=tuple(labels.of(ask.id)),
                heard=marks[last.id].level if last.id in marks else "",
            )
        )
        if light:
            answers[-1].choice = _choice(last, answers[-1].scores)
    for turn, rows in itertools.groupby(store.turn_scores(part), operator.itemgetter(1)):
        scores = Beside((ask_id, score) for ask_id, _, score in rows)
        for answer in answers:
            if found := scores.of(answer.ask):
                answer.earlier = {**answer.earlier, turn: share(found)}
    note = _of_languages(languages, sorted(in_characters))
    return Reading(
        store.folder,
        store.meta(),
        store.events(),
        answers,
        {name: signature for name, signature in selection.shown.items() if name not in silent},
        [
            *filter(None, [shard_note(store.meta())]),
            *selection.notes.values(),
            *_silent_notes([name for name, asked in silent.items() if asked]),
            *filter(None, [note]),
        ],
        store.item_count(part),
        store.audio_path,
        measured_twice=selection.notes,
        language_note=note,
        silent=frozenset(silent),
        declared=_declared(store, answers) if part is None else {},
        suite=store.suite() if part is None else None,
        marked=len(marks),
        studies=studies,
    )


def _declared(store: Store, answers: Iterable[Answer]) -> dict[str, ScoreInfo]:
    """Return score → description. If a description does not state its tasks, the tasks of answers with this score are
    added."""
    found = store.declared()
    free = {score for score, info in found.items() if not info.tasks and not info.measures}
    tasks: dict[str, set[str]] = {score: set() for score in free}
    for answer in answers if free else ():
        for score in free & answer.scores.keys():
            tasks[score].add(answer.item.task)
    return found | {score: with_tasks(found[score], tasks[score]) for score in free}


def whole(reading: Reading, asks: Iterable[int]) -> dict[int, Answer]:
    """Read some asks of a run again in full, and return ask → answer."""
    wanted = tuple(sorted(set(asks)))
    if not wanted:
        return {}
    with Store.read(reading.folder) as store:
        return {answer.ask: answer for answer in read(store, Part(asks=wanted)).answers}


def last_text(reading: Reading, answer: Answer) -> str:
    """Read the text of an answer's last reply from the run's store; "" if there is no reply."""
    with Store.read(reading.folder) as store:
        reply = store.reply(Key(answer.item_id, answer.condition, answer.repeat, max(len(answer.item.turns) - 1, 0)))
    return reply.text if reply else ""


def _silent_notes(silent: Collection[str]) -> list[str]:
    """Return a note for each judge that gave no value for a dimension and is therefore left out of the panel."""
    labels = sorted({name.partition("@")[2] for name in silent})
    by_judge = {label: sorted(n.partition("@")[0] for n in silent if n.partition("@")[2] == label) for label in labels}
    return [
        f"Judge {label} gave no verdict on {', '.join(keys)}. It is left out of the panel there; "
        f"'overtone score RUN --forget {label}' removes it."
        for label, keys in by_judge.items()
    ]


def _sample(item: Item) -> str:
    """Return a text of an item from which its language can be detected."""
    texts = (*(turn.reference for turn in item.turns), *item.references, *(turn.words for turn in item.turns))
    return next(filter(None, texts), item.question)


def _of_languages(languages: Counter[str], unspaced: Sequence[str]) -> str:
    """Return a note that metrics count characters in the languages `unspaced` and words in the other languages."""
    if not unspaced:
        return ""
    counts = ", ".join(f"{language} {number:,}" for language, number in languages.most_common())
    note = (
        f"Items by language: {counts}. For {', '.join(unspaced)}, which is written without spaces between words, WER, "
        "BLEU, ROUGE-L and the other text metrics count characters (WER is then a character error rate)"
    )
    mixed = "; a mean over several languages mixes the two: compare language by language"
    return f"{note}{mixed if len(languages) > len(unspaced) else ''}."


class _Sharing:
    """Replace equal sets of scores with one object. This saves memory, because the answers to a question have few
    different scores. The number of remembered sets is limited, because the scores of conversations are rarely equal."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Scores] = {}

    def __call__(self, scores: Sequence[Score]) -> Scores:
        if not scores:
            return _NONE
        key = tuple(map(id, scores))
        if (known := self._known.get(key)) is None:
            if len(self._known) > _SHARED:
                self._known.clear()
            known = self._known[key] = {score.metric: score for score in scores}
        return known


class _Lightening:
    """Reduce an item to the fields that a summary needs. Equal items, options and names become one object."""

    def __init__(self) -> None:
        self._items: dict[Item, Item] = {}
        self._options: dict[tuple[Option, ...], tuple[Option, ...]] = {}

    def __call__(self, item: Item) -> Item:
        options = tuple(Option(o.letter, "", o.provenance) for o in item.options)
        made = msgspec.structs.replace(
            item,
            id="",
            case=sys.intern(item.case),
            group=sys.intern(item.group),
            turns=tuple(Turn(None) for _ in item.turns) if len(item.turns) > 1 else (),
            question="",
            topic=sys.intern(item.topic),
            context="",
            cue_text="",
            other_cue="",
            other_cue_text="",
            reference_audio="",
            options=self._options.setdefault(options, options),
            references=item.references if item.task == "transcribe" else (),
        )
        return self._items.setdefault(made, made)


def _choice(item: Item, scores: Scores) -> str:
    """Return a short name for the text of the chosen option; "" if the option has no text, or has a provenance that
    already identifies it."""
    letter = scores[CHOICE].detail.get("answer") if CHOICE in scores else None
    option = next((o for o in item.options if o.letter == letter), None)
    return f"{hash(option.text):x}" if option is not None and option.text and not option.provenance else ""


def reader(names: Sequence[str]) -> Callable[[Answer], float | None]:
    """Return a function that returns the mean of an answer's scores in `names`; None if one of them has no value, or if
    `names` is empty."""
    if len(names) == 1:
        (only,) = names

        def read_one(answer: Answer) -> float | None:
            score = answer.scores.get(only)
            return None if score is None or answer.state != ANSWERED else score.value

        return read_one

    def read_mean(answer: Answer) -> float | None:
        if answer.state != ANSWERED or not names:
            return None
        scores, values = answer.scores, []
        for name in names:
            score = scores.get(name)
            if score is None or score.value is None:
                return None
            values.append(score.value)
        return math.fsum(values) / len(values)

    return read_mean


def open_run(folder: Path, *, light: bool = False) -> Reading:
    """Read a run folder. Raises StoreError for a damaged or foreign store."""
    with Store.read(folder) as store, uncollected():
        try:
            found = read(store, light=light)
        except Rewritten:  # another process has begun to write the run since: now its files can be read
            found = read(store, light=light)
        gc.freeze()  # records have no reference cycles, so later collections can skip them
    return found


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection, which finds nothing among millions of records and takes a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def signature_differences(readings: Sequence[Reading]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each metric whose signature differs between runs, with a list of (names of runs, signature).

    The numbers of such a metric are not comparable between the runs, and a comparison must say so.
    """
    found = []
    for metric in sorted({m for r in readings for m in r.signatures}):
        used: dict[str, list[str]] = {}
        for reading in readings:
            if metric in reading.signatures:
                used.setdefault(reading.signatures[metric], []).append(reading.name)
        if len(used) > 1:
            found.append((metric, [(", ".join(names), signature) for signature, names in used.items()]))
    return found
