"""What a built EChat set looks like on disk: a list of records for each part, sounds or packs or shards, and the papers
that go with them (manifest, gates, datasheet, licence)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone import audio
from overtone.build.licence import Ingredient, derive
from overtone.build.manifest import write_json
from overtone.build.pool import Tell
from overtone.build.recipes import VERSION as RECIPES
from overtone.build.script import SET_LICENCE
from overtone.build.voices.espeak import LICENCE as VOICE_LICENCE
from overtone.echat.data import containers
from overtone.echat.data.labels import DIMENSIONS
from overtone.echat.data.records import Record, Turn
from overtone.echat.making import packs, takes, words
from overtone.echat.making.compose import HEARD, PARTS, Exchange
from overtone.echat.making.sheet import sheet
from overtone.echat.making.sound import HEARD_AT, Samples16
from overtone.echat.making.spoken import Reply
from overtone.paths import sha256, write_whole
from overtone.version import __version__

NAME, DATASET = "echat", "overtone-echat"
MANIFEST, GATES = "manifest.json", "gates.json"
PAPERS = (MANIFEST, GATES, "DATASHEET.md", "LICENSE")
CHAT = "<S2TCHAT> <TEXT2TOKEN> <THINK>"
HISTORY = "<S2TCHAT> <TEXT2TOKEN> <THINK> <HISTORY>"
ALOUD, ASSISTANT = "aloud", "espeak:assistant"
LISTS = tuple(f"{part}.list" for part in (*PARTS, ALOUD))


class Outputs(Struct, frozen=True):
    """What is to be written besides the lists."""

    wavs: bool = True
    pack: str = ""  # folder of the packs, one for each part
    shards: bool = False
    reply_audio: bool = False


class Store(Protocol):
    """Where sounds are taken from."""

    def clip(self, key: str) -> Samples16: ...


def records_of(
    exchanges: Sequence[Exchange], takes_of: Mapping[str, int], seed: int, spoken: Mapping[tuple[str, str], Reply]
) -> dict[str, list[Record]]:
    """Part → its records, with sounds named as the lists name them."""
    by_key = {x.key: x for x in exchanges}
    found: dict[str, list[Record]] = {}
    for x in exchanges:
        clip = takes.clip_of(x, seed, takes_of.get(x.key, 0))
        reply = spoken.get((x.txt, x.reply_emotion))
        task = HEARD.get(x.part) or (HISTORY if x.first else CHAT)
        extra: dict[str, Any] = {
            "part": "train" if x.part in HEARD else x.part,
            "group": x.group,
            "kind": x.kind,
            "speaker": f"{clip.engine}:{clip.speaker}",
            "cue": "+".join(x.cues),
            "strength": clip.strength,
            "heard": x.heard.known(),
        }
        if reply is not None:
            extra["tokens_of"] = reply.tokens_of
        history = []
        if x.first:
            before = by_key[x.first]
            said = spoken.get((before.txt, before.reply_emotion))
            history = [Turn(wav_at(before.part, before.key), before.question, before.txt, said.tokens if said else ())]
        found.setdefault(x.part, []).append(
            Record(
                x.key,
                x.txt,
                wav_at(x.part, x.key),
                x.question,
                x.labels,
                x.reply_emotion,
                x.think_str,
                reply.tokens if reply else (),
                reply.wav if reply else "",
                DATASET,
                task,
                tuple(history),
                extra,
            )
        )
    return found


def aloud(read: Sequence[Reply]) -> dict[str, list[Record]]:
    """The part of sentences that are read aloud: text and speech tokens, nothing to be heard or answered."""
    rows = [
        Record(
            f"{ALOUD}_{one.id}",
            one.text,
            reply_emotion=one.emotion,
            speech_token=one.tokens,
            a_wav_path=one.wav,
            dataset=f"{DATASET}-{ALOUD}",
            task="<TEXT2TOKEN>",
            extra={"part": "train", "group": one.text, "kind": ALOUD, "speaker": ASSISTANT, "tokens_of": one.tokens_of},
        )
        for one in read
    ]
    return {ALOUD: rows} if rows else {}


def wav_at(part: str, key: str) -> str:
    """Where a sound lies."""
    return f"wav/{part}/{key}.wav"


def write_sounds(
    out: Path,
    parts: Mapping[str, Sequence[Exchange]],
    names: Mapping[str, str],
    of: packs.Inputs,
    store: Store,
    outputs: Outputs,
    tell: Tell,
) -> None:
    """The sounds of some parts as files, or one after the other as training reads them; `names` tells which they
    are."""
    total, done = sum(map(len, parts.values())), 0
    for part, exchanges in parts.items():
        with packs.clips(Path(outputs.pack) / part, of, names[part]) if outputs.pack else nullcontext() as clips:
            for x in exchanges:
                sound = store.clip(x.key)
                if clips is not None:
                    clips.add(sound)
                if outputs.wavs:
                    write_whole(
                        out / wav_at(x.part, x.key), audio.encode_wav(sound.astype(np.float32) / 32768, HEARD_AT)
                    )
                done += 1
                tell("sounds written", done, total)


def write_records(
    out: Path,
    records: Mapping[str, Sequence[Record]],
    outputs: Outputs,
    of: packs.Inputs,
    before: Mapping[str, str],
) -> dict[str, str]:
    """The lists, and the records of packs and shards; each list's SHA-256 by its name. `before` is what the manifest
    named so far."""
    written = {}
    for part, rows in records.items():
        if outputs.wavs:
            path = out / f"{part}.list"
            containers.write_raw(path, rows)
            written[path.name] = sha256(path)
        if outputs.pack:
            place = {row.wav: f"{containers.PACK[1]}#{at}" for at, row in enumerate(rows) if row.wav} | {"": ""}
            folder = Path(outputs.pack) / part
            if not any(row.wav for row in rows):
                with packs.clips(folder, of, ""):  # nothing to hear: no sounds were written before
                    pass
            packed = [
                replace(
                    row,
                    wav=place[row.wav],
                    history=tuple(replace(turn, wav=place[turn.wav]) for turn in row.history),
                )
                for row in rows
            ]
            containers.write_raw(folder / containers.PACK[0], packed)
            for name in containers.PACK[:2]:
                written[f"pack/{part}/{name}"] = sha256(folder / name)
        if outputs.shards:
            containers.write_shards(out / "shards" / part, [replace(row, home=str(out)) for row in rows])
    for part in (*PARTS, ALOUD):
        if part not in records and f"{part}.list" in before:
            # the gates left out all of it: parts that are not asked for now are in `records` too
            (out / f"{part}.list").unlink(missing_ok=True)
    return written


def write_papers(
    out: Path,
    records: Mapping[str, Sequence[Record]],
    written: Mapping[str, str],
    gates: Mapping[str, Any],
    seed: int,
    tokens: str,
) -> None:
    """manifest.json, gates.json, DATASHEET.md and LICENSE."""
    voices = sorted({row.speaker for rows in records.values() for row in rows})
    parts = {
        "texts": Ingredient("texts", NAME, SET_LICENCE),
        "voices": Ingredient("voice", ", ".join(sorted({v.partition(":")[0] for v in voices})), VOICE_LICENCE),
        "sounds": Ingredient("sounds", "synthesised by Overtone", SET_LICENCE),
    }
    if words.PART in records:
        parts["words"] = Ingredient("texts", f"examples of {words.source() or 'WordNet'}", "WordNet-3.0")
    verdict = derive(parts.values())
    counts = {
        part: {
            "records": len(rows),
            "two_turns": sum(bool(row.history) for row in rows),
            "queries": len({row.group for row in rows}),
            "replies": len({(row.txt, row.reply_emotion) for row in rows}),
            "speakers": sorted({row.speaker for row in rows}),
            "kinds": dict(sorted(Counter(str(row.extra["kind"]) for row in rows).items())),
            "labels": {
                dimension: dict(sorted(found.items()))
                for dimension in DIMENSIONS
                if (found := Counter(name for row in rows if (name := getattr(row.labels, dimension))))
            },
        }
        for part, rows in records.items()
    }
    manifest = {
        "name": NAME,
        "version": __version__,
        "recipes": RECIPES,
        "licence": verdict.licence,
        "seed": seed,
        "speech_tokens": tokens,
        "bands": {
            "strength": {"train": takes.STRENGTH, "recipe": takes.HELD_STRENGTH},
            "snr": {"train": takes.SNR, "recipe": takes.HELD_SNR},
            "child": {"train": takes.CHILD, "recipe": takes.HELD_CHILD},
            "manners": takes.HELD_MANNERS,
        },
        "ingredients": list(parts.values()),
        "parts": counts,
        "sha256": dict(sorted(written.items())),
    }
    write_json(out / MANIFEST, manifest)
    write_json(out / GATES, gates)
    text = sheet(counts, gates, verdict.licence, seed, tokens)
    write_whole(out / "DATASHEET.md", text.encode())
    told = f"This set is licensed {verdict.licence}: use it, share it and build on it, naming the Overtone authors.\n"
    if words.PART in records:
        told += f"\n{words.notice()}"
    write_whole(out / "LICENSE", told.encode())


def plain_lines(pairs: Sequence[tuple[str, str]]) -> bytes:
    """Question and answer in text alone, as rows that the text reader takes."""
    rows = [
        {"key": f"plain_{at:04d}", "messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]}
        for at, (q, a) in enumerate(pairs)
    ]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
