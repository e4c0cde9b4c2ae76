"""Write Moonshine's encoder as one safetensors file in half precision (15 MB), for a machine without its package:
`python -m scripts.moonshine_encoder OUT.safetensors [FOLDER]`, then `weights = "OUT.safetensors"` in [model.encoder].

FOLDER holds `encoder_model.ort` or `encoder_model.onnx`; without it, the tiny model of the package moonshine-voice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from overtone.embedded import require
from overtone.embedded.moonshine_weights import moonshine_state


def main(out: str, folder: str = "") -> None:
    source = Path(folder) if folder else require("moonshine_voice", "Moonshine's encoder") / "assets" / "tiny-en"
    state = {name: value.astype(np.float16) for name, value in moonshine_state(source).items()}
    save_file(state, out, {"source": source.name, "width": str(state["layer_norm.weight"].size)})
    print(f"{out}: {sum(value.size for value in state.values()):,} parameters, {Path(out).stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
