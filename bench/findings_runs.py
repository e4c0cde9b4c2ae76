"""Whole runs of made-up models, written through the real store: replies, failures, scores of metrics and two judges.

What is said follows from a mind's known abilities (`bench.findings_minds`); scores are drawn around what was said. Here
and there a reply fails, is refused, empty or cut off, and a verdict cannot be read. Conversations are held under every
prompt and, with a cue, with the cue told rightly and wrongly; a third of the questions and a fourth of the
conversations also by transcript; every twentieth script is asked twice. Or each item is asked once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from bench.findings_items import make_items
from bench.findings_minds import Mind, Reply, Said, minds
from overtone.judges import rubric
from overtone.judges.judgement import signature
from overtone.judges.policy import parse_judge
from overtone.metrics.choice import SIGNATURE, SIGNATURE_STRICT
from overtone.runs.store import Ask, Store
from overtone.schema import Item, Score, Timings
from overtone.schema import Reply as SentReply

JUDGES = tuple(parse_judge(f"openai:made-up-{n}?rubrics=echomind,ves,false-cue&label={n}") for n in ("one", "two"))
RUBRICS = [rubric.load(name) for name in JUDGES[0].rubrics]
NOISE = 0.45  # of one judge about what a reply deserves
WHY = ("It speaks to how this was said.", "It answers the words and passes over the voice.", "Fitting, a little stiff.")
REPLIES = (
    "That sounds like a lot. Shall we look at it together, one thing at a time?",
    "All right. Here is what I can tell you about it.",
    "I can hear that this matters to you. What would help most now?",
    "Thank you for telling me. Would you like me to write that down?",
)
PER_WORD = (
    ("wer", "wer|v1|norm:english-1|split:space|empty:1|unwrap:no"),
    (
        "wer_raw",
        "wer_raw|v1|norm:none|split:jiwer|empty:1",
    ),
)
ONCE = {"transcribe": ["task/audio"], "choose": ["task/audio"], "converse": ["enhance/audio"]}

Detail = dict[str, float | int | str | None]


def make_runs(folder: Path, *, runs: int, scripts: int, seed: int = 0, once: bool = False) -> list[Path]:
    """Run folders named after their minds, all over the same items; `once` asks each under one condition alone."""
    items = list(make_items(scripts, seed))
    made = []
    for number, mind in enumerate(minds(runs, seed)):
        made.append(make_run(folder / mind.name, mind, items, seed=seed * 1_000 + number, once=once))
    return made


def make_run(folder: Path, mind: Mind, items: list[Item], *, seed: int = 0, once: bool = False) -> Path:
    """One finished run of a mind."""
    rng = np.random.default_rng((seed, 2))
    said = Said(mind, rng)
    with Store.create(folder) as store:
        for start in range(0, len(items), 500):
            page = items[start : start + 500]
            for repeats in (1,) if once else (1, 2):
                chosen = [i for i in page if once or _repeats(i) == repeats]
                store.plan([(i, ONCE[i.task] if once else conditions(i)) for i in chosen], repeats)
        store.set_meta(
            {
                "benchmark": "echomind",
                "model": f"made-up:{mind.name}",
                "label": mind.name,
                "command": "python -m bench.findings make",
                "created": "2026-01-01T00:00:00Z",
                "rubrics": msgspec.json.encode(_rubrics()).decode(),
            }
        )
        scorer = _Scorer(said, rng)
        for ask in store.open_asks(0, 10_000_000):
            chance = rng.random()
            if chance < 0.005:
                store.add_failure(ask, 0, "timeout", "no answer within 60 s", 4)
                continue
            reply, scores = scorer.said_to(ask, chance > 0.99)
            latency = round(0.4 + float(rng.random()), 3)
            if ask.item.task == "converse":
                reply = msgspec.structs.replace(reply, timings=_streamed(latency))
            store.add_reply(ask, 0, reply, sent=b"[]", latency=latency, attempts=1)
            store.add_scores((ask.id, score) for score in scores)
        store.commit()
    return folder


def _streamed(latency: float) -> Timings:
    """Return timings that agree with a latency, as if the reply had streamed."""
    first = round(0.3 * latency, 3)
    return Timings(
        first_text=first, first_audio=first + 0.1, voice_to_voice=first + 0.15, done=latency, stalled=0.0,
        real_time_factor=latency / 2.0,
    )  # fmt: skip


def _script(item: Item) -> int:
    return int(item.group.rpartition("_")[2])


def _repeats(item: Item) -> int:
    return 2 if _script(item) % 20 == 0 else 1


def conditions(item: Item) -> list[str]:
    """Under which conditions an item is asked."""
    number = _script(item)
    if item.task == "transcribe":
        return ["task/audio"]
    if item.task == "choose":
        return ["task/audio", "task/transcript"] if number % 3 == 0 and not item.part else ["task/audio"]
    told = ["oracle/audio", "oracle-false/audio"] if item.cue else []
    return ["zero/audio", "basic/audio", "enhance/audio", *told, *(["enhance/transcript"] if number % 4 == 0 else [])]


def _rubrics() -> dict[str, dict[str, object]]:
    """What a judged run says of its dimensions. Nobody has checked these judges: they are made up."""
    return {
        d.key: {
            "label": d.label,
            "low": d.ends[0],
            "high": d.ends[1],
            "better": d.better,
            "styles": d.styles,
            "rubric": one.identity,
            "unvalidated": {judge.label: True for judge in JUDGES},
        }
        for one in RUBRICS
        for d in one.dimensions
    }


class _Scorer:
    """Replies with all their scores."""

    def __init__(self, said: Said, rng: np.random.Generator) -> None:
        self.said, self.rng = said, rng
        self.dimensions = [
            (d, f"{d.key}@{judge.label}", signature(judge, one, d, transcript=False), bias)
            for one in RUBRICS
            for d in one.dimensions
            for judge, bias in zip(JUDGES, (0.0, -0.1), strict=True)
        ]

    def said_to(self, ask: Ask, amiss: bool) -> tuple[SentReply, list[Score]]:
        prompt, _, given = ask.condition.partition("/")
        if ask.item.task == "transcribe":
            return self._transcript(ask.item)
        if ask.item.task == "choose":
            return self._choice(ask.item, given, amiss)
        return self._reply(ask.item, prompt, given, amiss)

    def _transcript(self, item: Item) -> tuple[SentReply, list[Score]]:
        words = item.references[0].split()
        misheard = self.rng.random(len(words)) < self.said.mind.words * (1 + 4 * (self.rng.random() < 0.1))
        heard = ["something" if wrong else word for word, wrong in zip(words, misheard, strict=True)]
        wrong = int(misheard.sum())
        detail: Detail = {
            "hits": len(words) - wrong,
            "substitutions": wrong,
            "deletions": 0,
            "insertions": 0,
            "reference_words": len(words),
            "wrapped": 0,
        }
        scores = [Score(name, told, wrong / len(words), detail=detail) for name, told in PER_WORD]
        scores.append(Score("semsim", "semsim|v1|cosine|embedder:made-up", round(1 - 0.4 * wrong / len(words), 3)))
        return SentReply(" ".join(heard), finish="stop"), scores

    def _choice(self, item: Item, given: str, amiss: bool) -> tuple[SentReply, list[Score]]:
        if amiss:
            refused = self.rng.random() < 0.3
            detail: Detail = {"status": "refused" if refused else "unparsable", "answer": None, "rule": ""}
            text = "I cannot help with that." if refused else "It could be any of these."
            both = (("accuracy", SIGNATURE), ("accuracy_strict", SIGNATURE_STRICT))
            return SentReply(text, refused=refused), [Score(name, told, 0.0, detail=detail) for name, told in both]
        letter = self.said.answer(item, given)
        right = float(letter == item.gold)
        lenient: Detail = {"status": "parsed", "answer": letter, "rule": "answer"}
        strict_read = self.rng.random() < 0.97
        strict: Detail = {
            "status": "parsed" if strict_read else "unparsable",
            "answer": letter if strict_read else None,
        }
        return SentReply(f"The answer is: [{letter}]" if strict_read else f"{letter}, I think."), [
            Score("accuracy", SIGNATURE, right, detail=lenient),
            Score("accuracy_strict", SIGNATURE_STRICT, right if strict_read else 0.0, detail=strict),
        ]

    def _reply(self, item: Item, prompt: str, given: str, amiss: bool) -> tuple[SentReply, list[Score]]:
        told = self.said.reply(item, prompt, given)
        text = REPLIES[int(self.rng.integers(len(REPLIES)))]
        reply = SentReply(text, finish="stop")
        if amiss:
            ways = SentReply(""), SentReply(text[:20], finish="length"), SentReply("No.", refused=True)
            reply = ways[int(self.rng.integers(len(ways)))]
        scores = [*self._measured(item, told), *self._judged(item, told)]
        if prompt == "enhance" and given == "audio":
            scores += self._sounds(told)
        return reply, scores

    def _measured(self, item: Item, told: Reply) -> Iterator[Score]:
        """Like its own style's reference where the cue was used, else like the neutral one whatever the clip."""
        like = item.style if told.used else "neutral"
        styles = ("target", "alternative", "neutral") if item.dimension != "speaker" else ("target", "alternative")
        sims: Detail = {f"sim_{s}": round(0.45 + 0.12 * (s == like) + 0.04 * self._normal(), 3) for s in styles}
        own = float(sims[f"sim_{item.style}"] or 0.0)
        others = [float(value or 0.0) for name, value in sims.items() if name != f"sim_{item.style}"]
        yield Score("style_margin", "style_margin|v1|cosine|embedder:made-up", round(own - max(others), 3), detail=sims)
        yield Score("semsim", "semsim|v1|cosine|embedder:made-up", own)
        for name, centre in (("bleu", 0.03), ("rouge_l", 0.18), ("meteor", 0.14), ("bertscore", 0.7)):
            value = centre * (1 + 0.1 * told.used + 0.2 * self._normal())
            yield Score(name, f"{name}|v1|made-up", round(min(max(value, 0.0), 1.0), 3))

    def _judged(self, item: Item, told: Reply) -> Iterator[Score]:
        deserved = {
            "cctxfit": self.said.mind.fits + 0.5 * self._normal(),
            "crespnat": 4.0 + 0.5 * self._normal(),
            "ccolloqdeg": 3.7 + 0.5 * self._normal(),
            "cspeechrel": 4.6 if told.used else 1.4 if told.wrong else 2.0,
            "ves": 4.5 if told.sounded else 2.3,
        }
        for d, name, signed, bias in self.dimensions:
            if not d.asked(item.style):
                continue
            if self.rng.random() < 0.005:
                unread: Detail = {"draws": 1, "unread": 1, "problems": "not on the menu: 7"}
                yield Score(name, signed, None, "unread: not on the menu: 7", unread)
                continue
            if d.key == "false_cue":
                value, shown = float(told.wrong), "yes" if told.wrong else "no"
            else:
                value = float(round(min(max(deserved[d.key] + bias + NOISE * self._normal(), 1.0), 5.0)))
                shown = f"{value:g}"
            why = WHY[0 if told.used else 1 if value < 3 else 2]
            detail: Detail = {"why": why, "values": shown, "draws": 1, "unread": 0, "problems": ""}
            yield Score(name, signed, value, detail=detail)

    def _sounds(self, told: Reply) -> list[Score]:
        value = 1.0 + 0.25 * told.sounded + 0.2 * self._normal()
        detail: Detail = {
            "f0_hz": round(180 + 20 * self._normal(), 1),
            "f0_range_st": round(6 + 2 * told.sounded + self._normal(), 2),
            "rate_hz": round(4.2 + 0.4 * self._normal(), 2),
            "pause_share": 0.1,
            "level_dbfs": -23.0,
            "flat": int(value < 0.7),
        }
        heard, wanted = (("neutral", "happy", "sad", "angry")[int(self.rng.integers(4))] for _ in "12")
        return [
            Score("expressiveness", "prosody|v3|made-up", round(max(value, 0.0), 3), detail=detail),
            Score("nisqa_mos", "nisqa|v1|made-up", round(min(max(4 + 0.4 * self._normal(), 1.0), 5.0), 2)),
            Score("utmos", "utmos|v1|made-up", round(min(max(4.1 + 0.3 * self._normal(), 1.0), 5.0), 2)),
            Score(
                "emoalign_reference",
                "emoalign_reference|v1|predictor:made-up",
                float(heard == wanted),
                detail={"reply": heard, "wanted": wanted},
            ),
        ]

    def _normal(self) -> float:
        return float(self.rng.standard_normal())
