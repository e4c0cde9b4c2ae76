"""The batches of a stage: its records are checked, mixed, laid out as sequences and collated to tensors.

On a GPU, separate processes make the batches, so that training does not wait for tokenisation.
"""

from __future__ import annotations

import functools
import os
import random
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack, clip_index, digests, read_text
from overtone.echat.data.exchange_records import CHAT, Record, TextRecord, Turn
from overtone.echat.data.layout import ClipRef, Think, Tokens
from overtone.echat.data.record_origins import heard_in, sound_of
from overtone.echat.learn import mixing
from overtone.echat.learn.batches import RATE, Batch, Clips, Played, augment_wave, collate, play
from overtone.echat.learn.mixing import Measured, Mixture, Source
from overtone.echat.learn.stages import CLIP_SECONDS, Stage, StageRun
from overtone.echat.net.config import ModelConfig, SpeechConfig, positions
from overtone.errors import DataError
from overtone.heard import HeardInTraining
from overtone.paths import shown
from overtone.processes import usable_cores

WITH_CLIPS = ("s2t", "s2s")  # tasks whose sequences have the query's clips
TRAIN = ("", "train")  # the parts of a set that are used for training
_SHOWN = 10  # maximum number of problems in an error
_CHUNK, _FEW = 512, 3  # records measured at a time; number of chunks above which several processes measure


class Corpus:
    """The data of a run: packs, with one index over all clips, and files of text dialogue."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.digests = digests(paths)
        self.packs = [Pack(path) for path in paths if not path.is_file()]
        self.texts = [_dialogue(row, path) for path in paths if path.is_file() for row in read_text(path)]
        self.first: dict[str, int] = {}  # folder → index of its first clip
        total = 0
        for pack in self.packs:
            self.first[str(pack.folder)] = total
            total += len(pack)
        self._packs = {str(pack.folder): pack for pack in self.packs}
        self.surveyed: dict[Any, Source] = {}  # measured lists, reused by later stages
        self._sounds: dict[tuple[str, str], bytes] = {}  # hashes of clips, reused by later stages

    def records(self, trained: bool = True) -> list[Record]:
        """Return the training records, or the held-out ones."""
        some = [record for pack in self.packs for record in pack.records if (record.part in TRAIN) == trained]
        return some + self.texts if trained else some

    def number(self, clip: ClipRef) -> int:
        """Return the index of a clip among all packs."""
        return self.first[clip.home] + clip_index(clip.wav)

    def seconds(self, clip: ClipRef) -> float:
        """Return the length of a clip."""
        return self._packs[clip.home].seconds(clip_index(clip.wav))

    def heard(self, records: Iterable[Record]) -> HeardInTraining:
        """Return what a model hears that learns from these records."""

        def sound(record: Record, wav: str) -> bytes:
            name = record.home, wav
            if name not in self._sounds:
                self._sounds[name] = sound_of(record, wav)
            return self._sounds[name]

        return heard_in(records, sound)

    def check(self, speech: SpeechConfig) -> None:
        """Raise DataError if training cannot use some records. The message lists these records."""
        problems = [problem for pack in self.packs for problem in _problems(pack, speech)]
        if problems:
            raise DataError(f"{len(problems)} records cannot be trained on:{listed(problems)}\ncorrect or remove them")


def listed(problems: Sequence[str]) -> str:
    """Return the first problems, one per indented line, and the number of the others."""
    more = [f"… and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return "".join(f"\n  {line}" for line in (*problems[:_SHOWN], *more))


def _dialogue(row: TextRecord, path: Path) -> Record:
    """Return a text dialogue as a record without audio. The assistant's last turn is the reply."""
    messages = [message for message in row.messages if message.role != "system"]
    roles = [message.role for message in messages]
    if len(messages) < 2 or roles != ["user", "assistant"] * (len(messages) // 2):
        raise DataError(f"{shown(str(path))}: {shown(row.key)}: turns must alternate between user and assistant")
    pairs = [(messages[i].content, messages[i + 1].content) for i in range(0, len(messages), 2)]
    history = tuple(Turn(question=asked, txt=answer) for asked, answer in pairs[:-1])
    return Record(row.key, pairs[-1][1], question=pairs[-1][0], dataset=path.stem, task="<TEXT2TEXT>", history=history)


def _problems(pack: Pack, speech: SpeechConfig) -> Iterator[str]:
    where = shown(str(pack.folder / "records.jsonl"))
    kind = speech.tokens.partition(":")[0]
    if not pack.records:
        yield f"{where}: the list is empty"
    for record in pack.records:
        problems = list(record.problems(speech.codes))
        own = str(record.extra.get("tokens_of", kind)).partition("@")[0]
        if record.speech_token and own != kind:
            problems.append(
                f"its speech tokens are {own!r}, but the model's are {kind!r}: build it with --speech {kind}"
            )
        if not record.wav and (CHAT in record.tags or "TRANSCRIBE" in record.tags):
            problems.append("no wav, although its task needs audio")
        for wav in (record.wav, *(turn.wav for turn in record.history)):
            seconds = pack.seconds(clip_index(wav)) if wav else 1.0
            if not CLIP_SECONDS[0] <= seconds <= CLIP_SECONDS[1]:
                problems.append(f"{wav} has {seconds:.2f} s, outside {CLIP_SECONDS[0]:g} to {CLIP_SECONDS[1]:g}")
        for problem in problems:
            yield f"{where}: {shown(record.key)}: {problem}"


def sources(stage: Stage, records: Sequence[Record]) -> list[Source]:
    """Return the stage's feeds as lists of records to be mixed.

    A feed with both kinds of thoughts becomes two lists, each with half of its weight.
    """
    out = []
    for feed in stage.feeds:
        takes = functools.cache(feed.has)
        chosen = [record for record in records if takes(record.dataset)]
        if not chosen and not feed.needed:
            continue
        thoughts: tuple[Think, ...] = ("",)
        if feed.think:
            thoughts = ("label", "natural") if stage.think == "both" else (stage.think,)
        for thought in thoughts:
            name = f"{feed.name}:{thought}" if len(thoughts) > 1 else feed.name
            source = Source(
                chosen, feed.task, feed.weight / len(thoughts), feed.style, (thought,), feed.streaming,
                stage.reply_tag, stage.all_heard, name, share=feed.share,
            )  # fmt: skip
            out.append(source)
    return out


class Stream(IterableDataset):
    """The batches of one stage on one process."""

    def __init__(
        self, corpus: Corpus, clips: Clips, run: StageRun, model: ModelConfig, tok: Tokens,
        *, seed: int = 0, rank: int = 0, world: int = 1, workers: int = 0, learn: bool = True,
    ) -> None:  # fmt: skip
        self.corpus, self.clips, self.run, self.model, self.tok = corpus, clips, run, model, tok
        self.seed, self.rank, self.workers = seed, rank, workers
        self.generator = torch.Generator()
        self.mel = model.encoder.kind != "moonshine"  # otherwise it reads the wave
        self.start = 0
        if not learn:  # only held-out batches are needed
            return
        survey(corpus, [run], model, tok, workers)
        self.sources = []
        for source in sources(run.stage, corpus.records()):
            known = corpus.surveyed[survey_key(source, run.stage)]
            self.sources.append(
                msgspec.structs.replace(source, lengths=known.lengths, targets=known.targets, left_out=known.left_out)
            )
        names = {source.name.partition(":")[0] for source in self.sources}
        self.absent = [feed.name for feed in run.stage.feeds if feed.name not in names]  # lists without data
        # A batch has no more targets than a step may use, so the used targets stay within one batch of the plan.
        self.mixture = Mixture(
            self.sources, budget=run.stage.positions, targets=run.targets / run.steps / world, seed=seed, rank=rank,
            world=world,
        )  # fmt: skip

    def summary(self) -> Iterator[str]:
        """Yield one line per list of training data."""
        for source in self.sources:
            left = ", ".join(f"{count} left out ({why})" for why, count in source.left_out.items())
            used = sum(1 for n in source.lengths if n)
            part = f", share {source.share:g}" if source.share else ""
            yield f"{source.name} × {source.weight:g}{part}: {used} records{'; ' + left if left else ''}"
        for name in self.absent:
            yield f"{name}: skipped, because no such data was given"

    def heard(self) -> HeardInTraining:
        """Return what the model hears in this stage: the clips of every record that its lists can draw."""
        drawn = {
            id(record): record
            for source in self.sources
            if source.task in WITH_CLIPS
            for record, length in zip(source.records, source.lengths, strict=True)
            if length
        }
        return self.corpus.heard(drawn.values())

    def batches(self, start: int) -> Generator[tuple[int, Batch], None, None]:
        """Yield batches from index `start`, prefetched by `workers` processes."""
        self.start = start
        ahead: dict[str, Any] = {}
        if self.workers:
            ahead = {"prefetch_factor": 4, "multiprocessing_context": "fork", "worker_init_fn": _ignore_sigterm}
        pin = self.clips.device.type == "cuda"
        yield from DataLoader(self, batch_size=None, num_workers=self.workers, pin_memory=pin, **ahead)

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        """Yield this worker's batches. Every worker plans all batches, which is fast, and builds only its own."""
        info = get_worker_info()
        turn, turns = (info.id, info.num_workers) if info else (0, 1)
        for planned in self.mixture.batches(self.start):
            if (planned.index - self.start) % turns == turn:
                yield planned.index, self.batch(planned.picks, planned.index)

    def batch(self, picks: Sequence[tuple[int, int]], index: int) -> Batch:
        """Build the batch of some records, given as (source, index)."""
        laid = []
        how, played = self.run.stage.augment, []
        for nth, (source, at) in enumerate(picks):
            rng = random.Random(((self.seed * 1_000_003 + index) * 4_096 + nth) * 257 + self.rank)
            laid.append(self.sources[source].lay_out(at, self.tok, rng))
            if how.speed or how.silence:  # drawn last, so that other presets keep their random numbers
                played += [play(round(self.corpus.seconds(clip) * RATE), how, rng) for clip in laid[-1].clips]
        return self.collate(laid, self.sources[picks[0][0]].task, index, played)

    def collate(
        self, laid: Sequence[layout.Sequence], task: str, index: int = 0, played: Sequence[Played] = ()
    ) -> Batch:
        """Build a batch of sequences. `played` says how each clip is played; without it, as it is."""
        clips = [[self.corpus.number(clip) for clip in sequence.clips] for sequence in laid]
        sizes = iter([one.whole for one in played] or [int(self.clips.sizes[clip]) for row in clips for clip in row])
        slots = [[positions(self.model, next(sizes)) for _ in row] for row in clips]
        heard = [sequence.heard for sequence in laid] if self.run.stage.ctc else [[[]] * len(row) for row in clips]
        labels = [sequence.labels for sequence in laid] if self.run.stage.cues else ()
        batch = collate(laid, clips, slots, heard, labels, task, index)
        if played:
            batch.played = torch.tensor(played, dtype=torch.int64)
        return batch

    def ready(self, batch: Batch, step: int) -> Batch:
        """Return a batch on the device, with the waveforms of its clips. Step 0 is an evaluation, without
        augmentation."""
        batch = self.clips.fill(batch.to(self.clips.device))
        if step:
            self.generator.manual_seed(((self.seed * 1_000_003 + batch.index) * 257 + self.rank) % 2**64)
            if not self.mel:
                augment_wave(batch, self.run.stage.augment, self.generator)
        return batch

    def held_out(self, count: int) -> dict[str, Batch]:
        """Return a batch of held-out records per feed, for feeds that have any."""
        out: dict[str, Batch] = {}
        for source in sources(self.run.stage, self.corpus.records(trained=False)):
            laid = []
            for at in range(len(source.records)):
                try:
                    sequence = source.lay_out(at, self.tok, random.Random(at))
                except layout.Unfit:
                    continue
                clips = [self.corpus.seconds(clip) for clip in sequence.clips]
                if not layout.why_not(sequence, clips, *limits(self.model, self.run.stage)):
                    laid.append(sequence)
                if len(laid) == count:
                    break
            if laid:
                out[source.name] = self.collate(laid, source.task)
        return out


# ── measuring the lists ───────────────────────────────────────────────────────────────────────────────────────────────
def survey(corpus: Corpus, runs: Sequence[StageRun], model: ModelConfig, tok: Tokens, workers: int) -> None:
    """Measure the lengths of all unmeasured lists of some stages. Raises DataError if there is no training record.

    If separate processes make batches, three times as many processes measure all lists together, because starting
    processes takes longer than measuring a short list.
    """
    records = corpus.records()
    if not records:
        raise DataError("no training records: no pack has the part 'train'; build or give one that has it")
    lists: dict[Any, tuple[Source, Callable[[int], Measured]]] = {}
    for stage in (run.stage for run in runs):
        for source in sources(stage, records):
            if (key := survey_key(source, stage)) not in corpus.surveyed:
                lists[key] = source, mixing.measuring(source, tok, corpus.seconds, *limits(model, stage))
    chunks = [
        (key, range(at, min(at + _CHUNK, len(source.records))))
        for key, (source, _) in lists.items()
        for at in range(0, len(source.records), _CHUNK)
    ]
    measures = _Chunks([(lists[key][1], chunk) for key, chunk in chunks])
    measured: dict[Any, list[Measured]] = {key: [] for key in lists}
    aside: dict[str, Any] = {}
    if workers and len(chunks) > _FEW:
        most = min(3 * workers, usable_cores())
        aside = {"num_workers": most, "multiprocessing_context": "fork", "worker_init_fn": _ignore_sigterm}
    for (key, _), some in zip(chunks, DataLoader(measures, batch_size=None, **aside), strict=True):
        measured[key] += some
    for key, (source, _) in lists.items():
        corpus.surveyed[key] = mixing.surveyed(source, measured[key])


def survey_key(source: Source, stage: Stage) -> Any:
    """Return a key that is equal for lists with equal measurements."""
    how = stage.augment
    return source.laid_out, stage.sequence, how.speed, how.silence, tuple(map(id, source.records))


def limits(model: ModelConfig, stage: Stage) -> tuple[Callable[[float], int], int]:
    """Return a function from a clip's seconds to its positions, and the maximum positions of a sequence."""
    most = min(stage.sequence, model.lm.context)

    def count(seconds: float) -> int:
        if model.encoder.kind == "whisper" and seconds > model.encoder.longest:
            return most + 1  # longer than the encoder allows
        return positions(model, round(stage.augment.longest(seconds) * RATE))

    return count, most


class _Chunks(Dataset):
    """Chunks of lists to be measured."""

    def __init__(self, chunks: Sequence[tuple[Callable[[int], Measured], range]]) -> None:
        self.chunks = chunks

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, number: int) -> list[Measured]:
        measure, chunk = self.chunks[number]
        return [measure(at) for at in chunk]


def _ignore_sigterm(number: int) -> None:
    """Ignore SIGTERM in a worker, so that it can make the last step's batches. The main process ends the worker."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def workers_for(device: torch.device) -> int:
    """Return the default number of processes that make batches: none for a CPU, a few for a GPU."""
    if device.type != "cuda":
        return 0
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return max(1, min(4, usable_cores() - 2))
