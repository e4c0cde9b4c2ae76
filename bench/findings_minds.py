"""Made-up models whose true abilities are known: what each hears, reasons from, uses and sounds like, case by case.

For every case of a model one chain is drawn, and everything it says about that case follows from it:

- heard: the cue got through, with probability `hears` × the cue's ease (0.7 to 1) × (1 − `human` in a human voice);
  never where the transcript stands in for the sound.
- reasoned: with probability `reasons`. A reasoning question is right where heard and reasoned.
- noticed: a reply can only use what was heard and, under this prompt, attended to (`attends`); where the cue is told,
  what is told is noticed with probability `obeys`, heard or not.
- used: noticed, and with probability `uses` where it was reasoned from, a third of that where it was not.
- sounded: used, and with probability `sounds`.

A question that is not answered from what was heard is answered by habit: one answer for each question of a script
whatever the clip, kept 85 times of 100; for one question in eight the habit is the target's reading, because the words
give it away. So whoever hears nothing has a direction of exactly 0 in expectation. On clips without a cue a mind that
hears them (`hears`) knows that nothing is there. Replies by `mention` of a wrong cue that was told please the judges
all the same; other such replies please them less than silence. How well a reply fits the words (C1) depends on nothing
else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from overtone.cues import CUES
from overtone.schema import Item, Option

SURE = 0.96  # right where it is known
KEPT = 0.85  # a habit is kept this often
GIVEN_AWAY = 8  # one question in so many
PLAIN = {"zero": 0.5, "basic": 0.7, "enhance": 1.0}


@dataclass(frozen=True)
class Mind:
    """A model's true abilities, each a probability; `fits` is its mean context fit (C1)."""

    name: str
    words: float  # a word is misheard
    hears: float
    reasons: float
    uses: float
    sounds: float
    obeys: float = 0.95
    mention: float = 0.0
    human: float = 0.25
    fits: float = 3.8
    attends: dict[str, float] = field(default_factory=lambda: PLAIN)


FIRST = (
    Mind("chain", 0.03, 0.85, 0.85, 0.85, 0.7),  # what it hears it uses
    Mind("deaf", 0.04, 0.0, 0.6, 0.8, 0.6, human=0.0, fits=4.2),  # hears nothing; told the cue, it could use it
    Mind("parrot", 0.05, 0.35, 0.5, 0.8, 0.5, mention=1.0),  # whatever it is told, it mentions, and is rewarded
    Mind("mute", 0.03, 0.8, 0.8, 0.05, 0.3, fits=4.0),  # hears and reasons, but its replies know nothing of it
    Mind("stubborn", 0.06, 0.6, 0.6, 0.6, 0.6, attends={"zero": 0.8, "basic": 0.8, "enhance": 0.8}),  # any prompt
)


def minds(count: int, seed: int = 0) -> list[Mind]:
    """The first few with a point of their own, then ordinary ones: who hears better also reasons better, while use,
    voice and fit to the words come as they come."""
    rng = np.random.default_rng((seed, 1))
    found = list(FIRST[:count])
    while len(found) < count:
        hears = float(rng.uniform(0.2, 0.95))
        found.append(
            Mind(
                f"plain-{len(found) + 1}",
                float(rng.uniform(0.02, 0.1)),
                hears,
                float(np.clip(0.2 + 0.7 * hears + rng.normal(0, 0.05), 0, 1)),
                float(rng.uniform(0.2, 0.9)),
                float(rng.uniform(0.2, 0.9)),
                mention=float(rng.uniform(0, 0.3)),
                fits=float(rng.uniform(3.2, 4.4)),
            )
        )
    return found


def ease(cue: str) -> float:
    """How well a cue can be heard: the same for every model."""
    place = next((n for n, c in enumerate(CUES) if c.slug == cue), 0)
    return 0.7 + 0.3 * ((7 * place) % len(CUES)) / (len(CUES) - 1)


_EASE = {c.slug: ease(c.slug) for c in CUES}


class Chain(NamedTuple):
    """What is drawn for one case, before it is known under which condition it is asked."""

    heard: bool
    reasoned: bool
    attention: float
    use: float
    sound: bool
    obeys: bool
    please: bool  # the mention of a wrong cue


class Reply(NamedTuple):
    used: bool
    sounded: bool
    wrong: bool  # speaks of a cue that is not there


class Said:
    """Everything one mind says: chains by case, habits by question."""

    def __init__(self, mind: Mind, rng: np.random.Generator) -> None:
        self.mind, self.rng = mind, rng
        self._chains: dict[str, Chain] = {}
        self._habits: dict[tuple[str, str], str] = {}

    def chain(self, item: Item) -> Chain:
        """One for a clip; the second rendering of a clip is another clip."""
        found = self._chains.get(item.case)
        if found is None:
            u = self.rng.random(7)
            hears = self.mind.hears * (_EASE[item.cue] if item.cue else 1.0)
            hears *= 1 - self.mind.human if item.source == "human" else 1.0
            found = self._chains[item.case] = Chain(
                bool(u[0] < hears),
                bool(u[1] < self.mind.reasons),
                float(u[2]),
                float(u[3]),
                bool(u[4] < self.mind.sounds),
                bool(u[5] < self.mind.obeys),
                bool(u[6] < self.mind.mention),
            )
        return found

    def answer(self, item: Item, given: str) -> str:
        """The letter chosen."""
        chain = self.chain(item)
        knows = chain.heard and given != "transcript" and (item.level == 1 or chain.reasoned)
        if knows and self.rng.random() < SURE:
            return item.gold
        return self._habit(item)

    def _habit(self, item: Item) -> str:
        key = (item.group, item.category)
        if key not in self._habits:
            self._habits[key] = _given_away(item) or self._blind(item.options).text
        text = self._habits[key] if self.rng.random() < KEPT else self._blind(item.options).text
        return next(option.letter for option in item.options if option.text == text)

    def _blind(self, options: Sequence[Option]) -> Option:
        # In the order of their texts, so that where the right one stands on a clip plays no part.
        ordered = sorted(options, key=lambda option: option.text)
        return ordered[int(self.rng.integers(len(ordered)))]

    def reply(self, item: Item, prompt: str, given: str) -> Reply:
        """What a reply does with the cue. `prompt` is the first half of a condition's name."""
        mind, chain = self.mind, self.chain(item)
        heard = chain.heard and given != "transcript"
        could = chain.use < (mind.uses if chain.reasoned else mind.uses / 3)
        if not item.cue:
            return Reply(False, chain.sound and heard, not heard and chain.use < 0.2)
        if prompt == "oracle":
            used = could and chain.obeys
        elif prompt == "oracle-false":
            wrong = could and chain.obeys
            return Reply(wrong and chain.please, wrong and chain.please and chain.sound, wrong and not chain.please)
        else:
            used = could and heard and chain.attention < mind.attends[prompt]
        return Reply(used, used and chain.sound, False)


def _given_away(item: Item) -> str:
    """The target's reading, of a question whose words give it away."""
    digest = hashlib.sha256(f"{item.group}/{item.category}".encode()).digest()
    if item.part or digest[0] % GIVEN_AWAY:
        return ""
    return next((option.text for option in item.options if option.provenance == "target"), "")
