"""Cosines as likenesses. Rounding leaves the cosine of equal texts a little above or below 1: such noise must not leave
the scale, fail a requirement of 100 %, or be ranked."""

from __future__ import annotations

NOISE = 1e-6  # embeddings of one text differ by less from batch to batch


def likeness(cosine: float) -> float:
    """Return the cosine within −1 and 1; exactly 1 where it is less than `NOISE` below it."""
    return 1.0 if cosine > 1.0 - NOISE else max(-1.0, cosine)
