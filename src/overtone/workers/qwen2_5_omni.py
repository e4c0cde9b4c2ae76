"""Qwen2.5-Omni: sound and text in, text and speech out (only the thinker runs if no speech is needed)."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration

if TYPE_CHECKING:
    from overtone.workers import _hf, _omni, protocol
else:
    import _hf
    import _omni
    import protocol


class Qwen25Omni(_omni.OmniEngine):
    """Thinker, talker, and token2wav, which turns the talker's codes into a mel spectrogram and then into sound."""

    config_class = Qwen2_5OmniConfig
    model_class = Qwen2_5OmniForConditionalGeneration
    default_voice = "Chelsie"
    # From the model card: with any other system message "audio output may not work as expected"
    speech_prompt = (
        "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving "
        "auditory and visual inputs, as well as generating text and speech."
    )

    def start(self, path: str, shared: dict[str, Any], weights: dict[str, Any]) -> None:
        super().start(path, shared, weights)
        self.longest = self.extractor.n_samples / self.rate

    def audio_tokens(self, frames: int) -> int:
        return ((frames - 1) // 2 + 1 - 2) // 2 + 1

    def audio_token_id(self) -> int:
        return int(self.model.config.thinker_config.audio_token_id)

    def voices(self) -> list[str]:
        return sorted(self.model.speaker_map)

    def samples_per_code(self) -> int:
        parts = self.model.config.token2wav_config
        return int(parts.dit_config.repeats * math.prod(parts.bigvgan_config.upsample_rates))

    def padding(self, sound: _hf.Samples) -> dict[str, Any]:
        hop = int(self.extractor.hop_length)
        # With two windows of silence after the sound, its frames are the same as with padding to the full length
        room = math.ceil((len(sound) + 2 * self.extractor.n_fft) / hop) * hop
        return {"padding": "max_length", "max_length": min(room, int(self.extractor.n_samples))}


if __name__ == "__main__":
    _hf.quiet()
    sys.exit(protocol.serve(Qwen25Omni()))
