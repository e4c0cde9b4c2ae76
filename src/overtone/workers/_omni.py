"""Shared code of the two Omni workers: inputs for sound and text without images, answers in text or with speech.

The models' own processors need an image library even for sound. So the inputs are built here from the feature
extractor, the tokenizer and the chat template, with one audio token per step of the audio encoder's output.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoTokenizer, WhisperFeatureExtractor
from transformers.utils import cached_file

if TYPE_CHECKING:
    from overtone.workers import _hf, protocol
else:
    import _hf
    import protocol

SPEECH_RATE = 24_000


class OmniEngine(_hf.HfEngine):
    """A thinker that hears and writes, and a talker that speaks the text. A worker file names the classes."""

    config_class: Any
    model_class: Any
    default_voice = ""
    speech_prompt = ""  # a sentence that the talker needs in the system message, if any

    def audio_tokens(self, frames: int) -> int:
        """Return the number of steps of the audio encoder's output for this many frames."""
        raise NotImplementedError

    def audio_token_id(self) -> int:
        raise NotImplementedError

    def voices(self) -> list[str]:
        raise NotImplementedError

    def samples_per_code(self) -> int:
        """Return the number of samples of sound per step of the talker."""
        raise NotImplementedError

    def padding(self, sound: _hf.Samples) -> dict[str, Any]:
        """Return the feature extractor's arguments for padding or cutting one sound."""
        raise NotImplementedError

    def features(self, sound: _hf.Samples) -> torch.Tensor:
        """Return the frames of one sound, (bins, frames), equal to those of the model's own processor."""
        output = self.extractor(
            sound, sampling_rate=self.rate, return_attention_mask=True, return_tensors="pt", **self.padding(sound)
        )
        frames: torch.Tensor = output["input_features"][0][:, : int(output["attention_mask"].sum())]
        return frames

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        config = self.config_class.from_pretrained(path, **shared)
        if self.options.get("speech") == "no":
            config.enable_audio_output = False  # the talker is not even loaded
        self.extractor = WhisperFeatureExtractor.from_pretrained(path, **shared)
        self.tokenizer = AutoTokenizer.from_pretrained(path, **shared)
        self.template = _chat_template(path, shared, self.tokenizer)
        self.model = self.model_class.from_pretrained(path, config=config, **weights)
        self.rate = int(self.extractor.sampling_rate)
        self.longest: float | None = None
        self.audio_token = self.tokenizer.convert_ids_to_tokens(self.audio_token_id())
        self.speaks = bool(self.model.has_talker)
        if self.speaks:
            self.voice = self.options.get("voice") or self.default_voice
            known = self.voices()
            if self.voice.lower() not in (v.lower() for v in known):
                raise ValueError(f"voice={self.voice} is not one of this checkpoint's voices: {', '.join(known)}")

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        facts = super().load(options)
        if self.speaks:
            facts |= {"voice": self.voice} | ({"speech_prompt": self.speech_prompt} if self.speech_prompt else {})
        return facts

    def inputs(self, items: list[protocol.Item]) -> tuple[dict[str, torch.Tensor], list[list[str]]]:
        """Return the thinker's inputs for these items, with rows padded at the left, and each item's notes."""
        texts: list[str] = []
        features: list[torch.Tensor] = []
        notes: list[list[str]] = []
        for item in items:
            messages, sounds, own_notes = _hf.conversation(item, self.rate, self.longest, lambda *_: {"type": "audio"})
            if item.speech and self.speech_prompt:
                messages = _with_system(messages, self.speech_prompt)
            text = self.tokenizer.apply_chat_template(
                messages, chat_template=self.template, tokenize=False, add_generation_prompt=True
            )
            pieces = text.split(self.audio_token)
            if len(pieces) != len(sounds) + 1:
                raise protocol.Refused("rejected", f"{len(pieces) - 1} places for {len(sounds)} sounds in the prompt")
            for number, sound in enumerate(sounds):
                # One sound at a time, so that its frames do not depend on the rest of the batch
                features.append(self.features(sound))
                pieces[number] += self.audio_token * self.audio_tokens(features[-1].shape[1])
            texts.append("".join(pieces))
            notes.append(own_notes)
        out: dict[str, torch.Tensor] = dict(self.tokenizer(texts, padding=True, return_tensors="pt"))
        if features:
            longest = max(f.shape[1] for f in features)
            out["input_features"] = torch.stack(
                [torch.nn.functional.pad(f, (0, longest - f.shape[1])) for f in features]
            )
            out["feature_attention_mask"] = torch.stack([(torch.arange(longest) < f.shape[1]).long() for f in features])
        return out, notes

    def answer(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        inputs, notes = self.inputs(items)
        inputs = self.on_device(inputs)
        ends = _hf.end_tokens(self.model.thinker, self.tokenizer) | {int(self.tokenizer.eos_token_id)}
        answers = self.speak(inputs, ends) if items[0].speech else self.write(inputs, ends)
        for answer, own_notes in zip(answers, notes, strict=True):
            answer.notes[:0] = own_notes
        return answers

    def write(self, inputs: dict[str, torch.Tensor], ends: set[int]) -> list[protocol.Answer]:
        """Answer in text, with the thinker only."""
        rows = self.model.thinker.generate(**inputs, **self.settings(), eos_token_id=sorted(ends))
        return self.read(rows, inputs, ends, self.audio_token_id())

    def speak(self, inputs: dict[str, torch.Tensor], ends: set[int]) -> list[protocol.Answer]:
        """Answer in text and speech, with thinker, talker and vocoder."""
        arguments = {f"thinker_{k}": v for k, v in self.settings().items()}
        arguments["thinker_eos_token_id"] = sorted(ends)
        if self.options.get("max_speech"):
            most = math.ceil(float(self.options["max_speech"]) * SPEECH_RATE / self.samples_per_code())
            arguments["talker_max_new_tokens"] = max(1, most)
        try:
            rows, waves = self.model.generate(**inputs, **arguments, speaker=self.voice)
        except (RuntimeError, IndexError) as error:
            if len(inputs["input_ids"]) > 1 or "memory" in str(error):
                raise
            (answer,) = self.write(inputs, ends)
            if answer.usage["output_tokens"] > 1:
                raise
            answer.notes.append("no speech: the reply has no words")  # the talker starts from the second token
            return [answer]
        answers = self.read(rows, inputs, ends, self.audio_token_id())
        for answer, wave in zip(answers, waves if isinstance(waves, list) else [waves], strict=True):
            if wave.numel():
                answer.audio = _hf.wav_of(wave, SPEECH_RATE)
                answer.usage["output_audio_tokens"] = math.ceil(wave.numel() / self.samples_per_code())
            else:
                answer.notes.append("no speech: the talker ended at once")
        return answers


def _with_system(messages: list[dict[str, Any]], sentence: str) -> list[dict[str, Any]]:
    """Return the messages with this sentence at the start of their system message."""
    if messages and messages[0]["role"] == "system":
        first = {"type": "text", "text": sentence + "\n"}
        return [{"role": "system", "content": [first, *messages[0]["content"]]}, *messages[1:]]
    return [{"role": "system", "content": [{"type": "text", "text": sentence}]}, *messages]


def _chat_template(path: str, shared: dict[str, Any], tokenizer: Any) -> str:
    """Return the checkpoint's chat template, from a separate file or from the tokenizer."""
    arguments = {k: v for k, v in shared.items() if k in ("revision", "local_files_only")}
    for name in ("chat_template.jinja", "chat_template.json"):
        file = cached_file(path, name, _raise_exceptions_for_missing_entries=False, **arguments)
        if file is not None:
            text = Path(file).read_text(encoding="utf-8")
            return str(json.loads(text)["chat_template"]) if name.endswith("json") else text
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        raise ValueError(f"{path} has no chat template")
    return str(template)
