"""Assign speakers to scripts: engines are joined into one cast whose speakers are used evenly and reproducibly."""

from __future__ import annotations

import functools
import hashlib

from overtone import registry
from overtone.build.voices._records import SEXES, Engine, How, Sex, Speaker, VoiceError
from overtone.errors import UsageError
from overtone.spec import parse_spec, suggest

DEFAULT = ("espeak",)
ROLES: dict[str, Sex] = {  # the names that scripts use
    "arlo": "male",
    "bruno": "male",
    "carl": "male",
    "dora": "female",
    "edith": "female",
    "freya": "female",
}


class Cast:
    """The speakers of all engines. A script gets the same speaker in every build with the same voices."""

    def __init__(self, engines: dict[str, Engine]) -> None:
        self.engines = engines
        for sex in SEXES:
            if not any(s.sex == sex or _any_role(self.engine(s)) for s in self.speakers()):
                raise UsageError(f"no {sex} voice among {', '.join(engines)}; add one, e.g. --voice espeak")

    def speakers(self) -> tuple[Speaker, ...]:
        """Return all speakers, engine by engine."""
        return tuple(s for engine in self.engines.values() for s in engine.speakers())

    def engine(self, speaker: Speaker) -> Engine:
        """Return the engine of a speaker."""
        return self.engines[speaker.engine]

    def identity(self) -> str:
        """Return every engine and version, for hashes and the manifest."""
        return ", ".join(engine.identity() for engine in self.engines.values())

    def of(self, role: str, script_id: str, take: int = 0) -> Speaker:
        """Return a script's speaker.

        The role determines the sex, and the script's id selects the speaker among those of this sex. Another take gets
        the next speaker.
        """
        if role not in ROLES:
            raise UsageError(f"no voice {role!r}{suggest(role, ROLES)}; known: {', '.join(ROLES)}")
        return self._drawn(ROLES[role], script_id, take)

    def turn(self, place: int, script_id: str, take: int = 0) -> Speaker:
        """Return the speaker for index `place` of a list whose entries have no roles. Men and women alternate."""
        able = [s for e in self.engines.values() for s in e.speakers_of(script_id)]
        sex = SEXES[place % 2] if any(s.sex == SEXES[place % 2] for s in able) else SEXES[1 - place % 2]
        mine = [s for s in able if s.sex == sex]
        if not mine:
            raise VoiceError(f"there is no recording of {script_id}; record it, or add a voice: --voice espeak")
        return mine[(place // 2 + take) % len(mine)]

    def other(self, speaker: Speaker, script_id: str, take: int = 0) -> Speaker | None:
        """Return another speaker of the same sex for the control clip, or None. The same engine is preferred."""
        return self._able(speaker.sex, script_id, speaker, take)

    def partner(self, speaker: Speaker, script_id: str, take: int = 0) -> Speaker:
        """Return the speaker of the other sex for a script."""
        return self._drawn("female" if speaker.sex == "male" else "male", script_id, take)

    def missing(self, speaker: Speaker, how: How) -> list[str]:
        """Return the recordings that a clip by this speaker lacks; none if the speaker is a synthesiser."""
        list_missing = getattr(self.engine(speaker), "missing", None)
        return list_missing([how]) if list_missing else []

    def _drawn(self, sex: Sex, script_id: str, take: int) -> Speaker:
        speaker = self._able(sex, script_id, None, take) or self._stand_in(script_id, take)
        if speaker is None:
            raise VoiceError(
                f"there is no {sex} recording of script {script_id}; record it, or add a voice: --voice espeak"
            )
        return speaker

    def _stand_in(self, script_id: str, take: int) -> Speaker | None:
        """Return a speaker of the other sex from an engine whose speakers speak every role, or None."""
        able = [s for e in self.engines.values() if _any_role(e) for s in e.speakers_of(script_id)]
        return able[take % len(able)] if able else None

    def _able(self, sex: Sex, script_id: str, besides: Speaker | None, take: int) -> Speaker | None:
        able = [s for e in self.engines.values() for s in e.speakers_of(script_id) if s.sex == sex and s != besides]
        if besides is not None:
            able = [s for s in able if s.engine == besides.engine] or able
        digest = hashlib.sha256(f"{sex}/{'' if besides is None else 'other'}/{script_id}".encode()).digest()
        return able[(int.from_bytes(digest[:8], "big") + take) % len(able)] if able else None


def _any_role(engine: Engine) -> bool:
    """Return whether the engine's speakers speak roles of either sex: people who recorded the script themselves."""
    return bool(getattr(engine, "any_role", False))


@functools.cache
def cast(specs: tuple[str, ...] = DEFAULT) -> Cast:
    """Open the voices that these SPECs name, as one cast.

    The cast is opened once per process, so repeated calls are cheap.
    """
    engines: dict[str, Engine] = {}
    for text in specs or DEFAULT:
        spec = parse_spec(text)
        if str(spec) in engines:
            raise UsageError(f"--voice {spec} is given twice")
        engines[str(spec)] = registry.find("voices", spec.kind).load(spec)
    return Cast(engines)
