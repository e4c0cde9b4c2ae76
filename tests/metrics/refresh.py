"""Write versions.json anew: which source each metric's version stands for. Run as `python -m tests.metrics.refresh`.

It refuses when a source changed and no version did; `--same-behaviour` overrides that for edits that cannot change any
score (comments, typing, speed).
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import msgspec

from overtone.benchmarks.air_bench import letter_rule as air_bench
from overtone.benchmarks.mmau import word_match as mmau
from overtone.benchmarks.uro_bench import uro_metrics as uro
from overtone.metrics import (
    bertscore,
    bleu,
    choice,
    consistency,
    distillmos,
    dnsmos,
    emoalign,
    lengths,
    meteor,
    nisqa,
    prosody,
    rouge,
    semsim,
    style,
    templates,
    utmos,
    wer,
)

ROOT = Path(__file__).parents[2] / "src" / "overtone"
FILE = Path(__file__).with_name("versions.json")

SIGNATURES: dict[str, tuple[str, ...]] = {
    "wer": (wer.NORMALISED, wer.RAW),
    "choice": (choice.SIGNATURE, choice.SIGNATURE_STRICT),
    "semsim": (semsim.NAME,),
    "bleu": (bleu.SENTENCE, bleu.CORPUS),
    "rouge": (rouge.PLAIN, rouge.STEMMED),
    "meteor": (meteor.NAME,),
    "lengths": (lengths.WORDS, lengths.CHARS, *lengths.DISTINCT),
    "bertscore": (bertscore.NAME,),
    "prosody": (prosody.SIGNATURE,),
    "style": (style.NAME,),
    "consistency": (consistency.NAME,),
    "mmau": (mmau.NAME,),
    "templates": (*templates.SIGNATURES.values(), templates.ANALYTIC),
    "air-bench": (air_bench.NAME,),
    "uro": (uro.REPEAT, uro.EMOTION, uro.WER),
    "emoalign": tuple(f"{name}|v{emoalign.VERSION}" for name in emoalign.NAMES),
    **{m.load().name: tuple(map(m.load().signature, m.NAMES)) for m in (nisqa, utmos, dnsmos, distillmos)},
}
_TEXT = ("languages.py", "metrics/_limits.py", "metrics/normalise.py")
_QUALITY = ("metrics/_quality.py", "workers/quality.py")
SOURCES: dict[str, tuple[str, ...]] = {
    "wer": (*_TEXT, "metrics/wer.py", "metrics/_numbers.py", "metrics/data/spelling.tsv"),
    "choice": (
        "metrics/choice.py",
        "metrics/_recogniser.py",
        "tasks/answers/extract.py",
        "tasks/answers/claims.py",
        "tasks/answers/positions.py",
        "tasks/answers/phrases.py",
        "tasks/answers/stated_options.py",
        "tasks/answers/option_words.py",
    ),
    "semsim": (*_TEXT[:2], "metrics/semsim.py", "metrics/_similarity.py"),
    "bleu": (
        "languages.py",
        "metrics/bleu.py",
        "metrics/_treebank.py",
        "metrics/_sentences.py",
        "metrics/data/abbreviations.txt",
        "stats/corpus_sums.py",
    ),
    "rouge": (*_TEXT, "metrics/rouge.py", "metrics/_porter.py"),
    "meteor": (*_TEXT[:2], "metrics/meteor.py", "metrics/_porter.py", "embedded/wordnet.py"),
    "lengths": (
        *_TEXT,
        "metrics/lengths.py",
    ),
    "bertscore": (
        *_TEXT[:2],
        "metrics/bertscore.py",
        "metrics/_similarity.py",
        "workers/bert_matching.py",
        "workers/_hf.py",
    ),
    "prosody": ("metrics/prosody.py", "audio/_measure.py", "audio/_pitch.py"),
    "style": (*_TEXT[:2], "metrics/style.py", "metrics/semsim.py", "metrics/_similarity.py"),
    "mmau": ("benchmarks/mmau/word_match.py",),
    "templates": (*_TEXT, "metrics/templates.py", "metrics/lengths.py", "metrics/_sentences.py"),
    "air-bench": ("benchmarks/air_bench/letter_rule.py",),
    "consistency": (
        *_TEXT,
        "metrics/consistency.py",
        "metrics/wer.py",
        "metrics/_recogniser.py",
        "metrics/_numbers.py",
        "workers/whisper.py",
        "workers/_hf.py",
    ),
    "uro": (
        "benchmarks/uro_bench/uro_metrics.py",
        "metrics/_recogniser.py",
        "metrics/wer.py",
        *_TEXT,
        "metrics/_numbers.py",
    ),
    "emoalign": (
        "metrics/emoalign.py",
        "metrics/data/reply_emotions.tsv",
        "embedded/emotion.py",
        "embedded/emotion.npz",
        "embedded/_emotion_features.py",
        "audio/_pitch.py",
        "workers/emotion2vec.py",
    ),
    "nisqa": ("metrics/nisqa.py", "workers/_nisqa.py", "workers/_mel.py", *_QUALITY),
    "utmos": ("metrics/utmos.py", "workers/_utmos.py", *_QUALITY),
    "dnsmos": ("metrics/dnsmos.py", "workers/_dnsmos.py", "workers/_mel.py", *_QUALITY),
    "distillmos": ("metrics/distillmos.py", "workers/_distillmos.py", *_QUALITY),
}


class Stamp(msgspec.Struct, frozen=True):
    """What one metric was when it was last stamped."""

    signatures: tuple[str, ...]
    sources: dict[str, str]


def now(metric: str) -> Stamp:
    hashes = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in SOURCES[metric]}
    return Stamp(SIGNATURES[metric], hashes)


def stored() -> dict[str, Stamp]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Stamp]) if FILE.exists() else {}


def drifted(metric: str, was: Stamp, stamp: Stamp) -> str:
    """What to do about a metric whose sources and versions do not move together, or nothing."""
    changed = [name for name, sha in stamp.sources.items() if was.sources.get(name) != sha]
    if changed and was.signatures == stamp.signatures:
        return (
            f"{metric}: {', '.join(changed)} changed but no version did. If any score can change, bump VERSION (or the "
            "normaliser's NAME, the extractor's LENIENT, STRICT), then run 'python -m tests.metrics.refresh'; if none "
            "can, run 'python -m tests.metrics.refresh --same-behaviour'"
        )
    if changed or was != stamp:
        return f"{metric}: its version changed; run 'python -m tests.metrics.refresh' to stamp it"
    return ""


def main(same_behaviour: bool) -> int:
    before, after = stored(), {metric: now(metric) for metric in SIGNATURES}
    for metric, stamp in after.items():
        was = before.get(metric)
        if was and was.signatures == stamp.signatures and was.sources != stamp.sources and not same_behaviour:
            print(drifted(metric, was, stamp), file=sys.stderr)
            return 1
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(after), indent=2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main("--same-behaviour" in sys.argv[1:]))
