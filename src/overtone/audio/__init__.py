"""Audio: read any file as mono float32, prepare it for a model, measure it, mix sounds, and check a folder.

Names load on first use, so that importing this package takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overtone.audio._manifest import manifest_hashes
    from overtone.audio._measure import Measures, audible, measure
    from overtone.audio._mix import level, mix
    from overtone.audio._part import read_part
    from overtone.audio._read import MAX_BYTES, MAX_SECONDS, Samples, decode, read, read_bytes, resample
    from overtone.audio._sound import load_sound, probe, silence
    from overtone.audio._wav import encode_wav, stereo_wav
    from overtone.audio.folder_check import Finding, check_folder

__all__ = [
    "MAX_BYTES",
    "MAX_SECONDS",
    "Finding",
    "Measures",
    "Samples",
    "audible",
    "check_folder",
    "decode",
    "encode_wav",
    "level",
    "load_sound",
    "manifest_hashes",
    "measure",
    "media_type",
    "mix",
    "probe",
    "read",
    "read_bytes",
    "read_part",
    "resample",
    "silence",
    "stereo_wav",
]

_HOME = {
    "Finding": "folder_check",
    "Measures": "_measure",
    "audible": "_measure",
    "check_folder": "folder_check",
    "encode_wav": "_wav",
    "level": "_mix",
    "load_sound": "_sound",
    "manifest_hashes": "_manifest",
    "measure": "_measure",
    "media_type": "_kind",
    "mix": "_mix",
    "probe": "_sound",
    "read_part": "_part",
    "silence": "_sound",
    "stereo_wav": "_wav",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME.get(name, '_read')}"), name)
    globals()[name] = value
    return value
