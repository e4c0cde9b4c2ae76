"""NISQA: predicted listening quality of the reply's voice, overall and in four dimensions, or NISQA-TTS naturalness.

1 to 5, higher is better, also for noisiness, discontinuity, coloration and loudness: 5 means not noisy, not chopped,
not coloured, well levelled. The authors' weights are for non-commercial use and not included: name your copy with
`weights=FILE` or OVERTONE_NISQA. With `nisqa_tts.tar` the only score is `nisqa_tts`. A reply without audio is unscored.
"""

from __future__ import annotations

import os

from overtone.metrics._quality import Quality, predicted
from overtone.paths import user_path

VERSION = 1
ON_REQUEST = True
SCORES = {
    "nisqa_mos": predicted("NISQA", 30, finding=True),
    "nisqa_noisiness": predicted("NISQA, noisiness", 31),
    "nisqa_discontinuity": predicted("NISQA, discontinuity", 32),
    "nisqa_coloration": predicted("NISQA, coloration", 33),
    "nisqa_loudness": predicted("NISQA, loudness", 34),
    "nisqa_tts": predicted("NISQA, naturalness", 35),
}
NAMES = tuple(SCORES)[:5]  # with nisqa.tar


def load(*, weights: str = "") -> Quality:
    """Load the predictor. `weights`: nisqa.tar, nisqa_mos_only.tar or nisqa_tts.tar of gabrielmittag/NISQA."""
    given = weights or os.environ.get("OVERTONE_NISQA", "")
    path = user_path(given).absolute()
    wrong = ""
    if not given:
        wrong = (
            "NISQA's weights are not here: fetch nisqa.tar of gabrielmittag/NISQA (CC BY-NC-SA 4.0) and name it with "
            "'nisqa?weights=FILE' or OVERTONE_NISQA"
        )
    elif not path.is_file():
        wrong = f"NISQA's weights: there is no file {path}; correct 'weights=' or OVERTONE_NISQA"
    return Quality("nisqa", VERSION, 48_000, NAMES, {"weights": str(path)}, wrong=wrong)
