"""How a trained model answers: what a user sets, and what the checkpoint was taught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.echat.learn.stages import plan, stages
from overtone.echat.net.config import Config
from overtone.echat.net.decode import LIKELIEST, SPEECH, Sampling
from overtone.echat.speech import RATE as CODES_A_SECOND


class Manner(Struct, frozen=True):
    """How a model answers. `think` None: as it was trained; `interleave` None: so, too."""

    think: Literal["", "label", "natural"] | None = None
    interleave: bool | None = None
    system: Literal["own", "given"] = "own"
    text: Sampling = LIKELIEST
    speech: Sampling = SPEECH
    max_text: int = 220
    max_speech: int = 500  # codes: 20 s


class Trained(Struct, frozen=True):
    """What a checkpoint was taught."""

    think: Literal["", "label", "natural"] = ""
    interleaved: bool = False
    interleaved_thoughts: bool = False


def trained(config: Config, notes: dict[str, object]) -> Trained:
    """What the stage did that a checkpoint comes from; one that says of no stage was taught nothing."""
    ablate = [name for name in ("understanding", "think") if name in str(notes.get("ablate", ""))]
    runs = {run.name: run.stage for run in plan(stages(config.stage, config.name), ablate)} if config.stage else {}
    stage = runs.get(str(notes.get("stage", "")))
    if stage is None:
        return Trained()
    thinking = [feed for feed in stage.feeds if feed.think]
    ways: Literal["", "label", "natural"] = "natural" if stage.think == "natural" else "label"
    return Trained(
        ways if thinking else "",
        any(feed.streaming for feed in stage.feeds),
        any(feed.streaming for feed in thinking),
    )


def manner_of(options: Mapping[str, Any]) -> Manner:
    """A manner from a SPEC's keys; what is not given is as in training, or as published."""
    told = {"label": "label", "natural": "natural", "none": "", "": None}
    text, speech, usual = LIKELIEST, SPEECH, Manner()
    if options.get("temperature") is not None:
        text = Sampling(float(options["temperature"]), top_p=float(options.get("top_p") or 1.0))
    if options.get("speech_temperature") is not None:
        speech = msgspec.structs.replace(speech, temperature=float(options["speech_temperature"]))
    seconds = options.get("max_speech")
    return Manner(
        think=told[str(options.get("think") or "")],  # type: ignore[arg-type]
        system="given" if options.get("system") == "given" else "own",
        text=text,
        speech=speech,
        max_text=int(options.get("max_tokens") or usual.max_text),
        max_speech=round(float(seconds) * CODES_A_SECOND) if seconds else usual.max_speech,
    )
