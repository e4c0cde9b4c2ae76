"""Judges over a run's replies: while the run goes on, or afterwards. What they say is stored like any other score.

A judge that fails or stops leaves its replies unscored, with the reason; no other score is touched, and what it has
answered is in the run's `verdicts.db` and not asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from overtone import registry
from overtone.errors import OvertoneError, UsageError
from overtone.judges import groups, rubric, trust_record
from overtone.judges.judge_input import Subject
from overtone.judges.panel import Judgement, Outcome, Sitting, signature
from overtone.judges.policy import STANDARD, Judge
from overtone.judges.reply_emotions import Emotions
from overtone.judges.reply_texts import SOUNDS, TEXTS, Reply, style, texts
from overtone.judges.reply_transcripts import Transcripts
from overtone.judges.rubric import Rubric
from overtone.judges.verdict_cache import Verdicts
from overtone.paths import inside
from overtone.runs.asker import Policy as Retries
from overtone.runs.limiter import Limiters
from overtone.runs.store import Ask, Store
from overtone.schema import Score
from overtone.suite import Suite

FILE = "verdicts.db"


class Bench:
    """Several judges, each with its rubrics, over one open store. Use `opened(...)`."""

    def __init__(self, store: Store, judges: Sequence[Judge], sittings: Sequence[Sitting]) -> None:
        self.store = store
        self.sittings = sittings
        self.rubrics: dict[str, list[Rubric]] = {j.label: [rubric.load(name) for name in j.rubrics] for j in judges}
        self.tasks = {task for found in self.rubrics.values() for one in found for task in one.tasks}
        root = store.meta().get("root")
        self.root = Path(root) if root else None
        self.queues: list[asyncio.Queue[Reply | None]] = [asyncio.Queue() for _ in sittings]
        self._workers: list[asyncio.Task[None]] = []
        self._transcripts = Transcripts(store)
        self._emotions = Emotions(store)
        self._groups = groups.Groups(store, lambda ask: stored(store, ask))

    def answered(self, reply: Reply) -> None:
        """Judge this reply soon."""
        if not self._workers:
            self._workers = [
                asyncio.create_task(self._work(sitting, queue))
                for sitting, queue in zip(self.sittings, self.queues, strict=True)
                for _ in range(sitting.judge.policy.connections)
            ]
        for queue in self.queues:
            queue.put_nowait(reply)

    def stop(self, why: str) -> None:
        """Begin no further verdict."""
        for sitting in self.sittings:
            sitting.stop(why)

    async def give_up(self) -> None:
        """End all work at once, also what is in flight."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def finish(self) -> None:
        """Wait until every reply is judged, or its judge has stopped."""
        if self._workers:
            for queue, sitting in zip(self.queues, self.sittings, strict=True):
                for _ in range(sitting.judge.policy.connections):
                    queue.put_nowait(None)
            try:
                await asyncio.gather(*self._workers)
            finally:
                await self.give_up()
        for sitting in self.sittings:
            for one in (r for r in self.rubrics[sitting.judge.label] if r.subject == "group"):
                for known, why in self._groups.rest((sitting.judge.label, one.name)):
                    self._keep(known, groups.unscored(sitting.judge, one, why))
        self.store.commit()

    async def _work(self, sitting: Sitting, queue: asyncio.Queue[Reply | None]) -> None:
        while (reply := await queue.get()) is not None:
            for one in self.rubrics[sitting.judge.label]:
                asked = any(d.asked(style(reply.item), reply.item) for d in one.dimensions)
                if reply.item.task not in one.tasks or not asked:
                    continue
                if one.subject != "group":
                    await self._judge(sitting, one, reply)
                elif whole := self._groups.whole((sitting.judge.label, one.name), reply, one.tasks):
                    await self._judge_group(sitting, one, whole)

    async def _judge(self, sitting: Sitting, one: Rubric, reply: Reply) -> None:
        subject = self._subject(reply)
        asked = [d for d in one.dimensions if d.asked(subject.style, reply.item)]
        if one.against and not subject.texts["reply_b"].strip():
            why = "there is no reference reply to put beside it"
            self._keep(reply, [_unscored(sitting.judge, one, d, why) for d in asked])
            return
        if {"reply", "reply_a"} & set(one.shows) and (one.transcribes or not reply.text.strip()) and reply.audio:
            try:
                reply, heard_by = await self._transcribed(reply, one.transcribes)
            except OvertoneError as error:
                self._keep(reply, [_unscored(sitting.judge, one, d, str(error)) for d in asked])
                return
            subject = msgspec.structs.replace(subject, texts=texts(reply), transcript=True, heard_by=heard_by)
        if "emotion" in one.shows:  # of the reply's voice
            try:
                emotion, felt_by = await self._emotions.of(reply.ask, reply.audio)
            except OvertoneError as error:
                by = self._emotions.by()
                self._keep(reply, [_unscored(sitting.judge, one, d, str(error), by) for d in asked])
                return
            subject = msgspec.structs.replace(subject, texts=subject.texts | {"emotion": emotion}, felt_by=felt_by)
        if one.wordless is not None and not reply.text.strip():
            sitting.outcome.by_rule += 1
            self._keep(reply, [_wordless(sitting.judge, one, d, subject.transcript) for d in asked])
            return
        judgement = await sitting.judgement(one, subject)
        self._keep(reply, scores(sitting.judge, one, judgement))

    async def _judge_group(self, sitting: Sitting, one: Rubric, variants: Sequence[Reply]) -> None:
        heard = [one.transcribes or not reply.text.strip() for reply in variants]
        heard = [wanted and bool(reply.audio) for wanted, reply in zip(heard, variants, strict=True)]
        told, by = [], ""
        try:
            for reply, wanted in zip(variants, heard, strict=True):
                words, by = await self._transcribed(reply, one.transcribes) if wanted else (reply, by)
                told.append((reply, texts(words)))
        except OvertoneError as error:
            self._keep(variants, groups.unscored(sitting.judge, one, str(error)))
            return
        self._keep(variants, await groups.verdicts(sitting, one, told, transcript=any(heard), heard_by=by))

    async def _transcribed(self, reply: Reply, all_turns: bool) -> tuple[Reply, str]:
        """The reply as a recogniser hears it, and with `all_turns` those before it too; and which recogniser."""
        before = list(reply.before)
        for turn, audio in enumerate(reply.before_audio if all_turns else ()):
            if audio:
                before[turn], _ = await self._transcripts.of(reply.ask, turn, audio, reply.item.language)
        last = reply.ask, reply.key.turn, reply.audio
        words, heard_by = await self._transcripts.of(*last, reply.item.language)
        return msgspec.structs.replace(reply, text=words, before=tuple(before)), heard_by

    def _keep(self, kept: Reply | Sequence[Reply], found: list[Score]) -> None:
        replies = [kept] if isinstance(kept, Reply) else kept
        self.store.add_scores([(reply.ask, score) for reply in replies for score in found], keep_values=True)
        self.store.commit()

    def _subject(self, reply: Reply) -> Subject:
        said = reply.item.turns[-1]
        sounds: dict[str, Path] = {}
        if said.clip is not None and self.root is not None:
            sounds["clip"] = inside(self.root, said.clip.path)
        if reply.audio:
            sounds["reply"] = self.store.audio_path(reply.audio)
        name = f"{reply.key.item}|{reply.key.condition}|{reply.key.repeat}|{reply.key.turn}"
        return Subject(name, reply.item.group, texts(reply), sounds, style(reply.item), item=reply.item)


def scores(judge: Judge, one: Rubric, judgement: Judgement) -> list[Score]:
    """A judgement as scores, one for each dimension that was asked."""
    found = []
    for d in one.dimensions:
        if not d.asked(judgement.subject.style, judgement.subject.item):
            continue
        value, reason, detail = judgement.told(d, judge.policy.least)
        subject = judgement.subject
        by = {"heard_by": subject.heard_by, "felt_by": subject.felt_by}
        told = signature(judge, one, d, transcript=subject.transcript, **by)
        found.append(Score(f"{d.key}@{judge.label}", told, value, reason, detail))
    return found


def _unscored(judge: Judge, one: Rubric, d: rubric.Dimension, why: str, felt_by: str = "") -> Score:
    return Score(f"{d.key}@{judge.label}", signature(judge, one, d, transcript=True, felt_by=felt_by), None, why)


def _wordless(judge: Judge, one: Rubric, d: rubric.Dimension, transcript: bool) -> Score:
    told = signature(judge, one, d, transcript=transcript)
    return Score(f"{d.key}@{judge.label}", told, one.wordless, "", {"why": "the reply has no words", "draws": 0})


def check_suits(one: Rubric) -> None:
    """UsageError for a rubric that asks for more than a run's replies offer."""
    if not one.tasks:
        raise UsageError(f"the rubric {one.name} cannot judge the replies of a run: it is for --reader")
    lacking = [name for name in one.shows if name not in TEXTS] + [name for name in one.hears if name not in SOUNDS]
    compares = one.subject == "pair" and not one.against
    if compares or lacking:
        why = "it compares two replies" if compares else f"it needs {', '.join(lacking)}"
        raise UsageError(
            f"the rubric {one.name} cannot judge the replies of a run: {why}; 'overtone judge' may, with a label file"
        )


def with_own_rubrics(judge: Judge, benchmark: str) -> Judge:
    """The judge with the rubrics that the benchmark names, where it names any and the user named none."""
    if judge.rubrics != STANDARD:
        return judge
    try:
        suite = getattr(registry.find("benchmarks", benchmark), "SUITE", None)
    except UsageError:  # a plug-in that is not here
        suite = None
    own = suite.rubrics if isinstance(suite, Suite) else ()
    return msgspec.structs.replace(judge, rubrics=own or STANDARD)


# ── the whole run ───────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def opened(
    store: Store,
    judges: Sequence[Judge],
    *,
    retries: Retries | None = None,
    log: Callable[[str], None] | None = None,
    limiters: Limiters | None = None,
) -> AsyncIterator[Bench]:
    """Judges ready to work on an open store; closed with what they started, whatever happens."""
    judges = [with_own_rubrics(judge, store.meta().get("benchmark", "")) for judge in judges]
    labels = [j.label for j in judges]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"two judges are called {label!r}; give one of them label=NAME in its SPEC")
    async with AsyncExitStack() as stack:
        verdicts = stack.enter_context(Verdicts(store.folder / FILE))
        sittings = [
            Sitting(j, verdicts, retries=retries, log=log, log_folder=store.folder / "workers", limiters=limiters)
            for j in judges
        ]
        for sitting in sittings:
            stack.push_async_callback(sitting.close)
        bench = Bench(store, judges, sittings)
        stack.push_async_callback(bench.give_up)  # before what it works with is closed
        store.set_meta({"rubrics": _about(store, judges, bench.rubrics)})
        yield bench


class _Beside:
    """Hands a run's replies to its judges as they come."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def answered(self, ask: Ask) -> None:
        if ask.item.task in self._bench.tasks and (found := stored(self._bench.store, ask)) is not None:
            self._bench.answered(found)

    def stop(self, why: str) -> None:
        self._bench.stop(why)


@asynccontextmanager
async def beside(
    store: Store,
    judges: Sequence[Judge],
    *,
    retries: Retries | None = None,
    log: Callable[[str], None] | None = None,
    limiters: Limiters | None = None,
    on_judge: Callable[[str, Outcome], None] | None = None,
) -> AsyncIterator[_Beside]:
    """Judges that work while the run goes on; leaving waits until they have judged what there is."""
    async with opened(store, judges, retries=retries, log=log, limiters=limiters) as bench:
        counts = store.counts()
        if counts["pending"] or counts["failed"]:  # what is wrong with a judge is said before the model is asked
            for sitting in bench.sittings:
                await sitting.open()
        yield _Beside(bench)
        await bench.finish()
        for sitting in bench.sittings:
            if on_judge:
                on_judge(sitting.judge.label, sitting.outcome)


async def judge_run(
    store: Store,
    judges: Sequence[Judge],
    *,
    retries: Retries | None = None,
    log: Callable[[str], None] | None = None,
    limiters: Limiters | None = None,
) -> dict[str, Outcome]:
    """Judge every answered reply of a run that a rubric is for; returns how it went for each judge."""
    async with opened(store, judges, retries=retries, log=log, limiters=limiters) as bench:
        for reply in replies(store, bench.tasks):
            bench.answered(reply)
        await bench.finish()
        return {sitting.judge.label: sitting.outcome for sitting in bench.sittings}


def replies(store: Store, tasks: Collection[str] = ("converse",)) -> list[Reply]:
    """The last reply of everything answered of these tasks."""
    found = []  # all of them before the first is judged: scores are written to the store that is read here
    said: dict[int, tuple[str, str]] = {}
    last = -1
    for ask, turn, text, audio, _, _ in store.answered():
        if ask.item.task not in tasks:
            continue
        said = said if ask.id == last else {}
        said[turn], last = (text, audio), ask.id
        if turn == len(ask.item.turns) - 1 and (reply := _reply(ask, said)) is not None:
            found.append(reply)
    return found


def stored(store: Store, ask: Ask) -> Reply | None:
    """The last reply of an ask; None where a turn has none yet."""
    found = {turn: store.reply(ask.key(turn)) for turn in range(len(ask.item.turns))}
    return _reply(ask, {turn: (reply.text, reply.audio) for turn, reply in found.items() if reply is not None})


def _reply(ask: Ask, said: Mapping[int, tuple[str, str]]) -> Reply | None:
    """The last reply with those before it, which are stored or given; None where one is missing."""
    known = {turn: (one.given, "") for turn, one in enumerate(ask.item.turns) if one.given} | dict(said)
    if len(known) < len(ask.item.turns):
        return None
    *before, last = (known[turn] for turn in sorted(known))
    words, sounds = tuple(text for text, _ in before), tuple(audio for _, audio in before)
    return Reply(ask.id, ask.key(len(ask.item.turns) - 1), ask.item, *last, words, sounds)


def _about(store: Store, judges: Iterable[Judge], rubrics: dict[str, list[Rubric]]) -> str:
    """What a reader of the run needs to know of the dimensions, beside what other judges have left there."""
    about: dict[str, dict[str, object]] = {}
    if known := store.meta().get("rubrics"):
        with suppress(msgspec.MsgspecError, RecursionError):  # a stranger's run may hold anything: begin anew
            about = msgspec.json.decode(known, type=dict[str, dict[str, object]])
    for judge in judges:
        for one in rubrics[judge.label]:
            held = trust_record.validated(trust_record.identity(judge, one), one)
            for d in (*one.dimensions, *one.controls):
                entry = about.get(d.key, {})
                marks = entry.get("unvalidated")
                unvalidated = dict(marks) if isinstance(marks, dict) else {}
                unvalidated[judge.label] = held is None or bool(held.dimensions and d.key not in held.dimensions)
                # The judge is not told whose answer is which; a reader of its ratings must be.
                whose = {"_a": ", the reply", "_b": ", the reference"}.get(d.key[-2:], "") if one.against else ""
                about[d.key] = {
                    "label": d.label + whose,
                    "low": d.ends[0],
                    "high": d.ends[1],
                    "better": d.better,
                    "styles": d.styles,
                    "only": d.only,
                    "rubric": one.identity,
                    "unvalidated": unvalidated,
                }
    return msgspec.json.encode(about).decode()
