"""DNSMOS: predicted quality of the reply's voice after ITU-T P.835 (signal, background, overall) and P.808 (overall).

1 to 5, higher is better. Made to rank noise suppressors: it hears noise and what removing it leaves, and hardly tells
synthetic speech from a person's. Means over windows of 9.01 s, one a second; a shorter sound is repeated to fill one.
"""

from __future__ import annotations

from overtone.metrics._quality import Quality

VERSION = 1
ON_REQUEST = True
NAMES = ("dnsmos_ovrl", "dnsmos_sig", "dnsmos_bak", "dnsmos_p808")


def load() -> Quality:
    return Quality("dnsmos", VERSION, 16_000, NAMES)
