"""Let the model answer a few held-out clips during training, always the same ones, in text and speech.

In stages before the model learns to answer, it reads the reference replies aloud instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from overtone.audio import encode_wav
from overtone.echat.data import layout
from overtone.echat.data.containers import open_audio
from overtone.echat.data.layout import Task, Think
from overtone.echat.data.think import split
from overtone.echat.learn.batch_stream import Corpus
from overtone.echat.learn.training_report import Sample
from overtone.echat.net import decode
from overtone.echat.net.config import Config
from overtone.echat.net.model import EChat
from overtone.echat.speech import SpeechTokens, open_tokens
from overtone.errors import OvertoneError

LONGEST_TEXT, LONGEST_SPEECH = 160, 250  # tokens; ten seconds of speech


class Samples:
    """A fixed choice of clips, so that evaluations can be compared."""

    def __init__(
        self, corpus: Corpus, tok: Any, config: Config, count: int, *, think: Think, answers: bool = True
    ) -> None:
        self.tok, self.think, self.answers = tok, think, answers
        records = [r for r in corpus.records(trained=False) if r.wav and r.question]
        every = max(1, len(records) // count) if count else 1
        self.records = records[::every][:count]
        self.tokens: SpeechTokens | None = None
        self.mute = ""  # why speech is not available
        try:
            self.tokens = open_tokens(config.model.speech.tokens) if self.records else None
        except OvertoneError as error:
            self.mute = str(error)

    def take(self, model: EChat, folder: Path, step: int) -> list[Sample]:
        """Let the model answer, and write the audio to `folder`."""
        if not self.records:
            return []
        task: Task = "s2s" if self.answers else "t2s"
        asked = [layout.prompt(record, task, self.tok, think=self.think) for record in self.records]
        waves = [[open_audio(r, clip.wav) for clip in x.clips] for r, x in zip(self.records, asked, strict=True)]
        how = decode.DecodeOptions(
            write=self.answers, speak=True, thinks=bool(self.think), max_text=LONGEST_TEXT, max_speech=LONGEST_SPEECH,
            quiet=self.tokens.quiet if self.tokens else None, seed=step,
        )  # fmt: skip
        samples = []
        for number, (record, decoded) in enumerate(
            zip(self.records, decode.respond(model, self.tok, asked, waves, how), strict=True)
        ):
            thought = split(decoded.text)[0]
            wav, failure = f"said-{step:08d}-{number}.wav", self.mute
            try:
                emotion = decoded.thought.reply_emotion if self.answers else record.reply_emotion
                sound, rate = self._sound(decoded.codes, emotion or "neutral")
                folder.mkdir(parents=True, exist_ok=True)
                (folder / wav).write_bytes(encode_wav(sound, rate))
            except OvertoneError as error:
                wav, failure = "", failure or str(error)
            labels = ", ".join(record.labels.known().values())
            reply = decoded.thought.reply or decoded.text if self.answers else record.txt
            samples.append(Sample(record.key, record.question, labels, thought, reply, wav, record.txt, failure))
        return samples

    def _sound(self, codes: tuple[int, ...], emotion: str) -> tuple[np.ndarray[Any, np.dtype[np.float32]], int]:
        if self.tokens is None or not codes:
            raise OvertoneError("nothing was spoken" if not codes else "speech tokens are not available")
        return self.tokens.decode(np.array(codes, np.int64), emotion)
