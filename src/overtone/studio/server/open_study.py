"""An open study, and the person who sends a request, for the handlers of requests."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from overtone.errors import OvertoneError, StoreError
from overtone.judges import rubric as rubrics
from overtone.paths import shown
from overtone.server_guard import Problem, read_json
from overtone.studio import closing, designs, stimuli
from overtone.studio.contents import Contents
from overtone.studio.database import Unavailable
from overtone.studio.designs import Unit
from overtone.studio.server.security import Bucket, Guesses
from overtone.studio.sounds import Sounds, Wanted
from overtone.studio.store import Refusal, Store
from overtone.studio.store.store_records import Person, Withdrawal
from overtone.studio.study import Study

MAX_JSON = 256 << 10  # bytes
THREADS = 8  # that save answers and read sounds
SLOW_THREADS = 3  # that begin sessions, render sounds and count
LONGEST_TOKEN = 200  # characters
T = TypeVar("T")
M = TypeVar("M")
STATUS = {
    "revoked": 403,
    "slot": 404,
    "take": 404,
    "unknown": 404,
    "closed": 410,
    "withdrawn": 410,
}  # of refusals; others: 409


class Studio:
    """An open study with everything that its server needs. Slow functions run in its threads, through `call`."""

    def __init__(self, study: Study, store: Store) -> None:
        self.study, self.store = study, store
        self.contents = questions(study)
        self.sounds = Sounds(sounds_folder(study))
        self.secret = store.secret("sounds")
        self.guesses, self.joins = Guesses(), Bucket(burst=300, rate=2)
        self.prepared = asyncio.Event()  # the units are frozen
        self.stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(THREADS, "studio")
        self._slow = ThreadPoolExecutor(SLOW_THREADS, "studio-slow")
        self._units: dict[str, Unit] = {}

    def unit(self, name: str) -> Unit:
        """Return a frozen unit."""
        if (unit := self._units.get(name)) is None:
            unit = self._units[name] = msgspec.json.decode(self.store.units()[name].content, type=Unit)
        return unit

    def seconds(self, wanted: Wanted | str) -> float:
        """Return the length of a sound, which is rendered first if necessary. Raises LostSound."""
        if isinstance(wanted, str):
            return stimuli.tones_seconds(int(wanted.rpartition("-")[2]))
        return self.sounds.render(wanted).seconds

    def sound(self, wanted: Wanted | str) -> bytes:
        """Return the bytes of a sound. Raises LostSound."""
        return stimulus(wanted) if isinstance(wanted, str) else self.sounds.data(wanted)

    async def call(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Run a function in a thread. It runs to its end even if the client disconnects."""
        return await self._run(self._threads, functools.partial(function, *args, **named))

    async def call_slow(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Run a function that may take a while, such as beginning a session. Such functions leave threads to others."""
        return await self._run(self._slow, functools.partial(function, *args, **named))

    @staticmethod
    async def _run(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(threads, work))

    def withdraw(self, label: str, loop: asyncio.AbstractEventLoop) -> Withdrawal:
        """Delete a person's data, in a thread, and have the labels removed, even if the client has disconnected."""
        try:
            return self.store.withdrawals.withdraw(label)
        finally:
            loop.call_soon_threadsafe(self.remove_labels)

    def has_withdrawn_labels(self) -> bool:
        """Return whether a run may still have labels of withdrawn people, e.g. because the server was killed."""
        runs = {str(self.study.folder(one).resolve()) for one in self.study.sources if one.kind == "run"}
        return not runs.isdisjoint(self.store.withdrawals.left_in())

    def remove_labels(self) -> None:
        """Remove the labels of withdrawn people from the runs, in the background. A run that is in use is reported."""

        async def work() -> None:
            for one in await self.call_slow(closing.write_labels, self.study, self.store):
                if one.problem:
                    self.warn(f"{one.sentence} Run 'overtone studio sync' later.")

        if self.stopping:
            self.warn("labels of a person who withdrew may be in the runs; run 'overtone studio sync'")
        else:
            self.background(work())

    def warn(self, message: str) -> None:
        """Print a line for the owner."""
        print(f"{time.strftime('%H:%M:%S')} {shown(message)}", file=sys.stderr, flush=True)

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something until the server ends, and print its failure."""

        async def run() -> None:
            try:
                await work
            except OvertoneError as error:
                self.warn(str(error))

        self._tasks.add(task := asyncio.create_task(run()))
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop background work, finish the writes of threads, and close the database."""
        self.stopping = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for threads in (self._slow, self._threads):
            await asyncio.to_thread(threads.shutdown, wait=True)
        self.store.close()


@functools.lru_cache(maxsize=64)
def stimulus(name: str) -> bytes:
    """Return a sound that the study synthesises. It is cached in memory."""
    return stimuli.sound(name)


def questions(study: Study) -> Contents:
    """Return the contents of a study without its units, which are read from the sources at the first start."""
    design = designs.find(study.design)
    asked = tuple(rubrics.load(name) for name in study.rubrics)
    return Contents(study, design, asked, design.fields(asked, study), ())


STUDIO: web.AppKey[Studio] = web.AppKey("studio", Studio)


def sounds_folder(study: Study) -> Path:
    """Return the folder of a study's rendered sounds."""
    return study.path.with_name(f"{study.path.stem}-sounds")


def studio_of(request: web.Request) -> Studio:
    """Return the study that a request is about."""
    return request.app[STUDIO]


def token_of(request: web.Request) -> str:
    """Return the token that a request sent, or ""."""
    given = request.headers.getall("Authorization", [])
    scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return value.strip() if scheme.lower() == "bearer" else ""


async def person_of(request: web.Request) -> Person:
    """Return the participant whose token a request carries. Raises Problem for an unknown token and for the owner."""
    person = await _anyone(request)
    if person.role == "owner":
        raise Problem(404, "this is the owner's link; people take part with links of their own", code="owner")
    return person


async def owner_of(request: web.Request) -> Person:
    """Return the owner. For everybody else, raise the error of a page that does not exist."""
    person = await _anyone(request)
    if person.role != "owner":
        raise Problem(404, "there is no such page", code="unknown")
    return person


async def _anyone(request: web.Request) -> Person:
    studio = studio_of(request)
    token = token_of(request)
    person = await studio.call(studio.store.people.find, token) if 0 < len(token) <= LONGEST_TOKEN else None
    if person is None:
        raise await studio.guesses.wrong(request)
    return person


async def message(request: web.Request, kind: type[M]) -> M:
    """Read a request's body as a record. Raises Problem with what is wrong."""
    body = await read_json(request, MAX_JSON)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise Problem(400, f"the request is not valid: {error}", code="invalid") from None


@web.middleware
async def explain(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
    """Convert refusals and failures of the store to errors for the page, and report failures to the owner."""
    try:
        answer: web.StreamResponse = await handler(request)
    except Refusal as refusal:
        raise Problem(STATUS.get(refusal.code, 409), str(refusal), code=refusal.code) from None
    except Unavailable as error:
        studio_of(request).warn(str(error))
        raise Problem(503, error.rater, code="unavailable") from None
    except StoreError as error:
        studio_of(request).warn(str(error))
        raise Problem(503, Unavailable.rater, code="unavailable") from None
    return answer


def fingerprint(data: bytes) -> str:
    """Return a short hash of a file's content, for ETag."""
    return hashlib.sha256(data).hexdigest()[:20]
