"""`overtone build echat`: exchanges composed, spoken, heard by the gates, answered aloud, written as lists and packs.

What costs time lies in files that grow line by line: `verdicts.jsonl` (what the gates said of each query) and
`replies.jsonl` (the speech tokens of each reply and of each sentence that is read aloud). With these two and
`exchanges.jsonl` a folder can be completed on another machine, without recogniser and embedder: sounds follow from
their exchanges.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.build.pool import Tell, spread
from overtone.echat.making import begin, packs, recorded, texts, words
from overtone.echat.making.begin import DONE, PLAIN, REPLIES, Head
from overtone.echat.making.compose import HEARD, PARTS, SIZES, Exchange
from overtone.echat.making.pieces import CHUNK, VERDICTS, Verdict, bundle_id, bundled, lines, speak
from overtone.echat.making.spoken import Reply, read_aloud, speak_replies, tokens_identity
from overtone.echat.making.takes import ENGINE
from overtone.echat.making.write import (
    ALOUD,
    Outputs,
    aloud,
    records_of,
    wav_at,
    write_papers,
    write_records,
    write_sounds,
)
from overtone.embedded import require
from overtone.errors import UsageError
from overtone.paths import sha256, write_whole
from overtone.spec import suggest


class Built(Struct, frozen=True, kw_only=True):
    """What a build did."""

    parts: dict[str, int]  # part → how many records are in
    clips: int  # made now
    making_seconds: float
    replies: int  # spoken now, and sentences read aloud
    gates: dict[str, Any]
    recalled: int  # verdicts that came with this version
    warnings: tuple[str, ...]

    @property
    def speed(self) -> float:
        """Clips a second, gates included."""
        return self.clips / max(self.making_seconds, 1e-9)


def build(
    out: Path,
    *,
    seed: int = 0,
    count: int = SIZES["train"],
    only: Sequence[str] = (),
    jobs: int | None = None,
    gates: bool = True,
    again: bool = False,
    outputs: Outputs | None = None,
    start: Path | None = None,
    speech: str = "units",
    folder: Path = texts.FOLDER,
    progress: Tell | None = None,
) -> Built:
    """Build the set into `out`, or go on where an earlier build stopped; parts join those that are there, and another
    set is refused. `start` is a folder that was begun elsewhere; `folder` holds the texts, and `speech` names the
    tokens of replies ("" leaves replies unspoken). What was heard of the same sounds before is not heard again, nor a
    reply said again whose tokens are known, unless `again`: then nothing is known from before."""
    tell: Tell = progress or (lambda *_: None)
    workers = jobs or os.cpu_count() or 1
    outputs = outputs or Outputs()
    for part in only:
        if part not in PARTS:
            raise UsageError(f"no part {part!r}{suggest(part, PARTS)}; there is: {', '.join(PARTS)}")
    if outputs.shards and not outputs.wavs:
        raise UsageError("shards are made from sound files; leave --pack-only or --shards out")
    require("pyworld", "the WORLD vocoder, for deliveries")
    require("espeakng_loader", "the offline voices")
    tokens = tokens_identity(speech) if speech else ""
    if again and gates:
        require("moonshine_voice", "the offline recogniser, for the gates")
    before = begin.check(out, start, tokens)
    of = begin.inputs(folder, seed, count, start, tokens)
    packs.check(outputs.pack, (*PARTS, ALOUD), of, before.sha256)
    head, exchanges = begin.exchanges(out, folder, seed, count, tuple(only), gates, start, tell)
    if again:
        begin.forget(out, gates)
    begin.bring(out, start, tokens, again)
    warnings: list[str] = []
    if any(x.part == begin.ENGINE_PART for x in exchanges) and not shutil.which(ENGINE):
        exchanges = [x for x in exchanges if x.part != begin.ENGINE_PART]
        warnings.append(f"the part `engine` is left out: the program {ENGINE} is not installed (apt install {ENGINE})")
    if words.PART in (head.only or PARTS) and not any(x.part == words.PART for x in exchanges):
        warnings.append(f"the part `{words.PART}` is left out: WordNet is not installed (apt install wordnet-base)")
    if not head.meaning:
        why = "the sentence embedder is not installed" if gates else "no gates"
        warnings.append(f"texts were compared with the evaluation sets by words, not by meaning: {why}")
    recalled = recorded.recall(out / VERDICTS, exchanges, head.seed) if gates and not again else 0
    verdicts, made, seconds = _sounds(out, exchanges, head.seed, gates, again, of, outputs, workers, tell)
    kept = {key for v in verdicts for key in v.keys if v.kept}
    exchanges = [x for x in exchanges if x.key in kept]
    spoken: dict[tuple[str, str], Reply] = {}
    fresh = 0
    if speech:
        asked = list(dict.fromkeys((x.txt, x.reply_emotion) for x in exchanges if x.part not in HEARD))
        read = read_aloud(
            (x.question, x.txt if x.part == "train" else "", x.reply_emotion)
            for x in exchanges
            if x.part in ("train", words.PART)
        )
        wanted = list(dict.fromkeys([*asked, *read]))
        spoken, fresh = _replies(out, wanted, speech, outputs.reply_audio, again, workers, tell)
    takes = {key: v.take for v in verdicts for key in v.keys}
    records = records_of(exchanges, takes, head.seed, spoken)
    if spoken:
        records |= aloud([spoken[one] for one in read])
    written = write_records(out, records, outputs, of, before.sha256)
    written = {name: known for name, known in before.sha256.items() if (out / name).is_file()} | written
    if (out / PLAIN).is_file():  # what was begun elsewhere may come without
        written[PLAIN] = sha256(out / PLAIN)
    told = _told(verdicts, head, gates, {x.key: x for x in exchanges})
    write_papers(out, records, written, told, head.seed, tokens)
    return Built(
        parts={part: len(rows) for part, rows in records.items()},
        clips=made,
        making_seconds=seconds,
        replies=fresh,
        gates=told,
        recalled=recalled,
        warnings=tuple(warnings),
    )


# ── sounds ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sounds(
    out: Path,
    exchanges: Sequence[Exchange],
    seed: int,
    gates: bool,
    again: bool,
    of: packs.Inputs,
    outputs: Outputs,
    jobs: int,
    tell: Tell,
) -> tuple[list[Verdict], int, float]:
    """Every query spoken, heard and written; a part of which all is there that is asked for is left as it is."""
    bundles = bundled(exchanges)
    before = {v.id: v for v in lines(out / VERDICTS, Verdict)}
    parts: dict[str, list[Verdict]] = {}  # each with what is known of it, or as if all were taken as it is
    unheard: set[str] = set()
    for bundle in bundles:
        name = bundle_id(bundle, seed)
        plain = Verdict(name, tuple(x.key for x in bundle), 0, True)
        parts.setdefault(bundle[0].part, []).append(before.get(name, plain))
        unheard |= {bundle[0].part} if gates and name not in before else set()
    done = _done(out / DONE)
    lacking = {
        part
        for part, verdicts in parts.items()
        if again or part in unheard or not _there(out, part, verdicts, done, of, outputs)
    }
    made, seconds = 0, 0.0
    if lacking:
        began = time.monotonic()
        done = {part: name for part, name in done.items() if not outputs.wavs or part not in lacking}
        write_whole(out / DONE, msgspec.json.encode(done))
        some = [bundle for bundle in bundles if bundle[0].part in lacking]
        verdicts, pieces, made = speak(out, some, seed, gates, jobs, tell)
        seconds = time.monotonic() - began
        for part in lacking:
            parts[part] = [v for v, bundle in zip(verdicts, some, strict=True) if bundle[0].part == part]
        names = {part: _named(parts[part]) for part in parts if part in lacking}
        spoken = {part: [x for x in exchanges if x.part == part and x.key in pieces] for part in names}
        write_sounds(out, spoken, names, of, pieces, outputs, tell)
        if outputs.wavs:
            for wav in (wav for part in names for wav in (out / "wav" / part).glob("*.wav")):
                if wav.stem not in pieces:  # an earlier build without gates had it
                    wav.unlink()
            write_whole(out / DONE, msgspec.json.encode(done | names))
        pieces.remove()
    return [v for verdicts in parts.values() for v in verdicts], made, seconds


def _there(
    out: Path, part: str, verdicts: Sequence[Verdict], done: dict[str, str], of: packs.Inputs, outputs: Outputs
) -> bool:
    """Whether the sounds of a part lie where they are asked for."""
    name, keys = _named(verdicts), [key for v in verdicts if v.kept for key in v.keys]
    if outputs.wavs and (done.get(part) != name or not all((out / wav_at(part, key)).is_file() for key in keys)):
        return False
    return not outputs.pack or packs.whole(Path(outputs.pack) / part, of, name, len(keys))


def _named(verdicts: Sequence[Verdict]) -> str:
    """A name for a part's sounds: which are in, and in which take."""
    return hashlib.sha256(repr([(v.id, v.take, v.kept) for v in verdicts]).encode()).hexdigest()


def _done(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _told(verdicts: Iterable[Verdict], head: Head, gates: bool, exchanges: dict[str, Exchange]) -> dict[str, Any]:
    """gates.json: what was checked, what was left out and why, and how well each cue is understood."""
    checked: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    rates: dict[str, Counter[str]] = {}
    left, retaken, findings = 0, 0, []
    for v in verdicts:
        left += 0 if v.kept else len(v.keys)
        retaken += v.take > 0 and v.kept
        for key, heard in zip(v.keys, v.heard, strict=False):
            checked.update(["hygiene", "words survive"] + ["the cue is there"] * heard.cue)
            failed.update({problem.partition(":")[0] for problem in heard.problems})
            findings += [{"query": key, "take": v.take, "reason": problem} for problem in heard.problems]
            if v.kept and key in exchanges:
                x = exchanges[key]
                row = rates.setdefault(f"{x.part}/{'+'.join(x.cues) or 'plain'}", Counter())
                row.update(clips=1, errors=heard.errors, words=heard.words)
    return {
        "ran": gates,
        "evaluation sets": {"dropped": len(head.dropped), "by meaning": head.meaning, "texts": head.dropped},
        "gates": {name: {"checked": n, "failed": failed[name]} for name, n in sorted(checked.items())},
        "left_out": left,
        "spoken_again": retaken,
        "findings": findings,
        "word_error_rates": {
            name: {**row, "wer": round(row["errors"] / max(row["words"], 1), 4)} for name, row in sorted(rates.items())
        },
    }


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _replies(
    out: Path, asked: Sequence[tuple[str, str]], speech: str, with_audio: bool, again: bool, jobs: int, tell: Tell
) -> tuple[dict[tuple[str, str], Reply], int]:
    """Every reply's speech tokens, each reply in each emotion spoken once; not at all where its tokens come with this
    version, unless `again`."""
    path = out / REPLIES
    identity = tokens_identity(speech)
    found = {(r.text, r.emotion): r for r in lines(path, Reply) if r.tokens_of == identity}
    if not again and not with_audio:  # whose sounds are wanted must be said in any case
        kept = recorded.recall_said([one for one in asked if one not in found], identity)
        found |= {(r.text, r.emotion): r for r in kept}
        with path.open("ab") as store:
            store.writelines(msgspec.json.encode(r) + b"\n" for r in kept)
    folder = str(out) if with_audio else ""
    todo = [one for one in asked if one not in found or (folder and not _kept(out, found[one]))]
    chunks = [tuple(todo[at : at + CHUNK]) for at in range(0, len(todo), CHUNK)]
    done = 0
    with path.open("ab") as store:
        for some in spread(speak_replies, [(chunk, speech, identity, folder) for chunk in chunks], jobs):
            for reply in some:
                found[reply.text, reply.emotion] = reply
                store.write(msgspec.json.encode(reply) + b"\n")
            store.flush()
            done += len(some)
            tell("replies spoken", done, len(todo))
    return {one: found[one] for one in asked}, len(todo)


def _kept(out: Path, reply: Reply) -> bool:
    return bool(reply.wav) and (out / reply.wav).is_file()
