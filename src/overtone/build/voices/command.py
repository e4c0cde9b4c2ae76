"""Speak with your own program: started once per utterance, without a shell; it writes a sound file.

SPEC: `command:./say.py?args=--voice {voice} --out {out}&male=sam,joe&female=kim,eve`

The words are passed on standard input, or in the file `{text_file}` if the arguments name it. Arguments are split at
spaces before they are filled in, so spoken words can never become separate arguments.
"""

from __future__ import annotations

import hashlib
import re
import sys

from overtone.audio import Samples
from overtone.build.voices._programs import TIMEOUT, speech_of, workplace
from overtone.build.voices._records import PACE, SEXES, UNKNOWN, How, Speaker, Synthesiser, cast_of, named, options
from overtone.build.voices.instructions import spoken_instructions
from overtone.errors import UsageError
from overtone.safety import executable
from overtone.spec import Spec, suggest

KEYS: dict[str, type] = {
    **dict.fromkeys(SEXES, str),
    "args": str,
    "native": bool,
    "licence": str,
    "reply": str,
    "timeout": float,
}
PLACES = ("out", "text_file", "voice", "sex", "cue", "manner", "style", "instructions", "pace")


class Command(Synthesiser):
    """The program of a SPEC. With `native=yes` it is given the cue and delivers it itself."""

    def __init__(self, spec: Spec) -> None:
        given = options(spec, KEYS)
        if not spec.name:
            raise UsageError(f"{spec}: no program is named; write command:PATH, e.g. command:./say.py?args={{out}}")
        self._path = executable(spec.name, spec.kind)
        self._args = given.get("args", "{out}").split()
        places = [place for arg in self._args for place in re.findall(r"\{(\w*)\}", arg)]
        for place in places:
            if place not in PLACES:
                known = ", ".join(f"{{{name}}}" for name in PLACES)
                raise UsageError(f"{spec}: args has no place {{{place}}}{suggest(place, PLACES)}; known: {known}")
        if "out" not in places:
            raise UsageError(f"{spec}: args must contain {{out}}, the sound file that the program writes")
        self.native: bool = given.get("native", False)
        self.licence: str = given.get("licence", UNKNOWN)
        self._reply: str = given.get("reply", "")
        self._timeout: float = given.get("timeout", TIMEOUT)
        self._speakers = cast_of(
            spec, named(spec, given, {"male": ("male1", "male2"), "female": ("female1", "female2")})
        )
        self._who = str(Spec(spec.kind, spec.name, {}))
        digest = hashlib.sha256(self._path.read_bytes()).hexdigest()[:12]
        self._identity = f"command:{self._path.name}@{digest} {' '.join(self._args)}"

    def identity(self) -> str:
        return self._identity

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        cue, manner, given = (how.cue, how.manner, how.instructions) if self.native else ("", "", "")
        values = {
            "voice": speaker.name,
            "sex": speaker.sex,
            "cue": cue,
            "manner": manner,
            "style": how.style,
            "instructions": spoken_instructions(cue, manner, given),
            "pace": str(pace),
        }
        return self._run(words, values)

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        """Speak in the voice `reply=NAME`; without one, the embedded voice speaks replies."""
        if not self._reply:
            return None
        values = {"voice": self._reply, "sex": "", "cue": "", "manner": "", "style": "reply", "instructions": style}
        return self._run(text, {**values, "pace": str(PACE)})

    def _run(self, words: str, values: dict[str, str]) -> tuple[Samples, int]:
        with workplace() as folder:
            out, text_file = folder / "out.wav", folder / "words.txt"
            text_file.write_text(words + "\n", "utf-8")
            values = {**values, "out": str(out), "text_file": str(text_file)}
            filled = [re.sub(r"\{(\w+)\}", lambda m: values[m[1]], arg) for arg in self._args]
            python = [sys.executable] if self._path.suffix == ".py" else []
            feed = None if any("{text_file}" in arg for arg in self._args) else words + "\n"
            command = [*python, str(self._path), *filled]
            return speech_of(command, out, who=self._who, feed=feed, timeout=self._timeout)


load = Command
