"""CosyVoice-1's speech tokens, in an environment that has CosyVoice: sound to tokens and tokens to sound.

The option `folder` holds CosyVoice's weights (speech_tokenizer_v1.onnx; for sound also campplus.onnx, flow.pt, hift.pt
and cosyvoice.yaml). The option `code` is a checkout of CosyVoice if it is not installed. Tokens need only onnxruntime;
the rest is loaded with the first call that makes sound. The language model and the text front end are never loaded.

Calls: {"do": "encode"} with a mono float32 sound at 16 kHz → "tokens"; {"do": "decode", "tokens": […]} with the sound
of the speaker to imitate at 16 and at 22.05 kHz → a mono float32 sound at 22.05 kHz.
"""

from __future__ import annotations

import inspect
import io
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from overtone.workers import _mel, protocol
else:
    import _mel
    import protocol

HEARD, SPOKEN = 16_000, 22_050
LONGEST = 30.0  # seconds the tokenizer was trained on
MELS = 128
CODES = 4096
_WITHOUT = dict.fromkeys(("llm", "get_tokenizer"))  # parts of the configuration that are not needed for sound
_KNOWN = re.compile(  # the tags in CosyVoice-1's own configurations; <name> and <new> occur in a comment
    r"!(ref|<name>|<new>"
    r"|apply:(random\.seed|numpy\.random\.seed|torch\.manual_seed|torch\.cuda\.manual_seed_all)"
    r"|new:cosyvoice\.(llm\.llm\.TransformerLM|transformer\.encoder\.(Conformer|Transformer)Encoder)"
    r"|new:cosyvoice\.flow\.(flow\.MaskedDiffWithXvec|length_regulator\.InterpolateRegulator)"
    r"|new:cosyvoice\.flow\.(flow_matching\.ConditionalCFM|decoder\.ConditionalDecoder)"
    r"|new:cosyvoice\.hifigan\.(generator\.HiFTGenerator|f0_predictor\.ConvRNNF0Predictor|hifigan\.HiFiGan)"
    r"|new:cosyvoice\.hifigan\.discriminator\.(Multiple|MultiResolution)Discriminator"
    r"|new:(matcha\.hifigan\.models\.MultiPeriodDiscriminator|omegaconf\.DictConfig)"
    r"|name:cosyvoice\.(dataset\.processor\.\w+|utils\.common\.ras_sampling|tokenizer\.tokenizer\.get_tokenizer)"
    r"|name:(whisper\.tokenizer\.get_tokenizer|matcha\.utils\.audio\.mel_spectrogram)"
    r"|name:torchaudio\.functional\.compute_kaldi_pitch)"
)


def features(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return Whisper's log-mel spectrogram with 128 bands: (1, 128, frames)."""
    power = np.square(_mel.frames(x, 400, 160, 400, "reflect"))[:-1]
    log = np.log10(np.maximum(power @ _mel.filters(HEARD, 400, MELS, HEARD / 2).T, 1e-10))
    out = (np.maximum(log, log.max() - 8.0) + 4.0) / 4.0
    return np.ascontiguousarray(out.T[None], np.float32)


class S3:
    """The loaded tokenizer and, after the first call that makes sound, the voice."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.folder = Path(str(options["folder"]))
        self.code = str(options.get("code", ""))
        self.tokenizer = _session(self.folder / "speech_tokenizer_v1.onnx")
        self.voice: Voice | None = None
        self.facts = {
            "codes": CODES,
            "rate": SPOKEN,
            "providers": self.tokenizer.get_providers(),
            "versions": protocol.versions(("onnxruntime", "torch", "torchaudio", "cosyvoice")),
        }

    def __call__(self, header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        sounds = [np.frombuffer(b, np.float32) for b in blobs]
        if header["do"] == "encode":
            return {"tokens": self.tokens(sounds[0])}, []
        if self.voice is None:
            self.voice = Voice(self.folder, self.code)
        prompt = self.tokens(sounds[0])
        sound = self.voice.speak([int(t) for t in header["tokens"]], prompt, sounds[0], sounds[1])
        return {}, [sound.astype(np.float32).tobytes()]

    def tokens(self, x: np.ndarray[Any, Any]) -> list[int]:
        if len(x) > LONGEST * HEARD:
            raise ValueError(f"a sound of {len(x) / HEARD:.1f} s; the tokenizer takes at most {LONGEST:g} s: cut it")
        mel = features(x)
        names = [i.name for i in self.tokenizer.get_inputs()]
        tokens = self.tokenizer.run(None, {names[0]: mel, names[1]: np.array([mel.shape[2]], np.int32)})[0]
        return [int(t) for t in np.asarray(tokens).reshape(-1)]


class Voice:
    """CosyVoice's flow matching (tokens → mel) and HiFT (mel → sound), in the voice of a recorded speaker."""

    def __init__(self, folder: Path, code: str) -> None:
        if code:
            sys.path[:0] = [code, str(Path(code) / "third_party" / "Matcha-TTS")]
        import torch

        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        text = harmless(folder / "cosyvoice.yaml")
        parts = import_module("hyperpyyaml").load_hyperpyyaml(io.StringIO(text), overrides=_WITHOUT)
        self.flow, self.hift, self.mel = parts["flow"], parts["hift"], parts["feat_extractor"]
        flow = torch.load(folder / "flow.pt", map_location="cpu", weights_only=True)
        hift = torch.load(folder / "hift.pt", map_location="cpu", weights_only=True)
        self.flow.load_state_dict(flow, strict=True)
        self.hift.load_state_dict({k.removeprefix("generator."): v for k, v in hift.items()}, strict=True)
        self.flow.to(self.device).eval()
        self.hift.to(self.device).eval()
        self.speaker = _session(folder / "campplus.onnx", gpu=False)

    def speak(
        self, tokens: list[int], prompt: list[int], heard: np.ndarray[Any, Any], played: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """Turn tokens into sound in the voice of a prompt, which is given as tokens and samples at 16 and 22.05 kHz."""
        import torch

        def row(values: list[int]) -> torch.Tensor:
            return torch.tensor([values], dtype=torch.int32, device=self.device)

        mel = self.mel(torch.from_numpy(played.copy())[None]).squeeze(0).T[None].to(self.device)  # (1, frames, 80)
        given = {
            "token": row(tokens), "token_len": row([len(tokens)])[0],
            "prompt_token": row(prompt), "prompt_token_len": row([len(prompt)])[0],
            "prompt_feat": mel, "prompt_feat_len": row([mel.shape[1]])[0],
            "embedding": self._speaker(heard), "flow_cache": torch.zeros(1, 80, 0, 2, device=self.device),
        }  # fmt: skip
        torch.manual_seed(0)  # flow matching starts from noise; with a seed, the same tokens give the same sound
        with torch.inference_mode():
            mel = _called(self.flow.inference, given)
            mel = mel[0] if isinstance(mel, tuple) else mel
            empty = torch.zeros(1, 1, 0, device=self.device)
            sound = _called(self.hift.inference, {"speech_feat": mel, "mel": mel, "cache_source": empty})
            sound = sound[0] if isinstance(sound, tuple) else sound
        return np.asarray(sound.float().cpu().numpy().reshape(-1))

    def _speaker(self, heard: np.ndarray[Any, Any]) -> Any:
        """Return CAM++'s embedding of the speaker: (1, 192)."""
        import torch

        kaldi = import_module("torchaudio.compliance.kaldi")
        bank = kaldi.fbank(torch.from_numpy(heard.copy())[None], num_mel_bins=80, dither=0, sample_frequency=HEARD)
        bank = bank - bank.mean(dim=0, keepdim=True)
        embedding = self.speaker.run(None, {self.speaker.get_inputs()[0].name: bank[None].numpy()})[0]
        return torch.from_numpy(np.asarray(embedding, np.float32).reshape(1, -1)).to(self.device)


def harmless(path: Path) -> str:
    """Return the text of a configuration after checking its tags. Raises ValueError for an unknown tag or a backslash.

    The reader of the configuration imports and calls anything that a tag names, so only the tags of CosyVoice's own
    configurations are allowed. A backslash could hide a tag.
    """
    text = path.read_text("utf-8")
    for word in re.findall(r"\\|![^ \t\r\n]*", text):
        if not _KNOWN.fullmatch(word):
            raise ValueError(
                f"{path} has {word[:80]!r}, which no configuration of CosyVoice-300M has and which could run any code; "
                "take the file that was published with the weights"
            )
    return text


def _called(function: Any, given: dict[str, Any]) -> Any:
    """Call a function with those of the given arguments that it accepts, which depends on CosyVoice's version."""
    parameters = inspect.signature(function).parameters
    return function(**{name: value for name, value in given.items() if name in parameters})


def _session(path: Path, gpu: bool = True) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; give the folder with the weights of CosyVoice-300M-25Hz")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider") if gpu else ("CPUExecutionProvider",)
    providers = [provider for provider in wanted if provider in onnxruntime.get_available_providers()]
    return onnxruntime.InferenceSession(str(path), sess_options=options, providers=providers)


if __name__ == "__main__":
    sys.exit(protocol.serve_calls(S3))
