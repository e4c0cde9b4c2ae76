"""Conversations that a person held with a model in `overtone talk`, for asking other models about the same recordings.

Each utterance is an item. Every model gets the earlier utterances with the first model's replies, so that all compared
models meet the same conversation.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from overtone.benchmarks._folder import BenchmarkFolder, check_ids
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown
from overtone.schema import Item
from overtone.suite import Facts, Suite

BENCHMARK = "talk"
FILE = "conversations.jsonl"  # of a run: the items, one JSON object per line
MAX_BYTES = 1 << 30

SUITE = Suite(
    Facts(
        title="Talk",
        cues="whatever the person expressed; not labelled",
        tasks="converse",
        hears="utterance audio, with the conversation before it",
        answers="text and speech",
        turns="several",
        metrics="those of a reply without a reference; judges; the person's own ratings",
        data="a run of `overtone talk`",
        licence="yours",
        offline="all of it",
    ),
    layout=(FILE,),
)


class Talk(BenchmarkFolder):
    """The folder of a run that `overtone talk` made."""

    name = BENCHMARK

    def __init__(self, data: Path) -> None:
        super().__init__(data, f"a run of 'overtone talk', with {FILE} and clips")
        path = self.root / FILE
        if not path.is_file():
            raise DataError(f"{shown(str(data))}: has no {FILE}; name a run that 'overtone talk' made")
        decoder = msgspec.json.Decoder(Item)
        lines = read_plain(path, MAX_BYTES).splitlines()
        for number, line in enumerate(lines, 1):
            where = f"{shown(str(path))}, line {number}"
            try:
                item = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if number == len(lines):  # the program was killed while it wrote the line
                    self.notices.add("last lines that are cut are left out", where)
                    continue
                raise DataError(f"{where}: is not an utterance ({error}); restore the file") from None
            self._add(item, where)
        check_ids(self._items, self.root)

    def _add(self, item: Item, where: str) -> None:
        if item.benchmark != self.name or item.task != "converse" or not item.turns or item.turns[-1].clip is None:
            raise DataError(f"{where}: is not an utterance of 'overtone talk'; restore the file")
        if any(not turn.given for turn in item.turns[:-1]):
            raise DataError(f"{where}: an earlier utterance has no reply; restore the file")
        if inside(self.root, item.turns[-1].clip.path).is_file():
            self._items.append(item)
        else:
            self.notices.add("utterances whose recording is missing are left out", item.turns[-1].clip.path)


def load(data: Path) -> Talk:
    """Load the conversations of the run in `data`."""
    return Talk(data)
