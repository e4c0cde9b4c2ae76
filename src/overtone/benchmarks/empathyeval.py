"""EmpathyEval: which of two or three spoken replies fits the situation and the voice best? Groups vary context or tone.

This is the companion of AEQ-Bench (HumOmni 2026, track 1). Its test files are read as released; the right answers are
read from `*answer*.jsonl` files next to them, if there are any. Each training row becomes a question too: does the warm
or the flat delivery of a reply fit?
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from overtone.benchmarks._files import Fields, kind_of, lowered, read_objects, read_rows, text
from overtone.benchmarks._folder import (
    LETTER,
    MOST_EMPATHETIC,
    BenchmarkFolder,
    check_ids,
    option_paths,
    spoken_options,
)
from overtone.errors import DataError
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Column, Facts, Headline, Published, Release, Right, Suite

SETTINGS = {"gigaspeech": "context", "meld": "context", "emovdb": "tone"}  # source → the variable within a group
_VARIANT = {"meld": re.compile(r"_\d+$"), "emovdb": re.compile(r"_e\d+$")}
CONTEXT, TONE = {"category": ("context",)}, {"category": ("tone",)}
# Acc counts correct answers, Bonus groups with a correct answer to every variant. A missing reply is not correct.
ACC, BONUS, FINAL = Right(), Right(replies=False, groups=True), Right(groups=True, share=True)


def _columns() -> Iterator[Column]:
    for end, label, only in (("", "", {}), ("_context", ", context", CONTEXT), ("_tone", ", tone", TONE)):
        yield Column(f"final{end}", f"Final{label}", "accuracy", only, FINAL, help="(Acc + Bonus) ÷ (items + groups)")
        yield Column(f"acc{end}", f"Acc{label}", "accuracy", only, ACC, "number", 0)
        yield Column(f"bonus{end}", f"Bonus{label}", "accuracy", only, BONUS, "number", 0)


SUITE = Suite(
    Facts(
        title="EmpathyEval",
        cues="tone of voice (amused, angry, neutral, sleepy, disgusted), delivery of the reply",
        tasks="choose the most empathetic of 2–3 spoken replies",
        hears="context text, utterance audio, reply audios",
        answers="a letter",
        turns="one",
        metrics="Acc, Bonus (whole groups), Final",
        data="gracehuggingface/EmpathyEval (hub)",
        licence="see its card",
        offline="loading and scoring; the audio must be downloaded",
    ),
    release=Release("gracehuggingface/EmpathyEval", "as on its dataset card: read it before use"),
    headlines=(
        Headline(
            "empathyeval",
            "EmpathyEval",
            tuple(_columns()),
            hint="Acc counts correct answers, Bonus groups whose variants are all correct; Final is (Acc + Bonus) ÷ "
            "(questions + groups). A question without an answer counts as wrong, as in a submission.",
        ),
    ),
    published=(
        Published(
            "EmpathyEval, phase 1",
            "HumOmni 2026, track 1, leaderboard",
            {
                "acc": "Acc",
                "bonus": "Bonus",
                "final": "Final",
                "final_context": "Final, context",
                "final_tone": "Final, tone",
            },
            (
                ("best team", (457, 137, 0.814, 0.786, 0.920)),
                ("Qwen2.5-Omni-7B", (249, 35, 0.389, 0.381, 0.420)),
                ("Qwen2.5-Omni-3B", (248, 34, 0.386, 0.367, 0.460)),
            ),
            digits={"final": 3, "final_context": 3, "final_tone": 3},
        ),
    ),
    layout=tuple(above + file for above in ("", "*/", "*/*/") for file in ("*_release.json", "*_flat.jsonl")),
)


class EmpathyEval(BenchmarkFolder):
    """A folder that holds any of the released files, at any depth."""

    name = "empathyeval"

    def __init__(self, data: Path) -> None:
        super().__init__(data, "the unpacked release")
        files = sorted(p for p in self.root.rglob("*") if p.suffix in (".json", ".jsonl") and p.is_file())
        for path in files:
            inside(self.root, path.relative_to(self.root).as_posix())  # refuses a link that leads out of the root
        answers = self._answers([p for p in files if "answer" in p.stem.lower()])
        for path in files:
            if path.stem.endswith("_release"):
                self._items += self._test(path, answers)
            elif path.name.endswith("_flat.jsonl"):
                self._items += self._train(path)
        if not self._items and not self.warnings:
            raise DataError(
                f"{shown(str(data))}: holds neither *_release.json nor *_flat.jsonl; unpack the release's zips there"
            )
        check_ids(self._items, self.root)

    def _answers(self, files: list[Path]) -> dict[str, str]:
        """Return a question's id → the letter of its right answer, from answer files in the format of a submission."""
        answers: dict[str, str] = {}
        for path in files:
            rows = read_rows(path) if path.suffix == ".jsonl" else read_objects(path)
            for where, fields in rows:
                letter = _answer(fields, where)
                name = text(fields, ("question_id", "id"), where)
                if not letter or not name:
                    raise DataError(f"{where}: 'question_id' and 'answer' (a letter) are expected")
                answers[name] = letter
        return answers

    # ── the test files ──────────────────────────────────────────────────────────────────────────────────────────────

    def _test(self, path: Path, answers: dict[str, str]) -> Iterator[Item]:
        source = next((s for s in SETTINGS if s in path.stem.lower()), "")
        if not source:
            raise DataError(f"{shown(str(path))}: its name has none of {', '.join(SETTINGS)}; keep the released name")
        folder = self.folder_of(path)
        for where, fields in read_objects(path):
            name = text(fields, ("question_id", "id"), where)
            if not name:
                raise DataError(f"{where}: no 'question_id'; every question needs one")
            paths = option_paths(fields.get("options"), where)
            clips = {letter: self._find(path, folder, where) for letter, path in paths.items()}
            utterance = self._find(fields.get("utterance_audio"), folder, where)
            if utterance is None or None in clips.values():
                self.notices.add("questions with a missing recording are left out", name)
                continue
            own, listed = _answer(fields, where), answers.get(name, "")
            if own and listed and own != listed:
                raise DataError(f"{where}: the row's answer is {own}, but a file of answers says {listed}; keep one")
            yield self._item(
                name, source, _group(name, source, utterance), utterance, clips,
                words=text(fields, ("utterance",), where),
                context=text(fields, ("context",), where),
                reference=text(fields, ("response",), where),
                gold=own or listed, where=where,
            )  # fmt: skip

    def _find(self, named: object, folder: str, where: str) -> str | None:
        if not isinstance(named, str) or not named.strip():
            raise DataError(f"{where}: a recording's path is {kind_of(named)}, but text is expected")
        return self._sounds.find(named, (folder, ""), where)

    # ── the training files ──────────────────────────────────────────────────────────────────────────────────────────

    def _train(self, path: Path) -> Iterator[Item]:
        folder = self.folder_of(path)
        for where, fields in read_rows(path):
            name = text(fields, ("id",), where)
            contexts = fields.get("contexts")
            if not name or not isinstance(contexts, list | dict):
                raise DataError(f"{where}: 'id' and 'contexts' are expected")
            rows = _contexts(contexts, where) if isinstance(contexts, list) else _tones(contexts, where)
            emotion = text(fields, ("emotion",), where)
            words = text(fields, ("text",), where)
            for variant, context, reply in rows:
                user = f"{name}_{variant}_{emotion}" if isinstance(contexts, list) else f"{name}_{variant}"
                kind: Literal["context", "tone"] = "context" if isinstance(contexts, list) else "tone"
                yield from self._pair(folder, kind, name, variant, user, words, context, reply, where)

    def _pair(
        self, folder: str, kind: str, name: str, variant: str, user: str, words: str, context: str, reply: str,
        where: str,
    ) -> Iterator[Item]:  # fmt: skip
        stem = f"{name}_{variant}"
        names = (f"user_audio/{user}", f"response_audio/{stem}_goodPara", f"response_audio/{stem}_badPara")
        utterance, good, bad = (self._sounds.find(f"{one}.wav", (folder, ""), where) for one in names)
        if utterance is None or good is None or bad is None:
            self.notices.add("training pairs with a missing recording are left out", f"{kind}/{stem}")
            return
        first = hashlib.sha256(f"{kind}/{stem}".encode()).digest()[0] % 2 == 0  # the right letter follows no pattern
        clips: dict[str, str | None] = {"A": good if first else bad, "B": bad if first else good}
        yield self._item(
            f"train/{kind}/{stem}", "empathetic-dialogues", f"train/{kind}/{name}", utterance, clips, words=words,
            context=context, reference=reply, gold="A" if first else "B", kind=kind, where=where,
        )  # fmt: skip

    def _item(
        self, name: str, source: str, group: str, utterance: str, clips: dict[str, str | None], *, words: str,
        context: str, reference: str, gold: str, where: str, kind: str = "",
    ) -> Item:  # fmt: skip
        return Item(
            id=f"{self.name}/{name}",
            benchmark=self.name,
            level=2,
            task="choose",
            category=kind or SETTINGS[source],
            case=name,
            group=group,
            style="",
            turns=(Turn(Clip(utterance), words),),
            source=source,
            context=context,
            question=MOST_EMPATHETIC,
            options=spoken_options(clips, gold, where),
            gold=gold,
            references=(reference,) if reference else (),
        )


def _answer(fields: Fields, where: str) -> str:
    """Return the letter of the right answer that a row gives, or "" if it gives no answer."""
    given = text(fields, ("answer", "gold", "label"), where)
    letter = LETTER.fullmatch(given)
    if given and letter is None:
        raise DataError(f"{where}: the answer {shown(given)[:40]!r} is not a letter, like A or opt-A")
    return letter[1].upper() if letter else ""


def _group(name: str, source: str, utterance: str) -> str:
    """Return the group of a row: the start of the name that all variants share, or their common recording."""
    if source in _VARIANT:
        return _VARIANT[source].sub("", name)
    return f"{source}/{Path(utterance).stem}"


def _contexts(given: list[object], where: str) -> Iterator[tuple[str, str, str]]:
    for number, one in enumerate(given, 1):
        if not isinstance(one, dict):
            raise DataError(f"{where}: a context holds {kind_of(one)}, but an object is expected")
        fields: Fields = lowered(one)
        yield str(number), text(fields, ("context",), where), text(fields, ("response",), where)


def _tones(given: Fields, where: str) -> Iterator[tuple[str, str, str]]:
    fields = lowered(given)
    context = text(fields, ("context",), where)
    for key in fields:
        if key.endswith("_response"):
            yield key.removesuffix("_response"), context, text(fields, (key,), where)


def load(data: Path) -> EmpathyEval:
    """Load the release in `data`."""
    return EmpathyEval(data)
