"""The wire protocol between Overtone and a worker program: frames of JSON and raw sound over one socket.

A worker runs in a virtual environment without Overtone, so this file imports only the standard library. A frame is the
length of the JSON (4 bytes, big-endian), the JSON, then the blobs, whose lengths the JSON lists under `blobs`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import queue
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

VERSION = 1
MAX_HEADER = 16 << 20
MAX_MESSAGE = 256 << 20
FD_VARIABLE = "OVERTONE_WORKER_FD"
_EXIT_PROTOCOL = 70  # the exit status of a worker that received an unreadable message


class ProtocolError(Exception):
    """The other side sent something that is not a frame."""


class TooLarge(ProtocolError):
    """A frame is over the limit. It was neither sent nor read."""


def pack(header: dict[str, Any], blobs: Sequence[bytes] = (), limit: int = MAX_MESSAGE) -> bytes:
    """Return one frame. Raises TooLarge before anything is copied."""
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}, ensure_ascii=False).encode()
    size = 4 + len(text) + sum(len(b) for b in blobs)
    if len(text) > min(MAX_HEADER, limit) or size > limit:
        raise TooLarge(f"a message of {size} bytes is over the limit of {limit}")
    return b"".join((struct.pack(">I", len(text)), text, *blobs))


def header_size(prefix: bytes, limit: int = MAX_MESSAGE) -> int:
    """Return the length of the JSON that follows these four bytes. Raises TooLarge if it is over the limit."""
    size: int = struct.unpack(">I", prefix)[0]
    if size > min(MAX_HEADER, limit):
        raise TooLarge(f"a header of {size} bytes is over the limit of {min(MAX_HEADER, limit)}")
    return size


def parse_header(text: bytes, limit: int = MAX_MESSAGE) -> tuple[dict[str, Any], list[int]]:
    """Return the JSON and the lengths of the blobs after it. Raises ProtocolError if they are invalid or too large."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not a frame: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        raise ProtocolError("not a frame: no type")
    sizes = header.pop("blobs", [])
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise ProtocolError("not a frame: its blob lengths are not a list of whole numbers")
    if len(text) + sum(sizes) > limit:
        raise TooLarge(f"a message of {len(text) + sum(sizes)} bytes is over the limit of {limit}")
    return header, sizes


class Channel:
    """One end of the socket, blocking. Any thread may send; one thread receives."""

    def __init__(self, end: socket.socket, limit: int = MAX_MESSAGE) -> None:
        self.end = end
        self.limit = limit
        self._sending = threading.Lock()

    def send(self, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        frame = pack(header, blobs, self.limit)
        with self._sending:
            self.end.sendall(frame)

    def receive(self) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the next frame, or None if the other side has closed the socket."""
        prefix = self._read(4)
        if prefix is None:
            return None
        text = self._read(header_size(prefix, self.limit))
        if text is None:
            return None
        header, sizes = parse_header(text, self.limit)
        blobs: list[bytes] = []
        for size in sizes:
            blob = self._read(size)
            if blob is None:
                return None
            blobs.append(blob)
        return header, blobs

    def _read(self, size: int) -> bytes | None:
        out = bytearray()
        while len(out) < size:
            try:
                part = self.end.recv(min(size - len(out), 1 << 20))
            except ConnectionResetError:
                return None
            if not part:
                return None
            out += part
        return bytes(out)


class Refused(Exception):
    """Raised by a worker's engine for an item it cannot answer. `reason` is one of Overtone's failure reasons."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass
class Item:
    """One request. Each message is (role, parts); a part is text, or the bytes of a mono 16-bit WAV."""

    id: int
    messages: list[tuple[str, list[str | bytes]]]
    speech: bool = False
    seed: int | None = None
    task: str = ""
    options: list[str] = field(default_factory=list)
    continuations: list[list[str]] = field(default_factory=list)  # steps of alternatives, whose likelihood is wanted
    without: list[tuple[str, list[str | bytes]]] = field(default_factory=list)  # messages for their prior likelihood

    @property
    def sounds(self) -> list[bytes]:
        return [p for _, parts in self.messages for p in parts if isinstance(p, bytes)]


@dataclass
class Answer:
    """The model's answer: text, a WAV if it spoke, why it ended (stop, length), and token counts."""

    text: str
    audio: bytes = b""
    finish: str = "stop"
    usage: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    likelihoods: list[list[dict[str, Any]]] = field(default_factory=list)  # per step: total, tokens and prior of each


class Engine(Protocol):
    """The interface that a worker file implements."""

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        """Load the model. Return facts: `rate` of its input sounds, `speech` (whether it speaks), class, device, …"""

    def generate(self, items: list[Item]) -> list[Answer]:
        """Answer the items as one batch, in order. If it raises, the batch is retried in smaller groups."""

    def recover(self) -> None:
        """Free memory after the device ran out of memory."""


class Batch:
    """Answers items in groups. Halves the group size if memory runs out; retries a failing group item by item."""

    def __init__(self, engine: Engine, size: int) -> None:
        self.engine = engine
        self.size = max(1, size)

    def run(self, items: list[Item], deliver: Callable[[Item, Answer | Refused], None]) -> None:
        pending = [items[i : i + self.size] for i in range(0, len(items), self.size)]
        while pending:
            group = pending.pop(0)
            failure: tuple[bool, str, str] | None = None
            answers: list[Answer] = []
            try:
                answers = self.engine.generate(group)
                if len(answers) != len(group):
                    raise RuntimeError(f"{len(answers)} answers to {len(group)} items")
            except Exception as error:  # noqa: BLE001 - every failure of one item becomes its own error message
                traceback.print_exc()
                reason = error.reason if isinstance(error, Refused) else "server"
                failure = _is_out_of_memory(error), reason, f"{type(error).__name__}: {error}"
            # After the except block no frame of the exception is held, so its tensors are freed before the retry.
            if failure is None:
                for item, answer in zip(group, answers, strict=True):
                    deliver(item, answer)
                continue
            out_of_memory, reason, detail = failure
            if out_of_memory:
                self.engine.recover()
            if len(group) == 1:
                deliver(group[0], Refused("too_large" if out_of_memory else reason, detail))
            elif out_of_memory:
                self.size = len(group) // 2
                print(f"out of memory with {len(group)} items at once; continuing with {self.size}", file=sys.stderr)
                pending[:0] = [group[i : i + self.size] for i in range(0, len(group), self.size)]
            else:
                pending[:0] = [[item] for item in group]


def _is_out_of_memory(error: BaseException) -> bool:
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or "out of memory" in str(error).lower()


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of these packages, without those that are not installed."""
    installed: dict[str, str] = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in names:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def serve(engine: Engine) -> int:
    """Run a worker: greet, load, answer batches until Overtone sends a shutdown or exits. Return the exit status."""
    joined = _join()
    if isinstance(joined, int):
        return joined
    facts = joined.load(engine.load)
    if facts is None:
        return 1
    batch = Batch(engine, int(joined.options.get("batch", 1)))
    joined.ready(facts)
    while (taken := joined.take("batch", "generating")) is not None:
        message, blobs = taken
        items = [_item(one, blobs) for one in message["items"]]
        batch.run(items, lambda i, a: _deliver(joined.channel, batch, i, a))
    return joined.status


Call = Callable[[dict[str, Any], list[bytes]], tuple[dict[str, Any], list[bytes]]]


def serve_calls(load: Callable[[dict[str, Any]], Call]) -> int:
    """Run a metric's helper: `load(options)` returns the function that answers calls, one at a time.

    A call and its answer are a JSON object and blobs. An exception of the function is reported to the caller, and the
    helper continues. Returns the exit status.
    """
    joined = _join()
    if isinstance(joined, int):
        return joined
    call = joined.load(load)
    if call is None:
        return 1
    joined.ready(getattr(call, "facts", {}))
    while (taken := joined.take("call", "measuring")) is not None:
        try:
            header, blobs = call(*taken)
            joined.channel.send({**header, "type": "result"}, blobs)
        except TooLarge as error:
            joined.channel.send({"type": "error", "detail": str(error)})
        except Exception as error:  # noqa: BLE001 - reported to the caller
            traceback.print_exc()
            sys.stderr.flush()
            joined.channel.send({"type": "error", "detail": f"{type(error).__name__}: {error}"})
    return joined.status


_T = TypeVar("_T")


@dataclass
class _Joined:
    """The state of a worker program after the greeting: its options, and the messages received so far."""

    channel: Channel
    options: dict[str, Any]
    inbox: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]]
    state: dict[str, str]
    status: int = 0

    def load(self, load: Callable[[dict[str, Any]], _T]) -> _T | None:
        """Return the result of `load`, or None if it failed; the failure is reported to Overtone."""
        try:
            return load(dict(self.options))
        except Exception as error:  # noqa: BLE001 - reported to Overtone, which shows it and the log
            traceback.print_exc()
            sys.stderr.flush()
            missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
            self.channel.send({"type": "failed", "detail": f"{type(error).__name__}: {error}", "missing": missing})
            return None

    def ready(self, facts: dict[str, Any]) -> None:
        self.state["phase"] = "idle"
        self.channel.send({"type": "ready", "facts": facts})

    def take(self, kind: str, phase: str) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the next message, which must be of this kind; None after a shutdown or an unknown message."""
        self.state["phase"] = "idle"
        message, blobs = self.inbox.get()
        if message["type"] == kind:
            self.state["phase"] = phase
            return message, blobs
        if message["type"] != "shutdown":
            print(f"unknown message {message['type']!r}", file=sys.stderr)
            self.status = _EXIT_PROTOCOL
        return None


def _join() -> _Joined | int:
    """Open the socket, read the greeting, and start the threads that read messages and send heartbeats.

    Return an exit status instead if the socket is closed or the protocol's version differs.
    """
    end = socket.socket(fileno=int(os.environ.pop(FD_VARIABLE)))
    end.set_inheritable(False)  # processes that this one starts must not keep the socket open
    channel = Channel(end)
    hello = channel.receive()
    if hello is None:
        return 0
    header = hello[0]
    if header.get("type") != "hello" or header.get("protocol") != VERSION:
        print(f"this worker speaks protocol {VERSION}, Overtone {header.get('protocol')}", file=sys.stderr)
        return _EXIT_PROTOCOL
    channel.limit = int(header["limit"])
    inbox: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]] = queue.SimpleQueue()
    state = {"phase": "loading"}
    threading.Thread(target=_read_all, args=(channel, inbox), daemon=True).start()
    threading.Thread(target=_beat, args=(channel, state, float(header["heartbeat"])), daemon=True).start()
    return _Joined(channel, dict(header["options"]), inbox, state)


def _item(one: dict[str, Any], blobs: list[bytes]) -> Item:
    messages = [(m["role"], [blobs[p] if isinstance(p, int) else p for p in m["parts"]]) for m in one["messages"]]
    item = Item(one["id"], messages, one["speech"], one["seed"], one["task"], one["options"])
    item.continuations = one.get("continuations", [])
    item.without = [(m["role"], m["parts"]) for m in one.get("without", [])]
    return item


def _deliver(channel: Channel, batch: Batch, item: Item, answer: Answer | Refused) -> None:
    head = {"id": item.id, "batch": batch.size}
    if isinstance(answer, Refused):
        channel.send({"type": "error", **head, "reason": answer.reason, "detail": str(answer)})
        return
    body: dict[str, Any] = {"text": answer.text, "finish": answer.finish, "usage": answer.usage, "notes": answer.notes}
    if answer.likelihoods:
        body["likelihoods"] = answer.likelihoods
    try:
        channel.send({"type": "reply", **head, **body}, [answer.audio] if answer.audio else [])
    except TooLarge as error:
        channel.send({"type": "error", **head, "reason": "too_large", "detail": str(error)})


def _read_all(channel: Channel, inbox: queue.SimpleQueue[tuple[dict[str, Any], list[bytes]]]) -> None:
    status = 0
    try:
        while (message := channel.receive()) is not None:
            inbox.put(message)
    except (ProtocolError, OSError) as error:
        print(f"cannot read the socket: {error}", file=sys.stderr)
        status = _EXIT_PROTOCOL
    _leave(status)


def _beat(channel: Channel, state: dict[str, str], every: float) -> None:
    parent = os.getppid()
    while True:
        time.sleep(every)
        if os.getppid() != parent:
            _leave(0)
        try:
            channel.send({"type": "heartbeat", "phase": state["phase"]})
        except OSError:
            _leave(0)


def _leave(status: int) -> None:
    """End the process from any thread, because Overtone, the only reader of its results, has ended or disconnected."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
