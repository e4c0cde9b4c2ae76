"""Estimate a run before it starts: requests, hours of audio, tokens, and ranges of price and time.

The ranges follow from the assumptions in the constants below.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

from msgspec import Struct

from overtone.audio import probe
from overtone.errors import DataError
from overtone.languages import LanguageCheck
from overtone.paths import inside
from overtone.runs.prices import Price, price_of
from overtone.runs.sent_clips import sent_how
from overtone.runs.session import (
    SPREAD,
    load_benchmark,
    order_of,
    planned,
    shard_groups,
    texts_of,
    wanted_speech,
    warnings_of,
)
from overtone.runs.settings import Settings
from overtone.runs.store import Store
from overtone.schema import Condition, Item
from overtone.spec import Spec
from overtone.tasks import load_prompts

AUDIO_TOKENS_PER_SECOND = {"openai": (10.0, 25.0), "gemini": (32.0, 32.0)}
OTHER_AUDIO_TOKENS = (6.25, 50.0)  # per second, in open models
SPOKEN_TOKENS_PER_SECOND = (20.0, 25.0)
TEXT_CHARACTERS_PER_TOKEN = 4.0
CHOICE_TOKENS = (6, 60)  # from a letter in the required format to a sentence of explanation
REPLY_TOKENS = (25, 120)
REPLY_SECONDS = (5.0, 20.0)
SECONDS_PER_REQUEST = (0.5, 6.0)
LIVE = ("realtime", "gemini-live")  # kinds that hear a clip at its own pace, unless pace=fast


class Plan(Struct):
    """The expected counts of a run. Ranges are (low, high)."""

    items: int = 0
    requests: int = 0
    already: int = 0  # asks that the run folder already has replies to
    audio_seconds: float = 0.0
    by_task: dict[str, int] = {}
    input_tokens: tuple[float, float] = (0.0, 0.0)
    output_tokens: tuple[float, float] = (0.0, 0.0)
    usd: tuple[float, float] | None = None
    price_date: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)
    clips: str = ""  # how clips are sent, see `runs.clips.sent_how`
    warnings: list[str] = []


def make_plan(settings: Settings) -> Plan:
    """Return the plan of a run: the requests that the settings require, without those already answered in the run
    folder. No request is sent."""
    benchmark = load_benchmark(settings)
    prompts = load_prompts(f"{settings.model.kind}:{settings.model.name}", benchmark.prompts)
    answered, order, meta = _stored(settings.folder)
    system_length = sum(map(len, prompts.texts.values())) / max(1, len(prompts.texts))
    lengths: dict[str, float] = {}
    tasks: Counter[str] = Counter()
    plan = Plan(clips=_clips(settings, meta))
    low = _Sums()
    high = _Sums()
    unreadable = 0
    played = 0.0  # seconds of clips that are sent at their own pace
    paced = settings.model.kind in LIVE and settings.model.options.get("pace") != "fast"
    languages = LanguageCheck()
    speech = wanted_speech(settings) != "no"
    groups = shard_groups(settings, benchmark)
    for item, names in planned(settings, benchmark, order):
        if groups is not None and item.group not in groups:
            continue
        plan.items += 1
        languages.add(item.id, item.language, texts_of(item))
        for name in names:
            condition = Condition.parse(name)
            for repeat in range(settings.repeats):
                if (item.id, name, repeat) in answered:
                    plan.already += 1
                    continue
                asked = [turn for turn, said in enumerate(item.turns) if not said.given]
                heard = [0.0] * len(item.turns)
                if condition.sounds:
                    try:
                        heard = _seconds(item, benchmark.root, lengths)
                    except DataError:
                        unreadable += len(asked)
                        continue
                plan.requests += len(asked)
                tasks[item.task] += len(asked)
                text = system_length + len(item.question) + sum(len(o.text) for o in item.options) + 40
                played += sum(heard[turn] for turn in asked) if paced else 0.0
                sums = list(itertools.accumulate(heard))
                for so_far in (sums[turn] for turn in asked):  # a request includes the clips of all earlier turns
                    plan.audio_seconds += so_far
                    low.add(settings.model, item, text, so_far, 0, speech)
                    high.add(settings.model, item, text, so_far, 1, speech)
    plan.by_task = dict(tasks)
    plan.warnings = [*warnings_of(settings, benchmark), *languages.warnings()]
    if unreadable:
        plan.warnings.append(f"{unreadable} requests would fail: their clips cannot be read ('overtone data check')")
    plan.input_tokens = (low.text_in + low.audio_in, high.text_in + high.audio_in)
    plan.output_tokens = (low.text_out + low.audio_out, high.text_out + high.audio_out)
    plan.seconds = (
        (played + plan.requests * SECONDS_PER_REQUEST[0]) / settings.max_connections,
        (played + plan.requests * SECONDS_PER_REQUEST[1]) / settings.max_connections,
    )
    price = price_of(settings.model)
    if price is not None:
        plan.price_date = price.date
        plan.usd = (low.cost(price), high.cost(price))
    return plan


class _Sums:
    """Token sums at the lower or upper end of the range."""

    def __init__(self) -> None:
        self.text_in = self.audio_in = self.text_out = self.audio_out = 0.0

    def add(self, spec: Spec, item: Item, characters: float, heard: float, end: int, speech: bool) -> None:
        self.text_in += characters / TEXT_CHARACTERS_PER_TOKEN
        self.audio_in += heard * AUDIO_TOKENS_PER_SECOND.get(spec.kind, OTHER_AUDIO_TOKENS)[end]
        if item.task == "transcribe":
            self.text_out += sum(len(r) for r in item.references[:1]) / TEXT_CHARACTERS_PER_TOKEN
        elif item.task == "choose":
            self.text_out += CHOICE_TOKENS[end]
        else:
            self.text_out += REPLY_TOKENS[end]
            if speech:
                self.audio_out += REPLY_SECONDS[end] * SPOKEN_TOKENS_PER_SECOND[end]

    def cost(self, price: Price) -> float:
        return (
            self.text_in * price.text_in
            + self.audio_in * price.audio_in
            + self.text_out * price.text_out
            + self.audio_out * price.audio_out
        ) / 1e6


def _clips(settings: Settings, meta: dict[str, str]) -> str:
    """Describe how the clips would be sent, without starting the model."""
    if settings.model.kind in ("worker", "echat") and not meta:
        return "resampled to the rate that the worker declares"
    if settings.model.kind in LIVE and not meta and settings.model.typed_audio_rate() is None:
        return "resampled to the rate of the model's protocol"
    return meta.get("clips") or sent_how(settings.model, meta)


def _stored(folder: Path) -> tuple[set[tuple[str, str, int]], str, dict[str, str]]:
    """Return the asks that the run folder has replies to, the order that its limit follows, and its meta table."""
    if not (folder / "run.db").is_file():
        return set(), SPREAD, {}
    with Store.read(folder) as store:
        answered = {(ask.item.id, ask.condition, ask.repeat) for ask in store.answered()}
        return answered, order_of(store), store.meta()


def _seconds(item: Item, root: Path, lengths: dict[str, float]) -> list[float]:
    """Return the length of each turn's clip."""
    for turn in item.turns:
        if turn.clip is not None and turn.clip.path not in lengths:
            lengths[turn.clip.path] = probe(inside(root, turn.clip.path), name=turn.clip.path)
    return [lengths[turn.clip.path] if turn.clip is not None else 0.0 for turn in item.turns]
