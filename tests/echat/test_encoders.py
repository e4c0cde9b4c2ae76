"""Encoders: a clip's states are its own, log-mel and Whisper are transformers', Moonshine is its package's."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from overtone.echat.net import config, encoders
from overtone.echat.net.config import EncoderConfig
from overtone.echat.net.encoders import LogMel, open_encoder
from overtone.embedded import present, require
from overtone.embedded.moonshine_weights import moonshine_state
from overtone.errors import DataError, OvertoneError, UsageError

SIZES = {"dim": 32, "layers": 2, "heads": 4, "ffn": 64}
NOISE = np.random.default_rng(5).standard_normal(40_000).astype(np.float32) * 0.1


def encoder(kind: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return open_encoder(EncoderConfig(kind=kind, **SIZES)).eval()  # type: ignore[arg-type]


def batch(clips: list[NDArray[np.float32]]) -> tuple[torch.Tensor, torch.Tensor]:
    wave = torch.full((len(clips), max(map(len, clips))), 9.0)  # what lies behind a clip must not matter
    for row, clip in enumerate(clips):
        wave[row, : len(clip)] = torch.from_numpy(clip)
    return wave, torch.tensor([len(clip) for clip in clips])


@pytest.mark.parametrize("kind", ["small", "whisper", "moonshine"])
@pytest.mark.parametrize("taps", [(), (0, 1)])
def test_padding_does_not_change_a_clips_own_states(kind: str, taps: tuple[int, ...]) -> None:
    net = open_encoder(EncoderConfig(kind=kind, taps=taps, **SIZES)).eval()  # type: ignore[arg-type]
    clips = [NOISE, NOISE[3_000:20_111], NOISE[:7_321], NOISE[:1_000]]
    with torch.no_grad():
        together, frames = net(*batch(clips))
        for row, clip in enumerate(clips):
            alone, n = net(*batch([clip]))
            assert int(n[0]) == int(frames[row]) == alone.shape[1] == config.frames(net.config, len(clip))
            assert torch.allclose(together[row, : n[0]], alone[0], atol=1e-4)


@pytest.mark.parametrize("kind", ["small", "whisper", "moonshine"])
def test_what_is_heard_changes_the_states_and_every_weight_can_learn_from_it(kind: str) -> None:
    net = encoder(kind).train()
    states, _ = net(*batch([NOISE[:8_000]]))
    other, _ = net(*batch([NOISE[8_000:16_000]]))
    assert not torch.allclose(states, other, atol=1e-3)
    states.square().mean().backward()
    still = [name for name, p in net.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert [name for name in still if "k_proj.bias" not in name] == []


@pytest.mark.parametrize("kind", ["small", "whisper", "moonshine"])
def test_taps_bring_mean_and_spread_from_the_middle_beside_the_last_states(kind: str) -> None:
    plain, tapped = encoder(kind), open_encoder(EncoderConfig(kind=kind, taps=(1,), **SIZES)).eval()  # type: ignore[arg-type]
    tapped.load_state_dict(plain.state_dict())
    between: list[torch.Tensor] = []
    layers = plain.blocks if kind == "small" else plain.net.layers
    layers[0].register_forward_hook(lambda *given: between.append(given[2][0] if type(given[2]) is tuple else given[2]))
    with torch.no_grad():
        last, both = plain(*batch([NOISE]))[0], tapped(*batch([NOISE]))[0]
    assert both.shape[2] == 96 == tapped.config.dim + tapped.config.beside
    assert torch.allclose(both[..., :32], last, atol=1e-5)
    for part, of in ((both[..., 32:64], between[0].mean(1)), (both[..., 64:], between[0].std(1, correction=0))):
        want = torch.nn.functional.layer_norm(of, (32,))[:, None].expand_as(part)
        assert torch.allclose(part, want, atol=1e-3)


@pytest.mark.local
def test_the_states_in_numpy_are_those_of_the_network() -> None:
    from overtone.embedded import speech_states

    shape = EncoderConfig(kind="moonshine", dim=288, layers=6, heads=8, ffn=1152, source="package")
    with torch.no_grad():
        want = open_encoder(shape).eval()(*batch([NOISE]))[0][0].numpy()
    assert np.abs(speech_states.load().states(NOISE)[-1] - want).max() < 1e-3


def test_the_log_mel_is_that_of_transformers() -> None:
    from transformers import WhisperFeatureExtractor

    want = WhisperFeatureExtractor()(NOISE, sampling_rate=16_000, return_tensors="pt").input_features[0]
    got = LogMel(80)(torch.from_numpy(NOISE)[None])[0]
    assert got.shape == (80, 250)
    assert torch.allclose(got, want[:, :250], atol=1e-4)


def test_thirty_seconds_give_the_states_of_transformers_whisper() -> None:
    net = encoder("whisper")
    clip = np.resize(NOISE, 480_000)
    with torch.no_grad():
        got, frames = net(*batch([clip]))
        want = net.net(net.mel(torch.from_numpy(clip)[None])).last_hidden_state
    assert int(frames[0]) == 1500
    assert torch.allclose(got, want, atol=1e-4)


def test_whisper_hears_no_more_than_it_has_positions_for() -> None:
    with pytest.raises(DataError, match=r"31\.0 s exceeds this encoder's limit of 30 s"):
        encoder("whisper")(torch.zeros(1, 31 * 16_000), torch.tensor([31 * 16_000]))


def test_an_augmentation_sees_the_log_mel_while_training_only() -> None:
    net = encoder("small")
    seen = []

    def mute(mel: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        seen.append((tuple(mel.shape), frames.tolist()))
        return torch.zeros_like(mel)

    net.augment = mute
    clean, _ = net(*batch([NOISE[:8_000]]))
    assert seen == []
    muted, _ = net.train()(*batch([NOISE[:8_000]]))
    assert seen == [((1, 80, 50), [50])] and not torch.allclose(clean, muted)


@pytest.mark.parametrize("kind", ["small", "whisper", "moonshine"])
def test_half_precision_hears_nearly_the_same(kind: str) -> None:
    net = encoder(kind)
    wave, lengths = batch([NOISE[:16_000], NOISE[:9_000]])
    with torch.no_grad():
        exact, _ = net(wave, lengths)
        with torch.autocast("cpu", torch.bfloat16):
            mixed, _ = net(wave, lengths)
        for weight in net.parameters():
            weight.data = weight.data.bfloat16()
        half, _ = net(wave, lengths)
    assert half.dtype == torch.bfloat16
    for other in (mixed, half):
        assert torch.nn.functional.cosine_similarity(exact[0], other[0].float(), dim=-1).min() > 0.995


def test_activations_computed_again_change_no_gradient() -> None:
    found = []
    for again in (False, True):
        net = encoder("moonshine").train()
        net.checkpointing = again
        net(*batch([NOISE[:6_000], NOISE[:5_000]]))[0].square().mean().backward()
        found.append([p.grad for p in net.parameters()])
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(*found, strict=True))


def package() -> Path:
    if not present("moonshine_voice"):
        pytest.skip("moonshine-voice is not installed")
    return require("moonshine_voice") / "assets"


@pytest.mark.local
def test_moonshine_has_its_packages_weights_and_hears_as_its_own_engine_does() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from overtone import audio

    assets = package()
    engine = onnxruntime.InferenceSession(str(assets / "tiny-en" / "encoder_model.ort"))
    net = open_encoder(msgspec.structs.replace(config.read("mini").model.encoder, taps=())).eval()
    assert sum(p.numel() for p in net.parameters()) == 7_681_248
    speech = audio.read(assets / "beckett.wav", rate=16_000)[0].astype(np.float32)
    clips = [speech[:80_000], speech[30_000:60_001], speech[70_000:79_500]]
    with torch.no_grad():
        states, frames = net(*batch(clips))
    for row, clip in enumerate(clips):
        mask = np.ones((1, len(clip)), np.int64)
        want = torch.from_numpy(engine.run(None, {"input_values": clip[None], "attention_mask": mask})[0][0])
        assert want.shape[0] == frames[row]
        near = torch.nn.functional.cosine_similarity(states[row, : frames[row]], want, dim=-1)
        # its engine rounds what it multiplies to 8 bits at every product, which moves a quiet frame now and then
        assert near.mean() > 0.997 and near.median() > 0.998 and near.min() > 0.95


@pytest.mark.local
def test_moonshines_weights_travel_as_one_small_file(tmp_path: Path) -> None:
    from scripts.moonshine_encoder import main

    package()
    out = tmp_path / "encoder.safetensors"
    main(str(out))
    assert 15e6 < out.stat().st_size < 16e6
    made = config.read("mini").model.encoder
    kept = open_encoder(made)
    moved = open_encoder(EncoderConfig(**{f: getattr(made, f) for f in made.__struct_fields__} | {"weights": str(out)}))
    with torch.no_grad():
        one, two = (net.eval()(*batch([NOISE[:16_000]]))[0] for net in (kept, moved))
    assert torch.nn.functional.cosine_similarity(one, two, dim=-1).min() > 0.999


def test_a_file_that_is_no_moonshine_encoder_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no encoder_model\.ort"):
        moonshine_state(tmp_path)
    for data in (b"", b"not a model at all", b"\x14\0\0\0ORTM" + bytes(40), bytes(range(256)) * 9):
        path = tmp_path / "encoder_model.ort"
        path.write_bytes(data)
        with pytest.raises(DataError, match="not a Moonshine encoder"):
            moonshine_state(path)


@pytest.mark.local
def test_weights_of_another_size_are_told_with_what_to_correct() -> None:
    package()
    with pytest.raises(DataError, match=r"model\.encoder\.source 'package': does not fit.*missing layers\.6"):
        open_encoder(EncoderConfig(kind="moonshine", source="package", dim=288, layers=7, heads=8, ffn=1152))
    with pytest.raises(DataError, match="size mismatch for conv1"):
        open_encoder(EncoderConfig(kind="moonshine", source="package", dim=256, layers=6, heads=8, ffn=1152))
    with pytest.raises(UsageError, match="must be 'random' for a small encoder"):
        open_encoder(EncoderConfig(kind="small", source="package", **SIZES))


@pytest.mark.parametrize(("given", "complaint"), [(b"nonsense", "not a safetensors file"), (None, "no file")])
def test_weights_that_cannot_be_read_are_told(given: bytes | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "encoder.safetensors"
    if given:
        path.write_bytes(given)
    made = msgspec.structs.replace(config.read("tiny").model.encoder, weights=str(path))
    with pytest.raises(OvertoneError, match=complaint):
        open_encoder(made)


def test_moonshine_base_has_no_package_and_says_which_command_brings_it() -> None:
    made = config.read("people").model.encoder
    with pytest.raises(
        UsageError, match=r"npm pack @usefulsensors/moonshine-js@0\.1\.15.*--encoder package/dist/model/base"
    ):
        open_encoder(made)


BASE = Path(os.environ.get("OVERTONE_MOONSHINE", "package/dist/model")) / "base" / "quantized"
base = pytest.mark.skipif(not BASE.is_dir(), reason=f"Moonshine base is not here; run '{encoders.BASE}'")


@base
def test_moonshine_base_has_the_weights_of_its_package() -> None:
    made = msgspec.structs.replace(config.read("people").model.encoder, weights=str(BASE))
    net = open_encoder(made)
    assert sum(p.numel() for p in net.parameters()) == 20_153_120
    with torch.no_grad():
        states, frames = net.eval()(*batch([NOISE[:16_000]]))
    assert states.shape == (1, int(frames[0]), 416 + made.beside)


@base
@pytest.mark.parametrize("size", ["base", "tiny"])
def test_the_npm_packages_encoder_is_converted_exactly_and_rounding_costs_what_is_documented(size: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from overtone import audio
    from scripts.moonshine_parity import compare

    speech = audio.read(package() / "beckett.wav", rate=16_000)[0].astype(np.float32)
    found = compare(BASE.parents[1] / size / "quantized", [speech[:60_000], speech[60_000:110_000]])
    assert all(error < 1e-4 and cosine > 0.9999 for error, cosine in found["conversion"])
    assert all(0.01 < error < 0.12 for error, _ in found["rounding"])
