"""The items of a made-up benchmark in EchoMind's shape: linked levels, three styles, two sources, controls, false cues.

Every script has a target cue and another cue of the same task, so that one question can be asked of both clips. As in
EchoMind, scripts about the speaker have no neutral clip. Per script: the target clip's transcript; the coarse question,
the question about the clip's own cue and two reasoning questions on the target and the alternative clip; a conversation
in each style. In every tenth script all of that again in a human voice; in every fourth a reasoning question on the
neutral clip and on its second rendering; in every fourth the question about false cues, with a cue and without.
1,137 scripts give 15,996 items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from overtone import cues
from overtone.cues import CUES, Cue
from overtone.schema import Clip, Item, Option, Turn

SCRIPTS = 1_137  # of EchoMind
HUMAN, FOURTH = 10, 4  # every so many scripts
TOPICS = ("school", "family", "work", "health", "food", "technology", "sports", "finance")
WORDS = (
    "I went past the house on {} street again this morning.",
    "The meeting about the {} budget has been moved to Thursday.",
    "They sent me the results of the {} test last night.",
    "My brother is bringing the {} boxes over on Sunday.",
    "I have been waiting for the {} train for an hour now.",
    "We are going to see the {} match with the neighbours.",
    "The doctor said I should come back in {} days or so.",
    "I just heard who is going to lead the {} project.",
)
NUMBERS = ("second", "seventh", "old", "new", "long", "green", "northern", "small", "twelve", "last", "first")
TWO = ("people", "laughter", "shouting", "consistency")  # reasoning categories with two options
FOUR = tuple(name for name in cues.REASONING if name not in TWO)
READINGS = ("target", "alternative", "words", "harmful")
CUED = ("target", "alternative")

Asked = tuple[str, tuple[Option, ...]]  # the question and its options, in no particular order


def make_items(scripts: int, seed: int = 0) -> Iterator[Item]:
    """Every item of this many scripts, script by script. The same for every run."""
    rng = np.random.default_rng(seed)
    for number in range(scripts):
        for source in ("synthesis", "human") if number % HUMAN == 0 else ("synthesis",):
            yield from _Script(number, source, rng).items()


def human_scripts(scripts: int) -> int:
    return len(range(0, scripts, HUMAN))


class _Script:
    def __init__(self, number: int, source: str, rng: np.random.Generator) -> None:
        self.number, self.source, self.rng = number, source, rng
        self.cue = CUES[number % len(CUES)]
        pool = [c for c in CUES if c.task == self.cue.task]
        self.other = pool[(pool.index(self.cue) + 1) % len(pool)]
        self.words = WORDS[number % len(WORDS)].format(NUMBERS[number % len(NUMBERS)])

    def items(self) -> Iterator[Item]:
        yield self._item("target", 1, "transcribe", "asr", references=(self.words,))
        for category, asked in self._voice():
            for style in CUED:
                yield self._choose(style, 1, category, asked)
        first, second = self._reasoning()
        for category, asked in (first, second):
            for style in CUED:
                yield self._choose(style, 2, category, asked)
        neutral = self.cue.dimension != "speaker"
        if neutral and self.number % FOURTH == 0:
            yield self._choose("neutral", 2, *first)
            yield self._choose("control", 2, *first, part="control")
        if neutral and self.number % FOURTH == 1:
            asked = self._false_cue()
            for style in ("target", "neutral"):
                yield self._choose(style, 1, "false-cue", asked, part="false-cue")
        for style in ("target", "alternative", "neutral") if neutral else CUED:
            references = (f"A reply to {self.words!r} as it sounds in the {style} clip.",)
            yield self._item(style, 3, "converse", "conversation", references=references)

    def _voice(self) -> list[tuple[str, Asked]]:
        """The coarse question and that about the clip's own cue, whichever of the two it is."""
        pool: list[Cue] = [c for c in CUES if c.task == self.cue.task and c not in (self.cue, self.other)]
        if self.cue.task == "age":
            pool = [cues.BY_SLUG["adult"]]
        beyond = [c for c in CUES if c.dimension != self.cue.dimension]
        fine = self._draw(pool, 2)
        return [
            ("coarse", self._asked(cues.UNDERSTANDING["coarse"], [c.option for c in self._draw(beyond, 2)])),
            (self.cue.task, self._asked(cues.UNDERSTANDING[self.cue.task], [c.option for c in fine])),
        ]

    def _reasoning(self) -> list[tuple[str, Asked]]:
        """Two different categories, the first with four readings."""
        first = FOUR[self.number % len(FOUR)]
        names = [name for name in cues.REASONING if name != first]
        second = names[(self.number // len(FOUR)) % len(names)]
        found = []
        for name in (first, second):
            readings = READINGS[: 2 if name in TWO else 4]
            options = tuple(Option("", f"The {reading} reading of this, for {name}", reading) for reading in readings)
            found.append((name, (f"{cues.REASONING[name]}: which is it?", options)))
        return found

    def _false_cue(self) -> Asked:
        text, options = self._asked(cues.EXTENSION_STEMS["false-cue"], [])
        return text, (*options, Option("", cues.NOTHING_SPECIAL, "nothing"))

    def _asked(self, question: str, others: Sequence[str]) -> Asked:
        own = (Option("", self.cue.option, "target"), Option("", self.other.option, "alternative"))
        return question, (*own, *(Option("", text) for text in others))

    def _draw(self, pool: Sequence[Cue], most: int) -> list[Cue]:
        return [pool[int(i)] for i in self.rng.permutation(len(pool))[:most]]

    def _choose(self, style: str, level: int, category: str, asked: Asked, part: str = "") -> Item:
        question, options = asked
        right = style if style in CUED else "words" if level == 2 else "nothing"
        order = self.rng.permutation(len(options))
        shown = tuple(
            Option("ABCD"[place], options[int(i)].text, options[int(i)].provenance) for place, i in enumerate(order)
        )
        gold = next(option.letter for option in shown if option.provenance == right)
        return self._item(style, level, "choose", category, question=question, options=shown, gold=gold, part=part)

    def _item(self, style: str, level: int, task: str, category: str, **more: object) -> Item:
        carried = {"target": self.cue, "alternative": self.other}.get(style)
        unheard = {"target": self.other, "alternative": self.cue}.get(style, self.cue)
        group = f"{self.source}/id_{self.number}"
        slug = carried.slug if carried else ""
        clip = Clip(f"data_{self.source}/audio/{slug or style}/id_{self.number}_{style}.wav", seconds=4.0)
        return Item(
            id=f"echomind/{self.source}/{category}/id_{self.number}/{style}",
            benchmark="echomind",
            level=level,
            task=task,
            category=category,
            case=f"{group}/{style}",
            group=group,
            style=style,
            turns=(Turn(clip, self.words, slug),),
            cue=slug,
            other_cue=unheard.slug,
            cue_text=carried.labels[0] if carried else "",
            other_cue_text=unheard.labels[0],
            dimension=self.cue.dimension,
            source=self.source,
            topic=TOPICS[self.number % len(TOPICS)],
            **more,  # type: ignore[arg-type]
        )
