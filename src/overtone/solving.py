"""A model as a solver of the leak test: it is asked every question of a set with the transcript only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from overtone import registry
from overtone.build.gates._reading import Reading, readings
from overtone.build.gates.leak import Solver
from overtone.build.questions import Question
from overtone.errors import ModelFailure, OvertoneError
from overtone.models import Model
from overtone.schema import Condition, Item, Key, Option, Request, Turn
from overtone.spec import Spec, parse_spec
from overtone.tasks import Prompts, choose, load_prompts
from overtone.tasks.extract import lenient

ATTEMPTS = 4
AT_ONCE = 8  # requests, where the model does not say
_PAUSE = 0.5  # seconds before the second attempt; twice as long before each further one
_CONDITION = Condition(input="transcript")


def model_solver(spec: str) -> tuple[str, Solver]:
    """The name of a model by its SPEC, and a solver that asks it. Clips that share a text are asked about once. A
    question it does not answer, or answers beyond its options, is left unanswered, which the leak test counts as wrong;
    a model that cannot be reached at all is an error."""
    parsed = parse_spec(spec)
    registry.find("models", parsed.kind)  # a typo is an error now, not after the clips are built

    def solve(questions: Sequence[Question]) -> list[int | None]:
        return asyncio.run(_solve(parsed, questions))

    return str(parsed), solve


async def _solve(spec: Spec, questions: Sequence[Question]) -> list[int | None]:
    texts = readings(questions)
    prompts = load_prompts(f"{spec.kind}:{spec.name}", {})
    model: Model = registry.find("models", spec.kind).load(spec)
    await model.open()
    try:
        gate = asyncio.Semaphore(model.slots or AT_ONCE)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(_ask(model, gate, _item(questions[r.asked[0]], r), prompts)) for r in texts]
    except* OvertoneError as several:
        raise several.exceptions[0] from None
    finally:
        await model.close()
    out: list[int | None] = [None] * len(questions)
    for reading, task in zip(texts, asked, strict=True):
        for place in reading.asked:
            out[place] = task.result()
    return out


def _item(question: Question, reading: Reading) -> Item:
    options = tuple(Option(chr(ord("A") + i), text) for i, text in enumerate(reading.options))
    return Item(
        question.id, "open", 2, "choose", reading.category, question.id, reading.script, "",
        (Turn(None, reading.words),), question=reading.question, options=options,
    )  # fmt: skip


async def _ask(model: Model, gate: asyncio.Semaphore, item: Item, prompts: Prompts) -> int | None:
    """The place of the option it chooses, or None."""
    messages = choose.messages(item, _CONDITION, 0, (), None, prompts)
    options = tuple(option.text for option in item.options)
    request = Request(Key(item.id, _CONDITION.name), messages, task="choose", options=options)
    for attempt in range(ATTEMPTS):
        async with gate:
            try:
                reply = await model.ask(request)
                break
            except ModelFailure as failure:
                if failure.fatal:
                    raise OvertoneError(f"{model.spec}: {failure}") from failure
                if not failure.retry or attempt == ATTEMPTS - 1:
                    return None
                wait = failure.retry_after or _PAUSE * 2**attempt
        await asyncio.sleep(wait)
    letter = None if reply.refused else lenient(reply.text, item.options).letter
    return None if letter is None else ord(letter) - ord("A")
