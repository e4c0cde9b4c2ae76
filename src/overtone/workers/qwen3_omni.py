"""Qwen3-Omni: sound and text in, text and speech out (only the thinker runs if no speech is needed)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

if TYPE_CHECKING:
    from overtone.workers import _hf, _omni, protocol
else:
    import _hf
    import _omni
    import protocol


class Qwen3Omni(_omni.OmniEngine):
    """Thinker, talker with several codes per step, and code2wav. A checkpoint without talker answers in text only."""

    config_class = Qwen3OmniMoeConfig
    model_class = Qwen3OmniMoeForConditionalGeneration
    default_voice = "Ethan"

    def audio_tokens(self, frames: int) -> int:
        chunk = 2 * int(self.model.config.thinker_config.audio_config.n_window)
        rest = frames % chunk
        for _ in range(3):  # three convolutions of stride two over each chunk
            rest = (rest - 1) // 2 + 1
        return rest + frames // chunk * 13

    def alone(self, item: protocol.Item) -> bool:
        # The encoder pads the chunks of a batch to the longest. If every clip fills a chunk, that is the full chunk;
        # a shorter clip would be encoded slightly differently in a batch.
        frames = 2 * int(self.model.config.thinker_config.audio_config.n_window)
        shortest = frames * int(self.extractor.hop_length) * 2  # in bytes of 16-bit samples, like the WAV
        return any(len(wav) - 44 < shortest for wav in item.sounds)

    def audio_token_id(self) -> int:
        return int(self.model.config.thinker_config.audio_token_id)

    def voices(self) -> list[str]:
        return sorted(self.model.config.talker_config.speaker_id or {})

    def samples_per_code(self) -> int:
        return int(self.model.code2wav.total_upsample)

    def padding(self, sound: _hf.Samples) -> dict[str, Any]:
        return {"padding": True, "truncation": False}


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(Qwen3Omni()))
