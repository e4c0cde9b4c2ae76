"""Which licences let a recording train weights that anyone may use: those that ask at most for attribution.

ShareAlike licences and the ODbL do not count. It is unsettled whether weights are an adaptation of what they were
trained on; if they are, they would have to carry the same licence, and we release weights under Apache-2.0.
"""

from __future__ import annotations

import re

UNKNOWN = "unknown"
RESEARCH = "non-commercial research only"  # a form or an agreement, not a public licence
_FREE = ("CC0-1.0", "CC-PDDC", "MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "WTFPL", "Unlicense", "WordNet-3.0")


def is_open(licence: str) -> bool:
    """Return whether a recording under this licence may train weights that are given away."""
    return licence in _FREE or re.fullmatch(r"CC-BY-[1-4]\.\d", licence) is not None
