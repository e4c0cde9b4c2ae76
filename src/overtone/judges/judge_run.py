"""Judge a run's replies, during the run or afterwards. Verdicts are stored like any other score.

If a judge fails or stops, the replies that it has not judged are unscored, with the reason; other scores do not change.
Its answers are stored in the run's `verdicts.db` and not asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from overtone.errors import OvertoneError, UsageError
from overtone.judges import groups, rubric, trust_record
from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Judgement, Outcome, signature
from overtone.judges.panel import Sitting
from overtone.judges.policy import STANDARD, Judge
from overtone.judges.reply_audio import Emotions, Transcripts
from overtone.judges.reply_texts import SOUNDS, TEXTS, style, texts
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
    """Several judges, each with its rubrics, that judge the replies in one open store. Created by `opened(...)`."""

    def __init__(self, store: Store, judges: Sequence[Judge], sittings: Sequence[Sitting]) -> None:
        self.store = store
        self.sittings = sittings
        self.rubrics: dict[str, list[Rubric]] = {j.label: [rubric.load(name) for name in j.rubrics] for j in judges}
        self.tasks = {task for rubrics in self.rubrics.values() for one in rubrics for task in one.tasks}
        root = store.meta().get("root")
        self.root = Path(root) if root else None
        self.queues: list[asyncio.Queue[Ask | None]] = [asyncio.Queue() for _ in sittings]
        self._workers: list[asyncio.Task[None]] = []
        self._transcripts = Transcripts(store)
        self._emotions = Emotions(store)
        self._groups = groups.Groups(store, lambda ask: stored(store, ask))

    def answered(self, ask: Ask) -> None:
        """Queue the reply to an ask that was just answered, if a rubric applies to it."""
        if ask.item.task in self.tasks and (whole := stored(self.store, ask)) is not None:
            self.add(whole)

    def add(self, ask: Ask) -> None:
        """Queue an ask, to have its last reply judged."""
        if not self._workers:
            self._workers = [
                asyncio.create_task(self._work(sitting, queue))
                for sitting, queue in zip(self.sittings, self.queues, strict=True)
                for _ in range(sitting.judge.policy.connections)
            ]
        for queue in self.queues:
            queue.put_nowait(ask)

    def stop(self, why: str) -> None:
        """Stop all judges: ask for no further verdict."""
        for sitting in self.sittings:
            sitting.stop(why)

    async def give_up(self) -> None:
        """Cancel all work at once, including requests in flight."""
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
                for incomplete, why in self._groups.incomplete((sitting.judge.label, one.name)):
                    self._store_scores(incomplete, groups.unscored(sitting.judge, one, why))
        self.store.commit()

    async def _work(self, sitting: Sitting, queue: asyncio.Queue[Ask | None]) -> None:
        while (ask := await queue.get()) is not None:
            for one in self.rubrics[sitting.judge.label]:
                asked = any(d.asked(style(ask.item), ask.item) for d in one.dimensions)
                if ask.item.task not in one.tasks or not asked:
                    continue
                if one.subject != "group":
                    await self._judge(sitting, one, ask)
                elif group := self._groups.complete((sitting.judge.label, one.name), ask, one.tasks):
                    await self._judge_group(sitting, one, group)

    async def _judge(self, sitting: Sitting, one: Rubric, ask: Ask) -> None:
        subject = self._subject(ask)
        asked = [d for d in one.dimensions if d.asked(subject.style, ask.item)]
        if one.against and not subject.texts["reply_b"].strip():
            why = "there is no reference reply to put beside it"
            self._store_scores(ask, [_unscored(sitting.judge, one, d, why) for d in asked])
            return
        if (
            {"reply", "reply_a"} & set(one.shows)
            and (one.transcribes or not ask.reply.text.strip())
            and ask.reply.audio
        ):
            try:
                ask, heard_by = await self._transcribed(ask, one.transcribes)
            except OvertoneError as error:
                self._store_scores(ask, [_unscored(sitting.judge, one, d, str(error)) for d in asked])
                return
            subject = msgspec.structs.replace(subject, texts=texts(ask), transcript=True, heard_by=heard_by)
        if "emotion" in one.shows:
            try:
                emotion, felt_by = await self._emotions.of(ask.id, ask.reply.audio)
            except OvertoneError as error:
                felt_by = self._emotions.predictor()
                self._store_scores(ask, [_unscored(sitting.judge, one, d, str(error), felt_by) for d in asked])
                return
            subject = msgspec.structs.replace(subject, texts=subject.texts | {"emotion": emotion}, felt_by=felt_by)
        if one.wordless is not None and not ask.reply.text.strip():
            sitting.outcome.by_rule += 1
            self._store_scores(ask, [_wordless(sitting.judge, one, d, subject.transcript) for d in asked])
            return
        judgement = await sitting.judgement(one, subject)
        self._store_scores(ask, scores(sitting.judge, one, judgement))

    async def _judge_group(self, sitting: Sitting, one: Rubric, variants: Sequence[Ask]) -> None:
        by_ear = [bool(ask.reply.audio) and (one.transcribes or not ask.reply.text.strip()) for ask in variants]
        group, heard_by = [], ""
        try:
            for ask, hear in zip(variants, by_ear, strict=True):
                words, heard_by = await self._transcribed(ask, one.transcribes) if hear else (ask, heard_by)
                group.append((ask, texts(words)))
        except OvertoneError as error:
            self._store_scores(variants, groups.unscored(sitting.judge, one, str(error)))
            return
        self._store_scores(
            variants, await groups.verdicts(sitting, one, group, transcript=any(by_ear), heard_by=heard_by)
        )

    async def _transcribed(self, ask: Ask, all_turns: bool) -> tuple[Ask, str]:
        """Return the ask with its last reply transcribed (with `all_turns`, every reply), and the recogniser's name."""
        replies, heard_by = list(ask.replies), ""
        for place, reply in enumerate(replies):
            if reply is ask.reply or (all_turns and reply.audio):
                words, heard_by = await self._transcripts.of(ask.id, reply.key.turn, reply.audio, ask.item.language)
                replies[place] = msgspec.structs.replace(reply, text=words)
        return msgspec.structs.replace(ask, replies=tuple(replies)), heard_by

    def _store_scores(self, judged: Ask | Sequence[Ask], scores: list[Score]) -> None:
        asks = [judged] if isinstance(judged, Ask) else judged
        self.store.add_scores([(ask.id, score) for ask in asks for score in scores], keep_values=True)
        self.store.commit()

    def _subject(self, ask: Ask) -> Subject:
        clip = ask.item.turns[-1].clip
        sounds: dict[str, Path] = {}
        if clip is not None and self.root is not None:
            sounds["clip"] = inside(self.root, clip.path)
        if ask.reply.audio:
            sounds["reply"] = self.store.audio_path(ask.reply.audio)
        key = ask.reply.key
        name = f"{key.item}|{key.condition}|{key.repeat}|{key.turn}"
        return Subject(name, ask.item.group, texts(ask), sounds, style(ask.item), item=ask.item)


def scores(judge: Judge, one: Rubric, judgement: Judgement) -> list[Score]:
    """Convert a judgement to scores, one for each dimension that the judge was asked about."""
    subject = judgement.subject
    by = {"heard_by": subject.heard_by, "felt_by": subject.felt_by}
    return [
        Score(
            f"{d.key}@{judge.label}",
            signature(judge, one, d, transcript=subject.transcript, **by),
            *judgement.score_parts(d, judge.policy.least),
        )
        for d in one.dimensions
        if d.asked(subject.style, subject.item)
    ]


def _unscored(judge: Judge, one: Rubric, d: rubric.Dimension, why: str, felt_by: str = "") -> Score:
    return Score(f"{d.key}@{judge.label}", signature(judge, one, d, transcript=True, felt_by=felt_by), None, why)


def _wordless(judge: Judge, one: Rubric, d: rubric.Dimension, transcript: bool) -> Score:
    signed = signature(judge, one, d, transcript=transcript)
    return Score(f"{d.key}@{judge.label}", signed, one.wordless, "", {"why": "the reply has no words", "draws": 0})


def check_suits(one: Rubric) -> None:
    """Raise UsageError for a rubric that cannot judge a run's replies, e.g. because it needs other texts."""
    if not one.tasks:
        raise UsageError(f"the rubric {one.name} cannot judge the replies of a run: it is for --reader")
    lacking = [name for name in one.shows if name not in TEXTS] + [name for name in one.hears if name not in SOUNDS]
    compares = one.subject == "pair" and not one.against
    if compares or lacking:
        why = "it compares two replies" if compares else f"it needs {', '.join(lacking)}"
        raise UsageError(
            f"the rubric {one.name} cannot judge the replies of a run: {why}; 'overtone judge' may, with a label file"
        )


def with_own_rubrics(judge: Judge, suite: Suite | None) -> Judge:
    """Return the judge with the benchmark's own rubrics. The judge is unchanged if the benchmark has none, or if the
    user chose rubrics."""
    if judge.rubrics != STANDARD or suite is None or not suite.rubrics:
        return judge
    return msgspec.structs.replace(judge, rubrics=suite.rubrics)


# ── the whole run ───────────────────────────────────────────────────────────────────────────────────────────────────


class AskingOptions(TypedDict, total=False):
    """The options for asking the judges' models; see `Sitting`."""

    retries: Retries | None
    log: Callable[[str], None] | None
    limiters: Limiters | None


@asynccontextmanager
async def opened(store: Store, judges: Sequence[Judge], **options: Unpack[AskingOptions]) -> AsyncIterator[Bench]:
    """Open judges for an open store. Leaving the context closes the judges and everything that they started."""
    suite = store.suite()
    judges = [with_own_rubrics(judge, suite) for judge in judges]
    labels = [j.label for j in judges]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"two judges have the label {label!r}; give one of them label=NAME in its SPEC")
    async with AsyncExitStack() as stack:
        verdicts = stack.enter_context(Verdicts(store.folder / FILE))
        sittings = [Sitting(judge, verdicts, log_folder=store.folder / "workers", **options) for judge in judges]
        for sitting in sittings:
            stack.push_async_callback(sitting.close)
        bench = Bench(store, judges, sittings)
        stack.push_async_callback(bench.give_up)  # before the judges and verdicts it works with are closed
        store.set_meta({"rubrics": _described(store, judges, bench.rubrics)})
        yield bench


@asynccontextmanager
async def beside(
    store: Store,
    judges: Sequence[Judge],
    *,
    on_judge: Callable[[str, Outcome], None] | None = None,
    **options: Unpack[AskingOptions],
) -> AsyncIterator[Bench]:
    """Open judges that work while the run is in progress. Leaving waits until every reply is judged."""
    async with opened(store, judges, **options) as bench:
        counts = store.counts()
        if counts["pending"] or counts["failed"]:  # an error in a judge's setup appears before the model is asked
            for sitting in bench.sittings:
                await sitting.open()
        yield bench
        await bench.finish()
        for sitting in bench.sittings:
            if on_judge:
                on_judge(sitting.judge.label, sitting.outcome)


async def judge_run(store: Store, judges: Sequence[Judge], **options: Unpack[AskingOptions]) -> dict[str, Outcome]:
    """Judge every reply of a run to which a rubric applies. Return judge's label → outcome."""
    async with opened(store, judges, **options) as bench:
        for ask in answered(store, bench.tasks):
            bench.add(ask)
        await bench.finish()
        return {sitting.judge.label: sitting.outcome for sitting in bench.sittings}


def answered(store: Store, tasks: Collection[str] = ("converse",)) -> list[Ask]:
    """Return the answered asks of these tasks, as a list because the caller writes to the store while iterating."""
    return [ask for ask in store.answered() if ask.item.task in tasks and _is_complete(ask)]


def stored(store: Store, ask: Ask) -> Ask | None:
    """Return an ask with its replies, or None if a turn has no reply yet."""
    (found,) = store.asks_with([ask.id])
    return found if _is_complete(found) else None


def _is_complete(ask: Ask) -> bool:
    """Return whether every turn has a reply: the last turn a stored one, earlier turns a stored or a given one."""
    replied = {reply.key.turn for reply in ask.replies}
    last = len(ask.item.turns) - 1
    return all(turn in replied or (one.given and turn < last) for turn, one in enumerate(ask.item.turns))


def _described(store: Store, judges: Iterable[Judge], rubrics: dict[str, list[Rubric]]) -> str:
    """Return the run's stored description of judged dimensions, as JSON, with the dimensions of `judges` added."""
    about: dict[str, dict[str, object]] = {}
    if before := store.meta().get("rubrics"):
        with suppress(msgspec.MsgspecError, RecursionError):  # the run may come from elsewhere: start from nothing
            about = msgspec.json.decode(before, type=dict[str, dict[str, object]])
    for judge in judges:
        for one in rubrics[judge.label]:
            proof = trust_record.validated(trust_record.identity(judge, one), one)
            for d in (*one.dimensions, *one.controls):
                entry = about.get(d.key, {})
                marks = entry.get("unvalidated")
                unvalidated = dict(marks) if isinstance(marks, dict) else {}
                unvalidated[judge.label] = proof is None or bool(proof.dimensions and d.key not in proof.dimensions)
                # The judge does not know which answer is the model's; a reader of its ratings must.
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
