"""EChat-eval: does a spoken reply use the emotion, age, gender or sound event heard, or several of them at once?

Two forms are read: the open set that `overtone build echat-eval` makes (`echat_eval.json`), and records in the raw form
of EChat-200K. Raw records are JSON Lines in `.jsonl` or `.list` files, or an unpacked shard (KEY.wav, KEY.txt,
KEY.extra). The form of the EChat-eval release is not known, so a field is accepted under several keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from overtone.benchmarks._files import Fields, kind_of, language, lowered, read_objects, read_rows, text
from overtone.benchmarks._folder import BenchmarkFolder
from overtone.benchmarks.echat_eval.echat_labels import KEYS, KINDS, Label, label, wanted
from overtone.benchmarks.open import read_statuses, weakest
from overtone.build.dataset_card import METADATA
from overtone.errors import DataError
from overtone.languages import language_of
from overtone.paths import inside, read_plain, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Column, Facts, Headline, Means, Published, Release, Suite

CATEGORIES = {"emotion": "Emotion", "age": "Age", "gender": "Gender", "event": "Event", "multi": "Multi"}
DIMENSIONS = {
    "echat_words": ("Fits the words", "Does the reply answer the words?"),
    "echat_labels": ("Uses the labels", "Does the reply respond to what can be heard besides the words?"),
    "echat_voice": ("Reply emotion fits", "Does the emotion in the reply's voice fit? Needs a spoken reply."),
}
OPEN = "echat_eval.json"
_NAMED = {"emo": "emotion", "sex": "gender", "caption": "event", "sound": "event"} | {c: c for c in CATEGORIES}
_THOUGHT = "<think end>"
_TAG = re.compile(r"\s*<([^<>]{1,20})>\s*")
_SMALL = 1_000_000  # limit for one file of a shard, in bytes
NOT_COMPARABLE = (
    "the dimensions, their weights, the judge's prompt and the recogniser of the reply's emotion are not published: "
    "the questions here are ours, and the open set has other items"
)


def marks(*keys: str, by: str = "") -> Means:
    """Return the rule for a column that averages these dimensions with equal weights, scaled from 1–5 to 0–100.
    Unjudged replies do not count."""
    return Means(by, scores=keys, offset=-1, times=25)


_OURS = "Ours, 0–100: a judge's 1 to 5 becomes (mean − 1) × 25; its three questions have equal weight."
_DIMENSIONS = (
    *(
        Column(key, title, key, reduce=marks(key), kind="number", digits=1, help=f"{question} 1–5, scaled to 0–100")
        for key, (title, question) in DIMENSIONS.items()
    ),
    Column(
        "text", "Words alone", "echat_labels", reduce=marks("echat_words", "echat_labels"), kind="number", digits=1,
        help="Mean of the first two, for models that answer in text and have no voice to judge",
    ),
)  # fmt: skip
_SOURCE = "OSUM-EChat, table 1 of its repository's page (arXiv 2508.09600)"
_ONE = dict.fromkeys(CATEGORIES, 1)

SUITE = Suite(
    Facts(
        title="EChat-eval",
        cues="emotion (7), age (3), gender, sound events by the speaker or behind, two or three of them at once",
        tasks="converse",
        hears="one utterance",
        answers="speech (text: without the third score)",
        turns="one",
        metrics="judge 1–5 × 3 as 0–100: fits the words, uses the labels, reply emotion fits",
        data="220 items built here: overtone build echat-eval; records of ASLP-lab/EChat-200K (hub)",
        licence="open set CC BY 4.0; EChat-200K Apache-2.0",
        offline="building, loading, asking, the emotion of replies; the scores need a judge",
    ),
    release=Release("ASLP-lab/EChat-200K", "Apache-2.0"),
    headlines=(
        Headline(
            "echat-eval",
            "EChat-eval",
            (
                Column(
                    "mean", "Mean", "echat_voice", reduce=marks(*DIMENSIONS, by="category"), kind="number", digits=1,
                    help=f"{_OURS} Each category counts once.",
                ),
                *(
                    Column(
                        name, title, "echat_voice", {"category": (name,)}, marks(*DIMENSIONS), "number", 1,
                        help=f"{_OURS} Replies without a voice have no score. Not comparable with published tables.",
                    )
                    for name, title in CATEGORIES.items()
                ),
            ),
            hint="0–100. Our score, from three questions of equal weight; not comparable with the published tables.",
        ),
        Headline("echat-eval-dimensions", "EChat-eval, by question", _DIMENSIONS, rows="category"),
        Headline("echat-eval-cues", "EChat-eval, by what was heard", _DIMENSIONS, rows="cue"),
    ),
    published=(
        Published(
            "EChat-eval, rated by GPT-4o",
            _SOURCE,
            CATEGORIES,
            (
                ("Qwen2.5-Omni", (44.8, 52.6, 43.3, None, 63.7)),
                ("Freeze-Omni", (44.0, 31.7, 47.3, None, 49.6)),
                ("GLM-4-Voice", (48.7, 44.7, 42.4, None, 60.3)),
                ("Baichuan-Audio", (41.5, 28.6, 41.6, None, 45.6)),
                ("Kimi-Audio", (45.8, 34.2, 36.0, None, 57.4)),
                ("OpenS2S", (46.6, 62.1, 37.9, None, 57.3)),
                ("OSUM-EChat", (58.0, 63.1, 62.7, 87.1, 72.0)),
            ),
            digits=_ONE,
            comparable=NOT_COMPARABLE,
        ),
        Published(
            "EChat-eval, what OSUM-EChat's training adds, rated by GPT-4o",
            _SOURCE,
            CATEGORIES,
            (
                ("OSUM-EChat", (58.0, 63.1, 62.7, 87.1, 72.0)),
                ("− U-Driven", (53.4, 35.4, 41.0, 52.9, 63.1)),
                ("− Dual Think", (54.5, 42.3, 61.3, 61.1, 56.4)),
                ("− both", (51.6, 40.3, 39.1, 10.4, 54.2)),
            ),
            digits=_ONE,
            comparable=NOT_COMPARABLE,
        ),
        Published(
            "EChat-eval, rated by people",
            _SOURCE,
            CATEGORIES,
            (
                ("Doubao", (78.0, 42.2, 39.0, None, 60.7)),
                ("Qwen2.5-Omni", (54.9, 55.0, 49.2, None, 67.3)),
                ("OSUM-EChat", (72.0, 68.9, 65.8, 88.0, 73.3)),
            ),
            digits=_ONE,
            comparable=f"these are people's ratings; {NOT_COMPARABLE}",
        ),
    ),
    rubrics=("echat-eval", "echat-eval-voice"),
    layout=(OPEN,),
)  # fmt: skip


class EchatEval(BenchmarkFolder):
    """A folder with the open set, or with records in EChat's raw form."""

    name = "echat-eval"

    def __init__(self, data: Path) -> None:
        super().__init__(data, f"{OPEN} or EChat's records")
        self._statuses = read_statuses(self.root) if (self.root / OPEN).is_file() else {}
        read = False
        for path, records in self._files():
            read = True
            for where, fields in records:
                self._take(fields, path, where)
        if not read:
            tars = " (archives are not read: unpack them there)" if any(self.root.glob("**/*.tar*")) else ""
            raise DataError(
                f"{shown(str(data))}: holds neither {OPEN} nor records in .jsonl, .list or .extra files{tars}; "
                "make the open set with 'overtone build echat-eval'"
            )

    def _files(self) -> Iterator[tuple[Path, Iterator[tuple[str, Fields]]]]:
        """Yield every file with its records. Each record comes with its place in the file."""
        if (self.root / OPEN).is_file():
            path = inside(self.root, OPEN)
            yield path, read_objects(path)
            return
        lines = [
            path
            for ending in ("jsonl", "list")
            for path in sorted(self.root.glob(f"**/*.{ending}"))
            if path.name != METADATA  # describes the sounds of a built set for other tools
        ]
        for path in lines:
            inside(self.root, path.relative_to(self.root).as_posix())
            if path.suffix == ".list" and not read_plain(path, _SMALL * 500).lstrip().startswith(b"{"):
                self.notices.add("lists of archives hold no records and are not read; unpack the archives", path.name)
                continue
            yield path, read_rows(path)
        for path in sorted(self.root.glob("**/*.extra")):
            yield path, iter([(shown(str(path)), self._shard(path))])

    def _shard(self, path: Path) -> Fields:
        """Return a record of an unpacked shard: each field is a file, and all have the same stem."""
        inside(self.root, path.relative_to(self.root).as_posix())
        reply_file = path.with_suffix(".txt")
        try:
            reply = read_plain(reply_file, _SMALL).decode("utf-8").strip() if reply_file.is_file() else ""
            extra = read_plain(path, _SMALL).decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{shown(str(path))}: it or its .txt is not UTF-8; unpack the archive again") from None
        return {"key": path.stem, "txt": reply, "wav": path.with_suffix(".wav").name, "extra": extra}

    def _take(self, fields: Fields, path: Path, where: str) -> None:
        extra = _extra(fields.get("extra"), where)
        key = text(fields, ("key", "id"), where)
        named = _below(text(fields, ("wav", "audio", "wav_path"), where))
        if not named and any(name.startswith("wav_") for name in fields):
            self.notices.add("dialogues of several turns do not belong to EChat-eval and are left out", key or where)
            return
        words = text(extra, ("question", "q_txt"), where) or text(fields, ("question", "q_txt"), where)
        for value, name in ((key, "key"), (named, "wav"), (words, "question")):
            if not value:
                raise DataError(f"{where}: no {name!r}; a record has key, wav and, in extra, question")
        labels = [
            one
            for kind in KINDS
            if (one := label(kind, text(extra, KEYS[kind], where) or text(fields, KEYS[kind], where)))
        ]
        category = self._category(fields, extra, path, labels, where)
        labels = [one for one in labels if category in (one.kind, "multi")]
        if not labels:
            self.notices.add("records without a label of their category are left out", key)
            return
        clip = self.clip(named, self._folders(path), where)
        name = self._ids.claim(key, fields, where) if clip else ""
        if clip and name:
            self._items.append(self._item(name, category, labels, clip, words, fields, extra, path, where))

    def _category(self, fields: Fields, extra: Fields, path: Path, labels: list[Label], where: str) -> str:
        """Return the category that the record, its file or its folder names. If none is named, its labels determine
        it."""
        stated = text(fields, ("category", "task_type", "type"), where) or text(extra, ("category",), where)
        file = "" if path.suffix == ".extra" else path.stem
        folder = "" if path.parent == self.root else path.parent.name
        for name in (stated, file, folder):
            categories = {_NAMED[word] for word in re.split(r"[^a-z]+", name.lower()) if word in _NAMED}
            if categories:
                return categories.pop() if len(categories) == 1 else "multi"
        if stated:
            raise DataError(f"{where}: unknown category {shown(stated)!r}; known: {', '.join(CATEGORIES)}")
        return labels[0].kind if len(labels) == 1 else "multi"

    def _item(
        self, name: str, category: str, labels: list[Label], clip: str, words: str,
        fields: Fields, extra: Fields, path: Path, where: str,
    ) -> Item:  # fmt: skip
        reply, tag = _reply(text(fields, ("txt",), where))
        cue = next((one.slug for one in labels if one.slug), "")
        statuses = {self._statuses.get(one.slug, "") for one in labels if one.slug}
        words_hash = hashlib.sha256(words.casefold().encode()).hexdigest()[:12]
        reply_wav = _below(text(extra, ("a_wav_path",), where))
        return Item(
            id=f"{self.name}/{category}/{name}",
            benchmark=self.name,
            level=3,
            task="converse",
            category=category,
            case=f"{category}/{name}",
            group=f"{category}/{words_hash}",  # the same words in other deliveries
            style="",
            turns=(Turn(Clip(clip), words, cue),),
            cue=cue,
            cue_text="; ".join(one.words for one in labels),
            dimension=labels[0].dimension if len(labels) == 1 else "",
            source=text(extra, ("dataset",), where) or text(fields, ("dataset",), where),
            topic=text(extra, ("topic",), where),
            gold=wanted(text(extra, ("a_emotion", "reply_emotion"), where) or tag),
            references=(reply,) if reply else (),
            reference_audio=(self._sounds.find(reply_wav, self._folders(path), where) or "") if reply_wav else "",
            status=weakest(statuses),
            language=language(extra, where) or language(fields, where) or language_of("", words),
        )

    def _folders(self, path: Path) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("", self.folder_of(path))))


def _extra(given: object, where: str) -> Fields:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except (msgspec.DecodeError, RecursionError) as error:
            raise DataError(f"{where}: 'extra' is not JSON: {error}") from None
    if not isinstance(given, dict | None):
        raise DataError(f"{where}: 'extra' holds {kind_of(given)}, but an object is expected")
    return lowered(given or {})


def _below(named: str) -> str:
    """Return the path of a sound. An absolute path is from the authors' machine and is reduced to the file name."""
    return PurePosixPath(named).name if named.startswith("/") else named


def _reply(text: str) -> tuple[str, str]:
    """Return the reply without its thinking and its emotion tag, and the emotion in the tag ("" without a tag)."""
    reply = text.rpartition(_THOUGHT)[2].strip()
    tag = _TAG.match(reply)
    return (reply[tag.end() :].strip(), tag[1]) if tag else (reply, "")


def load(data: Path) -> EchatEval:
    """Load the set in `data`."""
    return EchatEval(data)
