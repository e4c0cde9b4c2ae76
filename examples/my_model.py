"""A baseline that hears nothing: it picks the first or the longest option and says one sentence."""

from __future__ import annotations

from typing import Any

from overtone.errors import ModelFailure, UsageError
from overtone.schema import Reply, Request
from overtone.spec import Spec

ROOM = "models"
RULES = ("first", "longest")
LETTERS = "ABCDEFGH"


class Baseline:
    """`my-model:longest?polite=no`. Any option of a SPEC is text until `typed` has checked it."""

    slots: int | None = None  # no limit: the engine may ask as often at once as it likes

    def __init__(self, spec: Spec) -> None:
        options = spec.typed({"polite": bool})
        if spec.name not in RULES:
            raise UsageError(f"{spec}: write my-model:{' or my-model:'.join(RULES)}")
        self.spec = spec
        self.polite: bool = options.get("polite", True)
        self.speech = spec.typed_speech()

    async def open(self) -> None:
        """Nothing to start. A model with weights or a session gets them here, not in __init__."""

    async def ask(self, request: Request) -> Reply:
        """One attempt; the engine retries, waits and stores."""
        if request.speech and self.speech == "yes":
            raise ModelFailure("speech_refused", "this model has no voice; use speech=auto or speech=no")
        if request.task == "choose":
            return Reply(f"The answer is: [{self._choice(request.options)}]", finish="stop")
        if request.task == "transcribe":
            return Reply("", finish="stop")  # it heard no word; an empty transcript scores a word error rate of 1
        return Reply("I'm sorry, I did not hear you." if self.polite else "Go on.", finish="stop")

    def _choice(self, options: tuple[str, ...]) -> str:
        longest = max(range(len(options)), key=lambda n: len(options[n]))
        return LETTERS[longest if self.spec.name == "longest" else 0]

    async def close(self) -> None:
        """Nothing to release."""

    def describe(self) -> dict[str, Any]:
        """What identifies the answers. The same folder refuses to go on when this changes."""
        return {"rule": self.spec.name, "polite": self.polite, "version": 1}


def load(spec: Spec) -> Baseline:
    return Baseline(spec)
