"""Choose a voice for every speaker of a dialogue: the sex by a table of labels, the voice by the dialogue's id.

The table is tried in this order: M, Man, W, F and Woman, then titles, roles in a family, and given names. For any other
label (A, B, Customer, a surname), the seed decides the sex. All speakers of a dialogue have different voices.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from overtone.build.voices import Cast, Speaker, VoiceError

# The last word of a label decides, and a title before it: "Young Girl", "Mrs. Smith", "Dave's Sister".
_MEN = """
m man men male boy father dad daddy grandfather grandpa son brother husband uncle nephew mr sir gentleman salesman
policeman waiter mad mall king alan alex andrew ben berry bill bob brandon brian carl charles chris dan daniel dave
david dean doug ed edward eric ethan frank fred gary gavin george greg hank harry henry jack jacob jake james jason
jeff jim joe john johnny josh joshua justin ken kevin mark markus mathew matthew michael micky mike nate nick norman
pancho paul pete peter phil randall randy rick rob robert rocky roger ron ronald ross ryan sam scott shawn steve
steven stuart ted terry tim tod todd tom tony
"""
_WOMEN = """
w f woman women female girl mother mom mum mommy grandmother grandma daughter sister wife aunt niece mrs ms miss madam
lady saleswoman waitress queen alice amanda amy andrea ann anna anne ashley ashely barbara betty brenda carla cathy
crystal delia diane ellen emily emma heather helen jan jane jenny jessica jori judy julia julie kate kathy kelly lily
linda lisa lucy maria mary mortia nancy rachel ranae rose sally sandra sara sarah stacy stephanie sue susan
"""
MALE, FEMALE = frozenset(_MEN.split()), frozenset(_WOMEN.split())
TITLES = {"mr": "male", "mrs": "female", "ms": "female", "miss": "female"}
SLIPS = {  # labels of the files that are another speaker's label with stray letters
    "dragonProgram Host": "Program Host",
    "baskGuest": "Guest",
    "greensGuest": "Guest",
    "Anna Mafia": "Anna Maria",
    "Ashely": "Ashley",
}


def sex_of(label: str) -> str:
    """Return "male" or "female", or "" if the table does not decide this label."""
    words = [re.sub(r"\d+$", "", word) for word in re.findall(r"[a-z0-9]+", label.lower().replace("'s ", " "))]
    words = [word for word in words if word]
    if not words:
        return ""
    if words[0] in TITLES:
        return TITLES[words[0]]
    for word in (words[-1], words[0]):
        if word in MALE or word in FEMALE:
            return "male" if word in MALE else "female"
    return ""


def voices(labels: Sequence[str], dialogue: str, cast: Cast, seed: int, take: int = 0) -> dict[str, Speaker]:
    """Return the voice of every label. Another take has the next voices.

    If a dialogue has more speakers of one sex than the cast has voices, the rest get voices of the other sex. Raises
    VoiceError if it has more speakers than the cast has voices.
    """
    able = cast.speakers()
    people = list(dict.fromkeys(SLIPS.get(label, label) for label in labels))
    if len(people) > len(able):
        raise VoiceError(
            f"dialogue {dialogue} has {len(people)} speakers, but the cast has {len(able)} voices; "
            "add voices, e.g. --voice espeak"
        )
    chosen: dict[str, Speaker] = {}
    # Speakers whose sex is known choose first, so that the others leave them fitting voices.
    for person in sorted(people, key=lambda person: not sex_of(person)):
        number = _number(seed, dialogue, person)
        sex = sex_of(person) or ("male", "female")[number % 2]
        free = [speaker for speaker in able if speaker not in chosen.values()]
        fitting = [speaker for speaker in free if speaker.sex == sex] or free
        chosen[person] = fitting[(number // 2 + take) % len(fitting)]
    return {label: chosen[SLIPS.get(label, label)] for label in labels}


def _number(seed: int, *parts: str) -> int:
    digest = hashlib.sha256("/".join((str(seed), *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")
