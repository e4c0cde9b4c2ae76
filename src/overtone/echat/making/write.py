"""Write a built EChat set: lists of records, audio files, packs, shards, manifest, gates, datasheet and licence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
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
from overtone.build.recipes import VERSION as RECIPES
from overtone.build.script import SET_LICENCE
from overtone.build.voices.espeak import LICENCE as VOICE_LICENCE
from overtone.echat.data import containers
from overtone.echat.data.exchange_records import Record, Turn
from overtone.echat.data.labels import DIMENSIONS
from overtone.echat.making import clip_plan, packs, wordnet_examples
from overtone.echat.making.compose import HEARD, PARTS, Exchange
from overtone.echat.making.echat_datasheet import datasheet_text
from overtone.echat.making.reply_speech import Reply
from overtone.echat.making.sound import HEARD_AT, Samples16
from overtone.paths import sha256, write_whole
from overtone.pool import Progress
from overtone.version import __version__

NAME, DATASET = "echat", "overtone-echat"
MANIFEST, GATES = "manifest.json", "gates.json"
PAPERS = (MANIFEST, GATES, "DATASHEET.md", "LICENSE")
CHAT = "<S2TCHAT> <TEXT2TOKEN> <THINK>"
HISTORY = "<S2TCHAT> <TEXT2TOKEN> <THINK> <HISTORY>"
ALOUD, ASSISTANT = "aloud", "espeak:assistant"
LISTS = tuple(f"{part}.list" for part in (*PARTS, ALOUD))


class Outputs(Struct, frozen=True):
    """The optional outputs of a build."""

    wavs: bool = True
    pack: str = ""  # folder for the packs, one per part
    shards: bool = False
    reply_audio: bool = False


class Store(Protocol):
    """A source of clips."""

    def clip(self, key: str) -> Samples16:
        """Return the clip of an exchange."""


def records_of(
    exchanges: Sequence[Exchange], takes_of: Mapping[str, int], seed: int, spoken: Mapping[tuple[str, str], Reply]
) -> dict[str, list[Record]]:
    """Return the records of each part, with audio paths as in the lists."""
    by_key = {x.key: x for x in exchanges}
    records: dict[str, list[Record]] = {}
    for x in exchanges:
        clip = clip_plan.clip_of(x, seed, takes_of.get(x.key, 0))
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
        records.setdefault(x.part, []).append(
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
    return records


def aloud(read: Sequence[Reply], more: Container[str] = ()) -> dict[str, list[Record]]:
    """Return the records of the part `aloud`: text and speech tokens, without a query or reply.

    Texts in `more` have a dataset of their own, so that a training recipe can weigh or leave them out.
    """
    rows = [
        Record(
            f"{ALOUD}_{one.id}",
            one.text,
            reply_emotion=one.emotion,
            speech_token=one.tokens,
            a_wav_path=one.wav,
            dataset=f"{DATASET}-{ALOUD}" + ("-more" if one.text in more else ""),
            task="<TEXT2TOKEN>",
            extra={"part": "train", "group": one.text, "kind": ALOUD, "speaker": ASSISTANT, "tokens_of": one.tokens_of},
        )
        for one in read
    ]
    return {ALOUD: rows} if rows else {}


def wav_at(part: str, key: str) -> str:
    """Return the path of a clip, relative to the set's folder."""
    return f"wav/{part}/{key}.wav"


def write_sounds(
    out: Path,
    parts: Mapping[str, Sequence[Exchange]],
    names: Mapping[str, str],
    of: packs.Inputs,
    store: Store,
    outputs: Outputs,
    tell: Progress,
) -> None:
    """Write the clips of some parts as audio files and packs. `names` identifies the audio of each part."""
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
                tell("clips written", done, total)


def write_records(
    out: Path,
    records: Mapping[str, Sequence[Record]],
    outputs: Outputs,
    of: packs.Inputs,
    before: Mapping[str, str],
) -> dict[str, str]:
    """Write the lists and the records of packs and shards. Return the SHA-256 of each file by name.

    `before` has the files in the old manifest.
    """
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
                with packs.clips(folder, of, ""):  # no audio: write an empty file of clips
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
            # the gates removed the whole part; `records` also has parts that this build did not request
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
    """Write manifest.json, gates.json, DATASHEET.md and LICENSE."""
    voices = sorted({row.speaker for rows in records.values() for row in rows})
    parts = {
        "texts": Ingredient("texts", NAME, SET_LICENCE),
        "voices": Ingredient("voice", ", ".join(sorted({v.partition(":")[0] for v in voices})), VOICE_LICENCE),
        "sounds": Ingredient("sounds", "synthesised by Overtone", SET_LICENCE),
    }
    if wordnet_examples.PART in records:
        parts["words"] = Ingredient("texts", f"examples of {wordnet_examples.source() or 'WordNet'}", "WordNet-3.0")
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
                dimension: dict(sorted(count.items()))
                for dimension in DIMENSIONS
                if (count := Counter(name for row in rows if (name := getattr(row.labels, dimension))))
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
            "strength": {"train": clip_plan.STRENGTH, "recipe": clip_plan.HELD_STRENGTH},
            "snr": {"train": clip_plan.SNR, "recipe": clip_plan.HELD_SNR},
            "child": {"train": clip_plan.CHILD, "recipe": clip_plan.HELD_CHILD},
            "manners": clip_plan.HELD_MANNERS,
        },
        "ingredients": list(parts.values()),
        "parts": counts,
        "sha256": dict(sorted(written.items())),
    }
    write_json(out / MANIFEST, manifest)
    write_json(out / GATES, gates)
    text = datasheet_text(counts, gates, verdict.licence, seed, tokens)
    write_whole(out / "DATASHEET.md", text.encode())
    licence = (
        f"This set is licensed under {verdict.licence}. You may use, share and adapt it; credit the Overtone authors.\n"
    )
    if wordnet_examples.PART in records:
        licence += f"\n{wordnet_examples.notice()}"
    write_whole(out / "LICENSE", licence.encode())


def plain_lines(pairs: Sequence[tuple[str, str]]) -> bytes:
    """Return question-answer pairs as rows of text dialogue."""
    rows = [
        {"key": f"plain_{at:04d}", "messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]}
        for at, (q, a) in enumerate(pairs)
    ]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
