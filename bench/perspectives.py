"""How often the analysis of a study of two label sets errs, by simulated studies; the table in the documentation.

`python -m bench.perspectives` prints it, `--write` puts it into the page, `--studies N` makes it quicker. Each study
has new sentences, questions and seeds, and predictions per item of arms with a known difference. The analysis is that
of trained models: cells, paired clustered estimates, checks of testability, Holm, verdicts. Fails where an error is
more frequent than 6 %, or where twice the margin is found in fewer than 80 % of the studies.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from overtone.rated_sentences import Array
from overtone.studies.perspectives.answers import Answers, Key
from overtone.studies.perspectives.design import CONTROL_SPLIT, Job, Study, tested_questions
from overtone.studies.perspectives.outcomes import Outcome, catalogue, cells
from overtone.studies.perspectives.study_analysis import Primary, primary_tests
from overtone.studies.perspectives.testability import check
from overtone.studies.perspectives.verdicts import EQUIVALENT, IMPROVES, NOT_TESTABLE, UNDECIDED, WORSE

STUDIES = 2000
MOST_ERRORS, LEAST_POWER = 0.06, 0.80
PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "perspectives-verdicts.md"
BEGIN, END = "<!-- simulation: begin -->", "<!-- simulation: end -->"
ARMS = ("both", "merged", "shuffled")
OPTIONS = 4


@dataclass(frozen=True)
class Corpus:
    """The size of a study. Documents have six sentences, scripts two questions."""

    name: str
    genres: int
    sentences: int  # of a genre
    scripts: int
    seeds: int


CORPORA = (
    Corpus("large", 6, 240, 300, 5),
    Corpus("small", 3, 120, 120, 3),
)
LARGE, SMALL = CORPORA


@dataclass(frozen=True)
class Scenario:
    """A planted difference, in margins, and how well the base model and its positive control do on the questions."""

    name: str
    margins: float
    base: float = 0.36
    tuned: float = 0.45  # the arms that are compared
    control: float = 0.55  # the base model tuned on the questions' own training data


SCENARIOS = (
    Scenario("no difference", 0),
    Scenario("a gain of the margin", 1),
    Scenario("a loss of the margin", -1),
    Scenario("a gain of twice the margin", 2),
    Scenario("no difference, and base at the level of guessing", 0, base=0.25, tuned=0.25),
    Scenario("no difference, and the positive control moves nothing", 0, control=0.36, tuned=0.36),
)
R = 0.6  # of the compared arms with the labels
# Shares of the variance of an arm's error: of documents and of items for all arms alike, of the arm, of arm and seed.
NOISE = {"document": 0.3, "item": 0.6, "arm": 0.06, "seed": 0.04}
OF_SEED = 0.005  # standard deviation of r and of the accuracy over seeds


class Simulator:
    """Draws studies of one corpus and analyses them."""

    def __init__(self, corpus: Corpus, study: Study) -> None:
        self.corpus, self.study = corpus, study
        self.genres = [f"g{i}" for i in range(corpus.genres)]
        count = corpus.genres * corpus.sentences
        self.documents = np.array([f"d{i // 6}" for i in range(count)])
        self.scripts = np.arange(2 * corpus.scripts) // 2

    def verdicts(self, scenario: Scenario, rng: np.random.Generator) -> list[Primary]:
        """Draw one study and return its primary tests."""
        key = self._key(rng)
        results = self._ratings(key, scenario, rng) | self._answers(key, scenario, rng)
        results[Job("official", "", "base", 0)] |= {"emobank": rng.normal(3, 0.1, (len(key.ids), 2, 3))}
        wanted = {test["outcome"] for test in self.study.settings["primary"]}
        outcomes = [outcome for outcome in _catalogue(key, self.study) if outcome.name in wanted]
        read = {outcome.name: cells(results, outcome) for outcome in outcomes}
        checks = {outcome.name: check(results, key, outcome, read[outcome.name]) for outcome in outcomes}
        return primary_tests(outcomes, read, checks, self.study)

    def _key(self, rng: np.random.Generator) -> Key:
        corpus, count = self.corpus, len(self.documents)
        shared = rng.normal(size=(count, 1, 3))
        labels = 3 + 0.5 * (np.sqrt(0.6) * shared + np.sqrt(0.4) * rng.normal(size=(count, 2, 3)))
        gold = rng.integers(0, OPTIONS, len(self.scripts))
        asked = Answers.of([[1] * OPTIONS] * len(gold), gold.tolist(), [f"s{i}" for i in self.scripts], [2] * len(gold))
        return Key(
            sha256="", ids=[str(i) for i in range(count)], genres=np.repeat(self.genres, corpus.sentences).tolist(),
            splits=["train"] * count, clusters=self.documents, folds=np.zeros(count, int), means=labels,
            answers={"open": asked},
        )  # fmt: skip

    # ── ratings ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _ratings(self, key: Key, scenario: Scenario, rng: np.random.Generator) -> dict[Job, dict[str, Array]]:
        """Return predictions of the left-out genres. The correlation with the labels is that of the arm and seed."""
        gain = scenario.margins * self.study.tests["margin_r"]
        out: dict[Job, dict[str, Array]] = {}
        for genre in self.genres:
            rows = key.tested(Job("genre", genre, "both", 0))
            truth = (key.means[rows] - 3) / 0.5
            shape = truth.shape
            documents = np.repeat(rng.normal(size=(len(rows) // 6, *shape[1:])), 6, 0)
            alike = np.sqrt(NOISE["document"]) * documents + np.sqrt(NOISE["item"]) * rng.normal(size=shape)
            for arm in ARMS:
                of_arm = np.sqrt(NOISE["arm"]) * rng.normal(size=shape)
                for seed in range(self.corpus.seeds):
                    r = R + (gain if arm == "both" else 0.0) + rng.normal(0, OF_SEED)
                    error = alike + of_arm + np.sqrt(NOISE["seed"]) * rng.normal(size=shape)
                    out[Job("genre", genre, arm, seed)] = {"emobank": 3 + r * truth + np.sqrt(1 - r * r) * error}
        return out

    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def _answers(self, key: Key, scenario: Scenario, rng: np.random.Generator) -> dict[Job, dict[str, Array]]:
        gain = scenario.margins * self.study.tests["margin_open"]
        asked, count = key.answers["open"], len(self.scripts)
        of_script = rng.normal(size=self.corpus.scripts)[self.scripts]
        alike = np.sqrt(NOISE["document"]) * of_script + np.sqrt(NOISE["item"]) * rng.normal(size=count)
        flat = np.full((count, OPTIONS), -5.0)

        def answered(share: float, of_arm: Array) -> Array:
            """Return likelihoods with which this share of the questions is answered right."""
            hard = alike + of_arm + np.sqrt(NOISE["seed"]) * rng.normal(size=count)
            right = hard < NormalDist().inv_cdf(share)
            scores = flat.copy()
            scores[np.arange(count), np.where(right, asked.gold, (asked.gold + 1) % OPTIONS)] = -1.0
            return scores

        def own() -> Array:
            return np.asarray(np.sqrt(NOISE["arm"]) * rng.normal(size=count))

        of_base = own()
        out: dict[Job, dict[str, Array]] = {
            Job("official", "", "base", 0): {
                "open/told": answered(scenario.base, of_base), "open/words": answered(0.25, of_base), "open/none": flat,
            }
        }  # fmt: skip
        for arm in ARMS:
            of_arm = own()
            for seed in range(self.corpus.seeds):
                share = scenario.tuned + (gain if arm == "both" else 0.0) + rng.normal(0, OF_SEED)
                job = Job("document", str(seed), arm, seed)
                out[job] = {"open/told": answered(share, of_arm), "open/none": flat}
        for seed in range(self.corpus.seeds):
            of_arm = own()
            for half in (0, 1):
                assert tested_questions(asked.clusters, seed, half).any()
                job = Job(CONTROL_SPLIT, str(half), "base", seed, True)
                out[job] = {"open/told": answered(scenario.control, of_arm), "open/none": flat}
        return out


def _catalogue(key: Key, study: Study) -> Sequence[Outcome]:
    return catalogue(key, study.tests)


# ── shares ────────────────────────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Shares:
    """How often each verdict was given, per outcome and over its two controls, and how often any test improved."""

    corpus: Corpus
    scenario: Scenario
    studies: int
    kinds: dict[str, Counter[str]]  # outcome → verdict → tests
    any_gain: float  # share of studies in which at least one of the four tests improves

    def share(self, outcome: str, kind: str) -> float:
        counts = self.kinds[outcome]
        return counts[kind] / counts.total()


def measure(corpus: Corpus, scenario: Scenario, studies: int, study: Study, seed: int = 0) -> Shares:
    """Simulate studies of one scenario."""
    simulator = Simulator(corpus, study)
    kinds: dict[str, Counter[str]] = {}
    gains = 0
    for number in range(studies):
        tests = simulator.verdicts(scenario, np.random.default_rng((seed, number)))
        for test in tests:
            kinds.setdefault(test.outcome, Counter())[test.kind] += 1
        gains += any(test.kind == IMPROVES for test in tests)
    return Shares(corpus, scenario, studies, kinds, gains / studies)


def problems(found: Shares) -> list[str]:
    """Return which requirements these shares miss. Power is required of the larger corpus alone."""
    out = []
    for outcome in found.kinds:
        limits: list[tuple[str, bool]] = []
        improves, equivalent = found.share(outcome, IMPROVES), found.share(outcome, EQUIVALENT)
        if found.scenario.margins == 0:
            limits.append((f"improves in {improves:.1%} without a difference", improves > MOST_ERRORS))
        if abs(found.scenario.margins) == 1:
            limits.append((f"is equivalent in {equivalent:.1%} at the margin", equivalent > MOST_ERRORS))
        if found.scenario.margins == 2 and found.corpus == LARGE:
            limits.append((f"improves in only {improves:.1%} at twice the margin", improves < LEAST_POWER))
        if found.scenario in SCENARIOS[4:] and outcome.startswith("open"):
            limits.append((f"is equivalent in {equivalent:.1%} at the floor", equivalent > MOST_ERRORS))
        out += [f"{found.corpus.name}; {found.scenario.name}: {outcome} {said}" for said, missed in limits if missed]
    return out


def table(every: Sequence[Shares]) -> str:
    """Return the shares as a table in Markdown."""
    kinds = (IMPROVES, WORSE, EQUIVALENT, UNDECIDED, NOT_TESTABLE)
    lines = [
        f"{every[0].studies:,} studies per row, two tests each. Percent of the tests:", "",
        f"| study | planted | outcome | {' | '.join(kinds)} |", f"|---|---|---|{'---|' * len(kinds)}",
    ]  # fmt: skip
    for found in every:
        for outcome in sorted(found.kinds):
            cells_ = " | ".join(f"{100 * found.share(outcome, kind):.1f}" for kind in kinds)
            lines.append(f"| {found.corpus.name} | {found.scenario.name} | `{outcome}` | {cells_} |")
    null = [found for found in every if found.scenario.margins == 0]
    worst = max(found.any_gain for found in null)
    lines += [
        "",
        f"Without a difference, one of the four tests or more improves in at most {100 * worst:.1f} % of studies.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate studies and show how often their verdicts err.")
    parser.add_argument("--studies", type=int, default=STUDIES, help=f"studies per scenario (default: {STUDIES})")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    args = parser.parse_args()
    study = Study.read()
    every = [measure(corpus, scenario, args.studies, study) for corpus in CORPORA for scenario in SCENARIOS]
    shown = table(every)
    print(shown)
    if args.write:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{shown}\n{END}{after}", encoding="utf-8")
    missed = [line for found in every for line in problems(found)]
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
