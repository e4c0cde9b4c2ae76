"""Time the standard metrics on spoken replies, with one process and with one per core: `python -m bench.scoring`.

There are as many replies as EchoMind asks for in one run. Each has its own text of some 27 words, spoken by espeak-ng,
and each item its own reference: equal texts would be embedded once and hide the work. The scores must be the same, to
the last digit, for every number of processes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from bench.metrics import TEXTS
from overtone.audio import encode_wav
from overtone.embedded.espeak_voice import speak
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Reply, Turn, Usage
from overtone.score_workers import default_processes
from overtone.scoring import score_run

REPLIES, LIMIT = 3_356, 100.0  # seconds on two cores
STYLES = ("target", "alternative", "neutral")
VOICES = ("en-us", "en-us+f3", "en-gb+m3")
_SENTENCES = [f"{part.strip()}." for text in TEXTS for part in text.replace("!", ".").split(".") if len(part) > 20]
_WORDS = sorted({word for sentence in _SENTENCES for word in sentence.split()})


def make(folder: Path, replies: int, seed: int = 0) -> None:
    """Write a run with this many spoken replies to conversation items."""
    rng = random.Random(seed)
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "echomind", "model": "bench", "root": str(folder)})
        store.plan([(_item(n, rng), ("basic",)) for n in range(replies)], 1)
        for number, (ask, _) in enumerate(list(store.asks())):
            text = _text(rng)
            sound = encode_wav(*speak(text, voice=VOICES[number % len(VOICES)]))
            reply = Reply(text, sound, "stop", Usage(), "bench")
            store.add_reply(ask, 0, reply, sent=b"{}", latency=0.1, attempts=1)


def _text(rng: random.Random) -> str:
    """Return two sentences in which three words in ten are replaced."""
    words = " ".join(rng.sample(_SENTENCES, 2)).split()
    return " ".join(rng.choice(_WORDS) if rng.random() < 0.3 else word for word in words).capitalize()


def _item(number: int, rng: random.Random) -> Item:
    script, style = divmod(number, len(STYLES))
    return Item(
        id=f"echomind/synthesis/conversation/id_{script}/{STYLES[style]}",
        benchmark="echomind",
        level=3,
        task="converse",
        category="conversation",
        case=f"synthesis/id_{script}/{STYLES[style]}",
        group=f"synthesis/id_{script}",
        style=STYLES[style],
        turns=(Turn(Clip("clip.wav", seconds=1.0), "I finally finished the report.", ""),),
        references=(_text(rng),),
    )


def scores(folder: Path) -> list[tuple[object, ...]]:
    """Return every stored score, in the order of the store."""
    db = sqlite3.connect(folder / "run.db")
    columns = "kind, subject, metric, text, value, reason, detail"
    rows = db.execute(f"SELECT {columns} FROM scores JOIN signatures ON signatures.id = signature").fetchall()
    db.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=REPLIES)
    parser.add_argument("--processes", type=int, nargs="+", default=sorted({1, default_processes()}))
    parser.add_argument("--run", type=Path, help="folder that keeps the replies for the next call")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        source = args.run or Path(name) / "run"
        if not source.exists():
            began = time.perf_counter()
            make(source, args.replies)
            print(f"{args.replies} replies spoken in {time.perf_counter() - began:.0f} s", flush=True)
        before: list[tuple[object, ...]] = []
        for processes in args.processes:
            folder = Path(name) / f"scored{processes}"
            shutil.copytree(source, folder)
            began = time.perf_counter()
            score_run(folder, processes=processes)
            took = time.perf_counter() - began
            print(f"{processes} processes: {took:.1f} s, {args.replies / took:.1f} replies/s", flush=True)
            now = scores(folder)
            if before and now != before:
                sys.exit("the scores depend on the number of processes")
            before = now
        if args.replies >= REPLIES and took > LIMIT:
            print(f"slower than {LIMIT:.0f} s")


if __name__ == "__main__":
    main()
