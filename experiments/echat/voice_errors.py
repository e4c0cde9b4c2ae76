"""Does a trained checkpoint's voice say its text? Word errors of whole replies and of single sentences, by temperature.

    python -m experiments.echat.voice_errors ask CHECKPOINT PACK --out said.jsonl  # speech tokens for texts of the pack
    python -m experiments.echat.voice_errors listen said.jsonl  # here or elsewhere: the recogniser's word

The pack's replies were not learnt from where its part is held out. `reference` is what the tokenizer makes of the same
texts by the voice that taught the model: what the recogniser makes of these is the best there is.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack
from overtone.echat.data.exchange_records import Record
from overtone.echat.making.evaluation_overlap import split
from overtone.paths import write_whole

TEMPERATURES = (0.0, 0.5, 0.8, 1.2)
LONGEST = 500  # codes: 20 s


class Row(Struct, frozen=True):
    """One text as it was spoken: `temperature` None for what the pack has."""

    kind: str
    text: str
    emotion: str
    temperature: float | None
    codes: tuple[int, ...]


def texts(records: Sequence[Record], count: int) -> Iterator[tuple[str, Record]]:
    """Replies, and one sentence of each that has several, not its first."""
    held = sorted((r for r in records if r.speech_token), key=lambda r: hashlib.sha256(r.key.encode()).digest())
    by_text = list({r.txt: r for r in held}.values())[:count]
    for record in by_text:
        yield "reply", record
    for record in by_text:
        if len(found := [s for s in split(record.txt) if s]) > 1:
            yield "sentence", replace(record, txt=found[1], speech_token=())


def ask(checkpoint: Path, packs: Sequence[Path], count: int, temperatures: Sequence[float]) -> list[Row]:
    from overtone.echat.exam.ask_checkpoint import open_machine
    from overtone.echat.net import decode
    from overtone.echat.speech import quiet_code
    from overtone.models.echat import checkpoint_folder

    machine, config, _ = open_machine(checkpoint_folder(checkpoint), "auto")
    model, tok = machine.model, machine.tok
    chosen = list(texts([r for pack in packs for r in Pack(pack).records], count))
    rows = [Row(k, r.txt, r.reply_emotion or "neutral", None, r.speech_token) for k, r in chosen if r.speech_token]
    asked = [layout.prompt(r, "t2s", tok) for _, r in chosen]
    quiet = quiet_code(config.model.speech.tokens)
    size = 64 if machine.device.type == "cuda" else 8
    for temperature in temperatures:
        drawn = replace(decode.SPEECH, temperature=temperature) if temperature else decode.GREEDY
        how = decode.DecodeOptions(write=False, speak=True, speech=drawn, max_speech=LONGEST, quiet=quiet)
        for at in range(0, len(asked), size):
            some = slice(at, at + size)
            said = decode.respond(model, tok, asked[some], [[] for _ in asked[some]], how)
            for (kind, record), one in zip(chosen[some], said, strict=True):
                rows.append(Row(kind, record.txt, record.reply_emotion or "neutral", temperature, one.codes))
            print(f"temperature {temperature:g}: {min(at + size, len(asked))} of {len(asked)}", flush=True)
    return rows


def listen(rows: Sequence[Row], tokens: str) -> None:
    from overtone.echat.speech import open_tokens
    from overtone.embedded.recogniser import transcribe
    from overtone.metrics.normalise import english
    from overtone.metrics.wer import align

    voice = open_tokens(tokens)
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for row in rows:
        heard = transcribe(*voice.decode(np.array(row.codes, np.int64), row.emotion)) if row.codes else ""
        counted = align(english(row.text).split(), english(heard).split())
        name = "reference" if row.temperature is None else f"temperature {row.temperature:g}"
        found.setdefault((row.kind, name), []).append((counted.errors, counted.reference_words, len(row.codes)))
    print(f"{'':<10} {'':<16} {'texts':>5} {'word errors':>11} {'codes a word':>12}")
    for (kind, name), counts in sorted(found.items()):
        errors, words, codes = np.array(counts).sum(0)
        print(f"{kind:<10} {name:<16} {len(counts):>5} {errors / words:>11.2f} {codes / words:>12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.echat.voice_errors", description=(__doc__ or "").partition("\n")[0]
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    asking = verbs.add_parser("ask")
    asking.add_argument("checkpoint", type=Path, help="a checkpoint, or a run's folder")
    asking.add_argument("packs", metavar="PACK", type=Path, nargs="+")
    asking.add_argument("--out", type=Path, required=True)
    asking.add_argument("--count", type=int, default=48, help="replies (48)")
    asking.add_argument("--temperatures", metavar="T,…", default=",".join(f"{t:g}" for t in TEMPERATURES))
    listening = verbs.add_parser("listen")
    listening.add_argument("file", type=Path)
    listening.add_argument("--tokens", default="units")
    given = parser.parse_args()
    if given.verb == "ask":
        rows = ask(given.checkpoint, given.packs, given.count, [float(t) for t in given.temperatures.split(",")])
        write_whole(given.out, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    else:
        listen([msgspec.json.decode(line, type=Row) for line in given.file.read_bytes().splitlines()], given.tokens)


if __name__ == "__main__":
    main()
