"""The worker behind `echat:CHECKPOINT`: a separate process with torch that answers batches of requests.

It is started by its path. It imports the `overtone` package that contains it, even if its environment has another one.
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
    """Make `import overtone` load the package in `home`, without adding its parent folder to the path."""
    spec = importlib.util.spec_from_file_location(
        "overtone", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {home}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["overtone"] = module
    spec.loader.exec_module(module)


class Engine:
    """A checkpoint behind the workers' protocol."""

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        """Load the checkpoint, and return facts about it."""
        import torch
        import transformers

        from overtone.echat.net import checkpoint
        from overtone.echat.talk.answer import dtype_for, open_answerer
        from overtone.echat.talk.reply_settings import reply_settings

        if options.get("threads"):
            torch.set_num_threads(int(options["threads"]))
        self.tells = options.get("tell") == "tokens"
        self.answerer = open_answerer(
            Path(options["checkpoint"]),
            reply_settings(options),
            device=str(options.get("device") or "auto"),
            dtype=str(options.get("dtype") or ""),
        )
        if options.get("speech") != "no":
            self.answerer.check_speech()
        device = str(next(self.answerer.model.parameters()).device)
        stored = self.answerer.config.dtype
        return {
            "rate": 16_000,
            "speech": options.get("speech") != "no",
            "device": device,
            "dtype": dtype_for(device, str(options.get("dtype") or ""), stored),
            "think": self.answerer.think or "none",
            "tokens": self.answerer.tokens.identity,
            "parameters": checkpoint.index(Path(options["checkpoint"])).parameters,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        """Answer a batch of requests. Raises protocol.Refused."""
        from overtone import audio
        from overtone.echat.talk.answer import TooLong
        from overtone.echat.talk.dialogue import Asked, Message, to_wave
        from overtone.echat.talk.streaming_speech import RATE
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
                answer.text,
                b"" if answer.sound is None else audio.encode_wav(answer.sound, RATE),
                answer.finish,
                {
                    "input_tokens": answer.heard,
                    "input_audio_tokens": answer.heard_sound,
                    "output_tokens": answer.said + len(answer.codes),
                    "output_audio_tokens": len(answer.codes),
                },
                [*self._notes(answer), *answer.notes],
            )
            for answer in answers
        ]

    def _notes(self, answer: Answer) -> Iterator[str]:
        """Yield the notes of a reply: its thought, its emotion and, if requested, its speech tokens."""
        from overtone.schema import EMOTION, THOUGHT, TOKENS

        if answer.thought:
            yield f"{THOUGHT}{answer.thought}"
        if answer.emotion:
            yield f"{EMOTION}{answer.emotion}"
        if self.tells and answer.codes:
            yield f"{TOKENS}{' '.join(map(str, answer.codes))}"

    def recover(self) -> None:
        """Free cached GPU memory after an error."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    find_overtone()
    sys.exit(protocol.serve(Engine()))
