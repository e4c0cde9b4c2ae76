"""Write versions.json anew: which words each rubric's version stands for. Run as `python -m tests.judges.refresh`.

What is stamped is what the judge is told, as it would be sent: the rubric's words, put together by the panel, with the
contract's format instruction; beside it the source of the contract, which alone reads the answers, and the sources of
the measured description. It refuses when one of them changed and the version did not; `--same-behaviour` overrides that
for edits of a source that cannot change any score (comments, typing, speed).
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

import msgspec

from overtone import registry
from overtone.judges import rubric, voice_description
from overtone.judges.contract import Contract
from overtone.judges.judge_input import Subject
from overtone.judges.judge_messages import build_messages
from tests.servers import tone

ROOT = Path(__file__).parents[2] / "src" / "overtone"
FILE = Path(__file__).with_name("versions.json")
TOLD = "what the judge is told"
CONTRACT = "judges/contract.py"
DESCRIPTION = ("judges/voice_description.py", "audio/_measure.py", "audio/_pitch.py")
TEXTS = (
    "cue", "topic", "words", "context", "question", "options", "answer", "wanted", "reply", "reference", "references",
    "reply_a", "reply_b", "emotion",
)  # fmt: skip


class Stamp(msgspec.Struct, frozen=True):
    """What a rubric, or the measured description, was when it was last stamped."""

    version: str
    hashes: dict[str, str]


def words(name: str) -> str:
    """All that a judge is told through a rubric about one made-up subject: all questions at once, each apart, and a
    pair the other way round. A sound is where it stands, not what it holds."""
    found = rubric.load(name)
    calls = [found.dimensions, *((d,) for d in found.dimensions)]
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "sound.wav"
        wav.write_bytes(tone())
        texts = {t: f"<{t} of s>" for t in TEXTS}
        if found.subject == "group":
            texts = {f"{t}_{number}": f"<{t} of s, {number}>" for number in (1, 2) for t in TEXTS}
        subject = Subject("s", "g", texts, dict.fromkeys(("clip", "reply", "a", "b"), wav))
        for dimensions in calls:
            for swapped in (False, True) if found.subject == "pair" else (False,):
                for message in build_messages(found, dimensions, Contract(dimensions), subject, swapped, "audio"):
                    parts = [part if isinstance(part, str) else "<sound>" for part in message.parts]
                    lines.append(f"{message.role}: {parts}")
    return "\n".join(lines)


def now(name: str) -> Stamp:
    if name == "description":
        return Stamp(voice_description.NAME, {source: _sha((ROOT / source).read_bytes()) for source in DESCRIPTION})
    hashes = {TOLD: _sha(words(name).encode()), CONTRACT: _sha((ROOT / CONTRACT).read_bytes())}
    return Stamp(str(rubric.load(name).version), hashes)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def names() -> tuple[str, ...]:
    return (*registry.builtins("rubrics"), "description")


def stored() -> dict[str, Stamp]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Stamp]) if FILE.exists() else {}


def drifted(name: str, was: Stamp, stamp: Stamp) -> str:
    """What to do about a rubric whose words and version do not move together, or nothing."""
    changed = [what for what, sha in stamp.hashes.items() if was.hashes.get(what) != sha]
    if changed and was.version == stamp.version:
        where = "VERSION in judges/voice_description.py" if name == "description" else f"version in {name}.toml"
        text = f"{name}: {', '.join(changed)} changed but its version did not. Raise {where}"
        text += ", then run 'python -m tests.judges.refresh'"
        if TOLD not in changed:
            text += "; if no score can change, run 'python -m tests.judges.refresh --same-behaviour'"
        return text
    if was != stamp:
        return f"{name}: its version changed; run 'python -m tests.judges.refresh' to stamp it"
    return ""


def main(same_behaviour: bool) -> int:
    before, after = stored(), {name: now(name) for name in names()}
    for name, stamp in after.items():
        was = before.get(name)
        if was is None or was.version != stamp.version or was.hashes == stamp.hashes:
            continue
        if not same_behaviour or was.hashes.get(TOLD) != stamp.hashes.get(TOLD):  # other words are another question
            print(drifted(name, was, stamp), file=sys.stderr)
            return 1
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main("--same-behaviour" in sys.argv[1:]))
