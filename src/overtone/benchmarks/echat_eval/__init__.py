"""EChat-eval: does a spoken reply use what was heard: emotion, age, gender, a sound event, or several of them at once?

Read are the open set as `overtone build echat-eval` makes it (`echat_eval.json`) and records in the raw form of
EChat-200K: JSON Lines in `.jsonl` or `.list` files, or an unpacked shard (KEY.wav, KEY.txt, KEY.extra). How EChat-eval
itself was released is not known, so where a record says what is read tolerantly.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

import msgspec

from overtone.benchmarks._files import Fields, kind_of, language, lowered, read_objects, read_rows, text
from overtone.benchmarks._recordings import Recordings
from overtone.benchmarks.echat_eval.labels import KEYS, KINDS, Label, label, wanted
from overtone.benchmarks.open import read_statuses
from overtone.errors import DataError
from overtone.languages import language_of
from overtone.paths import inside, read_plain, shown
from overtone.schema import Clip, Item, Turn
from overtone.suite import Column, Facts, Groups, Headline, Published, Reduce, Release, Scored, Suite

CATEGORIES = {"emotion": "Emotion", "age": "Age", "gender": "Gender", "event": "Event", "multi": "Multi"}
DIMENSIONS = {
    "echat_words": ("Fits the words", "Whether the reply answers what was said"),
    "echat_labels": ("Uses the labels", "Whether the reply takes up what could be heard besides the words"),
    "echat_voice": ("Reply emotion fits", "Whether the emotion heard in the reply's voice suits; needs a spoken reply"),
}
OPEN = "echat_eval.json"
_NAMED = {"emo": "emotion", "sex": "gender", "caption": "event", "sound": "event"} | {c: c for c in CATEGORIES}
_THOUGHT = "<think end>"
_TAG = re.compile(r"\s*<([^<>]{1,20})>\s*")
_SMALL = 1_000_000  # bytes of one file of a shard
NOT_COMPARABLE = (
    "the dimensions, their weights, the judge's prompt and what extracted the reply's emotion are not published: the "
    "questions here are ours, and the open set has other items"
)


def marks(keys: Sequence[str], reply: Scored) -> float | None:
    """The mean of these dimensions, of equal weight, 1 to 5 as 0 to 100; None where one was not judged."""
    found = [value for key in keys if (value := reply.values.get(key)) is not None]
    return (sum(found) / len(keys) - 1) * 25 if len(found) == len(keys) else None


def mean_of(*keys: str) -> Reduce:
    def mean(groups: Groups) -> float | None:
        found = [m for reply in chain.from_iterable(groups) if (m := marks(keys, reply)) is not None]
        return sum(found) / len(found) if found else None

    return mean


def balanced(groups: Groups) -> float | None:
    """The mean of the categories' means."""
    found: dict[str, list[float]] = {}
    for reply in chain.from_iterable(groups):
        if (mark := marks(tuple(DIMENSIONS), reply)) is not None:
            found.setdefault(reply.item.category, []).append(mark)
    return sum(sum(v) / len(v) for v in found.values()) / len(found) if found else None


_OURS = "Ours, 0–100: a judge's 1 to 5 becomes (mean − 1) × 25; its three questions have equal weight."
_DIMENSIONS = (
    *(
        Column(key, title, key, reduce=mean_of(key), kind="number", digits=1, help=f"{told}. 1 to 5 as 0 to 100")
        for key, (title, told) in DIMENSIONS.items()
    ),
    Column(
        "text", "Words alone", "echat_labels", reduce=mean_of("echat_words", "echat_labels"), kind="number", digits=1,
        help="The mean of the first two: for models that answer in text, which have no voice to judge",
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
                    "mean", "Mean", "echat_voice", reduce=balanced, kind="number", digits=1,
                    help=f"{_OURS} Each category counts once.",
                ),
                *(
                    Column(
                        name, title, "echat_voice", {"category": (name,)}, mean_of(*DIMENSIONS), "number", 1,
                        help=f"{_OURS} Replies without a voice have no score. Not comparable with published tables.",
                    )
                    for name, title in CATEGORIES.items()
                ),
            ),
            hint="0–100. Ours, by three named questions of equal weight; not comparable with the published tables.",
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


class EchatEval(Recordings):
    """A folder with the open set, or with records in EChat's raw form."""

    name = "echat-eval"
    prompts: dict[str, str] = {}  # noqa: RUF012

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
        """Every file with its records, each with its place."""
        if (self.root / OPEN).is_file():
            path = inside(self.root, OPEN)
            rows = enumerate(read_objects(path))
            yield path, ((f"{shown(str(path))}: position {place}", fields) for place, fields in rows)
            return
        lines = [path for ending in ("jsonl", "list") for path in sorted(self.root.glob(f"**/*.{ending}"))]
        for path in lines:
            inside(self.root, path.relative_to(self.root).as_posix())
            if path.suffix == ".list" and not read_plain(path, _SMALL * 500).lstrip().startswith(b"{"):
                self.met.add("lists of archives hold no records and are not read; unpack the archives", path.name)
                continue
            numbered = enumerate(read_rows(path), 1)
            yield path, ((f"{shown(str(path))}: record {number}", fields) for number, fields in numbered)
        for path in sorted(self.root.glob("**/*.extra")):
            yield path, iter([(shown(str(path)), self._shard(path))])

    def _shard(self, path: Path) -> Fields:
        """A record of an unpacked shard, whose fields are files of one name."""
        inside(self.root, path.relative_to(self.root).as_posix())
        said = path.with_suffix(".txt")
        try:
            reply = read_plain(said, _SMALL).decode("utf-8").strip() if said.is_file() else ""
            extra = read_plain(path, _SMALL).decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{shown(str(path))}: it or its .txt is not UTF-8; unpack the archive again") from None
        return {"key": path.stem, "txt": reply, "wav": path.with_suffix(".wav").name, "extra": extra}

    def _take(self, fields: Fields, path: Path, where: str) -> None:
        extra = _extra(fields.get("extra"), where)
        key = text(fields, ("key", "id"), where)
        named = _below(text(fields, ("wav", "audio", "wav_path"), where))
        if not named and any(name.startswith("wav_") for name in fields):
            self.met.add("dialogues of several turns are no part of EChat-eval and are left out", key or where)
            return
        words = text(extra, ("question", "q_txt"), where) or text(fields, ("question", "q_txt"), where)
        for told, name in ((key, "key"), (named, "wav"), (words, "question")):
            if not told:
                raise DataError(f"{where}: no {name!r}; a record has key, wav and, in extra, question")
        labels = [
            found
            for kind in KINDS
            if (found := label(kind, text(extra, KEYS[kind], where) or text(fields, KEYS[kind], where)))
        ]
        category = self._category(fields, extra, path, labels, where)
        labels = [one for one in labels if category in (one.kind, "multi")]
        if not labels:
            self.met.add("records without a label of their category are left out", key)
            return
        clip = self.clip(named, self._folders(path), where)
        name = self.unique(key, fields, where) if clip else ""
        if clip and name:
            self.found.append(self._item(name, category, labels, clip, words, fields, extra, path, where))

    def _category(self, fields: Fields, extra: Fields, path: Path, labels: list[Label], where: str) -> str:
        """What the record or its file's or folder's name says, else what its labels come to."""
        told = text(fields, ("category", "task_type", "type"), where) or text(extra, ("category",), where)
        file = "" if path.suffix == ".extra" else path.stem
        folder = "" if path.parent == self.root else path.parent.name
        for named in (told, file, folder):
            found = {_NAMED[word] for word in re.split(r"[^a-z]+", named.lower()) if word in _NAMED}
            if found:
                return found.pop() if len(found) == 1 else "multi"
        if told:
            raise DataError(f"{where}: unknown category {shown(told)!r}; known: {', '.join(CATEGORIES)}")
        return labels[0].kind if len(labels) == 1 else "multi"

    def _item(
        self, name: str, category: str, labels: list[Label], clip: str, words: str,
        fields: Fields, extra: Fields, path: Path, where: str,
    ) -> Item:  # fmt: skip
        reply, tag = _reply(text(fields, ("txt",), where))
        cue = next((one.slug for one in labels if one.slug), "")
        sure = {self._statuses.get(one.slug, "") for one in labels if one.slug}
        said = hashlib.sha256(words.casefold().encode()).hexdigest()[:12]
        reply_wav = _below(text(extra, ("a_wav_path",), where))
        return Item(
            id=f"{self.name}/{category}/{name}",
            benchmark=self.name,
            level=3,
            task="converse",
            category=category,
            case=f"{category}/{name}",
            group=f"{category}/{said}",  # the same words are said in other ways
            style="",
            turns=(Turn(Clip(clip), words, cue),),
            cue=cue,
            cue_text="; ".join(one.words for one in labels),
            dimension=labels[0].dimension if len(labels) == 1 else "",
            source=text(extra, ("dataset",), where) or text(fields, ("dataset",), where),
            topic=text(extra, ("topic",), where),
            gold=wanted(text(extra, ("a_emotion", "reply_emotion"), where) or tag),
            references=(reply,) if reply else (),
            reference_audio=self._reference(reply_wav, path, where),
            status=next((s for s in ("unvalidated", "", "validated") if s in sure), ""),  # the weakest decides
            language=language(extra, where) or language(fields, where) or language_of("", words),
        )

    def _reference(self, named: str, path: Path, where: str) -> str:
        try:
            return (self._sounds.find(named, self._folders(path)) or "") if named else ""
        except DataError as error:
            raise DataError(f"{where}: {error}") from None

    def _folders(self, path: Path) -> tuple[str, ...]:
        here = path.parent.relative_to(self.root).as_posix()
        return ("",) if here == "." else ("", f"{here}/")


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
    """A path of the machine a record was written on says no more than the file's name."""
    return PurePosixPath(named).name if named.startswith("/") else named


def _reply(told: str) -> tuple[str, str]:
    """The reply without the thinking before it, and the emotion it begins with, if it does."""
    said = told.rpartition(_THOUGHT)[2].strip()
    tag = _TAG.match(said)
    return (said[tag.end() :].strip(), tag[1]) if tag else (said, "")


def load(data: Path) -> EchatEval:
    """The set that lies in `data`."""
    return EchatEval(data)
