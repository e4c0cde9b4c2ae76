"""`overtone build echat`: compose exchanges, speak and check their queries, speak the replies, write lists and packs.

Expensive results are stored in files that grow line by line: `verdicts.jsonl` (the gates' verdict on each query) and
`replies.jsonl` (the speech tokens of each reply and of each sentence that is read aloud). With these two and
`exchanges.jsonl`, another machine can complete a set without recogniser and embedder, because the exchanges determine
the audio.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.echat.making import packaged_results, packs, set_identity, texts, wordnet_examples
from overtone.echat.making.clip_plan import ENGINE
from overtone.echat.making.compose import HEARD, PARTS, SIZES, Exchange
from overtone.echat.making.reply_speech import Reply, read_aloud, speak_replies, tokens_identity
from overtone.echat.making.set_identity import DONE, PLAIN, REPLIES, Head
from overtone.echat.making.spoken_queries import CHUNK, VERDICTS, Verdict, bundle_id, bundled, lines, speak
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
from overtone.pool import Progress, default_jobs, spread
from overtone.spec import suggest


class Built(Struct, frozen=True, kw_only=True):
    """The result of a build."""

    parts: dict[str, int]  # part → number of records
    clips: int  # made in this build
    making_seconds: float
    replies: int  # replies and sentences spoken in this build
    gates: dict[str, Any]
    recalled: int  # verdicts taken from the package
    warnings: tuple[str, ...]

    @property
    def speed(self) -> float:
        """Clips per second, gates included."""
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
    speech: str = "units2",
    folder: Path = texts.FOLDER,
    progress: Progress | None = None,
) -> Built:
    """Build the set into `out`, or resume an earlier build. New parts are added; a different set is refused.

    `start` is a folder in which the set was started elsewhere. `folder` holds the texts. `speech` names the tokens of
    replies ("" leaves replies unspoken). Earlier verdicts and speech tokens are reused unless `again`.
    """
    tell: Progress = progress or (lambda *_: None)
    workers = jobs or default_jobs()
    outputs = outputs or Outputs()
    for part in only:
        if part not in PARTS:
            raise UsageError(f"unknown part {part!r}{suggest(part, PARTS)}; known: {', '.join(PARTS)}")
    if outputs.shards and not outputs.wavs:
        raise UsageError("shards are made from audio files; remove --pack-only or --shards")
    require("pyworld", "the WORLD vocoder, for deliveries")
    require("espeakng_loader", "the offline voices")
    tokens = tokens_identity(speech) if speech else ""
    if again and gates:
        require("moonshine_voice", "the offline recogniser, for the gates")
    before = set_identity.check(out, start, tokens)
    identity = set_identity.inputs(folder, seed, count, start, tokens)
    packs.check(outputs.pack, (*PARTS, ALOUD), identity, before.sha256)
    head, exchanges = set_identity.exchanges(out, folder, seed, count, tuple(only), gates, start, tell)
    if again:
        set_identity.forget(out, gates)
    set_identity.bring(out, start, tokens, again)
    warnings: list[str] = []
    if any(x.part == set_identity.ENGINE_PART for x in exchanges) and not shutil.which(ENGINE):
        exchanges = [x for x in exchanges if x.part != set_identity.ENGINE_PART]
        warnings.append(f"skipped part `engine`: the program {ENGINE} is not installed (apt install {ENGINE})")
    if _has_words(head) and not any(x.part == wordnet_examples.PART for x in exchanges):
        warnings.append(
            f"the part `{wordnet_examples.PART}` is left out: WordNet is not installed (apt install wordnet-base)"
        )
    if not head.meaning:
        why = "the sentence embedder is not installed" if gates else "the gates are off"
        warnings.append(f"texts were compared with the evaluation sets by words only, not by meaning: {why}")
    recalled = packaged_results.recall(out / VERDICTS, exchanges, head.seed) if gates and not again else 0
    verdicts, made, seconds = _sounds(out, exchanges, head.seed, gates, again, identity, outputs, workers, tell)
    kept = {key for v in verdicts for key in v.keys if v.kept}
    exchanges = [x for x in exchanges if x.key in kept]
    spoken: dict[tuple[str, str], Reply] = {}
    fresh = 0
    if speech:
        replies = list(dict.fromkeys((x.txt, x.reply_emotion) for x in exchanges if x.part not in HEARD))
        sentences = read_aloud(
            (x.question, x.txt if x.part == "train" else "", x.reply_emotion)
            for x in exchanges
            if x.part in ("train", wordnet_examples.PART)
        )
        more = wordnet_examples.to_read(head.seed, count / SIZES["train"]) if _has_words(head) else []
        asked = {text for text, _ in sentences}
        more = [one for one in more if one[0] not in asked]
        sentences += more
        wanted = list(dict.fromkeys([*replies, *sentences]))
        spoken, fresh = _replies(out, wanted, speech, outputs.reply_audio, workers, tell)
    takes = {key: v.take for v in verdicts for key in v.keys}
    records = records_of(exchanges, takes, head.seed, spoken)
    if spoken:
        records |= aloud([spoken[one] for one in sentences], {text for text, _ in more})
    written = write_records(out, records, outputs, identity, before.sha256)
    written = {name: known for name, known in before.sha256.items() if (out / name).is_file()} | written
    if (out / PLAIN).is_file():  # missing if the set was started elsewhere without it
        written[PLAIN] = sha256(out / PLAIN)
    summary = _gate_summary(verdicts, head, gates, {x.key: x for x in exchanges})
    write_papers(out, records, written, summary, head.seed, tokens)
    return Built(
        parts={part: len(rows) for part, rows in records.items()},
        clips=made,
        making_seconds=seconds,
        replies=fresh,
        gates=summary,
        recalled=recalled,
        warnings=tuple(warnings),
    )


def _has_words(head: Head) -> bool:
    return wordnet_examples.PART in (head.only or PARTS)


# ── sounds ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sounds(
    out: Path,
    exchanges: Sequence[Exchange],
    seed: int,
    gates: bool,
    again: bool,
    identity: packs.Inputs,
    outputs: Outputs,
    jobs: int,
    tell: Progress,
) -> tuple[list[Verdict], int, float]:
    """Speak, check and write all queries. Complete parts are left unchanged.

    Return the verdicts, the number of new clips, and the seconds it took.
    """
    bundles = bundled(exchanges)
    before = {v.id: v for v in lines(out / VERDICTS, Verdict)}
    parts: dict[str, list[Verdict]] = {}  # with the known verdicts; queries without one count as kept
    unchecked: set[str] = set()
    for bundle in bundles:
        name = bundle_id(bundle, seed)
        default = Verdict(name, tuple(x.key for x in bundle), 0, True)
        parts.setdefault(bundle[0].part, []).append(before.get(name, default))
        unchecked |= {bundle[0].part} if gates and name not in before else set()
    done = _done(out / DONE)
    incomplete = {
        part
        for part, verdicts in parts.items()
        if again or part in unchecked or not _complete(out, part, verdicts, done, identity, outputs)
    }
    made, seconds = 0, 0.0
    if incomplete:
        began = time.monotonic()
        done = {part: name for part, name in done.items() if not outputs.wavs or part not in incomplete}
        write_whole(out / DONE, msgspec.json.encode(done))
        some = [bundle for bundle in bundles if bundle[0].part in incomplete]
        verdicts, clips, made = speak(out, some, seed, gates, jobs, tell)
        seconds = time.monotonic() - began
        for part in incomplete:
            parts[part] = [v for v, bundle in zip(verdicts, some, strict=True) if bundle[0].part == part]
        names = {part: _audio_name(parts[part]) for part in parts if part in incomplete}
        spoken = {part: [x for x in exchanges if x.part == part and x.key in clips] for part in names}
        write_sounds(out, spoken, names, identity, clips, outputs, tell)
        if outputs.wavs:
            for wav in (wav for part in names for wav in (out / "wav" / part).glob("*.wav")):
                if wav.stem not in clips:  # from an earlier build without gates
                    wav.unlink()
            write_whole(out / DONE, msgspec.json.encode(done | names))
        clips.remove()
    return [v for verdicts in parts.values() for v in verdicts], made, seconds


def _complete(
    out: Path, part: str, verdicts: Sequence[Verdict], done: dict[str, str], identity: packs.Inputs, outputs: Outputs
) -> bool:
    """Return whether all requested audio of a part exists."""
    name, keys = _audio_name(verdicts), [key for v in verdicts if v.kept for key in v.keys]
    if outputs.wavs and (done.get(part) != name or not all((out / wav_at(part, key)).is_file() for key in keys)):
        return False
    return not outputs.pack or packs.complete(Path(outputs.pack) / part, identity, name, len(keys))


def _audio_name(verdicts: Sequence[Verdict]) -> str:
    """Return a hash of a part's kept queries and their takes, which identifies the part's audio."""
    return hashlib.sha256(repr([(v.id, v.take, v.kept) for v in verdicts]).encode()).hexdigest()


def _done(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}


def _gate_summary(
    verdicts: Iterable[Verdict], head: Head, gates: bool, exchanges: dict[str, Exchange]
) -> dict[str, Any]:
    """Return the content of gates.json: the checks, the removed queries with reasons, and word error rates by cue."""
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
    out: Path, asked: Sequence[tuple[str, str]], speech: str, with_audio: bool, jobs: int, tell: Progress
) -> tuple[dict[tuple[str, str], Reply], int]:
    """Return the speech tokens of every reply, and the number of newly spoken replies.

    Each reply is spoken once per emotion, and never again.
    """
    path = out / REPLIES
    identity = tokens_identity(speech)
    spoken = {(r.text, r.emotion): r for r in lines(path, Reply) if r.tokens_of == identity}
    folder = str(out) if with_audio else ""
    todo = [one for one in asked if one not in spoken or (folder and not _has_audio(out, spoken[one]))]
    chunks = [tuple(todo[at : at + CHUNK]) for at in range(0, len(todo), CHUNK)]
    done = 0
    with path.open("ab") as store:
        for some in spread(speak_replies, [(chunk, speech, identity, folder) for chunk in chunks], jobs):
            for reply in some:
                spoken[reply.text, reply.emotion] = reply
                store.write(msgspec.json.encode(reply) + b"\n")
            store.flush()
            done += len(some)
            tell("replies spoken", done, len(todo))
    return {one: spoken[one] for one in asked}, len(todo)


def _has_audio(out: Path, reply: Reply) -> bool:
    return bool(reply.wav) and (out / reply.wav).is_file()
