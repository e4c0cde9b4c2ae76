"""The language model of `cascade?lm=DIR`: a folder of transformers, in a worker process with its own environment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from overtone.errors import UsageError
from overtone.models import worker
from overtone.models.worker import WorkerModel
from overtone.spec import Spec
from overtone.workers import model_source

KEYS: dict[str, type] = {
    "python": str, "device": str, "dtype": str, "batch": int, "gpus": str, "start_timeout": float,
    "heartbeat_timeout": float, "restarts": int, "think": str,
}  # fmt: skip
LONGEST = {"choose": 32, "converse": 256}  # tokens; a test checks that they equal those of `workers.causal_text`
_PASSED = (*KEYS, "temperature", "top_p", "max_tokens", "seed", "timeout")


class CausalModel(WorkerModel):
    """A causal language model in a worker. Its identity contains a SHA-256 of its weights, tokenizer and template."""

    keys = worker.KEYS | {"think": str}
    likelihoods = True

    def __init__(self, given: Spec) -> None:
        """Create the model from the SPEC of a cascade. Raises UsageError if the folder is not a complete checkpoint."""
        source = given.options["lm"]
        try:
            self.folder = model_source.check(source).resolve()
            self.config = model_source.read_config(self.folder)
        except model_source.BadSource as error:
            raise UsageError(f"{given}: {error}") from None
        loader, _ = model_source.split(source)
        options = {key: value for key, value in given.options.items() if key in _PASSED}
        options["model"] = f"{loader}:{self.folder}" if loader else str(self.folder)
        super().__init__(Spec("worker", "causal_text", options))
        self.spec = given
        self._sha256 = ""

    def find_program(self) -> Path:
        return Path(model_source.__file__).with_name("causal_text.py")

    def is_hub_id(self, model: str) -> bool:
        return False  # the folder was checked; nothing is downloaded

    async def open(self) -> None:
        self._sha256 = await asyncio.to_thread(model_source.fingerprint, self.folder)
        await super().open()

    def describe(self) -> dict[str, Any]:
        out: dict[str, Any] = {"model_type": self.config["model_type"], "sha256": self._sha256}
        if named := self.config.get("architectures"):
            out["architectures"] = named
        return out | {key: self._facts[key] for key in ("chat", "dtype", "parameters", "think") if key in self._facts}

    @property
    def facts(self) -> dict[str, Any]:
        """The worker's report about itself once open: class, device, versions."""
        return self._facts
