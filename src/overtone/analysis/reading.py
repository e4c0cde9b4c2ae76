"""A run read into memory once: every ask with its replies, its failure and the scores to be used.

Everything else in this room works on a `Reading`, so that a summary and a case browser agree to the last reply.
"""

from __future__ import annotations

import contextlib
import gc
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from overtone.languages import is_unspaced, language_of
from overtone.runs.store import ANSWERED, FAILED, Failure, Store, StoredReply
from overtone.schema import Item, Option, Score, Turn


class Answer(Struct):
    """What became of one ask: an item under a condition, the repeat-th time."""

    ask: int
    item: Item
    condition: str
    repeat: int
    state: int
    replies: list[StoredReply] = field(default_factory=list)
    failure: Failure | None = None
    scores: dict[str, Score] = field(default_factory=dict)  # of its last reply
    earlier: dict[int, dict[str, Score]] = field(default_factory=dict)  # turn → scores of the reply to it
    item_id: str = ""  # also where the item was lightened: pairs an ask with that of another run
    content: int = 0  # hash of the whole item, within this process: tells whether two runs asked the same

    @property
    def answered(self) -> bool:
        return self.state == ANSWERED

    @property
    def failed(self) -> bool:
        return self.state == FAILED

    def value(self, metric: str, turn: int | None = None) -> float | None:
        """The metric's value for the last reply or that to an earlier turn; None where unanswered or unscored."""
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
    source: str = ""  # whose clips the user asked for, "all" for a pool of them; see `standing`
    measured_twice: dict[str, str] = {}  # metric → the note that says which of its measurements is shown
    silent: frozenset[str] = frozenset()  # judges' scores without a single value: not among `signatures`

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


def read(store: Store, *, case: str | None = None, light: bool = False) -> Reading:
    """Everything a run holds, or what it holds of one case.

    A `light` reading is enough for a summary and no more: equal items share one object without words, texts or id,
    and the replies to questions and transcriptions are left out, so that a long run's tables fit into memory.
    """
    shared: dict[Item, Item] = {}
    answers = {}
    items = set()
    languages: Counter[str] = Counter()
    last: Item | None = None
    for ask, state in store.asks(case=case):
        if last is not ask.item:
            last = item = ask.item
            if last.id not in items and last.task != "choose":
                languages[language_of(last.language, _sample(last))] += 1
            items.add(last.id)
            content = hash(last)
            if light:
                item = _lightened(last)
                item = shared.setdefault(item, item)
        answers[ask.id] = Answer(ask.id, item, sys.intern(ask.condition), ask.repeat, state)
        answers[ask.id].item_id, answers[ask.id].content = last.id, content
    for reply in store.replies(light=light):
        if reply.ask in answers:
            answers[reply.ask].replies.append(reply)
    for failure in store.failures():
        if failure.ask in answers:
            answers[failure.ask].failure = failure

    selection = store.selection()
    silent = store.silent_judges()
    for ask_id, score in store.scores():
        if ask_id in answers:
            answers[ask_id].scores[score.metric] = score
    for ask_id, turn, score in store.turn_scores():
        if ask_id in answers:
            answers[ask_id].earlier.setdefault(turn, {})[score.metric] = score
    return Reading(
        store.folder,
        store.meta(),
        store.events(),
        list(answers.values()),
        {name: signature for name, signature in selection.shown.items() if name not in silent},
        [
            *selection.notes.values(),
            *_silent_notes([name for name, asked in silent.items() if asked]),
            *_of_languages(languages),
        ],
        len(items),
        store.audio_path,
        measured_twice=selection.notes,
        silent=frozenset(silent),
    )


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
    """A text that an item's language shows in, where the item does not say it."""
    texts = (*(turn.reference for turn in item.turns), *item.references, *(turn.words for turn in item.turns))
    return next(filter(None, texts), "")


def _of_languages(languages: Counter[str]) -> list[str]:
    """What a reader must know about the texts: characters are counted in some languages, words in others."""
    unspaced = sorted(language for language in languages if is_unspaced(language))
    if not unspaced:
        return []
    counts = ", ".join(f"{language} {number:,}" for language, number in languages.most_common())
    note = (
        f"Items by language: {counts}. For {', '.join(unspaced)}, which is written without spaces between words, WER, "
        "BLEU, ROUGE-L and the other text metrics count characters (WER is then a character error rate)"
    )
    mixed = "; a mean over several languages mixes the two: compare language by language"
    return [f"{note}{mixed if len(languages) > len(unspaced) else ''}."]


def _lightened(item: Item) -> Item:
    """What a summary needs of an item: where it belongs, what its options and turns stand for, its transcript."""
    return msgspec.structs.replace(
        item,
        id="",
        turns=tuple(Turn(None) for _ in item.turns) if len(item.turns) > 1 else (),
        question="",
        topic=sys.intern(item.topic),
        context="",
        cue_text="",
        other_cue="",
        other_cue_text="",
        reference_audio="",
        options=tuple(Option(o.letter, "" if o.provenance else sys.intern(o.text), o.provenance) for o in item.options),
        references=item.references if item.task == "transcribe" else (),
    )


def reader(names: Sequence[str]) -> Callable[[Answer], float | None]:
    """Reads the mean of an answer's scores of these names; None where one of them has no value, or there are none."""
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
    """Read a run folder. A damaged or foreign store is a StoreError."""
    with Store.read(folder) as store, uncollected():
        found = read(store, light=light)
        gc.freeze()  # records hold no circles: no later search for garbage has to walk through them again
    return found


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without a search for garbage meanwhile: among millions of records it finds none, and costs a quarter."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def signature_differences(readings: Sequence[Reading]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The metrics whose signature is not the same in all runs that have it, each with (runs, signature).

    Such numbers do not compare between the runs, and a comparison has to say so.
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
