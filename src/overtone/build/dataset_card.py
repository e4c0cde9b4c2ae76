"""Write the card and `metadata.jsonl` of a built set, with which Hugging Face's `datasets` and its hub read the folder.

The head of the card is YAML: licence, languages, and which files are sounds. `metadata.jsonl` has a line per sound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from overtone.build.licence import RESEARCH, Verdict
from overtone.build.manifest import Made, write
from overtone.build.sound_plan import Group
from overtone.version import __version__

CARD, METADATA = "README.md", "metadata.jsonl"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
_KNOWN = {  # our name of a licence → the hub's
    "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0", "CC-BY-NC-4.0": "cc-by-nc-4.0",
    "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0", "GPL-3.0-or-later": "gpl-3.0",
}  # fmt: skip

_CARD = """---
pretty_name: {name}
language: [{languages}]
license: {licence}
license_name: {licence_name}
license_link: LICENSE
size_categories: [{size}]
task_categories: [audio-classification, audio-text-to-text]
tags: [overtone, speech, evaluation, paralinguistics]
configs:
- config_name: default
  drop_labels: true
  data_files:
  - split: test
    path: [metadata.jsonl{folders}]
---

# {name}

{clips:,} clips and {replies:,} reference replies, built by Overtone {version}. [The datasheet](DATASHEET.md) says how
they were made and checked, and [the licence](LICENSE) what they may be used for.

```python
from datasets import load_dataset

clips = load_dataset("FOLDER", split="test")  # the columns of metadata.jsonl, and the column audio
```

To ask a model about them: `overtone run {name} --data FOLDER --model SPEC`.
"""


def write_card(
    out: Path,
    name: str,
    clips: Sequence[Made],
    groups: Iterable[Group],
    verdict: Verdict,
    status: Mapping[str, str],
    languages: Sequence[str],
) -> None:
    """Write both files beside a set. `status` maps each cue to its validation status."""
    words = {job.path: job.text for group in groups for job in group.jobs}
    rows = [
        {
            "file_name": made.path,
            "text": words.get(made.path, ""),
            "case": made.case_id,
            "style": made.style,
            "kind": "reply" if made.reply else "clip",
            "cue": made.cue,
            "also": list(made.also),
            "status": status.get(made.cue, ""),
            "voice": made.voice,
            "seconds": made.seconds,
        }
        for made in clips
    ]
    write(out / METADATA, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    folders = sorted({PurePosixPath(made.path).parts[0] for made in clips})
    card = _CARD.format(
        name=name,
        languages=", ".join(languages),
        licence=_KNOWN.get(verdict.licence, "other"),
        licence_name=json.dumps("research-only" if verdict.licence == RESEARCH else verdict.licence),
        size=next((text for limit, text in _SIZES if len(rows) < limit), "100K<n<1M"),
        folders="".join(f", {folder}/**/*.wav" for folder in folders),
        clips=sum(row["kind"] == "clip" for row in rows),
        replies=sum(row["kind"] == "reply" for row in rows),
        version=__version__,
    )
    write(out / CARD, card.encode())
