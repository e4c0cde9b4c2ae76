"""What a stage hears and says, batch after batch: its feeds' records, checked before the first step, mixed, laid out
and made tensors; beside a GPU by processes of their own, so that it never waits for text to be cut into tokens."""

from __future__ import annotations

import fnmatch
import os
import random
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack, clip_index, digests, read_text
from overtone.echat.data.layout import ClipRef, Think, Tokens
from overtone.echat.data.records import CHAT, Record, TextRecord, Turn
from overtone.echat.learn import mixing
from overtone.echat.learn.batches import RATE, Batch, Clips, augment_wave, collate
from overtone.echat.learn.mixing import Measured, Mixture, Source
from overtone.echat.learn.stages import CLIP_SECONDS, Stage, StageRun
from overtone.echat.net.config import ModelConfig, SpeechConfig, positions
from overtone.errors import DataError
from overtone.paths import shown

TRAIN = ("", "train")  # the parts of a set that are learnt from
_SHOWN = 10  # problems at most
_CHUNK, _FEW = 512, 3  # records of a list that are measured at a time; how often, before several processes do it


class Corpus:
    """What a run learns from: packs, with the number of every clip in the bank of all, and files of text dialogue."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.digests = digests(paths)
        self.packs = [Pack(path) for path in paths if not path.is_file()]
        self.texts = [_dialogue(row, path) for path in paths if path.is_file() for row in read_text(path)]
        self.first: dict[str, int] = {}  # folder → number of its first clip
        total = 0
        for pack in self.packs:
            self.first[str(pack.folder)] = total
            total += len(pack)
        self._packs = {str(pack.folder): pack for pack in self.packs}
        self.surveyed: dict[Any, Source] = {}  # lists that an earlier stage had too need not be laid out again

    def records(self, trained: bool = True) -> list[Record]:
        found = [record for pack in self.packs for record in pack.records if (record.part in TRAIN) == trained]
        return found + self.texts if trained else found

    def number(self, clip: ClipRef) -> int:
        return self.first[clip.home] + clip_index(clip.wav)

    def seconds(self, clip: ClipRef) -> float:
        return self._packs[clip.home].seconds(clip_index(clip.wav))

    def check(self, speech: SpeechConfig) -> None:
        """Raise DataError with what training would stumble over, before it begins."""
        found = [problem for pack in self.packs for problem in _problems(pack, speech)]
        if found:
            more = f"\n  … and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            listed = "\n  ".join(found[:_SHOWN])
            raise DataError(f"{len(found)} records cannot be trained on:\n  {listed}{more}\ncorrect or remove them")


def _dialogue(row: TextRecord, path: Path) -> Record:
    """A dialogue in text as a record without sound: the assistant's last turn is the reply."""
    said = [message for message in row.messages if message.role != "system"]
    roles = [message.role for message in said]
    if len(said) < 2 or roles != ["user", "assistant"] * (len(said) // 2):
        raise DataError(f"{shown(str(path))}: {shown(row.key)}: turns must be a user's and an assistant's in turn")
    pairs = [(said[i].content, said[i + 1].content) for i in range(0, len(said), 2)]
    history = tuple(Turn(question=asked, txt=answer) for asked, answer in pairs[:-1])
    return Record(row.key, pairs[-1][1], question=pairs[-1][0], dataset=path.stem, task="<TEXT2TEXT>", history=history)


def _problems(pack: Pack, speech: SpeechConfig) -> Iterator[str]:
    where = shown(str(pack.folder / "records.jsonl"))
    kind = speech.tokens.partition(":")[0]
    if not pack.records:
        yield f"{where}: the list is empty"
    for record in pack.records:
        found = list(record.problems(speech.codes))
        of = str(record.extra.get("tokens_of", kind)).partition("@")[0]
        if record.speech_token and of != kind:
            found.append(f"its speech tokens are of {of!r}, the model's of {kind!r}: build it with --speech {kind}")
        if not record.wav and (CHAT in record.tags or "TRANSCRIBE" in record.tags):
            found.append("no wav, though its task is to hear")
        for wav in (record.wav, *(turn.wav for turn in record.history)):
            seconds = pack.seconds(clip_index(wav)) if wav else 1.0
            if not CLIP_SECONDS[0] <= seconds <= CLIP_SECONDS[1]:
                found.append(f"{wav} lasts {seconds:.2f} s, not {CLIP_SECONDS[0]:g} to {CLIP_SECONDS[1]:g}")
        for problem in found:
            yield f"{where}: {shown(record.key)}: {problem}"


def sources(stage: Stage, records: Sequence[Record]) -> list[Source]:
    """The stage's feeds as lists of the mix. One that thinks in both ways is two, of half the weight each."""
    out = []
    for feed in stage.feeds:
        chosen = [r for r in records if not feed.datasets or any(fnmatch.fnmatch(r.dataset, d) for d in feed.datasets)]
        if not chosen and not feed.needed:
            continue
        ways: tuple[Think, ...] = ("",)
        if feed.think:
            ways = ("label", "natural") if stage.think == "both" else (stage.think,)
        for way in ways:
            name = f"{feed.name}:{way}" if len(ways) > 1 else feed.name
            weight = feed.weight / len(ways)
            source = Source(chosen, feed.task, weight, feed.style, (way,), feed.streaming, name=name)
            out.append(msgspec.structs.replace(source, reply_tag=stage.reply_tag, all_heard=stage.all_heard))
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
        self.mel = model.encoder.kind != "moonshine"  # else it takes the wave itself
        self.start = 0
        if not learn:  # only what is held out is asked for
            return
        survey(corpus, [run], model, tok, workers)
        self.sources = []
        for source in sources(run.stage, corpus.records()):
            found = corpus.surveyed[alike(source, run.stage)]
            self.sources.append(
                msgspec.structs.replace(source, lengths=found.lengths, targets=found.targets, left_out=found.left_out)
            )
        names = {source.name.partition(":")[0] for source in self.sources}
        self.absent = [feed.name for feed in run.stage.feeds if feed.name not in names]  # lists without data
        # No batch may hold more targets than a step may use: then what is used stays within a batch of what is planned.
        self.mixture = Mixture(
            self.sources, budget=run.stage.positions, targets=run.targets / run.steps / world, seed=seed, rank=rank,
            world=world,
        )  # fmt: skip

    def told(self) -> Iterator[str]:
        """What is learnt from, a line each list."""
        for source in self.sources:
            left = ", ".join(f"{count} left out ({why})" for why, count in source.left_out.items())
            used = sum(1 for n in source.lengths if n)
            yield f"{source.name} × {source.weight:g}: {used} records{'; ' + left if left else ''}"
        for name in self.absent:
            yield f"{name}: left out: no such data was given"

    def batches(self, start: int) -> Generator[tuple[int, Batch], None, None]:
        """Batches from number `start` on, made ahead by `workers` processes."""
        self.start = start
        ahead: dict[str, Any] = {}
        if self.workers:
            ahead = {"prefetch_factor": 4, "multiprocessing_context": "fork", "worker_init_fn": _unmoved}
        pin = self.clips.device.type == "cuda"
        yield from DataLoader(self, batch_size=None, num_workers=self.workers, pin_memory=pin, **ahead)

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        """Every process plans all batches, which is quick, and makes those that are its turn: they come in order."""
        info = get_worker_info()
        turn, turns = (info.id, info.num_workers) if info else (0, 1)
        for planned in self.mixture.batches(self.start):
            if (planned.index - self.start) % turns == turn:
                yield planned.index, self.batch(planned.picks, planned.index)

    def batch(self, picks: Sequence[tuple[int, int]], index: int) -> Batch:
        """The batch of these records (source, number)."""
        laid = []
        for nth, (source, at) in enumerate(picks):
            rng = random.Random(((self.seed * 1_000_003 + index) * 4_096 + nth) * 257 + self.rank)
            laid.append(self.sources[source].lay(at, self.tok, rng))
        return self.collate(laid, self.sources[picks[0][0]].task, index)

    def collate(self, laid: Sequence[layout.Sequence], task: str, index: int = 0) -> Batch:
        clips = [[self.corpus.number(clip) for clip in sequence.clips] for sequence in laid]
        slots = [[positions(self.model, int(self.clips.sizes[clip])) for clip in row] for row in clips]
        heard = [sequence.heard for sequence in laid] if self.run.stage.ctc else [[[]] * len(row) for row in clips]
        labels = [sequence.labels for sequence in laid] if self.run.stage.cues else ()
        return collate(laid, clips, slots, heard, labels, task, index)

    def ready(self, batch: Batch, step: int) -> Batch:
        """A batch on the device, with its waves; `step` 0 is a look, without augmentation."""
        batch = self.clips.fill(batch.to(self.clips.device))
        if step:
            self.generator.manual_seed(((self.seed * 1_000_003 + batch.index) * 257 + self.rank) % 2**64)
            if not self.mel:
                augment_wave(batch, self.run.stage.augment, self.generator)
        return batch

    def held_out(self, count: int) -> dict[str, Batch]:
        """A batch of each feed out of records that are not learnt from; feeds that find none have none."""
        out: dict[str, Batch] = {}
        for source in sources(self.run.stage, self.corpus.records(trained=False)):
            laid = []
            for at in range(len(source.records)):
                try:
                    sequence = source.lay(at, self.tok, random.Random(at))
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


# ── how long the records of the lists are ─────────────────────────────────────────────────────────────────────────────


def survey(corpus: Corpus, runs: Sequence[StageRun], model: ModelConfig, tok: Tokens, workers: int) -> None:
    """Measure the lists of these stages that were not measured before; where processes make batches, several times as
    many do it, and all lists at once: to start them takes longer than to measure a short one."""
    records = corpus.records()
    if not records:
        raise DataError("no record to learn from: none is of the part 'train'; build or give one that has it")
    lists: dict[Any, tuple[Source, Callable[[int], Measured]]] = {}
    for stage in (run.stage for run in runs):
        for source in sources(stage, records):
            if (key := alike(source, stage)) not in corpus.surveyed:
                lists[key] = source, mixing.measuring(source, tok, corpus.seconds, *limits(model, stage))
    chunks = [
        (key, range(at, min(at + _CHUNK, len(source.records))))
        for key, (source, _) in lists.items()
        for at in range(0, len(source.records), _CHUNK)
    ]
    measures = _Chunks([(lists[key][1], chunk) for key, chunk in chunks])
    found: dict[Any, list[Measured]] = {key: [] for key in lists}
    aside: dict[str, Any] = {}
    if workers and len(chunks) > _FEW:
        most = min(3 * workers, os.cpu_count() or 1)
        aside = {"num_workers": most, "multiprocessing_context": "fork", "worker_init_fn": _unmoved}
    for (key, _), some in zip(chunks, DataLoader(measures, batch_size=None, **aside), strict=True):
        found[key] += some
    for key, (source, _) in lists.items():
        corpus.surveyed[key] = mixing.surveyed(source, found[key])


def alike(source: Source, stage: Stage) -> Any:
    """What lists have in common whose records are measured once."""
    return source.laid_out, stage.sequence, tuple(map(id, source.records))


def limits(model: ModelConfig, stage: Stage) -> tuple[Callable[[float], int], int]:
    """How many positions a clip of so many seconds takes, and how many a sequence may have at most."""
    most = min(stage.sequence, model.lm.context)

    def count(seconds: float) -> int:
        if model.encoder.kind == "whisper" and seconds > model.encoder.longest:
            return most + 1  # more than it can hear is too long
        return positions(model, round(seconds * RATE))

    return count, most


class _Chunks(Dataset):
    """Stretches of lists, to be measured."""

    def __init__(self, chunks: Sequence[tuple[Callable[[int], Measured], range]]) -> None:
        self.chunks = chunks

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, number: int) -> list[Measured]:
        measure, chunk = self.chunks[number]
        return [measure(at) for at in chunk]


def _unmoved(number: int) -> None:
    """A SIGTERM to all processes of a run must leave those alive that make the batches of its last step; they end when
    told to by the one that trains, or when it is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def workers_for(device: torch.device) -> int:
    """How many processes make batches: none beside a CPU that trains, a few beside a GPU."""
    if device.type != "cuda":
        return 0
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return max(1, min(4, (os.cpu_count() or 2) - 2))
