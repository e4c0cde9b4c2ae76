"""Write a run as an `.eval` log of inspect_ai, which its viewer and its Python reader open.

The format is a ZIP archive of JSON: `header.json` describes the whole run, `summaries.json` has a line per sample, and
`samples/ID_epoch_N.json` has one sample, which is one ask. A log has one condition, because inspect_ai identifies a
sample by its id and epoch. Sounds are in the log itself, so that the viewer plays them. The log is written by hand
because inspect_ai would bring 80 packages; its own reader checks the result in a test.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from overtone.errors import UsageError
from overtone.report.run_summary import headline_numbers
from overtone.results.load import open_run
from overtone.runs.export_rows import SoundPaths, check_condition, check_not_folder
from overtone.runs.records import Beside
from overtone.runs.store import ANSWERED, FAILED, Ask, Failure, Store, StoredReply
from overtone.schema import THOUGHT, Score, remarks
from overtone.version import __version__

VERSION = 2  # of inspect_ai's format
STOPS = ("stop", "max_tokens", "model_length", "content_filter", "unknown")
_STOP = {"": "stop", "length": "max_tokens", "refusal": "content_filter"}  # our finish → inspect_ai's stop reason
_SCORER = "overtone"


def write_inspect_log(store: Store, out: Path, condition: str | None = None, *, sounds: bool = True) -> int:
    """Write the log of a run under one condition; return the number of samples.

    Raises UsageError if the run has several conditions and none is named, or not the one that is.
    """
    names = sorted({ask.condition for ask, _ in store.asks()})
    if condition is None and len(names) > 1:
        raise UsageError(f"an inspect_ai log has one condition; name one: --condition {' or --condition '.join(names)}")
    if condition is not None:
        check_condition(condition, set(names))
    check_not_folder(out)
    log = _Log(store, condition or (names[0] if names else ""), sounds)
    temporary = out.with_name(out.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # in an untrusted folder it may be a link to another place
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            _put(archive, "_journal/start.json", log.start())
            summaries = []
            for sample in log.samples():
                _put(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
                summaries.append(_summary(sample))
            _put(archive, "summaries.json", summaries)
            _put(archive, "header.json", log.header(summaries))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return len(summaries)


def _put(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    info = zipfile.ZipInfo(name)  # without the time, so that the same run gives the same bytes
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, msgspec.json.encode(value))


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of `summaries.json`, which the viewer lists before it opens a sample."""
    kept = ("id", "epoch", "choices", "target", "total_time", "uuid")
    text = _text(sample["input"][-1]) if sample["input"] else ""
    return {
        **{key: sample[key] for key in kept if key in sample},
        "input": text.replace("[sound]", f"“{sample['metadata']['words']}”"),
        "scores": sample["scores"],
        "error": sample["error"]["message"] if "error" in sample else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _text(message: Mapping[str, Any]) -> str:
    if isinstance(message["content"], str):
        return message["content"]
    return "\n".join(part.get("text", "[sound]") for part in message["content"])


class _Log:
    """The parts of one log."""

    def __init__(self, store: Store, condition: str, sounds: bool) -> None:
        self.store, self.condition, self.sounds = store, condition, sounds
        self.meta = store.meta()
        self.settings: dict[str, Any] = msgspec.json.decode(self.meta.get("answers") or "{}")
        self.paths = SoundPaths(store, self.meta.get("root", ""), None)
        self.by_hash = {sha: path for path, (sha, *_) in store.clips().items()}
        self.created = self.meta.get("created", "1970-01-01T00:00:00Z").replace("Z", "+00:00")
        self.id = hashlib.sha256(f"{store.folder.name}/{self.created}/{condition}".encode()).hexdigest()[:22]

    def start(self) -> dict[str, Any]:
        return {"version": VERSION, "eval": self._eval([]), "plan": {"name": "overtone", "steps": [], "config": {}}}

    def header(self, summaries: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the description of the whole run, with the headline numbers that `overtone run` prints."""
        reading = open_run(self.store.folder, light=True)
        metrics = {
            number.name: {
                "name": number.name,
                "value": number.estimate.value,
                "params": {
                    "low": number.estimate.low, "high": number.estimate.high, "scored": number.estimate.scored,
                    "asked": number.estimate.asked,
                },
            }
            for number in headline_numbers(reading)
            if number.estimate.value is not None
        }  # fmt: skip
        pending = sum(not answer.answered and not answer.failed for answer in reading.answers)
        scored = sum(bool(line["scores"]) for line in summaries)
        usage = {self.meta.get("model", ""): _added(self.store)}
        seconds = max((line["total_time"] or 0.0 for line in summaries), default=0.0)
        ended = datetime.fromisoformat(self.created) + timedelta(seconds=seconds)
        return {
            "version": VERSION,
            "status": "started" if pending else "success",
            "eval": self._eval([line["id"] for line in summaries]),
            "plan": {"name": "overtone", "steps": [{"solver": self.condition, "params": {}}], "config": {}},
            "results": {
                "total_samples": len(summaries),
                "completed_samples": sum(line["error"] is None for line in summaries),
                "scores": [
                    {"name": _SCORER, "scorer": _SCORER, "scored_samples": scored,
                     "unscored_samples": len(summaries) - scored, "params": {}, "metrics": metrics}
                ],
            },
            "stats": {"started_at": self.created, "completed_at": ended.isoformat(), "model_usage": usage},
        }  # fmt: skip

    def _eval(self, ids: list[str]) -> dict[str, Any]:
        return {
            "eval_id": self.id,
            "run_id": self.id,
            "created": self.created,
            "task": self.meta.get("benchmark", ""),
            "task_id": self.id,
            "task_version": 0,
            "task_args": {"condition": self.condition},
            "dataset": {
                "name": self.meta.get("benchmark", ""), "samples": len(set(ids)),
                "sample_ids": list(dict.fromkeys(ids)), "shuffled": False,
            },
            "model": self.meta.get("model", ""),
            "model_generate_config": {},
            "model_args": self.settings,
            "config": {"epochs": 1 + max((ask.repeat for ask, _ in self.store.asks()), default=0)},
            "packages": {"overtone": __version__},
            "metadata": {"run": self.meta.get("label", ""), "command": self.meta.get("command", "")},
        }  # fmt: skip

    def samples(self) -> Iterator[dict[str, Any]]:
        """Yield every ask that has an answer or a failure."""
        replies = Beside((reply.ask, reply) for reply in self.store.replies())
        failures = Beside((failure.ask, failure) for failure in self.store.failures())
        scores = Beside(self.store.scores())
        for ask, state in self.store.asks():
            given, failed, own = replies.of(ask.id), failures.of(ask.id), scores.of(ask.id)
            if ask.condition == self.condition and state in (ANSWERED, FAILED):
                reply = given[-1] if given and state == ANSWERED else None
                yield self._sample(ask, reply, next(iter(failed), None), own if reply else [])

    def _sample(
        self, ask: Ask, reply: StoredReply | None, failure: Failure | None, scores: list[Score]
    ) -> dict[str, Any]:
        item, attachments = ask.item, dict[str, str]()
        sent = self.store.sent(ask.id, reply.key.turn) if reply else []
        messages = [self._message(message, attachments) for message in sent]
        choice = next((str(score.detail["answer"] or "") for score in scores if "answer" in score.detail), None)
        said = choice if choice is not None else reply.text if reply else ""
        about = {
            "case": item.case, "group": item.group, "style": item.style, "level": item.level, "task": item.task,
            "category": item.category, "cue": item.cue, "part": item.part or "core", "source": item.source,
            "words": item.turns[-1].words, "notes": remarks(reply.notes) if reply else [],
            "timings": msgspec.to_builtins(reply.timings) if reply else None,
            "unscored": {score.metric: score.reason for score in scores if score.value is None},
        }  # fmt: skip
        out: dict[str, Any] = {
            "id": item.id,
            "epoch": ask.repeat + 1,
            "input": messages or [{"role": "user", "content": item.question or item.turns[-1].words}],
            "choices": [option.text for option in item.options],
            "target": item.gold or (item.references[0] if item.references else ""),
            "messages": messages,
            "output": {"model": self.meta.get("model", ""), "choices": []},
            "scores": {score.metric: _score(score, said) for score in scores if score.value is not None},
            "metadata": about,
            "uuid": hashlib.sha256(f"{self.id}/{item.id}/{ask.repeat}".encode()).hexdigest()[:22],
            "total_time": reply.latency if reply else None,
        }
        if reply:
            answer = self._answer(reply, attachments)
            out["messages"] = [*messages, answer]
            stop = reply.finish if reply.finish in STOPS else _STOP.get(reply.finish, "unknown")
            out["output"] = {
                "model": reply.model or self.meta.get("model", ""),
                "choices": [{"message": answer, "stop_reason": stop}],
                "completion": reply.text,
                "usage": _usage(reply),
                "time": reply.latency,
            }
        elif failure:
            why = f"{failure.reason}: {failure.detail}"
            out["error"] = {"message": why, "traceback": "", "traceback_ansi": ""}
        return out | ({"attachments": attachments} if attachments else {})

    def _message(self, message: Mapping[str, Any], attachments: dict[str, str]) -> dict[str, Any]:
        content = [
            {"type": "text", "text": part["text"]} if "text" in part else self._clip(part["audio"], attachments)
            for part in message["parts"]
        ]
        return {"role": message["role"], "content": content}

    def _answer(self, reply: StoredReply, attachments: dict[str, str]) -> dict[str, Any]:
        thoughts = [note.removeprefix(THOUGHT) for note in reply.notes if note.startswith(THOUGHT)]
        content: list[dict[str, Any]] = [{"type": "reasoning", "reasoning": thought} for thought in thoughts]
        content.append({"type": "text", "text": reply.text})
        if reply.audio:
            content.append(self._sound(self.paths.reply(reply.audio), f"reply {reply.audio}", attachments))
        return {"role": "assistant", "content": content, "source": "generate"}

    def _clip(self, sha: str, attachments: dict[str, str]) -> dict[str, Any]:
        name = self.by_hash.get(sha, "")
        return self._sound(self.paths.clip(name) if name else "", name or f"SHA-256 {sha[:12]}…", attachments)

    def _sound(self, path: str, name: str, attachments: dict[str, str]) -> dict[str, Any]:
        """Return a part of a message that plays a file, or one that names it if it is missing or sounds are left
        out."""
        kind = (mimetypes.guess_type(path)[0] or "").replace("x-wav", "wav")
        form = {"audio/wav": "wav", "audio/mpeg": "mp3"}.get(kind)  # the two that inspect_ai knows
        if not self.sounds or not path or form is None:
            return {"type": "text", "text": f"[sound: {name}]"}
        data = Path(path).read_bytes()
        key = hashlib.sha256(data).hexdigest()[:32]
        attachments[key] = f"data:{kind};base64,{base64.b64encode(data).decode()}"
        return {"type": "audio", "audio": f"attachment://{key}", "format": form}


def _score(score: Score, answer: str) -> dict[str, Any]:
    """Return a score as inspect_ai has it, with the letter that was read from the reply, or else the reply's text."""
    return {
        "value": score.value,
        "answer": answer or None,
        "explanation": score.reason or None,
        "metadata": {"signature": score.signature, **score.detail},
    }


def _usage(reply: StoredReply) -> dict[str, int]:
    used = reply.usage
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def _added(store: Store) -> dict[str, int]:
    """Return the tokens of all replies together."""
    total = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 0)
    for reply in store.replies():
        for key, count in _usage(reply).items():
            total[key] += count
    return total
