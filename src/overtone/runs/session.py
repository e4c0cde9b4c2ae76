"""Execute a run from its settings: load the benchmark and the model, open the store, plan the asks, run the engine."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import itertools
import logging
import platform
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from overtone import registry
from overtone.benchmarks import Benchmark, Selection, layouts, selected
from overtone.errors import DataError, StoreError, UsageError, foreign, raised
from overtone.heard import HeardInTraining
from overtone.languages import LanguageCheck
from overtone.models import Model
from overtone.paths import OneLine, write_whole
from overtone.runs.asker import Outcome, Policy, check_outcome
from overtone.runs.database import clear_errors
from overtone.runs.engine import Engine, Progress
from overtone.runs.heard_marks import Marker, heard_by
from overtone.runs.limiter import Limiters
from overtone.runs.prices import price_of
from overtone.runs.run_shards import META as SHARD
from overtone.runs.run_shards import ShardPlan, groups_of, read_plans
from overtone.runs.sent_clips import Sounds, sent_how
from overtone.runs.settings import Settings, identity, to_toml
from overtone.runs.spread_order import place, spread
from overtone.runs.store import Ask, Store
from overtone.schema import LIKELIHOOD, WRITTEN, Item
from overtone.spec import NOT_IDENTITY, Spec
from overtone.suite import find_suite
from overtone.tasks import Prompts, conditions, has_clip, load_prompts
from overtone.text import count
from overtone.version import __version__

PLAN_PAGE = 500
SPREAD, FIRST = "spread", "first"  # how a limit chooses among a benchmark's items
log = logging.getLogger("overtone")
_current: ContextVar[Path | None] = ContextVar("the folder of the run", default=None)  # of this task


class Beside(Protocol):
    """Work on replies while the run continues, such as judging. It ends before the store is closed."""

    def answered(self, ask: Ask) -> None:
        """Process an ask after all its turns have replies."""

    def stop(self, why: str) -> None:
        """Start no further work, because the run was interrupted."""


class Hooks(msgspec.Struct, frozen=True):
    """Callbacks of a run. `signals` lets Ctrl-C and SIGTERM stop the run cleanly (main thread only)."""

    on_start: Callable[[Store, Model, Benchmark], None] | None = None
    on_progress: Callable[[Progress], None] | None = None
    signals: bool = False
    policy: Policy | None = None
    limiters: Limiters | None = None  # shared with the command's other runs and judges
    beside: Callable[[Store], AbstractAsyncContextManager[Beside]] | None = None  # judges during the run


def current_run() -> Path | None:
    """Return the folder of the run that the calling task executes, None outside a run."""
    return _current.get()


def load_benchmark(settings: Settings) -> Benchmark:
    """Read the benchmark's files. Raises DataError; for another benchmark's folder, the error names that benchmark."""
    data = Path(settings.data)
    try:
        with foreign(f"the benchmark {settings.benchmark} cannot be loaded"):
            benchmark: Benchmark = registry.find("benchmarks", settings.benchmark).load(data)
    except DataError as error:
        if hint := layouts.hint(settings.benchmark, data):
            raise DataError(f"{error}{hint}") from None
        raise
    layouts.refuse_built(settings.benchmark, data)
    return benchmark


def warnings_of(settings: Settings, benchmark: Benchmark) -> list[str]:
    """Return warnings about the files: they belong to another benchmark, or lack the recordings that are asked for."""
    lines = [*layouts.warnings(settings.benchmark, Path(settings.data)), *benchmark.warnings]
    first = next(_items(settings, benchmark), None)
    sounding = [given for given in settings.input if given not in WRITTEN]
    if first is not None and sounding and first.task != "transcribe" and not has_clip(first):
        lines.append(f"items without a recording are asked in writing (input transcript), not with {sounding[0]}")
    return lines


def texts_of(item: Item) -> Iterator[str]:
    """Yield the texts of an item that show its language."""
    for turn in item.turns:
        yield from filter(None, (turn.words, turn.reference))
    yield from filter(None, item.references)


def check_key(spec: Spec) -> None:
    """Raise UsageError if a model's key is not set or must not be sent. Models without a key always pass."""
    check = getattr(registry.find("models", spec.kind), "check_key", None)
    if check is not None:
        check(spec)


def wanted_speech(settings: Settings) -> str:
    """Return the speech option of the SPEC: auto, yes or no. `auto` becomes no for benchmarks answered in text."""
    suite, speech = find_suite(settings.benchmark), settings.model.typed_speech()
    return "no" if speech == "auto" and suite is not None and not suite.speech else speech


Planned = tuple[Item, tuple[str, ...]]


def planned(settings: Settings, benchmark: Benchmark, order: str = SPREAD) -> Iterator[Planned]:
    """Yield every item that the settings select with the names of its conditions, in the benchmark's order.

    With a limit, the items are a sample spread over levels, tasks and cues, or with the order FIRST, which older runs
    use, the first items.
    """
    if settings.limit is None:
        yield from _asked(settings, benchmark)
    elif order == FIRST:
        items = itertools.islice(_items(settings, benchmark), settings.limit)
        yield from _with_conditions(settings, items)
    else:
        places = (place(item) for item, _ in _asked(settings, benchmark))
        chosen = frozenset(itertools.islice(spread(places), settings.limit))
        yield from (one for index, one in enumerate(_asked(settings, benchmark)) if index in chosen)


def shard_groups(settings: Settings, benchmark: Benchmark) -> frozenset[str] | None:
    """Return the groups of the shard that the settings name; None for the whole run."""
    part = settings.part
    return None if part is None else groups_of(part, selected(benchmark, Selection(asr="all")))


def order_of(store: Store) -> str:
    """Return how a limit chooses items in this run. A run with items but without a stored order took the first
    items."""
    known = store.meta().get("order")
    return known or (SPREAD if next(store.items(), None) is None else FIRST)


def _asked(settings: Settings, benchmark: Benchmark) -> Iterator[Planned]:
    return _with_conditions(settings, _items(settings, benchmark))


def _items(settings: Settings, benchmark: Benchmark) -> Iterator[Item]:
    selection = Selection(
        levels=frozenset(settings.levels),
        styles=frozenset(settings.styles),
        parts=frozenset(settings.parts),
        asr="all" if settings.asr == "all" else "target",
        limit=settings.limit,
    )
    return selected(benchmark, selection)


def _with_conditions(settings: Settings, items: Iterable[Item]) -> Iterator[Planned]:
    for item in items:
        if names := tuple(c.name for c in conditions(item, settings.prompt, settings.input)):
            yield item, names


async def execute(settings: Settings, hooks: Hooks | None = None) -> Outcome:
    """Execute a run or resume it. Answered items are skipped, and failed ones are retried once."""
    hooks = hooks or Hooks()
    price = price_of(settings.model)
    if settings.budget_usd is not None and price is None:
        raise UsageError(
            f"--budget-usd: the price of {settings.model.kind}:{settings.model.name} is not known; "
            "use --budget-requests, or name a price file in OVERTONE_PRICES"
        )
    speech = wanted_speech(settings)
    with foreign(f"{settings.model} cannot be loaded"):
        model: Model = registry.find("models", settings.model.kind).load(settings.model)
    check_key(settings.model)
    heard = heard_by(model)
    _check_likelihoods(settings, model)
    if settings.ray is not None:
        from overtone.cluster.held_model import HeldModel

        model = HeldModel(model, settings.ray, wait=settings.wait, patience=settings.patience)
    benchmark = load_benchmark(settings)
    with foreign(f"the benchmark {settings.benchmark} cannot be read"):
        empty = next(_asked(settings, benchmark), None) is None
    if empty:  # checked before the folder is created
        raise UsageError(
            f"{settings.benchmark} in {settings.data} has no item for these levels, styles, parts and inputs; "
            "'overtone data check' lists what is wrong with a folder"
        )
    groups = _groups_to_ask(settings, benchmark)
    with Store.create(settings.folder, fsync=settings.fsync) as store:
        handler = _log_to(settings.folder)
        try:
            if hasattr(model, "log_folder"):
                model.log_folder = settings.folder / "workers"
            with foreign(f"{settings.model} cannot be opened"):
                await model.open()
            prompts = load_prompts(f"{settings.model.kind}:{settings.model.name}", benchmark.prompts)
            if model.slots is not None and settings.ray is not None and settings.max_connections < model.slots:
                log.warning(
                    "the actors have room for %d requests at once, but --max-connections is %d; raise it to use all",
                    model.slots, settings.max_connections,
                )  # fmt: skip
            identify(store, settings, benchmark, model, prompts)
            sounds = Sounds(benchmark.root, store, settings.model.typed_audio_rate())
            sounds.check_unchanged()
            _fill(store, settings, benchmark, heard, groups)
            for line in store.warnings:
                log.warning(line)
            async with hooks.beside(store) if hooks.beside else contextlib.nullcontext() as beside:
                engine = Engine(
                    store,
                    model,
                    sounds,
                    prompts,
                    connections=settings.max_connections,
                    speech=speech,
                    seed=_seed(settings),
                    budget_requests=settings.budget_requests,
                    budget_usd=settings.budget_usd,
                    price=price,
                    policy=msgspec.structs.replace(
                        hooks.policy or Policy(), wait=settings.wait, patience=settings.patience
                    ),
                    limiters=hooks.limiters,
                    on_progress=hooks.on_progress,
                    on_answered=beside.answered if beside else None,
                    log=log.info,
                    warn=log.warning,
                    spread=settings.budget_requests is not None or settings.budget_usd is not None,
                )
                if hooks.on_start:
                    hooks.on_start(store, model, benchmark)
                log.info("asking %d of %s with %s", engine.progress.total, settings.benchmark, identity(settings.model))
                with _signals(engine, hooks.signals):
                    outcome = await engine.run()
                if (
                    outcome.stopped == "store"
                ):  # the folder is gone or full: judges stop too, and no event can be stored
                    raise StoreError(outcome.detail)
                if beside and outcome.stopped == "interrupted":
                    beside.stop("the run was interrupted")
                if outcome.stopped:
                    store.add_event("stopped", f"{outcome.stopped}: {outcome.detail}")
                log.info("answered %d, failed %d, %s", outcome.answered, outcome.failed, outcome.stopped or "finished")
            check_outcome(outcome)
            return outcome
        finally:
            try:
                await model.close()
            except Exception as error:  # noqa: BLE001 - in a plug-in's code; the replies are kept anyway
                log.warning("%s cannot be closed: %s", settings.model, raised(error))
            log.removeHandler(handler)
            handler.close()


def _groups_to_ask(settings: Settings, benchmark: Benchmark) -> frozenset[str] | None:
    """Return the groups of the shard; None for the whole run. Raises UsageError if the shard has no item."""
    with foreign(f"the benchmark {settings.benchmark} cannot be read"):
        groups = shard_groups(settings, benchmark)
        if groups is None or any(item.group in groups for item, _ in planned(settings, benchmark)):
            return groups
        asked = len({item.group for item, _ in planned(settings, benchmark)})
    raise UsageError(
        f"--shard {settings.shard}: this shard has no item, because the items that are asked have only "
        f"{count(asked, 'group')}, and a group is not split. 'overtone merge' does not need this shard"
    )


def _check_likelihoods(settings: Settings, model: Model) -> None:
    if LIKELIHOOD in settings.prompt and not getattr(model, "likelihoods", False):
        raise UsageError(
            f"--prompt {LIKELIHOOD}: {settings.model} does not give the likelihood of a text; leave out this prompt, "
            "or use --model cascade, or --model 'cascade?lm=DIR' for the folder of a language model"
        )


def _seed(settings: Settings) -> int | None:
    """Return the seed of the first repeat: the run's, else the SPEC's, which the model has already checked."""
    seed = settings.model.options.get("seed")
    return settings.seed if settings.seed is not None or seed is None else int(seed)


def identify(store: Store, settings: Settings, benchmark: Benchmark, model: Model, prompts: Prompts) -> None:
    """Store the identity of this run. Raises StoreError if the folder contains a run with another identity."""
    with foreign(f"{settings.model} cannot be described"):
        described = model.describe()
    answers = {k: v for k, v in described.items() if k not in NOT_IDENTITY}
    now = {
        "benchmark": benchmark.name,
        "model": identity(settings.model),
        "answers": msgspec.json.encode(answers, order="sorted").decode(),
        "seed": str(settings.seed),
        "prompts": prompts.hash,
    }
    meta = store.meta()
    changed = [f"{k}: {meta[k]} → {v}" for k, v in now.items() if meta.get(k, v) != v]
    if "created" in meta and meta.get(SHARD) != settings.shard:
        changed.append(f"{SHARD}: {meta.get(SHARD, 'the whole run')} → {settings.shard or 'the whole run'}")
    if changed:
        raise StoreError(f"{store.folder} contains another run ({'; '.join(changed)}); choose another --out")
    fixed = {
        "created": meta.get("created", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())),
        "label": meta.get("label", settings.folder.resolve().name),
        "clips": sent_how(settings.model, meta, getattr(model, "audio_rate", None)),
        "described": msgspec.json.encode(described, order="sorted").decode(),
        "root": str(benchmark.root.resolve()),
        "settings": to_toml(settings),
        "command": shlex.join(["overtone", *sys.argv[1:]]),
        "prompt_texts": msgspec.json.encode({"texts": prompts.texts, "origins": prompts.origins}).decode(),
        "versions": msgspec.json.encode(_versions()).decode(),
    }
    store.set_meta({**now, **fixed} | ({SHARD: settings.shard} if settings.shard else {}))
    store.keep_suite(settings.benchmark)
    with clear_errors(store.folder):
        write_whole(store.folder / "config.toml", to_toml(settings).encode())


def _versions() -> dict[str, str]:
    versions = {"overtone": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for requirement in importlib.metadata.requires("overtone") or ():
        if "extra ==" not in requirement:
            name = requirement.split(">")[0].split("=")[0].strip()
            versions[name] = importlib.metadata.version(name)
    return versions


def _fill(
    store: Store,
    settings: Settings,
    benchmark: Benchmark,
    heard: HeardInTraining | None,
    groups: frozenset[str] | None,
) -> None:
    """Write the plan, and mark what was heard. With `groups`, only their items are written."""
    order = order_of(store)
    store.set_meta({"order": order})
    store.forget_wanted()
    stream = planned(settings, benchmark, order)
    languages = LanguageCheck()
    marker = Marker(store, benchmark, heard) if heard is not None else None
    shard = None if groups is None else ShardPlan(groups, settings.repeats, read_plans(store.meta()))
    while page := _page(stream, settings.benchmark):
        page, numbers = shard.take(page) if shard else (page, [])
        store.plan(page, settings.repeats, numbers)
        if marker:
            marker.add(item for item, _ in page)
        for item, _ in page:
            languages.add(item.id, item.language, texts_of(item))
    stored = {detail for _, kind, detail in store.events() if kind == "warning"}
    for warning in [*warnings_of(settings, benchmark), *languages.warnings()]:
        if warning not in stored:
            store.add_event("warning", warning)
        log.warning(warning)
    if shard:
        store.set_meta(shard.stated())  # in the transaction of the plan
    store.commit()


def _page(stream: Iterator[Planned], name: str) -> list[Planned]:
    with foreign(f"the benchmark {name} cannot be read"):
        return list(itertools.islice(stream, PLAN_PAGE))


class _RunLog(logging.FileHandler):
    """The handler of run.log. A write error is reported once and does not stop the run.

    It takes the messages of its own run, and those of threads that belong to no run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.addFilter(lambda record: current_run() in (None, path.parent))

    def handleError(self, record: logging.LogRecord) -> None:
        log.removeHandler(self)
        log.warning("run.log cannot be written: %s", sys.exc_info()[1])

    def close(self) -> None:
        with contextlib.suppress(OSError):  # already reported
            super().close()


def _log_to(folder: Path) -> logging.Handler:
    with clear_errors(folder):
        handler = _RunLog(folder / "run.log")
    _current.set(folder)
    handler.setFormatter(OneLine("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    return handler


class _signals:
    """Handles Ctrl-C during a run: the first press waits for requests in flight, the second does not.

    Runs of one command that are asked at the same time share the handler: a press stops all of them.
    """

    engines: ClassVar[list[Engine]] = []
    before: ClassVar[dict[signal.Signals, Any]] = {}

    def __init__(self, engine: Engine, wanted: bool) -> None:
        self.engine = engine
        self.names = (signal.SIGINT, signal.SIGTERM) if wanted else ()

    def __enter__(self) -> None:
        if not self.names:
            return
        self.engines.append(self.engine)
        loop = asyncio.get_running_loop()
        for name in self.names if len(self.engines) == 1 else ():
            try:
                loop.add_signal_handler(name, self._stop)
            except NotImplementedError:  # Windows' event loop
                self.before[name] = signal.signal(name, lambda *_: loop.call_soon_threadsafe(self._stop))

    @classmethod
    def _stop(cls) -> None:
        for engine in cls.engines:
            again = engine.outcome.stopped != ""
            engine.stop("interrupted", "by the user", grace=0.0 if again else 10.0)

    def __exit__(self, *exc: object) -> None:
        if not self.names:
            return
        self.engines.remove(self.engine)
        for name in () if self.engines else self.names:
            if name in self.before:
                signal.signal(name, self.before.pop(name))
            else:
                asyncio.get_running_loop().remove_signal_handler(name)
