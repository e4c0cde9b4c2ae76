"""Settings of a model's replies: the user's choices, and the abilities that the checkpoint was trained for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.echat.learn.stages import plan, stages
from overtone.echat.net.config import Config
from overtone.echat.net.decode import GREEDY, SPEECH, Sampling


class ReplySettings(Struct, frozen=True):
    """Settings of a model's replies. For `think` and `interleave`, None means as in training."""

    think: Literal["", "label", "natural"] | None = None
    interleave: bool | None = None
    system: Literal["own", "given"] = "own"
    text: Sampling = GREEDY
    speech: Sampling = SPEECH
    max_text: int = 220
    max_speech: int = 0  # codes; 0: as many as `max_seconds` has
    max_seconds: float = 20.0  # of speech

    def most_codes(self, rate: float) -> int:
        """Return the maximum number of codes, given the tokens' rate."""
        return self.max_speech or max(1, round(self.max_seconds * rate))


class Trained(Struct, frozen=True):
    """The abilities that a checkpoint was trained for."""

    think: Literal["", "label", "natural"] = ""
    interleaved: bool = False
    interleaved_thoughts: bool = False


def trained(config: Config, notes: dict[str, object]) -> Trained:
    """Return the abilities that a checkpoint's stage trained; none, if the checkpoint does not name its stage."""
    ablate = [name for name in ("understanding", "think") if name in str(notes.get("ablate", ""))]
    runs = {run.name: run.stage for run in plan(stages(config.stage, config.name), ablate)} if config.stage else {}
    stage = runs.get(str(notes.get("stage", "")))
    if stage is None:
        return Trained()
    thinking = [feed for feed in stage.feeds if feed.think]
    kind: Literal["", "label", "natural"] = "natural" if stage.think == "natural" else "label"
    return Trained(
        kind if thinking else "",
        any(feed.streaming for feed in stage.feeds),
        any(feed.streaming for feed in thinking),
    )


def reply_settings(options: Mapping[str, Any]) -> ReplySettings:
    """Return the settings from a SPEC's keys. Missing keys take the values of training, or the published ones."""
    thoughts = {"label": "label", "natural": "natural", "none": "", "": None}
    text, speech, usual = GREEDY, SPEECH, ReplySettings()
    if options.get("temperature") is not None:
        text = Sampling(float(options["temperature"]), top_p=float(options.get("top_p") or 1.0))
    if options.get("speech_temperature") is not None:
        speech = msgspec.structs.replace(speech, temperature=float(options["speech_temperature"]))
    seconds = options.get("max_speech")
    return ReplySettings(
        think=thoughts[str(options.get("think") or "")],  # type: ignore[arg-type]
        system="given" if options.get("system") == "given" else "own",
        text=text,
        speech=speech,
        max_text=int(options.get("max_tokens") or usual.max_text),
        max_seconds=float(seconds) if seconds else usual.max_seconds,
    )
