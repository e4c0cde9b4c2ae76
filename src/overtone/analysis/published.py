"""The results EchoMind's authors published: twelve models in fourteen rows, as printed."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

VARIANTS = ("Audio-Flamingo3+Think", "Audio-Flamingo3-chat")  # of a model that has a row of its own


class PublishedColumn(Struct, frozen=True):
    """A column of the paper's tables. `measure` is our name of it; a `percent` is printed times 100."""

    key: str
    label: str
    measure: str
    kind: Literal["percent", "number"] = "number"
    better: Literal["higher", "lower"] = "higher"

    @property
    def title(self) -> str:
        return f"{self.label} {'↑' if self.better == 'higher' else '↓'}"


COLUMNS = (
    PublishedColumn("wer", "WER", "wer_raw", "percent", "lower"),
    PublishedColumn("semsim", "SemSim", "semsim", "percent"),
    PublishedColumn("voice_accuracy", "Voice ACC", "voice_accuracy", "percent"),
    PublishedColumn("reasoning_accuracy", "Reasoning ACC", "reasoning_accuracy", "percent"),
    PublishedColumn("bleu", "BLEU", "bleu", "percent"),
    PublishedColumn("rouge_l", "ROUGE-L", "rouge_l", "percent"),
    PublishedColumn("meteor", "METEOR", "meteor", "percent"),
    PublishedColumn("bertscore", "BERTScore", "bertscore", "percent"),
    PublishedColumn("c1", "C1", "cctxfit"),
    PublishedColumn("c2", "C2", "crespnat"),
    PublishedColumn("c3", "C3", "ccolloqdeg"),
    PublishedColumn("c4", "C4", "cspeechrel"),
    PublishedColumn("nisqa", "NISQA", "nisqa_mos"),
    PublishedColumn("dnmos", "DNMOS", "utmos"),
    PublishedColumn("emoalign", "EmoAlign", "emoalign_reference", "percent"),
    PublishedColumn("ves", "VES", "ves"),
)


class Published(Struct, frozen=True):
    """For each model its values by the keys of COLUMNS; None where the paper prints a dash."""

    source: str
    rows: tuple[dict[str, str | float | None], ...]

    def model(self, row: int) -> str:
        return str(self.rows[row]["model"])

    def value(self, row: int, column: str) -> float | None:
        found = self.rows[row].get(column)
        return float(found) if isinstance(found, int | float) else None


@functools.cache
def published() -> Published:
    """The table, read from the file that the benchmark keeps."""
    file = resources.files("overtone").joinpath("benchmarks", "echomind_published.json")
    return msgspec.json.decode(file.read_bytes(), type=Published)
