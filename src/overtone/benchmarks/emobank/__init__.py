"""EmoBank: how does the writer of a sentence feel, and how does a reader feel? Valence, arousal and dominance.

There is one item per sentence and perspective. All sentences are asked. Tables select the official test rows, a fold of
whole documents, or a genre, so that a model can be evaluated on the rows that it was not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.emobank import ratings
from overtone.benchmarks.emobank.bank_files import FILES, read_bank
from overtone.benchmarks.emobank.rating_questions import ASK, WHO
from overtone.rated_sentences import PERSPECTIVES
from overtone.schema import Item, Turn
from overtone.suite import Column, Facts, Filter, Headline, Pearson, Published, Release, Suite
from overtone.tasks.rate import DIMENSIONS

METRICS = {"vad": ratings}
_HOW = (
    "Pearson's r with the people's mean; intervals clustered by document. Conditions likelihood/… use the expected "
    "value over the digits; in all others the model gave no likelihoods and the number that it wrote alone is scored."
)


def _columns(only: Filter) -> tuple[Column, ...]:
    found = []
    for who in PERSPECTIVES:
        for name in DIMENSIONS:
            found.append(
                Column(
                    f"{who}-{name}", f"{who.capitalize()} {name[0].upper()}", name, {**only, "category": (who,)},
                    Pearson(f"{name}.people"), kind="number", digits=3, ends=(-1.0, 1.0),
                    help=f"r of {name} as the {who} feels it",
                )
            )  # fmt: skip
    for name in DIMENSIONS:
        found.append(
            Column(
                f"gap-{name}", f"Gap {name[0].upper()}", name, only,
                Pearson(f"{name}.people", ("category", *PERSPECTIVES)), kind="number", digits=3, ends=(-1.0, 1.0),
                help=f"r of the difference in {name}, reader − writer; ratings allow about .24, 0, .23 for V, A, D",
            )
        )  # fmt: skip
    return tuple(found)


SUITE = Suite(
    Facts(
        title="EmoBank",
        cues="none: text",
        tasks="rate",
        hears="one sentence (text)",
        answers="text or likelihoods",
        turns="one",
        metrics="Pearson r of valence, arousal and dominance per perspective; r of the gap",
        data="JULIELab/EmoBank",
        licence="CC BY-SA 4.0",
        offline="all of it",
    ),
    release=Release("JULIELab/EmoBank", "CC BY-SA 4.0: name the authors, share alike", host="github"),
    headlines=(
        Headline("emobank", "EmoBank, all sentences asked", _columns({}), hint=_HOW),
        Headline(
            "emobank-genres", "EmoBank, by genre", _columns({}), rows="topic",
            hint="For a model trained without a genre, read that genre's line. Claims rest on this and on the folds.",
        ),
        Headline(
            "emobank-folds", "EmoBank, by fold of whole documents", _columns({}), rows="dimension",
            hint="For a model trained without a fold, read the line of that fold.",
        ),
        Headline(
            "emobank-official", "EmoBank, official test rows", _columns({"source": ("test",)}),
            hint="For comparison only: every test document is also in the training rows.",
        ),
    ),
    published=(
        Published(
            "EmoBank, limits by the raters",
            "√ICC(1,k) of the single ratings, computed by Overtone",
            {f"{who}-{name}": f"{who.capitalize()} {name[0].upper()}" for who in PERSPECTIVES for name in DIMENSIONS},
            (("people (ceiling)", (0.840, 0.563, 0.557, 0.800, 0.534, 0.498)),),
            comparable="a limit of the labels, not a model",
        ),
        Published(
            "EmoBank, combined labels, official test rows",
            "claims of papers, not verified",
            {name: name[0].upper() for name in DIMENSIONS},
            (
                ("RoBERTa-large, supervised", (0.829, 0.569, 0.513)),
                ("best published (Park et al. 2021)", (0.838, 0.573, 0.536)),
            ),
            comparable="labels are the mean of both perspectives, and test documents are also in train",
        ),
    ),
    layout=("individual_reader_ratings.csv",),
    speech=False,
)  # fmt: skip


class EmoBank(BenchmarkFolder):
    """A folder with EmoBank's files."""

    name = "emobank"
    prompts: Mapping[str, str] = {"rate.user": ASK.format(who="{question}", text="{words}")}

    def __init__(self, data: Path) -> None:
        super().__init__(data, f"EmoBank's files: {', '.join(FILES)}")
        bank = read_bank(self.root)
        folds, clusters = bank.folds(), bank.clusters
        for i, name in enumerate(bank.ids):
            for who in PERSPECTIVES:
                self._items.append(
                    Item(
                        id=f"emobank/{name}/{who}",
                        benchmark=self.name,
                        level=1,
                        task="rate",
                        category=who,
                        case=name,
                        group=clusters[i],
                        style="",
                        turns=(Turn(None, bank.texts[i]),),
                        dimension=f"fold {folds[i]}",
                        source=bank.splits[i],
                        topic=bank.genres[i],
                        question=WHO[who],
                        references=(" ".join(f"{value:g}" for value in bank.means[who][i]),),
                        language="en",
                    )
                )


def load(data: Path) -> EmoBank:
    """Load the copy of EmoBank in `data`."""
    return EmoBank(data)
