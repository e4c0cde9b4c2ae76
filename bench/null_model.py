"""A model that answers at once without looking: what is left is the harness."""

from __future__ import annotations

from typing import Any

from overtone.schema import Reply, Request
from overtone.spec import Spec

ROOM = "models"


class Null:
    slots = None

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    async def open(self) -> None:
        """Nothing to start."""

    async def ask(self, request: Request) -> Reply:
        return Reply("The answer is: [C]" if request.options else "hello")

    async def close(self) -> None:
        """Nothing to stop."""

    def describe(self) -> dict[str, Any]:
        return {"model": "null"}


def load(spec: Spec) -> Null:
    return Null(spec)
