"""Answer the questions of the leak test with a model, which gets only the transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from overtone import registry
from overtone.build.gates._reader_view import Reading, readings
from overtone.build.gates.text_leak import Solver
from overtone.build.questions import Question
from overtone.errors import ModelFailure, OvertoneError
from overtone.models import Model
from overtone.runs.asker import Asker, Stopped
from overtone.schema import Condition, Item, Key, Option, Request, Turn
from overtone.spec import Spec, parse_spec
from overtone.tasks import Prompts, choose, load_prompts
from overtone.tasks.answers.extract import lenient

AT_ONCE = 8  # requests, at most
_CONDITION = Condition(input="transcript")


def model_solver(spec: str) -> tuple[str, Solver]:
    """Return a model's SPEC in its normal form, and a solver that asks the model once per distinct text.

    A reply that is missing or names none of the options is left unanswered, which the leak test counts as wrong. The
    solver raises OvertoneError if the model cannot be reached or fails repeatedly.
    """
    parsed = parse_spec(spec)
    registry.find("models", parsed.kind)  # a typo is an error now, not after the clips are built

    def solve(questions: Sequence[Question]) -> list[int | None]:
        return asyncio.run(_solve(parsed, questions))

    return str(parsed), solve


async def _solve(spec: Spec, questions: Sequence[Question]) -> list[int | None]:
    texts = readings(questions)
    prompts = load_prompts(f"{spec.kind}:{spec.name}", {})
    model: Model = registry.find("models", spec.kind).load(spec)
    answers: dict[int, int | None] = {}
    await model.open()
    try:
        asker = Asker(model, connections=AT_ONCE)
        left = iter(list(enumerate(texts)))

        async def work() -> None:
            for place, reading in left:
                answers[place] = await _ask(asker, _item(questions[reading.asked[0]], reading), prompts)

        await asker.together([work() for _ in range(asker.limiter.ceiling)])
    finally:
        await model.close()
    if asker.outcome.stopped:
        raise OvertoneError(f"{spec}: {asker.outcome.detail}")
    out: list[int | None] = [None] * len(questions)
    for number, reading in enumerate(texts):
        for place in reading.asked:
            out[place] = answers[number]
    return out


def _item(question: Question, reading: Reading) -> Item:
    options = tuple(Option(chr(ord("A") + i), text) for i, text in enumerate(reading.options))
    return Item(
        question.id, "open", 2, "choose", reading.category, question.id, reading.script, "",
        (Turn(None, reading.words),), question=reading.question, options=options,
    )  # fmt: skip


async def _ask(asker: Asker, item: Item, prompts: Prompts) -> int | None:
    """Return the index of the option that the model chooses, or None."""
    messages = choose.messages(item, _CONDITION, 0, (), None, prompts)
    options = tuple(option.text for option in item.options)
    request = Request(Key(item.id, _CONDITION.name), messages, task="choose", options=options)
    try:
        reply, _, _ = await asker.attempt(request)
    except ModelFailure as failure:
        if failure.fatal:
            asker.stop("fatal", str(failure))
        return None
    except Stopped:
        return None
    letter = None if reply.refused else lenient(reply.text, item.options).letter
    return None if letter is None else ord(letter) - ord("A")
