"""CosyVoice's tokens over the wire: a small real ONNX model of the tokenizer's signature, stand-ins for its voice."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from overtone import audio
from overtone.echat import speech
from overtone.echat.speech import s3
from overtone.errors import AudioError, DataError, OvertoneError, UsageError
from tests.echat.conftest import WORKER

pytestmark = pytest.mark.worker
RATE = 16_000


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(op: str, inputs: str, output: str, **ints: int | list[int]) -> bytes:
    out = b"".join(field(1, name) for name in inputs.split()) + field(2, output) + field(4, op)
    for name, value in ints.items():
        if isinstance(value, list):
            inside = b"".join(field(8, v) for v in value) + field(20, 7)
        else:
            inside = field(3, value) + field(20, 2)
        out += field(5, field(1, name) + inside)
    return field(1, out)


def value(number: int, name: str, kind: int, *dims: int | str) -> bytes:
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, kind) + field(2, shape))))


def tokenizer() -> bytes:
    """(1, 128, frames) float, (1,) int32 → (1, frames / 4) int32: 1,000 times the mean of four frames."""
    scale = field(5, field(1, 1) + field(2, 1) + field(9, struct.pack("<f", 1000.0)) + field(8, "scale"))
    graph = (
        node("ReduceMean", "feats", "bands", axes=[1], keepdims=1)
        + node("AveragePool", "bands", "units", kernel_shape=[4], strides=[4])
        + node("Mul", "units scale", "scaled")
        + node("Abs", "scaled", "positive")
        + node("Cast", "positive", "tokens", to=6)
        + field(2, "tokenizer")
        + scale
        + value(11, "feats", 1, 1, 128, "frames")
        + value(11, "feats_length", 6, 1)
        + value(12, "tokens", 6, 1, 1, "units")
    )
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cosyvoice")
    (out / "speech_tokenizer_v1.onnx").write_bytes(tokenizer())
    return out


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OVERTONE_S3_PYTHON", str(WORKER / "bin" / "python"))
        yield


@pytest.fixture(scope="module")
def tokens(folder: Path) -> Iterator[s3.S3]:
    found = speech.open_tokens(f"s3:{folder}")
    assert isinstance(found, s3.S3)
    yield found
    found.close()


def tone(seconds: float, hertz: float = 300.0, rate: int = RATE) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def whisper_mel(x: np.ndarray) -> np.ndarray:
    transformers = pytest.importorskip("transformers")
    extractor = transformers.WhisperFeatureExtractor(feature_size=128)
    return np.asarray(extractor(x, sampling_rate=RATE, padding="do_not_pad", return_tensors="np").input_features[0])


def test_a_sound_is_heard_as_whisper_hears_it_and_gets_a_token_every_forty_milliseconds(tokens: s3.S3) -> None:
    x = tone(2.0) + 0.01 * np.random.default_rng(0).standard_normal(2 * RATE).astype(np.float32)
    found = tokens.encode(x, RATE)
    assert (tokens.name, tokens.codes, tokens.rate, len(found)) == ("s3", 4096, 25.0, 50)
    assert tokens.seconds(found).sum() == pytest.approx(2.0)
    mel = whisper_mel(x)
    wanted = np.abs(1000 * mel.mean(0).reshape(-1, 4).mean(1)).astype(int)
    assert np.abs(found - wanted).max() <= 1
    assert tokens.identity.startswith("s3@")
    assert (tokens.encode(audio.resample(x, RATE, 48_000), 48_000).shape) == (50,)


def test_what_the_tokenizer_cannot_take_is_refused_before_it_is_sent(tokens: s3.S3) -> None:
    with pytest.raises(AudioError, match=r"at most 30 s of speech, not 31\.0 s"):
        tokens.encode(tone(31.0), RATE)
    with pytest.raises(AudioError, match="silent"):
        tokens.encode(np.zeros(RATE, np.float32), RATE)
    with pytest.raises(UsageError, match="4096 at index 1"):
        tokens.decode(np.array([0, 4096]))
    with pytest.raises(DataError, match=r"neutral\.wav is missing"):
        tokens.decode(np.array([0, 1]))


def test_a_folder_or_key_that_is_none_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"speech_tokenizer_v1\.onnx is missing"):
        speech.open_tokens(f"s3:{tmp_path}")
    with pytest.raises(UsageError, match=r"only a folder is allowed; set OVERTONE_S3_PYTHON"):
        speech.open_tokens(f"s3:{folder}?python=/bin/sh")  # as a stranger's checkpoint might say


def test_a_broken_tokenizer_is_told_with_the_programs_own_words(tmp_path: Path) -> None:
    (tmp_path / "speech_tokenizer_v1.onnx").write_bytes(b"no model")
    found = speech.open_tokens(f"s3:{tmp_path}")
    with pytest.raises(OvertoneError, match="s3_speech: "):
        found.encode(tone(1.0), RATE)


CHECKOUT = {  # stand-ins for what CosyVoice's environment has: the shapes and names of its parts, none of its sound
    "hyperpyyaml.py": """
import torch
from torch import nn

class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4096, 80)

    def inference(self, token, token_len, prompt_token, prompt_token_len, prompt_feat, prompt_feat_len, embedding,
                  flow_cache):
        assert token.dtype == torch.int32 and token_len.tolist() == [token.shape[1]]
        assert prompt_feat.shape[2] == 80 and prompt_feat_len.tolist() == [prompt_feat.shape[1]]
        assert embedding.shape == (1, 4) and prompt_token.shape[1] == prompt_token_len.item() > 0
        mel = self.table(token).transpose(1, 2) + embedding.mean() + 0.01 * torch.randn(1, 80, token.shape[1])
        return mel, flow_cache

class Hift(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(80, 882)

    def inference(self, speech_feat, cache_source=None):
        return torch.tanh(self.out(speech_feat.transpose(1, 2))).reshape(1, -1), cache_source

def load_hyperpyyaml(file, overrides):
    assert "__set_seed1" in file.read() and overrides == {"llm": None, "get_tokenizer": None}
    return {"flow": Flow(), "hift": Hift(), "feat_extractor": mel}

def mel(y):
    return y[:, : y.shape[1] // 256 * 256].reshape(1, -1, 256)[:, :, :80].transpose(1, 2)
""",
    "torchaudio/__init__.py": "",
    "torchaudio/compliance/__init__.py": "",
    "torchaudio/compliance/kaldi.py": """
def fbank(x, num_mel_bins, dither, sample_frequency):
    return x[:, : x.shape[1] // 160 * 160].reshape(-1, 160)[:, :num_mel_bins]
""",
}


def speaker() -> bytes:
    """CAM++'s signature: (1, frames, 80) → (1, 4), here the mean of twenty bands each."""
    graph = (
        node("ReduceMean", "feats", "mean", axes=[1], keepdims=1)
        + node("AveragePool", "mean", "four", kernel_shape=[20], strides=[20])
        + field(2, "speaker")
        + value(11, "feats", 1, 1, "frames", 80)
        + value(12, "four", 1, 1, 1, 4)
    )
    return field(1, 8) + field(8, field(1, "") + field(2, 13)) + field(7, graph)


# What CosyVoice's own configurations name, as they name it.
NAMED = """
# we use !<name> or !<new> for everything of ours
__set_seed1: !apply:random.seed [1986]
__set_seed2: !apply:torch.cuda.manual_seed_all [1986]
llm: !new:cosyvoice.llm.llm.TransformerLM
    text_encoder: !new:cosyvoice.transformer.encoder.ConformerEncoder
    sampling: !name:cosyvoice.utils.common.ras_sampling
flow: !new:cosyvoice.flow.flow.MaskedDiffWithXvec
    spk_embed_dim: !ref <spk_embed_dim>
    length_regulator: !new:cosyvoice.flow.length_regulator.InterpolateRegulator
    decoder: !new:cosyvoice.flow.flow_matching.ConditionalCFM
        cfm_params: !new:omegaconf.DictConfig
        estimator: !new:cosyvoice.flow.decoder.ConditionalDecoder
hift: !new:cosyvoice.hifigan.generator.HiFTGenerator
    f0_predictor: !new:cosyvoice.hifigan.f0_predictor.ConvRNNF0Predictor
get_tokenizer: !name:whisper.tokenizer.get_tokenizer # or !name:cosyvoice.tokenizer.tokenizer.get_tokenizer
feat_extractor: !name:matcha.utils.audio.mel_spectrogram
data_pipeline: [
    !ref <parquet_opener>,
    !name:cosyvoice.dataset.processor.tokenize ,
]
"""


@pytest.fixture
def voiced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder of weights with a voice, and the SPEC of it."""
    torch = pytest.importorskip("torch")
    home, code = tmp_path / "weights", tmp_path / "code"
    for name, text in CHECKOUT.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    (home / "prompts").mkdir(parents=True)
    (home / "speech_tokenizer_v1.onnx").write_bytes(tokenizer())
    (home / "campplus.onnx").write_bytes(speaker())
    (home / "cosyvoice.yaml").write_text(NAMED)
    torch.manual_seed(0)
    torch.save({"table.weight": torch.randn(4096, 80)}, home / "flow.pt")
    torch.save({"generator.out.weight": torch.randn(882, 80), "generator.out.bias": torch.zeros(882)}, home / "hift.pt")
    for name, hertz in (("neutral", 200.0), ("happy", 417.0)):
        (home / "prompts" / f"{name}.wav").write_bytes(audio.encode_wav(tone(1.0, hertz, 24_000), 24_000))
    monkeypatch.setenv("OVERTONE_S3_CODE", str(code))
    return home, f"s3:{home}"


def test_tokens_are_spoken_by_flow_and_vocoder_after_the_emotions_prompt(voiced: tuple[Path, str]) -> None:
    found = speech.open_tokens(voiced[1])
    try:
        neutral, rate = found.decode(np.arange(50))
        assert (rate, len(neutral), neutral.dtype) == (22_050, 50 * 882, np.float32)
        assert (found.decode(np.arange(50))[0] == neutral).all()
        assert (found.decode(np.arange(50), "sad")[0] == neutral).all()  # no prompt of its own
        assert (found.decode(np.arange(50), "happy")[0] != neutral).any()
    finally:
        found.close()  # type: ignore[attr-defined]


def test_a_configuration_that_could_run_code_is_not_read(voiced: tuple[Path, str]) -> None:
    home, spec = voiced
    found = speech.open_tokens(spec)
    try:
        for line in (
            "x: !apply:os.system [id]",
            "x: !!python/object/apply:os.system [id]",
            "x: !<tag:yaml.org,2002:python/object/apply:os.system> [id]",
            "%TAG !e! tag:yaml.org,2002:python/\n---\nx: !e!object/apply:os.system [id]",
            "x: !new:torch.hub.load [a, b]",
            "x: !new:cosyvoice.cli.cosyvoice.CosyVoice [a]",
            "x: !name:cosyvoice.dataset.processor.torch.load",
            "x: !apply:torch.manual_seed.os.system [id]",
            "x: !include:other.yaml",
            "x: !module:antigravity",
            "x: {a: !apply:os.system [id]}",
            "# !apply:os.system",  # a comment is none inside a block of text
            r'x: "(\x21\x21python/object/apply:os.system [id])"',  # read once more as a tuple
        ):
            (home / "cosyvoice.yaml").write_text(f"{NAMED}\n{line}\n")
            with pytest.raises(OvertoneError, match="which could run any code; take the file that was published"):
                found.decode(np.arange(50))
        (home / "cosyvoice.yaml").write_text(NAMED)
        assert len(found.decode(np.arange(50))[0]) == 50 * 882
    finally:
        found.close()  # type: ignore[attr-defined]
