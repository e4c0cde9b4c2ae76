"""SD-Eval: one spoken utterance, one reply; does the reply respond to the emotion, accent, age or background heard?

Its four files (test-emo, test-acc, test-age, test-env) are read as released. Most of its sounds belong to other corpora
and must be fetched from there. Utterances without their sound are left out, with a warning that names the corpus.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from overtone.benchmarks._files import Fields, kind_of, read_objects, text
from overtone.benchmarks._folder import BenchmarkFolder
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.heard import Origin
from overtone.paths import inside, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Column, Facts, Headline, Release, Suite


class Subset(Struct, frozen=True):
    file: str
    dimension: str
    heard: str


SUBSETS = {
    "emotion": Subset("test-emo", "paralinguistic", "the user's emotion"),
    "accent": Subset("test-acc", "speaker", "the user's accent"),
    "age": Subset("test-age", "speaker", "the user's age"),
    "environment": Subset("test-env", "environment", "the sound in the background"),
}
CORPORA = {  # a corpus as the files call it → where to get its sounds and where to put them
    "RAVDESS-Speech": "RAVDESS (zenodo.org/record/1188976) into RAVDESS-Speech/Actor_NN/",
    "JL_corpus": "the JL corpus (kaggle.com/datasets/tli725/jl-corpus) into JL_corpus/",
    "MEAD": "MEAD (wywu.github.io/projects/MEAD), its m4a made wav, into MEAD/MEAD_wav/",
    "VCTK": "VCTK (datashare.ed.ac.uk/handle/10283/2651) into VCTK/",
    "common_voice": "Common Voice 16.1 (commonvoice.mozilla.org) into common_voice/",
    "myst": "MyST (boulderlearning.com) into myst/",
    "synthesized": "the archives of amphion/SD-Eval (overtone data fetch sd-eval), unpacked",
}
SYNTHESISED = "synthesized"  # SD-Eval's name for speech that belongs to no corpus
SPEAKERS = {  # corpus → the speaker in the name of an utterance; Common Voice's names have none
    "RAVDESS-Speech": re.compile(r"(?:\d\d-){6}(\d\d)"),
    "JL_corpus": re.compile(r"((?:fe)?male\d+)_.*"),
    "MEAD": re.compile(r"([MW]\d+)_.*"),
    "VCTK": re.compile(r"(p\d+)(?:_.*)?"),
    "myst": re.compile(r"myst_(\d+)_.*"),
}
CUES = {  # SD-Eval's name → our cue. A name that fits two of our cues is left out
    "driving": "car",
    "sea beach": "waves",
    "children's voice": "children",
    "bus or subway": "subway",
}
FOLDERS = ("", "audio_data/", "audio/", "archive/", "data/")
ENDINGS = (".wav", ".flac", ".mp3")


SUITE = Suite(
    Facts(
        title="SD-Eval",
        cues="emotion (5), accent, age (child, adult), background sound (7)",
        tasks="converse",
        hears="one utterance",
        answers="text or speech",
        turns="one",
        metrics="judge 1–10, one question per subset",
        data="amphionspace/SD-Eval (repository), amphion/SD-Eval (hub), six speech corpora",
        licence="CC BY-NC 4.0; each corpus its own",
        offline="loading, asking and reference metrics; the rating needs a judge",
    ),
    release=Release(
        "amphion/SD-Eval",
        "CC BY-NC 4.0: non-commercial, name the authors",
        also=(Release("amphionspace/SD-Eval", "CC BY-NC 4.0", host="github", folders=("data",)),),
    ),
    headlines=(
        Headline(
            "sd-eval",
            "SD-Eval",
            (
                Column(
                    "mean", "Mean of subsets", kind="number", help="Ours: each subset counts once",
                    balance={name: (f"rating_{name}", 1.0) for name in SUBSETS},
                ),
                *(
                    Column(
                        name, name.capitalize(), f"rating_{name}", {"category": (name,)}, kind="number",
                        help=f"Mean rating, 1–10: a good reply that responds to {subset.heard}. SD-Eval reads only the "
                        "first digit of a rating without brackets, 10 as 1; here every rating is read in full.",
                    )
                    for name, subset in SUBSETS.items()
                ),
            ),
            hint="Ratings of a judge that reads the words, the label and the reply's text, from 1 to 10.",
        ),
        Headline(
            "sd-eval-cues",
            "SD-Eval, by what was heard",
            tuple(
                Column(name, name.capitalize(), f"rating_{name}", {"category": (name,)}, kind="number")
                for name in SUBSETS
            ),
            rows="cue",
        ),
    ),
    rubrics=("sd-eval",),
    layout=tuple(f"{folder}{subset.file}.json" for folder in ("", "data/") for subset in SUBSETS.values()),
)  # fmt: skip


class SdEval(BenchmarkFolder):
    """A folder with any of the four files, directly or in its `data/`, and with any of the sounds."""

    name = "sd-eval"

    def __init__(self, data: Path) -> None:
        super().__init__(data, "the four files, like test-emo.json")
        self._folders = [folder for folder in FOLDERS if (self.root / folder).is_dir()]
        files = {}
        for category, subset in SUBSETS.items():
            for name in (f"data/{subset.file}.json", f"{subset.file}.json"):
                if (self.root / name).exists():
                    files[category] = inside(self.root, name)
        if not files:
            wanted = ", ".join(f"{subset.file}.json" for subset in SUBSETS.values())
            raise DataError(f"{shown(str(data))}: holds none of {wanted}; give a copy of the repository or its data/")
        for category, path in files.items():
            self._items += self._read(category, path)

    def origins(self, item: Item) -> Iterator[Origin]:
        """Yield the corpus and the speaker of an item's clip, as its files name them."""
        clip = item.turns[0].clip
        if item.source in ("", SYNTHESISED) or clip is None:
            return
        pattern = SPEAKERS.get(item.source)
        name = pattern.fullmatch(item.id.rpartition("/")[2]) if pattern else None
        yield Origin(item.source, name[1] if name else "", clip.path)

    def _read(self, category: str, path: Path) -> Iterator[Item]:
        rows = [(at, fields, text(fields, ("wav_path",), at)) for at, fields in read_objects(path)]
        stems = Counter(PurePosixPath(named).stem for _, _, named in rows)
        seen: set[str] = set()
        for at, fields, named in rows:
            name = text(fields, ("utt_id",), at)
            if not name or not named:
                raise DataError(f"{at}: no {'utt_id' if not name else 'wav_path'!r}; fetch the file again")
            if name in seen:
                raise DataError(f"{at}: the utt_id {shown(name)!r} is duplicated; fetch the file again")
            seen.add(name)
            clip = self._find(named, stems[PurePosixPath(named).stem] == 1, at)
            corpus = text(fields, ("dataset_name",), at)
            if clip is None:
                source = CORPORA.get(corpus, f"the corpus {shown(corpus)}")
                self.notices.add(f"{category}: missing clips are left out; get {source}", named)
                continue
            yield self._item(category, name, corpus, clip, fields, at)

    def _item(self, category: str, name: str, corpus: str, clip: str, fields: Fields, where: str) -> Item:
        words = text(fields, ("transcript",), where)
        label = text(fields, ("info",), where)
        if not words or not label:
            raise DataError(f"{where}: no {'transcript' if not words else 'info'!r}; fetch the file again")
        cue = find_cue(CUES.get(label.casefold(), label))
        slug = cue.slug if cue else ""
        words_hash = hashlib.sha256(words.casefold().encode()).hexdigest()[:12]
        return Item(
            id=f"{self.name}/{category}/{name}",
            benchmark=self.name,
            level=3,
            task="converse",
            category=category,
            case=f"{category}/{name}",
            group=f"{category}/{words_hash}",  # other voices, emotions and places have the same words
            style="",
            turns=(Turn(Clip(clip), words, slug),),
            cue=slug,
            cue_text=label,
            dimension=SUBSETS[category].dimension,
            source=corpus,
            references=_replies(fields.get("target"), where),
            language="en",
        )

    def _find(self, named: str, alone: bool, where: str) -> str | None:
        """Return the path of a sound, also in another format. The given path is tried first, then the bare file name.

        The bare name is tried only with `alone`, i.e. if only one utterance has this file name: MEAD has hundreds of
        files named 001.wav.
        """
        pure = PurePosixPath(named.replace("\\", "/"))
        stems = [str(pure.with_suffix(""))] + ([pure.stem] if alone else [])
        endings = dict.fromkeys((pure.suffix, *ENDINGS))
        for stem in stems:
            for folder in self._folders:
                for ending in endings:
                    try:
                        real = inside(self.root, f"{folder}{stem}{ending}")
                    except DataError as error:
                        raise DataError(f"{where}: {error}") from None
                    if real.is_file():
                        return f"{folder}{stem}{ending}"
        return None


def _replies(given: object, where: str) -> tuple[str, ...]:
    """Return the five reference replies of a row. Their emotion labels are ignored, as in SD-Eval's own scores."""
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise DataError(f"{where}: 'target' holds {kind_of(given)}, but a list of replies is expected")
    return tuple(reply for one in given if (reply := text(one, ("reply",), where)))


def load(data: Path) -> SdEval:
    """Load the copy of SD-Eval in `data`."""
    return SdEval(data)
