"""A trained checkpoint answers: messages of text and sound become a prompt as in training, what the model says becomes
text without its thought, and sound. Many requests are answered at once, one may be answered piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct
from torch import nn

from overtone import audio
from overtone.echat.data import layout, prompts, think
from overtone.echat.data.records import Record, Turn
from overtone.echat.net import checkpoint, decode
from overtone.echat.net.config import RATE as HEARD
from overtone.echat.net.config import Config, ModelConfig, positions
from overtone.echat.net.decode import How, Said
from overtone.echat.net.device import chosen, narrow
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import Tokenizer, open_tokenizer
from overtone.echat.speech import SpeechTokens, open_tokens
from overtone.echat.talk.aloud import RATE as SPOKEN
from overtone.echat.talk.aloud import Aloud, Floats
from overtone.echat.talk.dialogue import Asked, read
from overtone.echat.talk.manner import Manner, Trained, trained
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
OPENING = {"label": f"{think.OPEN}User's words:", "natural": think.OPEN}
_TAGS = re.compile(r"<([^<>]{1,32})>")
_FIRST_TAG = re.compile(r"<[^<>]{0,32}>?")


class TooLong(DataError):
    """What is asked does not fit into the model's positions."""


class Answer(Struct, frozen=True):
    """What was answered. `sound` is at 24 kHz, None where nothing was spoken."""

    text: str
    thought: str = ""
    emotion: str = ""
    sound: Floats | None = None
    codes: tuple[int, ...] = ()
    finish: str = "stop"
    heard: int = 0  # positions of what was read and heard, sound included
    heard_sound: int = 0
    said: int = 0  # text tokens
    notes: tuple[str, ...] = ()


class Piece(Struct, frozen=True):
    """Of an answer on its way: a piece of its thought, text or sound; the last is the whole answer, without sound."""

    thought: str = ""
    text: str = ""
    sound: Floats | None = None
    whole: Answer | None = None


class _Prompt(Struct, frozen=True):
    """A request, laid out."""

    asked: Asked
    sequence: layout.Sequence
    waves: list[Floats]
    how: How
    chat: bool
    heard: int
    heard_sound: int
    notes: tuple[str, ...]


class Answerer:
    """A checkpoint ready to answer. Not for two threads at once."""

    def __init__(
        self, model: EChat, config: Config, tokens: SpeechTokens, manner: Manner, taught: Trained | None = None
    ) -> None:
        taught = taught or Trained()
        self.model, self.config, self.tokens, self.manner = model, config, tokens, manner
        self.tok: Tokenizer = open_tokenizer(config.model)
        if tokens.codes != config.model.speech.codes:
            raise DataError(
                f"the checkpoint has {config.model.speech.codes} speech codes, {tokens.name!r} has {tokens.codes}; "
                "give the tokens it was trained with"
            )
        self.think = taught.think if manner.think is None else manner.think
        self.interleave = taught.interleaved if manner.interleave is None else manner.interleave
        # A thought before interleaved speech is left out where it was not taught, unless it is asked for.
        self.interleaved_think = self.think if taught.interleaved_thoughts or manner.think else ""

    def check_speech(self) -> None:
        """Speak a few tokens, so that a missing package is an error now and not of the first request for speech."""
        self._sound((self.tokens.quiet or 0,) * 5, "neutral")

    def answer(self, many: Sequence[Asked], go_on: Callable[[int], bool] = lambda number: True) -> list[Answer]:
        """Answer all, those that are alike together. What cannot be heard raises AudioError, what is too much
        TooLong: check with `lay` first, one by one. Where `go_on` says no of one, by its number, it goes no further."""
        laid = [self.lay(asked) for asked in many]
        said = self._respond(laid, go_on)
        speak = [i for i, prompt in enumerate(laid) if prompt.asked.speech and not prompt.how.speak]
        if speak:  # the text stands; it is spoken as any other text
            given = [self._to_speak(laid[i], said[i]) for i in speak]
            for i, spoken in zip(speak, self._respond(given, _counted(go_on, speak)), strict=True):
                said[i] = msgspec.structs.replace(said[i], codes=spoken.codes, cut=said[i].cut or spoken.cut)
        return [self._answer(prompt, said[i], sound=go_on(i)) for i, prompt in enumerate(laid)]

    def stream(self, asked: Asked, go_on: Callable[[], bool] = lambda: True) -> Iterator[Piece]:
        """Answer one, piece by piece; where speech is wanted and the model was taught so, text and speech in turn.
        Where `go_on` says no, nothing more comes."""
        prompt = self.lay(asked, streaming=asked.speech and self.interleave)
        reading = _Reading(self.tok, prompt.how.thinks, prompt.chat)
        ids: list[int] = []
        codes: list[int] = []
        aloud: Aloud | None = None
        waiting: list[int] = []
        stages = [prompt]
        for one in stages:  # grows by one where the text is spoken afterwards
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
                if len(waiting) == layout.SPEECH_BLOCK:
                    aloud = aloud or Aloud(self.tokens, reading.emotion)
                    yield Piece(sound=aloud.more(waiting))
                    waiting.clear()
            if one.asked.speech and not one.how.speak:
                yield from reading.rest()
                stages.append(self._to_speak(one, self._said(ids, ())))
        yield from reading.rest()
        if waiting:
            aloud = aloud or Aloud(self.tokens, reading.emotion)
            yield Piece(sound=aloud.more(waiting))
        if aloud:
            yield Piece(sound=aloud.rest())
        cut = "text" if len(ids) >= prompt.how.max_text else "speech" if len(codes) >= prompt.how.max_speech else ""
        whole = msgspec.structs.replace(self._said(ids, codes), cut=cut)
        yield Piece(whole=self._answer(prompt, whole, sound=False))

    def lay(self, asked: Asked, streaming: bool = False) -> _Prompt:
        """The request as the model reads it."""
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
        system = dialogue.system if self.manner.system == "given" else ""
        if dialogue.system and not system:
            notes.append("the system prompt was not read: this model has its own")
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
        by_name = {str((number + 1) % len(turns)): wave for number, wave in enumerate(waves)}  # the last is "0"
        heard = [wave for clip in sequence.clips if (wave := by_name[clip.wav]) is not None]
        how = self._how(asked, task, thinks, streaming and task == "s2s")
        sound = sum(positions(self.config.model, len(wave)) for wave in heard)
        size = len(sequence.ids) - len(heard) + sound
        room = self.config.model.lm.context - (how.max_speech if asked.speech else 0)
        most = room - min(how.max_text, self.manner.max_text)
        if size > most:
            raise TooLong(f"{size} positions are asked, {most} is the most; ask less, or of fewer and shorter turns")
        how = msgspec.structs.replace(how, max_text=min(how.max_text, room - size))  # who allows more gets what fits
        return _Prompt(asked, sequence, heard, how, not understand, size, sound, tuple(notes))

    def _how(self, asked: Asked, task: str, thinks: str, streaming: bool) -> How:
        text = self.manner.text
        if asked.temperature is not None:
            text = msgspec.structs.replace(text, temperature=asked.temperature)
        if asked.top_p is not None:
            text = msgspec.structs.replace(text, top_p=asked.top_p)
        return How(
            speak=task == "s2s",
            streaming=streaming,
            thinks=bool(thinks),
            text=text,
            speech=self.manner.speech,
            max_text=asked.max_text or self.manner.max_text,
            max_speech=self.manner.max_speech,
            quiet=self.tokens.quiet,
            opening=tuple(self.tok.encode(OPENING[thinks])) if thinks else (),
        )

    def _respond(self, laid: Sequence[_Prompt], go_on: Callable[[int], bool]) -> list[Said]:
        """What the model says to each; those that are answered in one manner go together."""
        out = dict.fromkeys(range(len(laid)), self._said((), ()))
        alike: dict[bytes, list[int]] = {}
        for i, prompt in enumerate(laid):
            alike.setdefault(msgspec.msgpack.encode(prompt.how), []).append(i)
        for those in alike.values():
            group = [i for i in those if go_on(i)]
            if not group:
                continue
            found = decode.respond(
                self.model,
                self.tok,
                [laid[i].sequence for i in group],
                [laid[i].waves for i in group],
                laid[group[0]].how,
                seeds=[laid[i].asked.seed for i in group],
                go_on=_counted(go_on, group),
            )
            out |= dict(zip(group, found, strict=True))
        return [out[i] for i in range(len(laid))]

    def _to_speak(self, prompt: _Prompt, said: Said) -> _Prompt:
        """A prompt to speak what was said."""
        found = think.parse(said.text, prompt.how.thinks)
        record = Record(
            key="reply", txt=(found.reply if prompt.chat else said.text) or " ", reply_emotion=found.reply_emotion
        )
        how = msgspec.structs.replace(prompt.how, write=False, speak=True, thinks=False, opening=())
        return _Prompt(prompt.asked, layout.prompt(record, "t2s", self.tok), [], how, True, 0, 0, ())

    def _codes(self, wave: Floats) -> tuple[int, ...]:
        return tuple(self.tokens.encode(wave, HEARD).tolist())

    def _said(self, ids: Sequence[int], codes: Sequence[int]) -> Said:
        text = self.tok.decode(ids)
        return Said(text, think.parse(text), tuple(codes), tuple(ids))

    def _answer(self, prompt: _Prompt, said: Said, sound: bool = True) -> Answer:
        text, thought, notes = said.text.strip(), "", list(prompt.notes)
        found = think.parse(said.text, prompt.how.thinks)
        if prompt.chat:
            text, thought = found.reply, think.split(said.text, prompt.how.thinks)[0]
            if prompt.how.thinks and found.malformed:
                notes.append(f"malformed: {'; '.join(found.malformed)}")
        elif prompt.asked.task == "transcribe":
            text = " ".join(_TAGS.sub(" ", text).split())
        elif prompt.asked.task == "choose":
            text = _TAGS.sub(lambda tag: f" {tag[1].lower()} ", text).strip()
        emotion = found.reply_emotion if prompt.chat else ""
        wave = self._sound(said.codes, emotion or "neutral") if sound and said.codes else None
        if prompt.asked.speech and not said.codes:
            notes.append("nothing was spoken")
        return Answer(
            text, thought, emotion, wave, said.codes, "length" if said.cut else "stop", prompt.heard,
            prompt.heard_sound, len(said.text_ids), tuple(notes),
        )  # fmt: skip

    def _sound(self, codes: Sequence[int], emotion: str) -> Floats:
        sound, rate = self.tokens.decode(np.array(codes, np.int64), emotion)
        return audio.resample(sound, rate, SPOKEN)


def _counted(go_on: Callable[[int], bool], those: Sequence[int]) -> Callable[[int], bool]:
    """The same of some of them, counted from 0."""
    return lambda at: go_on(those[at])


class _Reading:
    """An answer's text while it comes: first its thought, at once when that is over, then the reply bit by bit. What
    may yet be a mark, a tag or space at the end is held back, so that all pieces together are the whole answer's."""

    def __init__(self, tok: Tokenizer, thinks: bool, chat: bool) -> None:
        self.tok, self.thinks, self.chat = tok, thinks, chat
        self.ids: list[int] = []
        self.thought = False  # it was told
        self.told = 0  # characters of the reply

    @property
    def text(self) -> str:
        return self.tok.decode(self.ids)

    @property
    def emotion(self) -> str:
        return think.parse(self.text, self.thinks).reply_emotion or "neutral"

    def more(self, token: int) -> Iterator[Piece]:
        self.ids.append(token)
        text = self.text
        if not text.endswith("\ufffd"):  # half a character
            yield from self._tell(think.sure(text) if self.chat else text, over=False)

    def rest(self) -> Iterator[Piece]:
        """What was held back."""
        yield from self._tell(self.text, over=True)

    def _tell(self, text: str, over: bool) -> Iterator[Piece]:
        thought, said = think.split(text, self.thinks) if self.chat else ("", text)
        if said is None and not over:
            return
        if thought and not self.thought:
            self.thought = True
            yield Piece(thought=thought)
        if self.chat and not over and _FIRST_TAG.fullmatch((said or "").strip()):
            return
        reply = think.parse(text, self.thinks).reply if self.chat else text.strip()
        if len(reply) > self.told:
            yield Piece(text=reply[self.told :])
            self.told = len(reply)


def open_answerer(folder: Path, manner: Manner, *, device: str = "auto", dtype: str = "") -> Answerer:
    """The checkpoint in a folder, ready to answer. `device`: auto takes the GPU where there is one."""
    device = str(chosen(device))
    held(device, dtype)  # before anything is loaded
    _check_room(checkpoint.config(folder).model, manner)
    found = checkpoint.index(folder)
    model, config = checkpoint.load(folder)
    return Answerer(
        on_device(model, device, dtype),
        config,
        open_tokens(config.model.speech.tokens),
        manner,
        trained(config, dict(found.notes)),
    )


def _check_room(model: ModelConfig, manner: Manner) -> None:
    """Refuse limits that leave no room for one spoken message, as long as the encoder hears."""
    tok = open_tokenizer(model)
    asked = layout.prompt(Record(key="request", txt="", wav="0"), "s2s", tok, think="label", streaming=True)
    size = len(asked.ids) + positions(model, round(model.encoder.longest * HEARD))
    if size + manner.max_text + manner.max_speech > model.lm.context:
        raise UsageError(
            f"the model has {model.lm.context} positions, not enough for {manner.max_text} tokens of text and "
            f"{manner.max_speech} of speech after a message of {size}; lower max_tokens or max_speech"
        )


def on_device(model: EChat, device: str, dtype: str = "") -> EChat:
    """The model where it answers. Its language model: `held(device, dtype)`."""
    model = model.to(device).eval()
    chosen = held(device, dtype)
    if chosen == "int8":  # on a CPU most of the time goes into reading weights
        try:
            by_row = torch.ao.quantization.per_channel_dynamic_qconfig  # a scale for each row of a matrix
            # Not a layer's last one: some numbers that go into it are much larger than the others, and all would share
            # one scale. With it, 5 of 24 thoughts came to no end; without, and in float32, none.
            some = {n: by_row for n, m in model.lm.named_modules() if isinstance(m, nn.Linear) and "down_proj" not in n}
            model.lm = torch.ao.quantization.quantize_dynamic(model.lm, some, dtype=torch.qint8)
        except AttributeError:  # newer ones leave it to another package
            raise UsageError(f"torch {torch.__version__} has no int8 for the CPU; use dtype=float32") from None
        return model
    narrow(model.lm, DTYPES[chosen])
    narrow(model.speech, DTYPES[chosen])
    return model


def held(device: str, dtype: str = "") -> str:
    """How numbers are held: as told, else in bfloat16 on a GPU and in float32 elsewhere. Raises UsageError."""
    if dtype not in ("", *DTYPES):
        raise UsageError(f"dtype must be {', '.join(DTYPES)}, not {dtype!r}{suggest(dtype, DTYPES)}")
    if dtype == "int8" and device.startswith("cuda"):
        raise UsageError("dtype int8 is for the CPU; on a GPU use bfloat16")
    return dtype or ("bfloat16" if device.startswith("cuda") else "float32")
