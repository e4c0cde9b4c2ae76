"""A run read into memory once: every ask with its replies, its failure and the scores to be used.

Everything else in this room works on a `Reading`, so that a summary and a case browser agree to the last reply. A run
may have hundreds of thousands of asks, so a reading keeps little of each, and `whole` reads the rest of a few.
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
from overtone.runs.read_only import Rewritten
from overtone.runs.records import Beside
from overtone.runs.store import ANSWERED, FAILED, Failure, Part, Store, StoredReply
from overtone.schema import Item, Key, Option, Score, Turn
from overtone.scores import CHOICE, ScoreInfo, with_tasks
from overtone.suite import Suite

Scores = Mapping[str, Score]  # metric → score
_NONE: Scores = MappingProxyType({})
_NO_TURN: Mapping[int, Scores] = MappingProxyType({})
_SHARED = 20_000  # sets of scores to remember at a time, for others to share


class Answer(Struct, gc=False):
    """The outcome of one ask: an item under a condition, in one repeat. Answers may share their scores."""

    ask: int
    item: Item
    condition: str
    repeat: int
    state: int
    replies: tuple[StoredReply, ...] = ()
    failure: Failure | None = None
    scores: Scores = _NONE  # of its last reply
    earlier: Mapping[int, Scores] = _NO_TURN  # turn → scores of the reply to it
    item_id: str = ""  # also where the item was lightened: pairs an ask with that of another run
    language: str = DEFAULT  # primary, of the item's texts
    content: int = 0  # hash of the whole item, within this process: tells whether two runs asked the same
    choice: str = ""  # names the option chosen where the item was lightened, the same for the same words

    @property
    def answered(self) -> bool:
        return self.state == ANSWERED

    @property
    def failed(self) -> bool:
        return self.state == FAILED

    def value(self, metric: str, turn: int | None = None) -> float | None:
        """Return the metric's value for the last reply or that to an earlier turn; None if unanswered or unscored."""
        score = (self.scores if turn is None else self.earlier.get(turn, {})).get(metric)
        return None if score is None or self.state != ANSWERED else score.value


class Reading(Struct):
    """A run in memory. `signatures` names, per metric, the one whose scores are used; `notes` what was passed over."""

    folder: Path
    meta: dict[str, str]
    events: list[tuple[float, str, str]]
    answers: list[Answer]
    signatures: dict[str, str]
    notes: list[str]
    items: int  # how many items the run holds
    audio_path: Callable[[str], Path]  # where a reply's sound lies; refuses a name that is not plain hex
    source: str = ""  # whose clips the user asked for, "all" for a pool of them; see `headline_condition`
    measured_twice: dict[str, str] = {}  # metric → the note that says which of its measurements is shown
    language_note: str = ""  # that characters are counted in some languages; "" where words are in all
    silent: frozenset[str] = frozenset()  # judges' scores without a single value: not among `signatures`
    declared: dict[str, ScoreInfo] = {}  # what each metric's score is; of a whole run
    suite: Suite | None = None  # what the benchmark says of itself; of a whole run

    @property
    def name(self) -> str:
        return self.meta.get("label") or self.folder.resolve().name

    @property
    def benchmark(self) -> str:
        return self.meta.get("benchmark") or (self.answers[0].item.benchmark if self.answers else "")

    @property
    def root(self) -> Path | None:
        """The folder the clips' paths are relative to, where the run recorded it."""
        return Path(self.meta["root"]) if self.meta.get("root") else None


def read(store: Store, part: Part | None = None, *, light: bool = False) -> Reading:
    """Read everything that a run holds, or a part of it.

    A `light` reading is enough for a summary and no more: equal items share one object without words, texts or id,
    and the replies to questions and transcriptions are left out, so that a long run's tables fit into memory.
    """
    selection = store.selection()
    silent = store.silent_judges() if part is None else {}
    languages: Counter[str] = Counter()
    in_characters: set[str] = set()
    counted: set[str] = set()  # ids of the items whose language is counted
    replies = Beside((reply.ask, reply) for reply in store.replies(part, light=light))
    failures = Beside((failure.ask, failure) for failure in store.failures(part))
    scores = Beside(store.scores(part))
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
    )


def _declared(store: Store, answers: Iterable[Answer]) -> dict[str, ScoreInfo]:
    """What each metric's score is, with the tasks it applies to: where it does not say, those that have it."""
    found = store.declared()
    free = {score for score, info in found.items() if not info.tasks and not info.measures}
    tasks: dict[str, set[str]] = {score: set() for score in free}
    for answer in answers if free else ():
        for score in free & answer.scores.keys():
            tasks[score].add(answer.item.task)
    return found | {score: with_tasks(found[score], tasks[score]) for score in free}


def whole(reading: Reading, asks: Iterable[int]) -> dict[int, Answer]:
    """Read some asks of a run again, with all that the store holds of them: ask → answer."""
    wanted = tuple(sorted(set(asks)))
    if not wanted:
        return {}
    with Store.read(reading.folder) as store:
        return {answer.ask: answer for answer in read(store, Part(asks=wanted)).answers}


def last_text(reading: Reading, answer: Answer) -> str:
    """Read the text of an answer's last reply from the run's store; "" if it has none."""
    with Store.read(reading.folder) as store:
        reply = store.reply(Key(answer.item_id, answer.condition, answer.repeat, max(len(answer.item.turns) - 1, 0)))
    return reply.text if reply else ""


def _silent_notes(silent: Collection[str]) -> list[str]:
    """Name the judges whose scores have no value at all; the numbers are made without them."""
    labels = sorted({name.partition("@")[2] for name in silent})
    by_judge = {label: sorted(n.partition("@")[0] for n in silent if n.partition("@")[2] == label) for label in labels}
    return [
        f"Judge {label} gave no verdict on {', '.join(keys)}. It is left out of the panel there; "
        f"'overtone score RUN --forget {label}' removes it."
        for label, keys in by_judge.items()
    ]


def _sample(item: Item) -> str:
    """Return a text that shows an item's language, if the item does not name it."""
    texts = (*(turn.reference for turn in item.turns), *item.references, *(turn.words for turn in item.turns))
    return next(filter(None, texts), item.question)


def _of_languages(languages: Counter[str], unspaced: Sequence[str]) -> str:
    """Say that the metrics count characters in the languages `unspaced`, and words in the others."""
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
    """Equal sets of scores as one object: a question is answered in a few ways, and the store gives equal scores as one
    object. The number remembered is bounded, because the scores of conversations rarely are equal."""

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
    """What a summary needs of an item: where it belongs, what its options and turns stand for, its transcript. Equal
    items, options and names are one object."""

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
    """A short name for the words of the option that was chosen; "" where the option has no words, or says what it
    stands for."""
    letter = scores[CHOICE].detail.get("answer") if CHOICE in scores else None
    option = next((o for o in item.options if o.letter == letter), None)
    return f"{hash(option.text):x}" if option is not None and option.text and not option.provenance else ""


def reader(names: Sequence[str]) -> Callable[[Answer], float | None]:
    """Return a function that reads the mean of an answer's scores of these names; None if one has no value, or without
    names."""
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
        except Rewritten:  # by a process that began to write it meanwhile: its files are now there to be read with
            found = read(store, light=light)
        gc.freeze()  # records hold no circles: no later search for garbage has to walk through them again
    return found


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection: among millions of records it finds nothing, and costs a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def signature_differences(readings: Sequence[Reading]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the metrics whose signatures differ between the runs that have them, each with (runs, signature).

    Such numbers are not comparable between the runs, and a comparison must say so.
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
