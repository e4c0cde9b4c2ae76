"""DREAM: multiple-choice questions about dialogues from English exams, in text or spoken (nlpdata/dream, TACL 2019).

DREAM measures whether words are understood. Its spoken form is a control for models that listen, never evidence that a
model hears more than words. It is not the safety method of the same name (arXiv 2504.18053).
"""

from __future__ import annotations

from pathlib import Path

from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.dream import baseline_scores
from overtone.benchmarks.dream.baseline_scores import LABELS, NAMES
from overtone.benchmarks.dream.baselines import OPTIONS, OVERLAP, Baselines
from overtone.benchmarks.dream.claimed_results import PUBLISHED
from overtone.build.dream.dream_files import (
    ANNOTATORS,
    SPLITS,
    TYPES,
    Dialogue,
    Question,
    Split,
    read_dialogues,
    read_split,
    split_file,
)
from overtone.build.dream.spoken_set import clip_path, spoken_split
from overtone.errors import DataError
from overtone.paths import shown
from overtone.schema import Clip, Guess, Item, Option, Turn
from overtone.scores import CHOICE_LESS
from overtone.suite import Column, Difference, Facts, Headline, Release, Suite

LETTERS = "ABC"
AGREED, DISPUTED = "+", "~"  # before a type in an item's topic: named by both annotators, or by one
ASKED = (
    "{role.plain} You get a dialogue between other people, in writing or as a recording, and a question about it. Pick "
    "the one option that answers the question best. Give no explanation. Reply in exactly this form: "
    "The answer is: [{letters}]"
)
METRICS = {"dream": baseline_scores}
_BASELINE = "Baseline, computed from the files on the same questions: "


def _baseline_columns() -> tuple[Column, ...]:
    helps = {
        "longest": "the option with the most characters",
        "options": "word pairs of question and option, learned from the train split; it never sees the dialogue",
        "window": "MCTest's sliding window over the dialogue",
        "overlap": "mean inverse document frequency of the option's words that are in the dialogue",
    }
    return tuple(
        Column(key, label, NAMES[key], better="neither", help=_BASELINE + helps[key]) for key, label in LABELS.items()
    )


def _type_columns(marks: str, rule: str) -> tuple[Column, ...]:
    return tuple(
        Column(
            name, name.capitalize(), "accuracy", where=({"topic": tuple(f"*{mark}{name}*" for mark in marks)},),
            help=f"Questions of the type {name}, {rule}; a question may have several types",
        )
        for name in TYPES.values()
    )  # fmt: skip


SUITE = Suite(
    Facts(
        title="DREAM",
        cues="none: it measures words, as a control",
        tasks="choose (3 options) about a dialogue",
        hears="a dialogue of 1–7 speakers, as text or spoken",
        answers="a letter, or the likeliest option",
        turns="one",
        metrics="accuracy, by question type, beside four baselines without understanding",
        data="nlpdata/dream (GitHub); spoken: overtone build dream",
        licence="non-commercial research only",
        offline="loading, building the spoken form, scoring, baselines",
    ),
    release=Release(
        "nlpdata/dream", "non-commercial research only, as its license.txt says", "github", ("data", "annotation")
    ),
    headlines=(
        Headline(
            "dream",
            "DREAM",
            (
                Column("accuracy", "Accuracy", "accuracy", help="Right answers ÷ answered questions, read by rule"),
                Column(
                    "above", "Above idf overlap", "accuracy",
                    read=Difference("accuracy", NAMES[OVERLAP]), kind="points",
                    help="Accuracy minus the accuracy of the idf overlap baseline on the same questions",
                ),
                *_baseline_columns(),
            ),
            hint="DREAM measures words: a control, never evidence of hearing. Intervals are clustered by dialogue.",
        ),
        Headline(
            "dream-likelihood",
            "DREAM by likelihood, minus the prior",
            (
                Column(
                    "less", "Accuracy", CHOICE_LESS,
                    help="The option whose likelihood gains most from the dialogue; conditions with likelihoods only",
                ),
            ),
        ),
        Headline(
            "dream-types",
            "DREAM by question type",
            _type_columns(AGREED, "as both annotators say"),
            hint="About a quarter of dev and test has types. A question counts where both annotators name the type.",
        ),
        Headline(
            "dream-types-either",
            "DREAM by question type, either annotator",
            _type_columns(AGREED + DISPUTED, "as at least one annotator says"),
        ),
    ),
    published=PUBLISHED,
    speech=False,
    layout=tuple(
        f"{folder}annotator{n}_{split}.txt" for folder in ("", "annotation/") for n in ANNOTATORS for split in SPLITS
    ),
)  # fmt: skip


class Dream(BenchmarkFolder):
    """A folder with DREAM's files or with the spoken set of one split, or one split's file."""

    name = "dream"
    prompts = {"choose.letters": "item", "choose.system": ASKED, "choose.words": "Dialogue:\n{words}"}  # noqa: RUF012

    def __init__(self, data: Path) -> None:
        split = next((one for one in SPLITS if data.name == f"{one}.json" and data.is_file()), None)
        super().__init__(data if split is None else data.parent, "DREAM's files, e.g. test.json")
        self.spoken = spoken_split(self.root)
        self.split: Split = split or self.spoken or "test"
        dialogues = read_split(self.root, self.split)
        baselines = Baselines(self._train())
        for dialogue in dialogues:
            self._add(dialogue, baselines)

    def _train(self) -> list[Dialogue] | None:
        """Return the train split for the baselines; None if it is missing, or if the train split is the one that is
        asked."""
        path = split_file(self.root, "train")
        if path is not None and self.split != "train":
            return read_dialogues(path)
        why = "the train split itself is asked" if path else f"{shown(str(self.root))} has no train.json"
        self.notices.add("baselines that learn from the train split are left out", f"{OPTIONS} and {OVERLAP}: {why}")
        return None

    def _add(self, dialogue: Dialogue, baselines: Baselines) -> None:
        clip: Clip | None = None
        if self.spoken == self.split:
            path = self.clip(clip_path(self.split, dialogue.id), ("",), dialogue.id)
            if path is None:
                return
            clip = Clip(path)
        answers = baselines.answers(dialogue)
        for number, (question, guessed) in enumerate(zip(dialogue.questions, answers, strict=True), 1):
            if len(set(question.choices)) < len(question.choices):
                self.notices.add("questions with two equal wrong options are kept", f"{dialogue.id}, question {number}")
            self._items.append(
                Item(
                    id=f"dream/{self.split}/{dialogue.id}/{number}",
                    benchmark=self.name,
                    level=2,
                    task="choose",
                    category="dialogue",
                    case=f"{self.split}/{dialogue.id}",
                    group=f"{self.split}/{dialogue.id}",
                    style="",
                    turns=(Turn(clip, dialogue.text),),
                    topic=types_of(question),
                    question=question.text,
                    options=tuple(Option(letter, text) for letter, text in zip(LETTERS, question.choices, strict=True)),
                    gold=LETTERS[question.answer],
                    language="en",
                    guesses=tuple(Guess(name, LETTERS[index]) for name, index in guessed.items()),
                )
            )


def types_of(question: Question) -> str:
    """Return the types of a question as text. `+` marks a type that both annotators chose, `~` one that only one chose,
    e.g. "+logic ~commonsense"."""
    both = [letter for letter in TYPES if question.types and all(letter in types for types in question.types)]
    either = [letter for letter in TYPES if any(letter in types for types in question.types)]
    return " ".join((AGREED if letter in both else DISPUTED) + TYPES[letter] for letter in either)


def load(data: Path) -> Dream:
    """Load DREAM from a folder (its test split, or the split that a spoken set holds) or from a split's file."""
    if data.is_file() and data.name not in {f"{split}.json" for split in SPLITS}:
        raise DataError(
            f"{shown(str(data))}: not a file of DREAM; give its folder, or train.json, dev.json or test.json"
        )
    return Dream(data)
