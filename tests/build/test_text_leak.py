"""The leak test can fail: planted leaks are found, fair sets pass, and a reader's ceiling is what the design allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from overtone.build.gates._reader_view import hashed
from overtone.build.gates.telltale import telltales
from overtone.build.gates.text_leak import Row, ceilings, failing, table
from overtone.build.questions import Question, reasoning
from overtone.build.script import Script, read_set
from overtone.errors import OvertoneError, UsageError
from overtone.leak_solver import model_solver
from tests.servers import Asked, OpenAIServer

VOCABULARY = [a + b for a in ("ba", "de", "fo", "gu", "ki", "lo", "mi", "ne", "pu", "ra") for b in
              ("bel", "dor", "fin", "gas", "kel", "lum", "mor", "nit", "pas", "rot")]  # fmt: skip
HARSH = " and stop the silly fuss"
READINGS = ("target", "alternative", "words", "harmful")


def script(name: str, words: str) -> Script:
    return Script(name, "happy", "sad", "work", "arlo", words, {"target": "x", "alternative": "y"}, {})


def text(rng: np.random.Generator, words: int = 6) -> str:
    return " ".join(rng.choice(VOCABULARY, words))


def fair(seed: int, count: int = 120, categories: int = 1) -> list[Question]:
    """Questions asked once, of random words, whose right answer is drawn by lot: nobody can beat 1/4."""
    rng = np.random.default_rng(seed)
    return [
        Question(
            f"q{c}_{i}", script(f"s{c}_{i}", text(rng, 10)), "target", f"kind{c}", "Which one?",
            tuple(text(rng, int(rng.integers(4, 8))) for _ in range(4)), READINGS, int(rng.integers(4)),
        )
        for c in range(categories) for i in range(count)
    ]  # fmt: skip


def plant(questions: Sequence[Question], share: float, change: Callable[[Question], Question]) -> list[Question]:
    """A leak in a share of the questions."""
    rng = np.random.default_rng(99)
    return [change(q) if rng.random() < share else q for q in questions]


def with_options(q: Question, options: Sequence[str], gold: int | None = None) -> Question:
    return Question(
        q.id, q.script, q.style, q.category, q.question, tuple(options), q.provenance, q.gold if gold is None else gold
    )


def longer(q: Question) -> Question:
    return with_options(q, [o + " fobel degas" * 2 if i == q.gold else o for i, o in enumerate(q.options)])


def worded(q: Question) -> Question:
    return with_options(q, [f"{o} gently" if i == q.gold else o for i, o in enumerate(q.options)])


def placed(q: Question) -> Question:
    return with_options(q, q.options, 1)


def echoed(q: Question) -> Question:
    own = " ".join(q.script.words.split()[2:8])
    return with_options(q, [own if i == q.gold else o for i, o in enumerate(q.options)])


def best(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda r: r.accuracy)


@pytest.mark.parametrize("leak", [longer, worded, placed, echoed], ids=["length", "word", "position", "script"])
def test_a_planted_leak_is_found_and_the_set_does_not_pass(leak: Callable[[Question], Question]) -> None:
    rows = table(plant(fair(1), 0.6, leak), 0, embed=hashed)
    (row,) = failing(rows)
    assert row.ceiling == 0.25
    assert row.low > 0.25
    assert not row.passes


def test_a_rule_by_which_option_sets_are_put_together_is_found() -> None:
    # option 0 never stands beside 1 when it is right, 2 never beside 3, …: a relative in the set says "wrong"
    rng = np.random.default_rng(5)
    names = [f"The voice is {w}." for w in VOCABULARY[:8]]
    made = []
    for i, q in enumerate(fair(3, 200)):
        gold = int(rng.integers(8))
        pool = [n for n in range(8) if n != gold and n // 2 != gold // 2]
        first = int(rng.choice(pool))
        rest = [first, first ^ 1, int(rng.choice([n for n in pool if n // 2 != first // 2]))]
        order = rng.permutation(4)
        cues = [[gold, *rest][j] for j in order]
        made.append(with_options(q, [names[c] for c in cues], cues.index(gold)))
        assert len(set(cues)) == 4, i
    found = {r.solver: r for r in table(made, 0, embed=hashed)}
    assert not found["option sets"].passes


def test_fair_sets_pass_in_about_nineteen_of_twenty_categories() -> None:
    rows = [row for seed in (11, 12, 13, 14) for row in table(fair(seed, 30, 5), seed, embed=hashed)]
    by_solver: dict[str, list[Row]] = {}
    for row in rows:
        by_solver.setdefault(row.solver, []).append(row)
    for solver, mine in by_solver.items():
        assert sum(not r.passes for r in mine) <= 3, solver  # of 20; 0.5 expected, more than 3 once in 500
        assert np.mean([r.accuracy for r in mine]) == pytest.approx(0.25, abs=0.05), solver


def test_nobody_who_reads_beats_the_ceiling_where_the_answer_moves() -> None:
    once = plant(fair(7, 80), 1.0, longer)  # the target option is far longer than the rest
    moving = [*once, *(with_options(q, q.options, (q.gold + 1) % 4) for q in once)]
    rows = table(moving, 0, embed=hashed)
    assert {r.ceiling for r in rows} == {0.5}
    assert failing(rows) == []
    assert best(rows).accuracy == pytest.approx(0.5, abs=0.02)


def test_the_ceiling_follows_the_design() -> None:
    (q,) = fair(0, 1)

    def asked(golds: Sequence[int], part: str = "") -> list[Question]:
        return [
            Question(f"{q.id}{i}", q.script, "target", q.category, q.question, q.options, q.provenance, gold, part)
            for i, gold in enumerate(golds)
        ]

    assert ceilings(asked([0])) == [0.25]  # asked once: chance
    assert ceilings(asked([0, 1])) == [0.5, 0.5]
    assert ceilings(asked([0, 1, 2])) == pytest.approx([1 / 3] * 3)
    assert ceilings(asked([2, 2])) == [0.25, 0.25]  # it does not move: who reads should know nothing
    assert ceilings(asked([0, 1]) + asked([2], "control")) == [0.5, 0.5, 0.25]  # parts are weighed apart
    assert ceilings([replace(q, category="conflict-words")]) == [1.0]  # it asks about the words
    turned = with_options(q, q.options[::-1], 3 - 1)  # the other answer, in another order
    assert ceilings([*asked([0]), turned]) == [0.5, 0.5]


def test_the_open_sets_reasoning_questions_have_the_ceilings_they_promise() -> None:
    questions = [q for q in reasoning(read_set("open"), 0) if not q.part]
    for q, ceiling in zip(questions, ceilings(questions), strict=True):
        assert ceiling <= 0.5, q.id
        if "words" in q.provenance and "neutral" in q.script.styles:
            assert ceiling == pytest.approx(1 / 3), q.id


def test_a_solver_of_ones_own_is_a_row_and_what_it_leaves_out_is_wrong() -> None:
    questions = fair(2, 40)

    def oracle(asked: Sequence[Question]) -> list[int | None]:
        return [q.gold if i % 2 else None for i, q in enumerate(asked)]

    rows = [r for r in table(questions, 0, [("mine", oracle)], embed=hashed) if r.solver == "mine"]
    assert [(r.accuracy, r.answered, r.n, r.passes) for r in rows] == [(0.5, 20, 40, False)]
    with pytest.raises(ValueError, match="39 answers to 40"):
        table(questions, 0, [("mine", lambda asked: [0] * (len(asked) - 1))], embed=hashed)


def test_the_table_is_the_same_every_time_and_other_parts_do_not_fail_the_headline() -> None:
    questions = plant(fair(1, 60), 0.9, longer)
    apart = [Question(q.id, q.script, q.style, q.category, q.question, q.options, q.provenance, q.gold, "fixed") for q in questions]  # noqa: E501  # fmt: skip
    rows = table(apart, 0, embed=hashed)
    assert rows == table(apart, 0, embed=hashed)
    assert failing(rows) == []
    assert len(failing(rows, parts=("", "fixed"))) == 1


def test_without_the_embedder_every_trained_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overtone.build.gates.text_leak.embedder", lambda: None)
    rows = table(fair(0, 30), 0)
    assert all("without sentence embeddings" in r.note for r in rows)


@pytest.mark.local
def test_with_sentence_embeddings_a_paraphrase_of_the_script_is_found() -> None:
    pairs = [("The bus left early", "The coach went before its time"), ("My soup is cold", "A chilly broth"),
             ("He painted the fence", "Somebody put colour on the barrier"), ("The cat is ill", "A sick pet"),
             ("We lost the match", "They were beaten in the game"), ("She bought a house", "A home was purchased"),
             ("The road is closed", "That street is shut"), ("I broke a plate", "A dish was smashed"),
             ("The doctor is late", "A physician who is behind schedule"), ("Snow fell overnight", "A white morning"),
             ("The baby is asleep", "An infant at rest"), ("My bike was stolen", "A theft of wheels")]  # fmt: skip
    rng = np.random.default_rng(0)
    questions = []
    for i in range(72):
        words, like = pairs[i % 12]
        gold = int(rng.integers(4))
        others = [pairs[int(j)][1] for j in rng.choice([j for j in range(12) if j != i % 12], 3, replace=False)]
        others.insert(gold, like)
        questions.append(Question(f"q{i}", script(f"s{i % 12}", words), "target", "kind", "Which?", tuple(others), READINGS, gold))  # noqa: E501  # fmt: skip
    assert best(table(questions, 0)).accuracy > 0.6


# ── options that tell ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_harmful_option_that_is_always_harsh_is_listed_with_the_reason() -> None:
    rng = np.random.default_rng(4)
    made = []
    for q in fair(6, 80):
        order = [READINGS[int(i)] for i in rng.permutation(4)]
        options = [o + HARSH if p == "harmful" else o for o, p in zip(q.options, order, strict=True)]
        made.append(Question(q.id, q.script, q.style, q.category, q.question, tuple(options), tuple(order), q.gold))
    told, found = telltales(made, 0, hashed)
    assert next(t for t in told if t.kind == "harmful").low > 0.6
    assert next(t for t in told if t.kind == "words").low < 0.6
    assert {t.kind for t in found[:20]} == {"harmful"}
    assert any("harsh words" in t.reason for t in found[:5])


# ── a model as a solver ───────────────────────────────────────────────────────────────────────────────────────────────


def solver_at(server: OpenAIServer) -> str:
    return f"openai:reader?base_url={server.base_url}&api_key_env=NO_KEY_NEEDED"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_KEY_NEEDED", "none")


def test_a_model_is_asked_each_text_once_with_the_words_and_no_sound() -> None:
    questions = fair(8, 6)
    twice = [*questions, *questions]
    with OpenAIServer(answer=lambda asked: "The answer is: [C]") as server:
        name, solve = model_solver(solver_at(server))
        assert solve(twice) == [2] * 12
        assert name.startswith("openai:reader")
        assert len(server.asked) == 6
        for q, asked in zip(questions, sorted(server.asked, key=lambda a: [q.script.words in a.text for q in questions].index(True)), strict=True):  # noqa: E501  # fmt: skip
            assert q.script.words in asked.text
            assert all(option in asked.text for option in q.options)
            assert not asked.sounds


def test_a_model_that_knows_the_answers_fails_the_gate() -> None:
    questions = fair(9, 24)

    def knows(asked: Asked) -> str:
        return next(q.answer for q in questions if q.script.words in asked.text)

    with OpenAIServer(answer=knows) as server:
        rows = table(questions, 0, [model_solver(solver_at(server))], embed=hashed)
    (row,) = failing(rows)
    assert row.accuracy == 1
    assert row.solver.startswith("openai:reader")


def test_an_answer_off_the_menu_and_a_server_that_fails_once_are_handled() -> None:
    with OpenAIServer(answer=lambda asked: "I would rather not say.") as server:
        assert model_solver(solver_at(server))[1](fair(1, 2)) == [None, None]
    with OpenAIServer(answer=lambda asked: "A") as server:
        server.behave("503")
        assert model_solver(solver_at(server))[1](fair(1, 2)) == [0, 0]


def test_a_model_that_cannot_be_reached_is_an_error_and_a_typo_one_at_once() -> None:
    with OpenAIServer(key="another") as server, pytest.raises(OvertoneError, match="auth"):
        model_solver(solver_at(server))[1](fair(1, 2))
    with pytest.raises(UsageError, match="did you mean 'openai'"):
        model_solver("opnai:x")


def test_a_model_that_fails_again_and_again_is_an_error() -> None:
    with OpenAIServer() as server, pytest.raises(OvertoneError, match="20 requests failed"):
        server.always = "400:no"
        model_solver(solver_at(server))[1](fair(1, 60))
    assert server.count < 40
