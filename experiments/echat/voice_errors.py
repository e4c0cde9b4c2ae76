"""Does a trained checkpoint's voice say its text, and what are the causes where it does not?

    python -m experiments.echat.voice_errors ask CHECKPOINT PACK --out said.jsonl  # units for texts of the pack
    python -m experiments.echat.voice_errors listen said.jsonl [--second FOLDER]   # here or elsewhere

`ask` reads whole replies and single sentences aloud, at several temperatures, and whole replies sentence by sentence.
Texts of a held-out part were not learnt. `listen` adds the voice that taught the model and its units, which are what a
model without errors would say, and prints the word error rates of the embedded recogniser, and of a second one
(experiments/echat/moonshine_base.py), with 95 % intervals over texts. Phoneme errors compare a model's units with the
text's, without a sound. The last table shows which step costs how much, always on the same texts.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack
from overtone.echat.data.exchange_records import Record
from overtone.echat.making.evaluation_overlap import split
from overtone.echat.speech.units import Units, say
from overtone.metrics.normalise import english
from overtone.metrics.wer import align
from overtone.paths import write_whole
from overtone.stats import cluster

TEMPERATURES = (0.0, 0.3, 0.6, 1.2)
PUBLISHED = 1.2
LONGEST = 300  # codes: over 20 s
VOICE, UNITS, PARTS, ORDINARY = "the voice", "its units", "sentence by sentence", "with ordinary lengths"

Hear = Callable[[np.ndarray[Any, Any], int], str]


class Row(Struct, frozen=True, omit_defaults=True):
    """One text as it was spoken. `way` is a temperature, or PARTS at one."""

    kind: str  # reply or sentence
    text: str
    emotion: str
    way: str
    codes: tuple[int, ...]


class Heard(Struct, frozen=True):
    """The errors of one spoken text, by recogniser and in its phonemes."""

    errors: dict[str, int]
    words: int
    wrong_phonemes: int
    phonemes: int
    codes: int


def at(temperature: float) -> str:
    return f"temperature {temperature:g}"


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
    quiet = quiet_code(config.model.speech.tokens)
    size = 64 if machine.device.type == "cuda" else 8

    def spoken(records: Sequence[Record], temperature: float) -> list[tuple[int, ...]]:
        drawn = replace(decode.SPEECH, temperature=temperature) if temperature else decode.GREEDY
        how = decode.DecodeOptions(write=False, speak=True, speech=drawn, max_speech=LONGEST, quiet=quiet)
        asked = [layout.prompt(r, "t2s", tok) for r in records]
        out = []
        for first in range(0, len(asked), size):
            some = asked[first : first + size]
            out += [one.codes for one in decode.respond(model, tok, some, [[] for _ in some], how)]
        return out

    rows = []
    for temperature in temperatures:
        for (kind, record), codes in zip(chosen, spoken([r for _, r in chosen], temperature), strict=True):
            rows.append(Row(kind, record.txt, record.reply_emotion or "neutral", at(temperature), codes))
        print(f"{at(temperature)}: {len(chosen)} texts", flush=True)
    replies = [record for kind, record in chosen if kind == "reply"]
    parts = [[replace(r, txt=s, speech_token=()) for s in split(r.txt) if s] for r in replies]
    said = iter(spoken([one for some in parts for one in some], temperatures[0]))
    for record, some in zip(replies, parts, strict=True):
        codes = tuple(code for _ in some for code in next(said))
        rows.append(Row("reply", record.txt, record.reply_emotion or "neutral", PARTS, codes))
    return rows


# ---- what is heard ---------------------------------------------------------------------------------------------------


class Listener:
    """Counts errors of spoken texts."""

    def __init__(self, hear: dict[str, Hear]) -> None:
        self.voice, self.hear = Units(), hear
        lengths: dict[int, list[int]] = {}
        for code, phoneme in enumerate(self.voice.phoneme_of.tolist()):
            lengths.setdefault(phoneme, []).append(code)
        # the middle one of a phoneme's codes, which are in order of length
        self.ordinary = {code: own[len(own) // 2] for own in lengths.values() for code in own}

    def count(self, row: Row) -> Heard:
        codes = np.array(row.codes, np.int64)
        sound, rate = (np.zeros(0, np.float32), 1) if not codes.size else self.voice.decode(codes, row.emotion)
        return self._counted(row, sound, rate, codes)

    def taught(self, row: Row) -> Heard:
        """The voice that taught the model."""
        sound, rate = say(row.text, row.emotion)
        return self._counted(row, sound, rate, self.voice.read(row.text, row.emotion))

    def _counted(self, row: Row, sound: np.ndarray[Any, Any], rate: int, codes: np.ndarray[Any, Any]) -> Heard:
        words = english(row.text).split()
        silence = np.zeros(rate // 4, np.float32)  # recognisers, as people, need a moment to tune in
        padded = np.concatenate([silence, sound, silence])
        errors = {
            name: align(words, english(hear(padded, rate)).split()).errors if sound.size else len(words)
            for name, hear in self.hear.items()
        }
        wanted = self._phonemes(self.voice.read(row.text, row.emotion))
        return Heard(errors, len(words), align(wanted, self._phonemes(codes)).errors, len(wanted), len(codes))

    def _phonemes(self, codes: np.ndarray[Any, Any]) -> list[str]:
        return [self.voice.phonemes[number].lstrip("',") for number in self.voice.phoneme_of[codes]]


def listen(rows: Sequence[Row], listener: Listener) -> dict[tuple[str, str], list[Heard]]:
    """Every text of every way, in the same order in each."""
    found: dict[tuple[str, str], list[Heard]] = {}
    for row in rows:
        found.setdefault((row.kind, row.way), []).append(listener.count(row))
        if row.way == rows[0].way:  # once for each text
            found.setdefault((row.kind, VOICE), []).append(listener.taught(row))
            units = replace(row, codes=tuple(listener.voice.read(row.text, row.emotion).tolist()))
            found.setdefault((row.kind, UNITS), []).append(listener.count(units))
            ordinary = replace(row, codes=tuple(listener.ordinary[code] for code in row.codes))
            found.setdefault((row.kind, ORDINARY), []).append(listener.count(ordinary))
    return found


def rate(heard: Sequence[Heard], name: str, less: Sequence[Heard] = ()) -> cluster.Interval:
    """The word error rate, or how much higher it is than another one of the same texts."""
    before = [one.errors[name] for one in less] or [0] * len(heard)
    errors = [float(one.errors[name] - b) for one, b in zip(heard, before, strict=True)]
    return cluster.ratio(errors, [float(one.words) for one in heard], range(len(heard)))


def steps(kind: str, ways: Sequence[str], best: str) -> list[tuple[str, str, str]]:
    """What may cost words: its name, the way with it, and the way without it."""
    out = [
        ("units: the voice's own, against the voice", UNITS, VOICE),
        (f"reading: the model's units at {best}, against the voice's", best, UNITS),
        (f"sampling: {at(PUBLISHED)} as published, against {best}", at(PUBLISHED), best),
        (f"lengths: the model's, against ordinary ones ({ways[0]})", ways[0], ORDINARY),
    ]
    if kind == "reply":
        out.append((f"context: whole replies, against sentence by sentence ({ways[0]})", ways[0], PARTS))
    return out


def tables(found: dict[tuple[str, str], list[Heard]], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of both tables in Markdown."""
    yield f"| | way | texts | {' | '.join(f'word errors, {name}' for name in names)} | phoneme errors | codes a word |"
    yield "|---|---|---|" + "---|" * len(names) + "---|---|"
    for (kind, way), heard in sorted(found.items()):
        words = sum(one.words for one in heard)
        wrong = sum(one.wrong_phonemes for one in heard) / sum(one.phonemes for one in heard)
        shown = " | ".join(_interval(rate(heard, name)) for name in names)
        yield f"| {kind} | {way} | {len(heard)} | {shown} | {wrong:.2f} | {sum(h.codes for h in heard) / words:.1f} |"
    yield ""
    yield f"| | cause | {' | '.join(f'word errors more, {name}' for name in names)} |"
    yield "|---|---|" + "---|" * len(names)
    for kind in sorted({kind for kind, _ in found}):
        ways = [way for k, way in found if k == kind and way.startswith("temperature")]
        best = min(ways, key=lambda way, kind=kind: rate(found[kind, way], names[0]).value)  # type: ignore[misc]
        for cause, with_it, without in steps(kind, ways, best):
            if (kind, with_it) in found and with_it != without:
                both = found[kind, with_it], found[kind, without]
                yield f"| {kind} | {cause} | {' | '.join(_interval(rate(both[0], n, both[1])) for n in names)} |"


def _interval(value: cluster.Interval) -> str:
    return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"


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
    listening.add_argument("files", metavar="FILE", type=Path, nargs="+")
    listening.add_argument("--second", type=Path, help="the folder of a second recogniser")
    given = parser.parse_args()
    if given.verb == "ask":
        rows = ask(given.checkpoint, given.packs, given.count, [float(t) for t in given.temperatures.split(",")])
        write_whole(given.out, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        return
    from overtone.embedded.recogniser import transcribe

    hear: dict[str, Hear] = {"embedded": transcribe}
    if given.second:
        from experiments.echat.moonshine_base import MoonshineBase

        hear["Moonshine base"] = MoonshineBase(given.second).transcribe
    listener = Listener(hear)
    for file in given.files:
        rows = [msgspec.json.decode(line, type=Row) for line in file.read_bytes().splitlines()]
        print(f"\n{file.stem}\n")
        print("\n".join(tables(listen(rows, listener), list(hear))))


if __name__ == "__main__":
    main()
