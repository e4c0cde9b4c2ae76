"""`overtone build echat`: exchanges composed, spoken, heard by the gates, answered aloud, written as lists and packs.

What costs time lies in files that grow line by line: `verdicts.jsonl` (what the gates said of each query) and
`replies.jsonl` (the speech tokens of each reply and of each sentence that is read aloud). With these two and
`exchanges.jsonl` a folder can be completed on another machine, without recogniser and embedder: sounds follow from
their exchanges.
"""

from __future__ import annotations

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
from overtone.echat.making import begin, recorded, texts, words
from overtone.echat.making.begin import PLAIN, REPLIES, Head
from overtone.echat.making.compose import HEARD, PARTS, SIZES, Exchange
from overtone.echat.making.pieces import CHUNK, VERDICTS, Verdict, bundle_id, bundled, lines, named, speak
from overtone.echat.making.spoken import Reply, read_aloud, speak_replies, tokens_identity
from overtone.echat.making.takes import ENGINE
from overtone.echat.making.write import Outputs, aloud, records_of, write_papers, write_records, write_sounds
from overtone.embedded import require
from overtone.errors import UsageError
from overtone.paths import sha256, write_whole
from overtone.spec import suggest

DONE = "done.json"


class Done(Struct, frozen=True):
    """Which sounds a folder holds."""

    sounds: str = ""
    wavs: bool = False
    pack: str = ""


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
    reply said again whose tokens are known, unless `again`."""
    tell: Tell = progress or (lambda *_: None)
    workers = jobs or os.cpu_count() or 1
    outputs = outputs or Outputs()
    for part in only:
        if part not in PARTS:
            raise UsageError(f"no part {part!r}{suggest(part, PARTS)}; there is: {', '.join(PARTS)}")
    require("pyworld", "the WORLD vocoder, for deliveries")
    require("espeakng_loader", "the offline voices")
    tokens = tokens_identity(speech) if speech else ""
    before = begin.check(out, start, tokens)
    head, exchanges = begin.exchanges(out, folder, seed, count, tuple(only), gates, start, tell)
    begin.bring(out, start, tokens)
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
    verdicts, made, seconds = _sounds(out, exchanges, head.seed, gates, outputs, workers, tell)
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
    written = write_records(out, records, outputs)
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
    out: Path, exchanges: Sequence[Exchange], seed: int, gates: bool, outputs: Outputs, jobs: int, tell: Tell
) -> tuple[list[Verdict], int, float]:
    """Every query spoken, heard and written; where all that is asked for is there, nothing is done."""
    bundles = bundled(exchanges)
    ids = [bundle_id(bundle, seed) for bundle in bundles]
    known = {v.id: v for v in lines(out / VERDICTS, Verdict)}
    name = named(ids, known, gates)
    done = _done(out / DONE)
    if done.sounds == name and done.wavs >= outputs.wavs and outputs.pack in ("", done.pack):
        plain = [Verdict(one, tuple(x.key for x in b), 0, True) for one, b in zip(ids, bundles, strict=True)]
        if not gates or all(one in known for one in ids):
            return [known.get(v.id, v) for v in plain], 0, 0.0
    began = time.monotonic()
    (out / DONE).unlink(missing_ok=True)
    verdicts, pieces, made = speak(out, bundles, seed, gates, jobs, tell)
    seconds = time.monotonic() - began
    by_part: dict[str, list[Exchange]] = {}
    for x in exchanges:
        if x.key in pieces:
            by_part.setdefault(x.part, []).append(x)
    write_sounds(out, by_part, pieces, outputs, tell)
    for part in {x.part for x in exchanges} if outputs.wavs else ():
        for wav in (out / "wav" / part).glob("*.wav"):
            if wav.stem not in pieces:  # an earlier build without gates had it
                wav.unlink()
    keep = done if done.sounds == name else Done()
    done = Done(name, outputs.wavs or keep.wavs, outputs.pack or keep.pack)
    write_whole(out / DONE, msgspec.json.encode(done))
    pieces.remove()
    return verdicts, made, seconds


def _done(path: Path) -> Done:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Done)
    except (OSError, msgspec.DecodeError):
        return Done()
    return found if not found.pack or Path(found.pack).is_dir() else Done(found.sounds, found.wavs)


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
