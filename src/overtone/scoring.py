"""Scores a run's stored replies with every metric that applies. Never asks the model under test."""

from __future__ import annotations

import functools
import heapq
import inspect
import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from overtone import registry
from overtone.blocking import wait
from overtone.embedded.embedder import share_vectors
from overtone.errors import OvertoneError, UsageError, foreign, raised
from overtone.metrics import Answered, Metric, Sounds, Surveying
from overtone.metrics._guarded import Guarded
from overtone.runs.records import sound_path
from overtone.runs.store import Ask, Store
from overtone.schema import Item, Score
from overtone.score_workers import ScoreWorkers, default_processes, workers
from overtone.scores import Declared, metrics_for, own_metrics
from overtone.scores import known as known_scores
from overtone.spec import Spec, parse_spec, suggest

if TYPE_CHECKING:
    from overtone.judges.judgement import Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.read_choices import Readout
    from overtone.runs.limiter import Limiters

PAGE = 256  # replies per batch of a metric that does not set its own `page`
AHEAD = 64  # pages that wait for their scores; the same for any number of processes, so that scores keep their order
OnProgress = Callable[[str, int, int], None]  # the name of a metric, reader or judge, its replies done, all its replies
log = logging.getLogger("overtone")
_STYLES = ("target", "alternative", "neutral")
Page = list[tuple[Ask, Answered]]


def score_run(
    folder: Path,
    *,
    again: bool = True,
    metrics: Sequence[str] = (),
    judges: Sequence[Judge] = (),
    reader: Judge | None = None,
    limiters: Limiters | None = None,
    on_progress: OnProgress | None = None,
    on_judge: Callable[[str, Outcome], None] | None = None,
    on_reader: Callable[[str, Readout], None] | None = None,
    processes: int | None = None,
) -> dict[str, int]:
    """Score every reply of a run; return the number of scores by metric and judge.

    `metrics` are those computed on request, each as `name` or `name?key=value`. With `again` false, replies that
    already have a value with the metric's current signature are skipped. The reader, which reads the choices that the
    rules cannot read, and the judges come last; their stored verdicts are reused. `limiters` are the command's.
    Slow metrics are computed in several `processes` (default: one per core); the scores do not depend on how many.

    `on_progress` is called when a metric, the reader or the judges begin, and after each batch of a metric. For the
    reader and the judges the number of replies is 0: unknown.
    """
    given: dict[str, int] = {}
    progress = on_progress or _say_nothing
    with Store.read(folder) as store:  # raises if the folder is not a run, instead of creating one
        benchmark = store.meta().get("benchmark", "")
    chosen, declared = load_metrics(metrics, benchmark), known_scores(benchmark)
    by_name = {_metric_name(parse_spec(text)) for text in metrics}
    with Store.create(folder) as store:
        store.declare(declared)
        store.keep_suite(benchmark)
        siblings = _siblings(store)
        totals = _totals(store, chosen) if on_progress else {}
        passes = {
            name: _Pass(
                store, metric, again=again, siblings=siblings, named=name in by_name,
                tell=functools.partial(_tell, progress, name, totals.get(name, 0)),
            )
            for name, metric in chosen.items()
        }  # fmt: skip
        with workers(processes or default_processes(), store.counts()["answered"]) as pool:
            _score_with_all(list(passes.values()), pool)
        for name, done in passes.items():
            given[name] = done.count
            _check_declared(store, done.metric, done.guarded.emits, declared)
        if reader is not None:
            from overtone.judges.read_choices import read_run
            from overtone.metrics.choice import SIGNATURE

            progress(f"reader {reader.label}", 0, 0)
            readout = wait(read_run(store, reader, SIGNATURE, log=log.info, limiters=limiters))
            given[f"reader {reader.label}"] = readout.read
            if on_reader:
                on_reader(reader.label, readout)
        elif store.meta().get("readers"):
            from overtone.judges.read_choices import carry
            from overtone.metrics.choice import SIGNATURE

            carry(store, SIGNATURE)
        if judges:
            from overtone.judges.judge_run import judge_run

            progress(f"judge {', '.join(judge.label for judge in judges)}", 0, 0)
            for label, outcome in wait(judge_run(store, judges, log=log.info, limiters=limiters)).items():
                given[f"judge {label}"] = outcome.answered
                if on_judge:
                    on_judge(label, outcome)
    return given


def check(metrics: Sequence[str], judges: Sequence[Spec], benchmark: str = "") -> list[Judge]:
    """Return the judges that these SPECs name. Raise UsageError for a wrong metric, option or rubric before the run."""
    from overtone.judges import rubric
    from overtone.judges.judge_run import check_suits
    from overtone.judges.policy import judge_of

    if metrics:
        load_metrics(metrics, benchmark)
    parsed = [judge_of(spec) for spec in judges]
    for judge in parsed:
        _check_model(judge)
        for name in judge.rubrics:
            check_suits(rubric.load(name))
    return parsed


def check_reader(spec: Spec | None) -> Judge | None:
    """Return the reader that this SPEC names. Raise UsageError for a wrong name or option before the run."""
    if spec is None:
        return None
    from overtone.judges.choice_reader import reader_of

    reader = reader_of(spec)
    _check_model(reader)
    return reader


def _check_model(judge: Judge) -> None:
    from overtone.judges.policy import KEYS

    module = registry.find("models", judge.spec.kind)
    try:
        module.load(judge.spec)
    except UsageError as error:
        hint = f"; a judge's own keys: {', '.join(KEYS)}" if "unknown key" in str(error) else ""
        raise UsageError(f"{error}{hint}") from None


def load_metrics(asked: Sequence[str], benchmark: str = "") -> dict[str, Metric]:
    """Return the standard metrics, those that the benchmark declares for its own replies, and those asked for.

    Raise UsageError with the nearest known name for an unknown name or option."""
    loaded: dict[str, Metric] = {}
    named = {_metric_name(spec): spec for spec in map(parse_spec, asked)}
    for name, source in sorted(metrics_for(benchmark).items()):
        if name in named:
            loaded[name] = _loaded(source, named[name])
        elif not getattr(source, "ON_REQUEST", False):
            with foreign(f"the metric {name} cannot be loaded"):
                loaded[name] = source.load()
    for name in named.keys() - loaded.keys():
        owners = [other for other in registry.listing("benchmarks") if name in own_metrics(other)]
        if owners:
            raise UsageError(f"--metric {name}: it scores replies to {owners[0]} only")
        registry.check_name("metrics", name)  # raises and lists the known names
    return loaded


def _metric_name(spec: Spec) -> str:
    return spec.kind.replace("_", "-")


def _loaded(module: ModuleType, spec: Spec) -> Metric:
    known = inspect.signature(module.load).parameters
    if spec.name:
        raise UsageError(f"--metric {spec}: write options after a question mark, like {spec.kind}?key=value")
    for key in spec.options:
        if key not in known:
            options = f"known: {', '.join(known)}" if known else f"{spec.kind} has no options"
            raise UsageError(f"--metric {spec.kind}: unknown option {key!r}{suggest(key, known)}; {options}")
    with foreign(f"--metric {spec} cannot be loaded"):
        metric: Metric = module.load(**spec.options)
    return metric


def _say_nothing(name: str, done: int, total: int) -> None:
    """Do nothing. Used if the caller does not want progress reports."""


def _tell(progress: OnProgress, name: str, total: int, done: int) -> None:
    if total:
        progress(name, done, total)


def _totals(store: Store, metrics: Mapping[str, Metric]) -> dict[str, int]:
    """Return the number of replies that each metric applies to. It is 0 for a metric that raises here; scoring reports
    that."""
    totals = dict.fromkeys(metrics, 0)
    asking = dict(metrics)
    for ask in store.answered():
        for name, metric in list(asking.items()):
            try:
                totals[name] += len(ask.replies) if metric.applies(ask.item) else 0
            except Exception:  # noqa: BLE001 - a plug-in may raise anything
                del asking[name]
    return totals


def _siblings(store: Store) -> dict[str, dict[str, str]]:
    """Map script → style → reference reply, for one-turn conversations."""
    references: dict[str, dict[str, str]] = {}
    for item in store.items():
        if _has_siblings(item):
            references.setdefault(item.group, {})[item.style] = item.references[0]
    return references


def _has_siblings(item: Item) -> bool:
    return item.task == "converse" and len(item.turns) == 1 and bool(item.references) and item.style in _STYLES


def _check_declared(store: Store, metric: Metric, scores: Iterable[str], declared: Declared) -> None:
    """Warn about scores that a metric emits without declaring them."""
    for score in sorted(set(scores) - declared.keys()):
        how = f'SCORES = {{"{score}": ScoreInfo("LABEL", better="higher")}}'
        _warn(
            store,
            f"the metric {metric.name} does not declare its score {score!r}, which is therefore shown as a number of "
            f"which neither way is better; add {how} to the metric (docs/how-to/extend/metric.md)",
        )


def _warn(store: Store, line: str) -> None:
    if line not in {detail for _, kind, detail in store.events() if kind == "warning"}:
        store.add_event("warning", line)
        store.commit()
    log.warning(line)


class _Pass:
    """One metric's pass over the replies of a run: the pages that it scores, and its scores so far."""

    def __init__(
        self,
        store: Store,
        metric: Metric,
        *,
        again: bool,
        siblings: Mapping[str, Mapping[str, str]],
        named: bool,
        tell: Callable[[int], None],
    ) -> None:
        self.metric = metric
        self.size = int(getattr(metric, "page", PAGE))
        self.shares = str(getattr(metric, "shares", ""))
        self.guarded = Guarded(metric)
        self.count = 0
        self.ended = False  # it was abandoned, or raised where it cannot be continued
        self._store = store
        self._again = again
        self._siblings = siblings
        self._named = named
        self._tell = tell
        self._seen = 0  # replies that are scored, or have been before

    def pages(self) -> Iterator[Page]:
        """Yield the replies to score, at most a page at a time."""
        self._tell(0)
        again, size = self._again, self.size
        if isinstance(self.metric, Surveying):  # a new reply may change the scores of the others
            self.metric.survey(answered for _, answered in self._replies())
            again = True
        stream = self._replies()
        done: set[int] = set()
        if not again and (first := list(itertools.islice(stream, 1))):
            # The first reply shows the signatures; asks with a value for all of them are done.
            rows = self.add(first, None)
            sets = [self._store.scored(s) for s in {score.signature for scores in rows for score in scores}]
            done = set.intersection(*sets) if sets else set()
        for page in _joint_pages(stream, size) if self.shares else _full_pages(stream, size):
            todo = [(ask, answered) for ask, answered in page if ask.id not in done]
            self._seen += len(page) - len(todo)
            if self.ended:
                return
            if todo:
                yield todo

    def add(self, page: Page, scored: list[list[Score]] | None) -> list[list[Score]]:
        """Store the scores of a page. If `scored` is None, they are computed here first."""
        if self.ended:
            return []
        rows = self.guarded.score([answered for _, answered in page], scored)
        by_turn: dict[int | None, list[tuple[int, Score]]] = {}
        for (ask, answered), scores in zip(page, rows, strict=not self.guarded.stopped):
            last = answered.key.turn == len(ask.item.turns) - 1
            by_turn.setdefault(None if last else answered.key.turn, []).extend((ask.id, score) for score in scores)
        for turn in sorted(by_turn, key=lambda t: (t is None, t)):  # the last turn marks an ask as scored
            self._store.add_scores(by_turn[turn], turn=turn, named=self._named)
        self._store.commit()  # an interrupted slow metric keeps its scores so far
        self.count += sum(map(len, rows))
        self._seen += len(page)
        self._tell(self._seen)
        if self.guarded.stopped:
            self.ended = True
            _warn(self._store, f"the metric {self.guarded.stopped}")
        return rows

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """End this pass with a warning if the metric raises inside the block. A plug-in's applies() and survey() may
        raise anything."""
        try:
            yield
        except OvertoneError:
            raise
        except Exception as error:  # noqa: BLE001
            self.count, self.ended = 0, True
            _warn(self._store, f"the metric {self.metric.name} was left out: it raised {raised(error)}")

    def _replies(self) -> Iterator[tuple[Ask, Answered]]:
        return _answered(self._store, self.metric, self._siblings)


def _full_pages(stream: Iterator[tuple[Ask, Answered]], size: int) -> Iterator[Page]:
    while page := list(itertools.islice(stream, size)):
        yield page


def _joint_pages(stream: Iterable[tuple[Ask, Answered]], size: int) -> Iterator[Page]:
    """Divide replies into pages at fixed ask ids, the multiples of `size`.

    So the pages of metrics that score different replies end at the same asks.
    """
    for _, page in itertools.groupby(stream, key=lambda pair: pair[0].id // size):
        yield list(page)


def _guarded_pages(one: _Pass) -> Iterator[tuple[_Pass, Page]]:
    with one.guarding():
        for page in one.pages():
            yield one, page


def _batches(passes: Sequence[_Pass]) -> Iterator[list[tuple[_Pass, Page]]]:
    """Yield the pages of one metric after the other. Metrics that share work are yielded together: one batch has the
    pages of all of them for the same asks."""
    groups: dict[str, list[_Pass]] = {}
    for one in passes:
        groups.setdefault(one.shares or f"only {one.metric.name}", []).append(one)
    for group in groups.values():
        if len(group) == 1:
            yield from ([pair] for pair in _guarded_pages(group[0]))
            continue
        merged = heapq.merge(*map(_guarded_pages, group), key=_place)
        for _, batch in itertools.groupby(merged, key=_place):
            yield list(batch)


def _place(pair: tuple[_Pass, Page]) -> int:
    one, page = pair
    return page[0][0].id // one.size


def _score_with_all(passes: Sequence[_Pass], pool: ScoreWorkers | None) -> None:
    """Score with every metric. Meanwhile, the processes of the pool compute the next pages of slow metrics."""
    waiting: deque[tuple[list[tuple[_Pass, Page]], Future[list[list[list[Score]]] | None] | None]] = deque()

    def finish(most: int) -> None:
        while len(waiting) > most:
            batch, future = waiting.popleft()
            scored = future.result() if future else None
            with share_vectors():
                for number, (one, page) in enumerate(batch):
                    with one.guarding():
                        one.add(page, scored[number] if scored else None)

    for batch in _batches(passes):
        parts = [(one.metric, [answered for _, answered in page]) for one, page in batch]
        waiting.append((batch, pool.submit(parts) if pool else None))
        finish(AHEAD)
    finish(0)


def _answered(
    store: Store, metric: Metric, siblings: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[Ask, Answered]]:
    """Yield every reply that the metric applies to."""
    root = store.meta().get("root")
    sounds = Sounds(partial(sound_path, store.folder), Path(root) if root else None)
    for ask in store.answered():
        if metric.applies(ask.item):
            references = siblings.get(ask.item.group, {}) if _has_siblings(ask.item) else {}
            for r in ask.replies:
                said = r.text, r.refused, r.finish, r.audio, sounds, r.likelihoods
                yield ask, Answered(r.key, ask.item, *said, references)
