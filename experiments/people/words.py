"""How many of the words of people's test clips occur in training: an adapter trained by CTC finds no others.

    python -m experiments.people.words out/people out/echat/exchanges.jsonl

The tokens of the language model, which are the classes of CTC, are counted too, and how many of them there are per
vector of the adapter: more than one could not be found.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

from experiments.echat.result_tables import table
from overtone.echat.data.containers import Pack, clip_index
from overtone.echat.data.exchange_records import Record
from overtone.echat.making.set_identity import read_exchanges
from overtone.echat.net import config
from overtone.echat.net.config import RATE, positions
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.metrics.normalise import english

PRESET = "people"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.people.words", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("packs", metavar="DIR", type=Path, help="what experiments.people.packs wrote")
    parser.add_argument("exchanges", metavar="FILE", type=Path, help="exchanges.jsonl of the synthetic set")
    given = parser.parse_args(argv)
    _, exchanges = read_exchanges(given.exchanges)
    texts = {x.question for x in exchanges if x.part in ("train", "style", "words")}
    learnt = [path for path in given.packs.iterdir() if (path / "records.jsonl").is_file() and "twin" not in path.name]
    texts |= {record.question for path in learnt for record in Pack(path).records}
    encode = open_tokenizer(config.read(PRESET).model).encode
    words, tokens = set(_words(texts)), {token for text in texts for token in encode(text)}
    print(f"{len(texts):,} texts, {len(words):,} different words, {len(tokens):,} different tokens\n")
    lines = [
        [name, f"{_share(_words(r.question for r in records), words):.3f}",
         f"{_share((t for r in records for t in encode(r.question)), tokens):.3f}",
         f"{max(_density(path, record, encode) for path, record in _clips(given.packs, name)):.2f}"]
        for name in ("librispeech", "speechocean-test", "ravdess")
        if (records := [record for _, record in _clips(given.packs, name)])
    ]  # fmt: skip
    print("\n".join(table(["test", "words that occur", "tokens that occur", "most tokens per vector"], lines)))


def _clips(packs: Path, corpus: str) -> list[tuple[Pack, Record]]:
    """Return the records of a test that have words."""
    found = [Pack(path) for path in sorted((packs / "test").glob(f"{corpus}*")) if path.name.count("-") <= 1]
    return [(pack, r) for pack in found for r in pack.records if r.question and r.dataset == corpus]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word for text in texts for word in english(text).split())


def _share(some: Iterable[object], known: Container[object]) -> float:
    found = [one in known for one in some]
    return sum(found) / max(len(found), 1)


def _density(pack: Pack, record: Record, encode: Callable[[str], list[int]]) -> float:
    model = config.read(PRESET).model
    vectors = positions(model, round(pack.seconds(clip_index(record.wav)) * RATE)) - model.adapter.voice
    return len(encode(record.question)) / vectors


if __name__ == "__main__":
    main()
