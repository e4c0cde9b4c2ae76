"""Cosine similarities without rounding errors.

Rounding puts the cosine of equal texts a little above or below 1. Such noise must not push a
score off the scale, fail a requirement of 100 % or change a ranking.
"""

from __future__ import annotations

SHARES, PAGE = "sentence vectors", 64  # metrics that embed the same texts score pages of this many asks together
NOISE = 1e-6  # embeddings of one text differ by less from batch to batch


def similarity(cosine: float) -> float:
    """Return the cosine limited to −1…1; exactly 1 if it is above 1 − `NOISE`."""
    return 1.0 if cosine > 1.0 - NOISE else max(-1.0, cosine)
