"""UTMOS: predicted naturalness of the reply's voice, trained on listeners' ratings of synthetic speech.

About 1 to 5, higher is better. It is loaded from the torch.hub repository tarepan/SpeechMOS. A download runs the
repository's code and needs OVERTONE_TRUST_REMOTE_CODE=yes; `source=DIR` uses your copy instead, and `weights=FILE` your
copy of the checkpoint.
"""

from __future__ import annotations

import os
from pathlib import Path

from overtone.metrics._quality import Quality, predicted
from overtone.paths import user_path

VERSION = 1
ON_REQUEST = True
SCORES = {"utmos": predicted("UTMOS", 36, finding=True)}
NAMES = tuple(SCORES)


def load(*, source: str = "", weights: str = "") -> Quality:
    """Load the predictor. `source`: folder with hubconf.py of the repository; `weights`: state dict of its model."""
    given = {"source": source, "weights": weights}
    options = {key: str(user_path(text).absolute()) for key, text in given.items() if text}
    return Quality("utmos", VERSION, 16_000, NAMES, options, hub=not (source and weights), wrong=_wrong(options))


def _wrong(options: dict[str, str]) -> str:
    if "source" in options and not (Path(options["source"]) / "hubconf.py").is_file():
        return f"UTMOS: {options['source']} has no hubconf.py; give a copy of tarepan/SpeechMOS with 'source=DIR'"
    if "weights" in options and not Path(options["weights"]).is_file():
        return f"UTMOS: there is no file {options['weights']}; correct 'weights='"
    if "source" not in options and os.environ.get("OVERTONE_TRUST_REMOTE_CODE", "").lower() not in ("1", "yes", "true"):
        return (
            "UTMOS is fetched from the repository tarepan/SpeechMOS, and its code run; if you trust it, set "
            "OVERTONE_TRUST_REMOTE_CODE=yes, or give a copy you have read with 'utmos?source=DIR'"
        )
    return ""
