"""Spoken conversations with a model, stored as a run while they are held.

Each utterance of the user is one item: its recording, after the earlier utterances and their replies. So a stopped
program loses nothing, and `overtone run talk --data RUN` asks another model about the same recordings.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.audio import decode, load_sound
from overtone.benchmarks import Selection
from overtone.benchmarks.talk import BENCHMARK, FILE
from overtone.errors import AudioError, DataError, ModelFailure
from overtone.models import Model, OnPiece, Piece
from overtone.paths import write_whole
from overtone.runs.asker import Asker, Policy, Stopped
from overtone.runs.engine import sent_messages
from overtone.runs.people_labels import Label, LabelStudy, Question, read_labels, write_labels
from overtone.runs.store import Ask, Part, Store
from overtone.schema import (
    EMOTION,
    THOUGHT,
    Clip,
    Condition,
    Item,
    Message,
    Reply,
    Request,
    Sound,
    Timings,
    Turn,
    remarks,
)
from overtone.tasks import Prompts, converse

SHORTEST, LONGEST = 0.2, 120.0  # seconds of an utterance
MAX_BYTES = 32 << 20
MOST_TURNS = 100  # of a conversation
RATINGS = LabelStudy(
    id=BENCHMARK,
    title="Ratings by the person who spoke",
    design="acr",
    questions={"fit": Question(label="Fit of the reply", question="How well did the reply fit what you said, and how?",
                               low=1, high=5)},
)  # fmt: skip
POLICY = Policy(attempts=3, longest=4.0, patience=10.0)

log = logging.getLogger("overtone")
Event = dict[str, Any]
Emit = Callable[[Event], None]
Transcribe = Callable[[Any, int], str]


class Recorded(Struct, frozen=True):
    """The benchmark of a run of conversations. Its items are added while the user speaks."""

    root: Path
    name: str = BENCHMARK
    prompts: dict[str, str] = {}
    warnings: list[str] = []

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield nothing: no item exists before the user speaks."""
        return iter(())


class Conversation(Struct):
    """One conversation: its utterances so far, and its messages to and from the model."""

    id: str
    turns: list[Turn] = []
    history: list[Message] = []
    busy: bool = False


class _Streamed:
    """A model whose pieces are passed on as they arrive, if it can stream."""

    def __init__(self, model: Model, on_piece: OnPiece, on_attempt: Callable[[], None]) -> None:
        self._model, self._on_piece, self._on_attempt = model, on_piece, on_attempt
        self.spec, self.slots, self.streams = model.spec, model.slots, hasattr(model, "stream")

    async def open(self) -> None:
        """Do nothing: the model is open."""

    async def close(self) -> None:
        """Do nothing: the caller closes the model."""

    def describe(self) -> dict[str, Any]:
        return self._model.describe()

    async def ask(self, request: Request) -> Reply:
        self._on_attempt()
        return await self._model.ask(request)

    async def stream(self, request: Request, on_piece: OnPiece) -> Reply:
        def both(piece: Piece) -> None:
            on_piece(piece)  # the clock first
            self._on_piece(piece)

        self._on_attempt()
        reply: Reply = await self._model.stream(request, both)  # type: ignore[attr-defined]
        return reply


class Conversations:
    """All conversations of one run with one model. `transcribe` recognises the user's words for the page, if given."""

    def __init__(
        self,
        store: Store,
        model: Model,
        prompts: Prompts,
        *,
        condition: Condition,
        speech: bool = True,
        transcribe: Transcribe | None = None,
        audio_rate: int | None = None,
        policy: Policy = POLICY,
    ) -> None:
        self.store, self.model, self.prompts = store, model, prompts
        self.condition, self.speech, self.audio_rate, self.policy = condition, speech, audio_rate, policy
        self._transcribe = transcribe
        self._known: dict[str, Conversation] = {}
        self._replied: dict[str, int] = {}  # item → its ask
        self._ratings = {label.unit: label for label in read_labels(store) if label.study == BENCHMARK}
        (store.folder / "clips").mkdir(exist_ok=True)

    def begin(self) -> str:
        """Start a conversation and return its id."""
        name = secrets.token_hex(4)
        self._known[name] = Conversation(name)
        return name

    def find(self, name: str) -> Conversation:
        """Return a conversation. Raises DataError if it is unknown, e.g. because the program was started again."""
        if name not in self._known:
            raise DataError("this conversation has ended; start a new one")
        return self._known[name]

    async def answer(self, name: str, recording: bytes, emit: Emit) -> None:
        """Ask the model about the next utterance, and emit what happens as events. One of them is done or error.

        The recognised words are emitted when they are ready, which may be after that.
        Raises DataError for an unknown conversation, one that is still being answered, and an unusable recording.
        """
        talk = self.find(name)
        if talk.busy:
            raise DataError("the model has not finished its reply; wait for it")
        if len(talk.turns) >= MOST_TURNS:
            raise DataError(f"a conversation has at most {MOST_TURNS} utterances; start a new one")
        talk.busy = True
        try:
            sound = await asyncio.to_thread(self._sound, recording)
            ask = self._stored(talk, sound)
            emit({"turn": ask.item.id, "number": len(talk.turns) + 1})
            heard = asyncio.create_task(self._heard(sound, emit))
            try:
                await self._ask(talk, ask, sound, heard, emit)
            finally:
                await heard
        finally:
            talk.busy = False

    def _sound(self, recording: bytes) -> Sound:
        """Check a recording and return it as the model gets it. Raises AudioError."""
        sound = load_sound(
            recording, rate=self.audio_rate, max_seconds=LONGEST, max_bytes=MAX_BYTES, name="the recording"
        )
        if sound.seconds < SHORTEST:
            raise AudioError(f"the recording has {sound.seconds:.2f} s; hold the button while you speak")
        return sound

    def _stored(self, talk: Conversation, sound: Sound) -> Ask:
        """Store the utterance's recording and item before the model is asked."""
        name = f"{talk.id}-{len(talk.turns) + 1}-{sound.sha256[:6]}"  # the user may repeat what got no reply
        path = f"clips/{name}.wav"
        write_whole(self.store.folder / path, sound.wav)
        turn = Turn(Clip(path, sound.sha256, round(sound.seconds, 3)))
        item = Item.of(BENCHMARK, name, "converse", *talk.turns, turn, group=talk.id, source="microphone")
        self.store.plan([(item, [self.condition.name])], 1)
        stat = (self.store.folder / path).stat()
        self.store.add_clip(path, sound.sha256, stat.st_size, stat.st_mtime_ns, sound.seconds)
        self.store.commit()
        with (self.store.folder / FILE).open("ab") as file:
            file.write(msgspec.json.encode(item) + b"\n")
        return next(ask for ask, _ in self.store.asks(Part(case=item.case)) if ask.item.id == item.id)

    def rate(self, turn: str, value: int) -> None:
        """Store a person's rating of a reply as a label of the run, in place of an earlier one. Raises DataError."""
        if turn not in self._replied:
            raise DataError("this reply is not known; only replies of this session can be rated")
        if not 1 <= value <= 5:
            raise DataError("a rating is a whole number from 1 to 5")
        self._ratings[turn] = Label(
            ask=self._replied[turn], study=BENCHMARK, unit=turn, rater="speaker", dimension="fit", value=value,
            usable=True, at=time.strftime("%Y-%m-%d", time.gmtime()),
        )  # fmt: skip
        write_labels(self.store, RATINGS, list(self._ratings.values()))

    async def _heard(self, sound: Sound, emit: Emit) -> str:
        """Recognise the user's words, if there is a recogniser. A failure of it does not end the turn."""
        if self._transcribe is None:
            return ""
        try:
            words = await asyncio.to_thread(self._transcribe, *decode(sound.wav))
        except Exception as error:  # noqa: BLE001 - only the transcript on the page is missing then
            log.warning("the recogniser failed: %s", error)
            return ""
        emit({"heard": words})
        return words

    async def _ask(self, talk: Conversation, ask: Ask, sound: Sound, heard: asyncio.Task[str], emit: Emit) -> None:
        def passed_on(piece: Piece) -> None:
            event: Event = {"text": piece.text, "thought": piece.thought, "rate": piece.rate, "pcm": piece.pcm}
            emit({key: value for key, value in event.items() if value})

        turn = len(talk.turns)
        messages = converse.messages(ask.item, self.condition, turn, talk.history, sound, self.prompts)
        request = Request(ask.key(turn), messages, speech=self.speech, task="converse")
        asker = Asker(_Streamed(self.model, passed_on, lambda: emit({"restart": True})), policy=self.policy)
        try:
            reply, attempts, latency = await asker.attempt(request)
        except (ModelFailure, Stopped) as failure:
            reason, detail = (failure.reason, failure.detail) if isinstance(failure, ModelFailure) else ("stopped", "")
            self.store.add_failure(ask, turn, reason, detail or asker.outcome.detail, getattr(failure, "attempts", 1))
            self.store.commit()
            emit({"error": f"The model did not answer: {detail or asker.outcome.detail}. Say it again to retry."})
            return
        sent = sent_messages(request)
        self.store.add_reply(ask, turn, reply, sent=sent, latency=latency, attempts=attempts)
        self.store.commit()
        self._replied[ask.item.id] = ask.id
        emit(_done(reply, latency))
        await self._remember(talk, ask, messages, reply, heard)

    async def _remember(
        self, talk: Conversation, ask: Ask, messages: tuple[Message, ...], reply: Reply, heard: asyncio.Task[str]
    ) -> None:
        words = await heard
        last = msgspec.structs.replace(ask.item.turns[-1], given=reply.text, heard=words)
        talk.turns.append(last)
        talk.history = [message for message in messages if message.role != "system"]
        talk.history.append(Message("assistant", (reply.text,)))


def _done(reply: Reply, latency: float) -> Event:
    """Return the event that ends a turn: the whole reply, its thought and labels, and how long it took.

    A model that does not stream has only the time of its whole reply.
    """
    thought = next((note.removeprefix(THOUGHT) for note in reply.notes if note.startswith(THOUGHT)), "")
    emotion = next((note.removeprefix(EMOTION) for note in reply.notes if note.startswith(EMOTION)), "")
    return {
        "done": True,
        "text": reply.text,
        "thought": thought,
        "emotion": emotion,
        "wav": reply.audio or b"",
        "refused": reply.refused,
        "cut": reply.finish == "length",
        "notes": remarks(reply.notes),
        "timings": msgspec.to_builtins(reply.timings or Timings(done=round(latency, 4))),
    }
