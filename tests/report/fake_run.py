"""Runs made up through the real store: several conditions, repeats, failures, hostile text, tones as replies."""

from __future__ import annotations

import hashlib
import io
import wave
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from overtone import cues
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Option, Reply, Score, Timings, Turn

HOSTILE = "<img src=x onerror=alert(1)></script><script>window.hacked=1</script><!--<script>\u2028 {{7*7}} [bold]&amp;"
CONTROL = "fine\x1b[31m red \x07 [red]markup[/red] \u202e evil"
LINES = (
    "I finally finished the report we talked about.",
    "We are leaving for the coast in ten minutes.",
    "The results came back this morning.",
    "My neighbour moved out over the weekend.",
    "I have been standing here for an hour.",
    "Could you tell me when the next train leaves?",
    "They want me to give the opening speech tomorrow.",
)
REPLIES = (
    "You sound worn out. Shall we find a quiet minute for you before anything else?",
    "That is wonderful news! What are you going to do first?",
    "It is loud where you are, so I will keep this short: platform four, in six minutes.",
    "I am sorry. Do you want to talk about it, or would a distraction be better?",
    "Sure. Here is what you asked for.",
)
PROVENANCE = ("target", "alternative", "words", "harmful")


def tone(hertz: float, seconds: float = 0.4, rate: int = 16000) -> bytes:
    """A sine as a 16-bit WAV."""
    t = np.arange(int(rate * seconds)) / rate
    samples = (np.sin(2 * np.pi * hertz * t) * 9000).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(samples.tobytes())
    return out.getvalue()


def make_items(root: Path | None, scripts: int, seed: int = 7) -> Iterator[Item]:
    """Cases of all three styles with linked levels; clips are written under `root` where it is given."""
    rng = np.random.default_rng(seed)
    all_cues = [c for c in cues.CUES if c.slug not in ("moan", "subway")]  # two stay uncovered
    for number in range(scripts):
        cue, other = all_cues[number % len(all_cues)], all_cues[(number + 5) % len(all_cues)]
        words = LINES[number % len(LINES)]
        for style in ("target", "alternative", "neutral"):
            carried = {"target": cue.slug, "alternative": other.slug, "neutral": ""}[style]
            path = f"clips/id_{number} ä#1/{style}.wav"
            if root is not None:
                file = root / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(tone(200 + 10 * (number % 40) + 100 * len(carried)))
            base = f"echomind/synthesis/{{}}/id_{number}/{style}"

            def item(level: int, task: str, category: str, **more: object) -> Item:
                return Item(
                    id=base.format(category),  # noqa: B023
                    benchmark="echomind",
                    level=level,
                    task=task,
                    category=category,
                    case=f"synthesis/id_{number}/{style}",  # noqa: B023
                    group=f"synthesis/id_{number}",  # noqa: B023
                    style=style,  # noqa: B023
                    turns=(Turn(Clip(path, seconds=0.4), words, carried),),  # noqa: B023
                    cue=carried,  # noqa: B023
                    dimension=cue.dimension,  # noqa: B023
                    source="synthesis",
                    topic="everyday life",
                    **more,  # type: ignore[arg-type]
                )

            if style != "neutral":
                yield item(1, "transcribe", "asr", references=(words,))
                task = cues.BY_SLUG[carried].task
                others = [c for c in all_cues if c.slug != carried and c.task == task][:3] or all_cues[:3]
                texts = [cues.BY_SLUG[carried].option, *(c.option for c in others)]
                for category in (task, "coarse"):
                    yield item(1, "choose", category, **_question(rng, "What do you hear?", texts, ()))
                names = list(cues.REASONING)
                for category in (names[number % 10], names[(number + 3) % 10]):
                    texts = [f"Reading {p} of “{words}”" for p in PROVENANCE]
                    yield item(2, "choose", category, **_question(rng, "What would help most?", texts, PROVENANCE))
            yield item(3, "converse", "conversation", references=(REPLIES[number % len(REPLIES)],))


def _question(
    rng: np.random.Generator, question: str, texts: list[str], provenance: tuple[str, ...]
) -> dict[str, object]:
    order = rng.permutation(len(texts))
    options = tuple(
        Option("ABCD"[place], texts[i], provenance[i] if provenance else "") for place, i in enumerate(order)
    )
    return {"question": question, "options": options, "gold": "ABCD"[int(np.flatnonzero(order == 0)[0])]}


def make_run(
    folder: Path,
    *,
    scripts: int = 12,
    skill: float = 0.7,
    seed: int = 1,
    root: Path | None = None,
    repeats: int = 1,
    audio: bool = True,
    model: str = "openai:some-model?temperature=0",
    version: int = 1,
    failures: bool = True,
    hostile: bool = True,
    judges: tuple[str, ...] = (),
    voice: bool = False,
) -> Path:
    """A finished run. Every hostile kind of text is in it, at the first scripts."""
    rng = np.random.default_rng(seed)
    items = list(make_items(root, scripts))
    with Store.create(folder) as store:
        meta = {"benchmark": "echomind", "model": model, "command": f"overtone run echomind --model {model}"}
        meta |= {"created": "2026-03-01T12:00:00Z", "versions": '{"overtone":"0.1.0","python":"3.11.2"}'}
        store.set_meta(meta | ({"root": str(root)} if root else {}))
        for start in range(0, len(items), 200):
            planned = [
                (i, ["zero/audio", "enhance/audio"] if i.task == "converse" else ["task/audio"])
                for i in items[start : start + 200]
            ]
            store.plan(planned, repeats)
        store.commit()
        tones = [tone(300 + 40 * k) for k in range(8)]
        after = 0
        while asks := store.open_asks(after, 1000):
            for ask in asks:
                after = ask.id
                chance = rng.random()
                if failures and chance < 0.02:
                    store.add_failure(ask, 0, "timeout", f"no answer within 60 s {HOSTILE if hostile else ''}", 4)
                    continue
                if failures and chance > 0.995:
                    continue  # stays pending
                reply, scores = _answer(ask.item, rng, skill, version, hostile and ask.id < 60)
                speech = tones[ask.id % 8] if audio and ask.item.task == "converse" and ask.id % 5 else None
                notes = ("speech refused, asked for text only",) if audio and ask.id % 5 == 0 and speech is None else ()
                latency = 0.4 + rng.random()
                timings = Timings(first_text=0.3 * latency, done=latency) if ask.item.task == "converse" else None
                full = Reply(reply, speech, "stop", notes=notes if timings else (), timings=timings)
                store.add_reply(ask, 0, full, sent=b"[]", latency=latency, attempts=1)
                store.add_scores((ask.id, score) for score in scores)
                if ask.item.task == "converse":
                    more = [*judgements(ask.item, judges, rng, skill, hostile and ask.id < 60)]
                    more += spoken(ask.item, rng, speech is not None) if voice else []
                    store.add_scores((ask.id, score) for score in more)
        if judges:
            store.set_meta({"rubrics": msgspec.json.encode(rubrics(judges)).decode()})
        store.add_event("warning", f"clip ‘{HOSTILE}’ is stereo; it was mixed to mono" if hostile else "nothing odd")
        store.commit()
    return folder


def _answer(item: Item, rng: np.random.Generator, skill: float, version: int, hostile: bool) -> tuple[str, list[Score]]:
    tricky = int(hashlib.sha256(item.cue.encode()).hexdigest(), 16) % 100 / 250
    if item.task == "transcribe":
        words = item.references[0].split()
        heard = [w if rng.random() > 0.08 else "something" for w in words]
        wrong = sum(a != b for a, b in zip(words, heard, strict=True))
        detail = {"hits": len(words) - wrong, "substitutions": wrong, "deletions": 0, "insertions": 0}
        value = wrong / len(words)
        scores = [
            Score("wer_raw", f"wer_raw|v{version}", value, detail={**detail, "reference_words": len(words)}),
            Score("wer", f"wer|v{version}|norm:english-1", value, detail={**detail, "reference_words": len(words)}),
            Score("semsim", f"semsim|v{version}|minilm", 1 - value / 3),
        ]
        return " ".join(heard), scores
    if item.task == "choose":
        draw = rng.random()
        if draw < 0.03:
            text = HOSTILE if hostile else "Hard to say, it could be any of them."
            return text, _choice(None, 0.0, "unparsable", version)
        right = rng.random() < skill - tricky + 0.15
        letters = [o.letter for o in item.options if o.letter != item.gold]
        letter = item.gold if right else letters[int(rng.integers(len(letters)))]
        return f"The answer is: {letter}", _choice(letter, float(right), "parsed", version)
    text = REPLIES[int(rng.integers(len(REPLIES)))]
    if hostile:
        text = f"{HOSTILE} {CONTROL}"
    score = Score("semsim", f"semsim|v{version}|minilm", float(np.clip(rng.normal(0.6, 0.15), 0, 1)))
    return text, [score, Score("utmos", "utmos|v1", None, reason="needs an extra: pip install 'overtone[metrics]'")]


DIMENSIONS = {
    "cctxfit": ("Context fit (C1)", ()),
    "cspeechrel": ("Speech relevance (C4)", ("target", "alternative")),
    "cspeechrel_implicit": ("Speech relevance, implicit use counted", ("target", "alternative")),
    "false_cue": ("False cue", ("neutral",)),
}
REASONS = (
    "The reply answers the words but passes over how they were said.",
    "It names the tiredness in the voice and offers a pause, which fits.",
    "Friendly, but the same reply would fit any voice.",
)


def rubrics(judges: tuple[str, ...]) -> dict[str, dict[str, object]]:
    """What a judged run says of its dimensions; the first judge has proved itself, the others have not."""
    return {
        key: {
            "label": label,
            "low": 0 if key == "false_cue" else 1,
            "high": 1 if key == "false_cue" else 5,
            "better": "lower" if key == "false_cue" else "higher",
            "styles": list(styles),
            "rubric": "echomind",
            "unvalidated": {judge: number > 0 for number, judge in enumerate(judges)},
        }
        for key, (label, styles) in DIMENSIONS.items()
    }


def judgements(
    item: Item, judges: tuple[str, ...], rng: np.random.Generator, skill: float, hostile: bool
) -> Iterator[Score]:
    """Scores of several judges that mostly agree; now and then one cannot be read."""
    for key, (_, styles) in DIMENSIONS.items():
        if not judges or (styles and item.style not in styles):
            continue
        true = float(rng.random() < 0.15) if key == "false_cue" else float(np.clip(rng.normal(2 + 3 * skill, 1), 1, 5))
        for judge in judges:
            signature = f"{key}@{judge}|v1|rubric:echomind.1.ab12cd34|judge:openai:{judge}|temperature:0|seed:0"
            signature += "|repeats:3|calls:together|hears:nothing|text:stream"
            if rng.random() < 0.03:
                detail: dict[str, float | int | str | None] = {
                    "draws": 3,
                    "unread": 3,
                    "problems": "not on the menu: 7",
                }
                yield Score(f"{key}@{judge}", signature, None, "unread: not on the menu: 7", detail)
                continue
            draws = [true] * 3 if key == "false_cue" else [round(min(max(rng.normal(true, 0.4), 1), 5)) for _ in "123"]
            why = HOSTILE if hostile else REASONS[int(rng.integers(len(REASONS)))]
            names = ["yes" if d else "no" for d in draws] if key == "false_cue" else [str(d) for d in draws]
            told: dict[str, float | int | str | None] = {"why": why, "values": ",".join(names), "draws": 3, "unread": 0}
            yield Score(f"{key}@{judge}", signature, float(np.mean(draws)), detail=told)


def spoken(item: Item, rng: np.random.Generator, has_sound: bool) -> list[Score]:
    """Voice metrics, and the similarities behind the question whether a reply follows the voice."""
    sims: dict[str, float | int | str | None] = {
        f"sim_{style}": float(rng.normal(0.45, 0.1)) + 0.1 * (style == item.style)
        for style in ("target", "alternative", "neutral")
    }
    scores = [
        Score("style_margin", "style_margin|v1|cosine|embedder:minilm", 0.1, detail=sims),
        *(Score(m, f"{m}|v1", float(np.clip(rng.normal(0.4, 0.1), 0, 1))) for m in ("bleu", "rouge_l", "bertscore")),
        Score("reply_words", "reply_words|v1", float(rng.integers(8, 30))),
    ]
    if not has_sound:
        none = "the reply has no audio"
        return [*scores, Score("expressiveness", "prosody|v3", None, none), Score("nisqa_mos", "nisqa|v1", None, none)]
    value = float(rng.normal(1.0, 0.2))
    detail: dict[str, float | int | str | None] = {
        "f0_hz": float(rng.normal(180, 20)), "f0_range_st": float(rng.normal(6, 1)), "rate_hz": 4.2,
        "pause_share": 0.1, "level_dbfs": -23.0, "flat": int(value < 0.7),
    }  # fmt: skip
    return [
        *scores,
        Score("expressiveness", "prosody|v3|pitch:yin", value, detail=detail),
        Score("prosody_fit", "prosody|v3|pitch:yin", float(np.clip(rng.normal(0.7, 0.1), 0, 1))),
        Score("nisqa_mos", "nisqa|v1", float(np.clip(rng.normal(4, 0.4), 1, 5))),
        _emotion(rng),
    ]


def _emotion(rng: np.random.Generator) -> Score:
    heard, wanted = (("neutral", "happy", "sad", "unknown")[int(rng.integers(4))] for _ in "12")
    match = float(heard == wanted != "unknown")
    return Score("emoalign_reference", "emoalign_reference|v1", match, detail={"reply": heard, "wanted": wanted})


def _choice(letter: str | None, value: float, status: str, version: int) -> list[Score]:
    detail: dict[str, float | int | str | None] = {"status": status, "answer": letter}
    return [
        Score("accuracy", f"accuracy|v{version}|lenient", value, detail=detail),
        Score("accuracy_strict", f"accuracy_strict|v{version}", value, detail=detail),
    ]
