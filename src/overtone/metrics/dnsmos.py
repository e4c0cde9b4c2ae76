"""DNSMOS: predicted quality of the reply's voice after ITU-T P.835 (signal, background, overall) and P.808 (overall).

1 to 5, higher is better. DNSMOS was made to rank noise suppressors: it detects noise and the artefacts of removing it,
and hardly distinguishes synthetic from human speech. A value is the mean over windows of 9.01 s, one per second;
shorter sounds are repeated to fill a window.
"""

from __future__ import annotations

from overtone.metrics._quality import Quality, predicted

VERSION = 1
ON_REQUEST = True
SCORES = {
    "dnsmos_ovrl": predicted("DNSMOS, overall", 37, finding=True),
    "dnsmos_sig": predicted("DNSMOS, speech", 38),
    "dnsmos_bak": predicted("DNSMOS, background", 39),
    "dnsmos_p808": predicted("DNSMOS P.808", 40),
}
NAMES = tuple(SCORES)


def load() -> Quality:
    return Quality("dnsmos", VERSION, 16_000, NAMES)
