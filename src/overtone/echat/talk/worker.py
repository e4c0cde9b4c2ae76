"""The program behind `echat:CHECKPOINT`: a process of its own with torch that answers batches of requests.

It is started by its path. The `overtone` it imports is the one it lies in, whatever else its environment holds.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overtone.echat.talk.answer import Answer
    from overtone.workers import protocol
else:
    import protocol


def find_overtone(home: Path = Path(__file__).parents[2]) -> None:
    """Make `import overtone` mean the package in `home`, without what lies beside it."""
    found = importlib.util.spec_from_file_location(
        "overtone", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    if found is None or found.loader is None:
        raise ImportError(f"no package in {home}")
    module = importlib.util.module_from_spec(found)
    sys.modules["overtone"] = module
    found.loader.exec_module(module)


class Engine:
    """A checkpoint behind the workers' protocol."""

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        import torch
        import transformers

        from overtone.echat.net import checkpoint
        from overtone.echat.talk.answer import held, open_answerer
        from overtone.echat.talk.manner import manner_of

        if options.get("threads"):
            torch.set_num_threads(int(options["threads"]))
        self.tells = options.get("tell") == "tokens"
        self.answerer = open_answerer(
            Path(options["checkpoint"]),
            manner_of(options),
            device=str(options.get("device") or "auto"),
            dtype=str(options.get("dtype") or ""),
        )
        if options.get("speech") != "no":
            self.answerer.check_speech()
        device = str(next(self.answerer.model.parameters()).device)
        parameters = sum(part.parameters for part in checkpoint.index(Path(options["checkpoint"])).parts.values())
        return {
            "rate": 16_000,
            "speech": options.get("speech") != "no",
            "device": device,
            "dtype": held(device, str(options.get("dtype") or "")),
            "think": self.answerer.think or "none",
            "tokens": self.answerer.tokens.identity,
            "parameters": parameters,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        from overtone import audio
        from overtone.echat.talk.aloud import RATE
        from overtone.echat.talk.answer import TooLong
        from overtone.echat.talk.dialogue import Asked, Message, to_wave
        from overtone.errors import AudioError, OvertoneError

        try:
            many = []
            for item in items:
                messages = tuple(
                    Message(role, tuple(to_wave(part) if isinstance(part, bytes) else part for part in parts))  # type: ignore[arg-type]
                    for role, parts in item.messages
                )
                many.append(Asked(messages, item.speech, item.task, item.seed or 0))
            answers = self.answerer.answer(many)
        except AudioError as error:
            raise protocol.Refused("bad_clip", str(error)) from None
        except TooLong as error:
            raise protocol.Refused("too_large", str(error)) from None
        except OvertoneError as error:
            raise protocol.Refused("rejected", str(error)) from None
        return [
            protocol.Answer(
                found.text,
                b"" if found.sound is None else audio.encode_wav(found.sound, RATE),
                found.finish,
                {
                    "input_tokens": found.heard,
                    "input_audio_tokens": found.heard_sound,
                    "output_tokens": found.said + len(found.codes),
                    "output_audio_tokens": len(found.codes),
                },
                [*self._told(found), *found.notes],
            )
            for found in answers
        ]

    def _told(self, found: Answer) -> Iterator[str]:
        """What a run notes beside a reply: its thought, the emotion it began with, and where that is wanted its speech
        tokens."""
        from overtone.schema import EMOTION, THOUGHT, TOKENS

        if found.thought:
            yield f"{THOUGHT}{found.thought}"
        if found.emotion:
            yield f"{EMOTION}{found.emotion}"
        if self.tells and found.codes:
            yield f"{TOKENS}{' '.join(map(str, found.codes))}"

    def recover(self) -> None:
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    find_overtone()
    sys.exit(protocol.serve(Engine()))
