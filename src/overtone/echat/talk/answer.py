"""Answer requests with a trained checkpoint.

Messages of text and audio become a prompt as in training. The output becomes text without its thought, and audio. Many
requests can be answered in one batch; a single request can be streamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct

from overtone import audio
from overtone.echat.data import layout, prompts, think
from overtone.echat.data.exchange_records import Record, Turn
from overtone.echat.net import checkpoint, decode
from overtone.echat.net.config import RATE as HEARD
from overtone.echat.net.config import Config, ModelConfig, positions
from overtone.echat.net.decode import DecodedReply, DecodeOptions
from overtone.echat.net.device import cast_weights, choose_device
from overtone.echat.net.half_decoder import HalfDecoder
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import Tokenizer, open_tokenizer
from overtone.echat.speech import SpeechTokens, open_tokens, tokens_per_second
from overtone.echat.talk.dialogue import SPEAK, Asked, read
from overtone.echat.talk.reply_settings import ReplySettings, Trained, trained
from overtone.echat.talk.streaming_speech import RATE as SPOKEN
from overtone.echat.talk.streaming_speech import Floats, StreamingSpeech
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
OPENING = {"label": f"{think.OPEN}User's words:", "natural": think.OPEN}
_TAGS = re.compile(r"<([^<>]{1,32})>")
_FIRST_TAG = re.compile(r"<[^<>]{0,32}>?")


class TooLong(DataError):
    """A request does not fit into the model's positions."""


class Answer(Struct, frozen=True):
    """A complete answer. `sound` is at 24 kHz, or None if nothing was spoken."""

    text: str
    thought: str = ""
    emotion: str = ""
    sound: Floats | None = None
    codes: tuple[int, ...] = ()
    finish: str = "stop"
    heard: int = 0  # positions of the prompt, audio included
    heard_sound: int = 0
    said: int = 0  # text tokens
    notes: tuple[str, ...] = ()


class Piece(Struct, frozen=True):
    """A piece of a streamed answer: thought, text or audio. The last piece has the whole answer, without audio."""

    thought: str = ""
    text: str = ""
    sound: Floats | None = None
    whole: Answer | None = None


class _Prompt(Struct, frozen=True):
    """A request converted to a token sequence, with its waveforms and decoding options."""

    asked: Asked
    sequence: layout.Sequence
    waves: list[Floats]
    how: DecodeOptions
    chat: bool
    heard: int
    heard_sound: int
    notes: tuple[str, ...]


class Answerer:
    """A loaded checkpoint that answers requests. Not thread-safe."""

    def __init__(
        self,
        model: EChat,
        config: Config,
        tokens: SpeechTokens,
        settings: ReplySettings,
        taught: Trained | None = None,
    ) -> None:
        taught = taught or Trained()
        self.model, self.config, self.tokens, self.settings = model, config, tokens, settings
        self.tok: Tokenizer = open_tokenizer(config.model)
        if tokens.codes != config.model.speech.codes:
            raise DataError(
                f"the checkpoint has {config.model.speech.codes} speech codes, but {tokens.name!r} has {tokens.codes}; "
                "use the tokens it was trained with"
            )
        self.think = taught.think if settings.think is None else settings.think
        self.interleave = taught.interleaved if settings.interleave is None else settings.interleave
        # Before interleaved speech, the model thinks only if it was trained to, or if the settings ask for it.
        self.interleaved_think = self.think if taught.interleaved_thoughts or settings.think else ""

    def check_speech(self) -> None:
        """Decode a few speech tokens, so that a missing package fails now and not in the first request for speech."""
        self._sound((self.tokens.quiet or 0,) * 5, "neutral")

    def answer(self, many: Sequence[Asked], go_on: Callable[[int], bool] = lambda number: True) -> list[Answer]:
        """Answer requests, batching those with equal settings. If `go_on(index)` is false, that request stops early.

        Raises AudioError for unusable audio and TooLong for long requests; check each with `lay_out` first.
        """
        laid = [self.lay_out(asked) for asked in many]
        replies = self._respond(laid, go_on)
        speak = [i for i, prompt in enumerate(laid) if prompt.asked.speech and not prompt.how.speak]
        if speak:  # the text is complete; speak it like any other text
            given = [self._to_speak(laid[i], replies[i]) for i in speak]
            for i, spoken in zip(speak, self._respond(given, _renumbered(go_on, speak)), strict=True):
                replies[i] = msgspec.structs.replace(replies[i], codes=spoken.codes, cut=replies[i].cut or spoken.cut)
        return [self._answer(prompt, replies[i], sound=go_on(i)) for i, prompt in enumerate(laid)]

    def stream(self, asked: Asked, go_on: Callable[[], bool] = lambda: True) -> Iterator[Piece]:
        """Stream the answer to one request. If `go_on` returns false, the stream ends.

        Text and speech alternate if speech is requested and the model was trained to interleave.
        """
        prompt = self.lay_out(asked, streaming=asked.speech and self.interleave)
        reading = _TextStream(self.tok, prompt.how.thinks, prompt.chat)
        ids: list[int] = []
        codes: list[int] = []
        aloud: StreamingSpeech | None = None
        waiting: list[int] = []
        stages = [prompt]
        for one in stages:  # a second stage is added if the text is spoken afterwards
            how = msgspec.structs.replace(one.how, seed=asked.seed)
            for kind, token in decode.stream(self.model, self.tok, one.sequence, one.waves, how):
                if not go_on():
                    return
                if kind == "text":
                    ids.append(token)
                    yield from reading.more(token)
                    continue
                codes.append(token)
                waiting.append(token)
                if aloud is None and not one.how.streaming:
                    yield from reading.rest()
                if len(waiting) == self.tok.speech_block:
                    aloud = aloud or StreamingSpeech(self.tokens, reading.emotion)
                    yield Piece(sound=aloud.more(waiting))
                    waiting.clear()
            if one.asked.speech and not one.how.speak:
                yield from reading.rest()
                stages.append(self._to_speak(one, self._decoded(ids, ())))
        yield from reading.rest()
        if waiting:
            aloud = aloud or StreamingSpeech(self.tokens, reading.emotion)
            yield Piece(sound=aloud.more(waiting))
        if aloud:
            yield Piece(sound=aloud.rest())
        cut = "text" if len(ids) >= prompt.how.max_text else "speech" if len(codes) >= prompt.how.max_speech else ""
        whole = msgspec.structs.replace(self._decoded(ids, codes), cut=cut)
        yield Piece(whole=self._answer(prompt, whole, sound=False))

    def lay_out(self, asked: Asked, streaming: bool = False) -> _Prompt:
        """Convert a request to the model's prompt. Raises AudioError, TooLong or Unanswerable."""
        if asked.task == SPEAK:
            return self._aloud(asked)
        dialogue = read(asked.messages, self.config.model.encoder.longest, self._codes)
        turns, notes = dialogue.turns, list(dialogue.notes)
        last, waves = turns[-1], [turn.wave for turn in turns]
        hears = any(wave is not None for wave in waves)
        question = asked.task in ("transcribe", "choose") or (not asked.task and bool(last.text) and not asked.speech)
        understand = question and last.wave is not None
        record = Record(
            key="request",
            wav="0" if last.wave is not None else "",
            question=last.text,
            history=tuple(
                Turn(str(number) if turn.wave is not None else "", turn.text, turn.reply, turn.codes)
                for number, turn in enumerate(turns[:-1], start=1)
            ),
        )
        task: layout.Task = "t2t" if not hears else "s2s" if asked.speech else "s2t"
        thinks = (self.interleaved_think if streaming else self.think) if hears and not understand else ""
        ask = ""
        if understand:
            ask = prompts.read().ask(True, ()) if asked.task == "transcribe" else last.text
            task = "s2t"
        system = dialogue.system if self.settings.system == "given" else ""
        if dialogue.system and not system:
            notes.append("the request's system prompt was ignored: this model uses its own")
        sequence = layout.prompt(
            record,
            task,
            self.tok,
            think=thinks,
            streaming=streaming and task == "s2s",
            ask=ask or (prompts.read().ask(True, ()) if understand else ""),
            beside="" if understand or last.wave is None else last.text,
            system=system,
        )
        by_name = {str((number + 1) % len(turns)): wave for number, wave in enumerate(waves)}  # the last turn is "0"
        heard = [wave for clip in sequence.clips if (wave := by_name[clip.wav]) is not None]
        how = self._how(asked, task, thinks, streaming and task == "s2s")
        sound = sum(positions(self.config.model, len(wave)) for wave in heard)
        size = len(sequence.ids) - len(heard) + sound
        room = self.config.model.lm.context - (how.max_speech if asked.speech else 0)
        most = room - min(how.max_text, self.settings.max_text)
        if size > most:
            raise TooLong(f"the request has {size} positions, but at most {most} fit; send fewer or shorter turns")
        how = msgspec.structs.replace(how, max_text=min(how.max_text, room - size))  # larger limits are reduced
        return _Prompt(asked, sequence, heard, how, not understand, size, sound, tuple(notes))

    def _aloud(self, asked: Asked) -> _Prompt:
        """Return a prompt that makes the model speak the text of the last message."""
        text = " ".join(part for part in asked.messages[-1].parts if isinstance(part, str))
        sequence = layout.prompt(Record(key="reply", txt=text), "t2s", self.tok)
        how = msgspec.structs.replace(self._how(asked, "s2s", "", False), write=False)
        size, most = len(sequence.ids), self.config.model.lm.context - how.max_speech
        if size > most:
            raise TooLong(f"the text has {size} positions, but at most {most} fit; send a shorter text")
        return _Prompt(asked, sequence, [], how, True, size, 0, ())

    def _how(self, asked: Asked, task: str, thinks: str, streaming: bool) -> DecodeOptions:
        text = self.settings.text
        if asked.temperature is not None:
            text = msgspec.structs.replace(text, temperature=asked.temperature)
        if asked.top_p is not None:
            text = msgspec.structs.replace(text, top_p=asked.top_p)
        return DecodeOptions(
            speak=task == "s2s",
            streaming=streaming,
            thinks=bool(thinks),
            text=text,
            speech=self.settings.speech,
            max_text=asked.max_text or self.settings.max_text,
            max_speech=self.settings.most_codes(self.tokens.rate),
            quiet=self.tokens.quiet,
            opening=tuple(self.tok.encode(OPENING[thinks])) if thinks else (),
        )

    def _respond(self, laid: Sequence[_Prompt], go_on: Callable[[int], bool]) -> list[DecodedReply]:
        """Decode all prompts, batching those with equal decoding options."""
        out = dict.fromkeys(range(len(laid)), self._decoded((), ()))
        by_options: dict[bytes, list[int]] = {}
        for i, prompt in enumerate(laid):
            by_options.setdefault(msgspec.msgpack.encode(prompt.how), []).append(i)
        for indices in by_options.values():
            group = [i for i in indices if go_on(i)]
            if not group:
                continue
            replies = decode.respond(
                self.model,
                self.tok,
                [laid[i].sequence for i in group],
                [laid[i].waves for i in group],
                laid[group[0]].how,
                seeds=[laid[i].asked.seed for i in group],
                go_on=_renumbered(go_on, group),
            )
            out |= dict(zip(group, replies, strict=True))
        return [out[i] for i in range(len(laid))]

    def _to_speak(self, prompt: _Prompt, decoded: DecodedReply) -> _Prompt:
        """Return a prompt that makes the model speak the decoded reply."""
        parsed = think.parse(decoded.text, prompt.how.thinks)
        record = Record(
            key="reply", txt=(parsed.reply if prompt.chat else decoded.text) or " ", reply_emotion=parsed.reply_emotion
        )
        how = msgspec.structs.replace(prompt.how, write=False, speak=True, thinks=False, opening=())
        return _Prompt(prompt.asked, layout.prompt(record, "t2s", self.tok), [], how, True, 0, 0, ())

    def _codes(self, wave: Floats) -> tuple[int, ...]:
        return tuple(self.tokens.encode(wave, HEARD).tolist())

    def _decoded(self, ids: Sequence[int], codes: Sequence[int]) -> DecodedReply:
        text = self.tok.decode(ids)
        return DecodedReply(text, think.parse(text), tuple(codes), tuple(ids))

    def _answer(self, prompt: _Prompt, decoded: DecodedReply, sound: bool = True) -> Answer:
        text, thought, notes = decoded.text.strip(), "", list(prompt.notes)
        parsed = think.parse(decoded.text, prompt.how.thinks)
        if prompt.chat:
            text, thought = parsed.reply, think.split(decoded.text, prompt.how.thinks)[0]
            if prompt.how.thinks and parsed.malformed:
                notes.append(f"malformed: {'; '.join(parsed.malformed)}")
        elif prompt.asked.task == "transcribe":
            text = " ".join(_TAGS.sub(" ", text).split())
        elif prompt.asked.task == "choose":
            text = _TAGS.sub(lambda tag: f" {tag[1].lower()} ", text).strip()
        emotion = parsed.reply_emotion if prompt.chat else ""
        wave = self._sound(decoded.codes, emotion or "neutral") if sound and decoded.codes else None
        if prompt.asked.speech and not decoded.codes:
            notes.append("nothing was spoken")
        return Answer(
            text, thought, emotion, wave, decoded.codes, "length" if decoded.cut else "stop", prompt.heard,
            prompt.heard_sound, len(decoded.text_ids), tuple(notes),
        )  # fmt: skip

    def _sound(self, codes: Sequence[int], emotion: str) -> Floats:
        sound, rate = self.tokens.decode(np.array(codes, np.int64), emotion)
        return audio.resample(sound, rate, SPOKEN)


def _renumbered(go_on: Callable[[int], bool], indices: Sequence[int]) -> Callable[[int], bool]:
    """Return a version of `go_on` for some of the requests, which are then numbered from 0."""
    return lambda at: go_on(indices[at])


class _TextStream:
    """The text of a streamed answer: the thought as one piece when it ends, then the reply piece by piece.

    A possible mark, tag or space at the end is held back, so that the pieces add up to the whole answer.
    """

    def __init__(self, tok: Tokenizer, thinks: bool, chat: bool) -> None:
        self.tok, self.thinks, self.chat = tok, thinks, chat
        self.ids: list[int] = []
        self.thought = False  # whether it was yielded
        self.sent = 0  # characters of the reply that were yielded

    @property
    def text(self) -> str:
        return self.tok.decode(self.ids)

    @property
    def emotion(self) -> str:
        return think.parse(self.text, self.thinks).reply_emotion or "neutral"

    def more(self, token: int) -> Iterator[Piece]:
        """Add a token, and yield the pieces that later tokens cannot change."""
        self.ids.append(token)
        text = self.text
        if not text.endswith("\ufffd"):  # an incomplete character
            yield from self._emit(think.without_partial_mark(text) if self.chat else text, over=False)

    def rest(self) -> Iterator[Piece]:
        """Yield the text that was held back."""
        yield from self._emit(self.text, over=True)

    def _emit(self, text: str, over: bool) -> Iterator[Piece]:
        thought, after_thought = think.split(text, self.thinks) if self.chat else ("", text)
        if after_thought is None and not over:
            return
        if thought and not self.thought:
            self.thought = True
            yield Piece(thought=thought)
        if self.chat and not over and _FIRST_TAG.fullmatch((after_thought or "").strip()):
            return
        reply = think.parse(text, self.thinks).reply if self.chat else text.strip()
        if len(reply) > self.sent:
            yield Piece(text=reply[self.sent :])
            self.sent = len(reply)


def open_answerer(folder: Path, settings: ReplySettings, *, device: str = "auto", dtype: str = "") -> Answerer:
    """Load the checkpoint in a folder. `device` "auto" uses a GPU if there is one; "" is the checkpoint's `dtype`."""
    device = str(choose_device(device))
    made = checkpoint.config(folder)
    dtype = dtype_for(device, dtype, made.dtype)  # raises before anything is loaded
    _check_room(made.model, settings)
    index = checkpoint.index(folder)
    model, config = checkpoint.load(folder)
    return Answerer(
        on_device(model, device, dtype),
        config,
        open_tokens(config.model.speech.tokens),
        settings,
        trained(config, dict(index.notes)),
    )


def _check_room(model: ModelConfig, settings: ReplySettings) -> None:
    """Refuse limits that leave no room for one spoken message of the encoder's maximum length."""
    tok = open_tokenizer(model)
    asked = layout.prompt(Record(key="request", txt="", wav="0"), "s2s", tok, think="label", streaming=True)
    size = len(asked.ids) + positions(model, round(model.encoder.longest * HEARD))
    speech = settings.most_codes(tokens_per_second(model.speech.tokens))
    if size + settings.max_text + speech > model.lm.context:
        raise UsageError(
            f"the model has {model.lm.context} positions, not enough for {settings.max_text} tokens of text and "
            f"{speech} of speech after a message of {size}; lower max_tokens or max_speech"
        )


def on_device(model: EChat, device: str, dtype: str) -> EChat:
    """Move the model to a device and convert its language model to a number type."""
    model = model.to(device).eval()
    if dtype == "float16":
        model.decoder = HalfDecoder(model.lm)
        return model
    cast_weights(model.lm, DTYPES[dtype])
    cast_weights(model.speech, DTYPES[dtype])
    return model


def dtype_for(device: str, dtype: str = "", stored: str = "float32") -> str:
    """Return the given number type, or by default bfloat16 on a GPU and that of the checkpoint elsewhere. Raises
    UsageError."""
    if dtype not in ("", *DTYPES):
        raise UsageError(f"dtype must be {', '.join(DTYPES)}, not {dtype!r}{suggest(dtype, DTYPES)}")
    if dtype == "float16" and device.startswith("cuda"):
        raise UsageError("dtype float16 needs a CPU; on a GPU use bfloat16")
    return dtype or ("bfloat16" if device.startswith("cuda") else stored)
