"""Write quality.json: what the reference implementations of the quality predictors say of real recordings.

Run in an environment that has torch, torchmetrics, librosa, matplotlib, requests, soundfile, soxr and speechmos, and,
each without its dependencies, distillmos, xls-r-sqa and nisqa 2.0.post2:

    python make_quality.py SHARED_DATA_FOLDER WEIGHTS_FOLDER

NISQA is torchmetrics' (which reads ~/.torchmetrics/NISQA/nisqa.tar: the file is copied to a HOME of its own), NISQA-TTS
the authors' package, DNSMOS is speechmos', DistillMOS its own package's. The recordings are named, not copied.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

CLIPS = [f"p835/{name}.wav" for name in ("c0_f1", "c1_m1", "c3_f1", "c6_m1", "c8_f1", "c11_m1", "c12_f1")]
LIBRISPEECH = 4  # of the first in order of their names


def main(data: Path, weights: Path) -> None:
    import soundfile
    import soxr

    home = Path(tempfile.mkdtemp())
    (home / ".torchmetrics/NISQA").mkdir(parents=True)
    shutil.copy(weights / "nisqa.tar", home / ".torchmetrics/NISQA/nisqa.tar")
    os.environ["HOME"] = str(home)
    sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))
    import torch
    from distillmos import ConvTransformerSQAModel
    from speechmos import dnsmos
    from torchmetrics.functional.audio.nisqa import non_intrusive_speech_quality_assessment

    distill = ConvTransformerSQAModel().eval()
    spoken = sorted(p for p in (data / "librispeech").iterdir() if p.suffix in (".wav", ".flac"))[:LIBRISPEECH]
    names = [*CLIPS, *(str(p.relative_to(data)) for p in spoken)]
    out = {}
    for name in names:
        x, rate = soundfile.read(data / name, dtype="float32")
        at = {to: x if rate == to else soxr.resample(x, rate, to, quality="HQ") for to in (16_000, 48_000)}
        nisqa = non_intrusive_speech_quality_assessment(torch.from_numpy(at[48_000]), 48_000).tolist()
        heard = dnsmos.run(at[16_000].clip(-1, 1), 16_000)
        with torch.inference_mode():
            mos = float(distill(torch.from_numpy(at[16_000])[None]))
        keys = ("nisqa_mos", "nisqa_noisiness", "nisqa_discontinuity", "nisqa_coloration", "nisqa_loudness")
        out[name] = {
            "nisqa": dict(zip(keys, nisqa, strict=True)),
            "dnsmos": {f"dnsmos_{k.removesuffix('_mos')}": float(v) for k, v in heard.items() if k.endswith("_mos")},
            "distillmos": {"distillmos": mos},
            "nisqa_tts": {"nisqa_tts": natural(at[48_000], weights / "nisqa_tts.tar")},
        }
    Path(__file__).with_name("quality.json").write_text(json.dumps(out, indent=1) + "\n")


def natural(samples: Any, weights: Path) -> float:
    """NISQA-TTS as the authors' package computes it, fed with samples instead of a file."""
    import inspect

    import librosa
    import torch
    from nisqa import NISQA_lib

    found = torch.load(weights, map_location="cpu", weights_only=True)
    args = found["args"]
    args |= {key.replace("ms_seg", "cnn_seg"): value for key, value in args.items() if key == "ms_seg_length"}
    known = inspect.signature(NISQA_lib.NISQA).parameters
    model = NISQA_lib.NISQA(**{key: value for key, value in args.items() if key in known}).eval()
    model.load_state_dict(found["model_state_dict"])
    mel = librosa.feature.melspectrogram(
        y=samples,
        sr=48_000,
        n_fft=args["ms_n_fft"],
        hop_length=int(48_000 * args["ms_hop_length"]),
        win_length=int(48_000 * args["ms_win_length"]),
        pad_mode="reflect",
        power=1.0,
        n_mels=args["ms_n_mels"],
        fmax=args["ms_fmax"],
    )
    db = librosa.amplitude_to_db(mel, ref=1.0, amin=1e-4, top_db=80.0)
    cut, count = NISQA_lib.segment_specs("", db, args["ms_seg_length"], args["ms_seg_hop_length"])
    with torch.inference_mode():
        return float(model(cut[None], torch.tensor([int(count)])))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
