"""How near our copy of Moonshine's encoder is to the original run by ONNX Runtime, and what its 8-bit form costs.

    pip install onnx onnxruntime
    python -m scripts.moonshine_parity package/dist/model/base/quantized --clips librispeech/*.flac

The published files hold weights in 8 bits, and ONNX Runtime also rounds what it multiplies them with to 8 bits. Our
copy has the same weights and rounds nothing. `conversion` compares it with the original network in which nothing is
rounded but the weights; `rounding` compares the latter with the network as it is published. `weights` is the noise that
rounding the weights has added, from their step sizes: the weights before it are not published.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from overtone import audio
from overtone.echat.net.config import EncoderConfig
from overtone.echat.net.encoders import Encoder, open_encoder
from overtone.embedded.moonshine_weights import moonshine_state

LAYERS = {288: 6, 416: 8}  # by width: tiny and base
Array = NDArray[np.float32]


def encoder_of(folder: Path) -> Encoder:
    """Return our copy, of the size that the folder has."""
    width = int(moonshine_state(folder)["layer_norm.weight"].size)
    return open_encoder(EncoderConfig("moonshine", width, LAYERS[width], 8, 4 * width, source=str(folder))).eval()


def unrounded(path: Path) -> bytes:
    """Return the network of a file with the same weights, in which products round nothing."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(path))
    graph = model.graph
    constants = {item.name: item for item in graph.initializer}
    made_by = {name: node for node in graph.node for name in node.output}
    products: dict[str, Any] = {}  # output of the last of four nodes that round, multiply, and scale → one product
    for node in graph.node:
        if node.op_type != "MatMulInteger":
            continue
        plain, base = made_by[node.input[0]].input[0], node.input[1].removesuffix("_quantized")
        values, scale, zero = (
            numpy_helper.to_array(constants[f"{base}_{part}"]).astype(np.float32)
            for part in ("quantized", "scale", "zero_point")
        )
        cast = next(other for other in graph.node if node.output[0] in other.input)
        scaled = next(other for other in graph.node if cast.output[0] in other.input)
        graph.initializer.append(numpy_helper.from_array((values - zero) * scale, f"{base}_float"))
        products[scaled.output[0]] = helper.make_node("MatMul", [plain, f"{base}_float"], [scaled.output[0]])
    nodes = [products.get(node.output[0], node) for node in graph.node]
    used: set[str] = set()
    while used != (now := {name for node in nodes for name in node.input} | {out.name for out in graph.output}):
        used, nodes = now, [node for node in nodes if any(name in now for name in node.output)]
    kept = [item for item in graph.initializer if item.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    return bytes(model.SerializeToString())


def states(network: bytes, wave: Array) -> Tensor:
    """Run a network on one clip."""
    import onnxruntime

    engine = onnxruntime.InferenceSession(network)
    return torch.from_numpy(engine.run(None, {engine.get_inputs()[0].name: wave[None]})[0][0])


def difference(a: Tensor, b: Tensor) -> tuple[float, float]:
    """Return the relative error of all states, and the least cosine of one."""
    near = torch.nn.functional.cosine_similarity(a, b, dim=-1)
    return float((a - b).norm() / b.norm()), float(near.min())


def compare(folder: Path, waves: Sequence[Array]) -> dict[str, list[tuple[float, float]]]:
    """Return, for each clip, the error of the conversion, and that of rounding."""
    path = folder / "encoder_model.onnx"
    encoder, exact, published = encoder_of(folder), unrounded(path), path.read_bytes()
    found: dict[str, list[tuple[float, float]]] = {"conversion": [], "rounding": []}
    for wave in waves:
        with torch.inference_mode():
            ours = encoder(torch.from_numpy(wave)[None], torch.tensor([len(wave)]))[0][0]
        plain = states(exact, wave)
        found["conversion"].append(difference(ours, plain))
        found["rounding"].append(difference(states(published, wave), plain))
    return found


def weight_noise(state: dict[str, Array]) -> list[float]:
    """Return the noise of each 8-bit matrix relative to its weights, in dB, from the distance between its values."""
    found = []
    for name, value in state.items():
        if name.endswith("weight") and value.ndim > 1:
            step = float(np.median(np.diff(np.unique(value))))
            found.append(10 * float(np.log10(step**2 / 12 / float(np.var(value)))))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.moonshine_parity", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="with encoder_model.onnx")
    parser.add_argument("--clips", metavar="FILE", type=Path, nargs="+", required=True)
    given = parser.parse_args(argv)
    waves = [audio.read(path, rate=16_000)[0].astype(np.float32) for path in given.clips]
    for how, of in compare(given.folder, waves).items():
        error, cosine = float(np.mean([one for one, _ in of])), min(one for _, one in of)
        print(f"{how}: relative error {error:.2g}, least cosine {cosine:.4f} ({len(of)} clips)")
    noise = weight_noise(moonshine_state(given.folder))
    print(f"weights: noise {np.median(noise):.1f} dB (median of {len(noise)} matrices, worst {max(noise):.1f} dB)")


if __name__ == "__main__":
    main()
