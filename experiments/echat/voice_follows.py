"""Does the voice of a spoken reply follow how the user spoke? Pairs with the same words in two deliveries.

    overtone evaluate echat CHECKPOINT --data PACK --spoken 192 --out answers.jsonl.gz
    python -m experiments.echat.voice_follows answers.jsonl.gz…

Of each query that was spoken in several deliveries, whose references have different emotions, the reply to one delivery
is decoded and compared with two reference voices: that of its own delivery, and that of the other one. The share of
pairs in which it is closer to its own is 0.5 for a deaf model, whatever it says and however it speaks: it says the same
to both deliveries, so it is closer to its own in exactly one of them. `deaf` computes that control from the same
replies: both deliveries get the reply to the first one. Intervals are over queries.

Measures: `prosody` is the fit to the reference's delivery (docs/reference/metrics/prosody.md), `emotion` the
probability that EmoAlign's predictor gives to the emotion it hears in the reference's voice, and `tag` the emotion that
the model chose, without a sound. Words could help the first two, because fast words sound like fast delivery. `same
words` decodes one sentence with the emotion of each reply instead of its codes, so that only the emotion can differ.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overtone.audio import Samples
from overtone.echat.data import think
from overtone.echat.exam import answer_file
from overtone.echat.exam.answer_file import Prediction
from overtone.echat.speech.units import Units, say
from overtone.embedded import emotion
from overtone.metrics import prosody
from overtone.stats import cluster

SENTENCE = "Thank you for telling me about it. We can look at it together whenever you like."
ALIKE = 1e-6

Sound = tuple[Samples, int]
Closeness = Callable[[Prediction, Prediction], float]  # how close a row's reply is to another row's reference


def chosen(row: Prediction) -> str:
    """The emotion that the reply is spoken in."""
    return think.parse(row.spoken).reply_emotion or "neutral"


def pairs(rows: Sequence[Prediction]) -> Iterator[tuple[Prediction, Prediction]]:
    """Spoken replies to one query in two deliveries that ask for different emotions."""
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for row in rows:
        if row.codes and row.reply_emotion:
            groups[f"{row.part}/{row.group}"].append(row)
    for members in groups.values():
        yield from ((a, b) for a, b in combinations(members, 2) if a.reply_emotion != b.reply_emotion)


class Closer:
    """How close spoken replies are to reference voices, by measure."""

    def __init__(self) -> None:
        self.voice = Units()
        self._sounds: dict[tuple[str, str], Sound] = {}
        self.measures: dict[str, Closeness] = {
            "tag": lambda row, other: float(chosen(row) == other.reply_emotion),
            "prosody": lambda row, other: self._prosody(self._reply(row), self._reference(other)),
            "emotion": lambda row, other: self._emotion(self._reply(row), self._reference(other)),
            "prosody, same words": lambda row, other: self._prosody(
                self._sentence(chosen(row)), self._sentence(other.reply_emotion)
            ),
            "emotion, same words": lambda row, other: self._emotion(
                self._sentence(chosen(row)), self._sentence(other.reply_emotion)
            ),
        }

    def _reply(self, row: Prediction) -> Sound:
        return self._kept(f"codes {row.codes}", chosen(row), lambda: np.array(row.codes, np.int64))

    def _sentence(self, emotion_of: str) -> Sound:
        return self._kept("", emotion_of, lambda: self.voice.read(SENTENCE, emotion_of))

    def _reference(self, row: Prediction) -> Sound:
        name = (row.reply, row.reply_emotion)
        if name not in self._sounds:
            self._sounds[name] = say(*name)
        return self._sounds[name]

    def _kept(self, name: str, emotion_of: str, codes: Callable[[], NDArray[np.int64]]) -> Sound:
        if (name, emotion_of) not in self._sounds:
            self._sounds[name, emotion_of] = self.voice.decode(codes(), emotion_of)
        return self._sounds[name, emotion_of]

    def _prosody(self, reply: Sound, reference: Sound) -> float:
        parts = prosody.similarities(prosody.differences(prosody.delivery(*reply), prosody.delivery(*reference)))
        return float(np.mean(list(parts.values())))

    def _emotion(self, reply: Sound, reference: Sound) -> float:
        wanted = emotion.predict(*reference).probabilities
        if not wanted:
            return 0.0
        return emotion.predict(*reply).probabilities.get(max(wanted, key=wanted.__getitem__), 0.0)


def score(close: Closeness, spoken: Prediction, own: Prediction, other: Prediction) -> float:
    """1 if a reply is closer to its own delivery's reference than to the other's, 0.5 if it is as close to both."""
    difference = close(spoken, own) - close(spoken, other)
    return 0.5 if abs(difference) < ALIKE else float(difference > 0)


def compared(rows: Sequence[Prediction], close: Closeness) -> dict[str, cluster.Interval]:
    """The share of replies closer to their own delivery, of the model and of its deaf control."""
    values: dict[str, list[float]] = {"model": [], "deaf": []}
    queries: list[str] = []
    for a, b in pairs(rows):
        queries += [f"{a.part}/{a.group}"] * 2
        values["model"] += [score(close, a, a, b), score(close, b, b, a)]
        values["deaf"] += [score(close, a, a, b), score(close, a, b, a)]
    return {name: cluster.mean(found, queries) for name, found in values.items()}


def tables(rows: Sequence[Prediction], measures: dict[str, Closeness]) -> Iterator[str]:
    """Yield the table's lines in Markdown."""
    yield "| measure | closer to its own delivery | deaf | pairs | queries |"
    yield "|---|---|---|---|---|"
    for name, close in measures.items():
        found = compared(rows, close)
        model, deaf = found["model"], found["deaf"]
        shown = f"{model.value:.2f} ({model.low:.2f} to {model.high:.2f})"
        yield f"| {name} | {shown} | {deaf.value:.2f} | {model.rows // 2} | {model.clusters} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.echat.voice_follows", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("answers", type=Path, nargs="+", help="answer files of 'overtone evaluate echat'")
    given = parser.parse_args()
    closer = Closer()
    for path in given.answers:
        _, rows = answer_file.read(path)
        if not any(pairs(rows)):
            print(f"{path}: no query was answered aloud in two deliveries; evaluate with a larger --spoken")
            continue
        print(f"\n{path.name}\n")
        print("\n".join(tables(rows, closer.measures)))


if __name__ == "__main__":
    main()
