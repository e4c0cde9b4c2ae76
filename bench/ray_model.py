"""A model that only waits, for `bench.ray_cluster`: ray-model:any?delay=SECONDS&places=N."""

from __future__ import annotations

import asyncio
from typing import Any

from overtone.schema import Reply, Request
from overtone.spec import Spec

ROOM = "models"


class Waiting:
    """Answers after `delay` seconds, up to `places` requests at once."""

    def __init__(self, spec: Spec) -> None:
        options = spec.typed({"delay": float, "places": int})
        self.spec = spec
        self.slots: int | None = options.get("places", 4)
        self._delay: float = options.get("delay", 0.0)

    async def open(self) -> None:
        """Need nothing."""

    async def ask(self, request: Request) -> Reply:
        if self._delay:
            await asyncio.sleep(self._delay)
        return Reply(f"I heard {request.key.item}")

    async def close(self) -> None:
        """Hold nothing."""

    def describe(self) -> dict[str, Any]:
        return {"name": "waiting"}


load = Waiting
