"""Labels that runs hold of a study, in the form of a label file: judges are validated and calibrated against them.

Only labels of usable sessions count. In pairs, "both good" and "both bad" are ties, and "cannot tell" is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from overtone.errors import DataError
from overtone.judge_trust.labels import Labels, Rating, Unit, suffix
from overtone.judges.judge_run import answered
from overtone.judges.reply_texts import style, texts
from overtone.paths import inside, shown
from overtone.results.load import Reading
from overtone.runs.people_labels import Label, LabelStudy, Value, read_labels, read_studies
from overtone.runs.store import Ask, Store

LAYOUT = "studio"
_TIES = ("both_good", "both_bad")
_MISSING = "cannot_tell"
_SHARED = ("cue", "topic", "words", "context", "reference")


def of_run(reading: Reading, study: str, path: Path) -> Labels:
    """Return a study's labels of the replies of one run; a unit has the id of its item. `path` is the study file.

    Raises DataError if the run holds none.
    """
    units: dict[str, Unit] = {}
    ratings = []
    for answer in reading.answers:
        for label in answer.labels:
            if label.study != study or label.kind != "reply" or (value := _value(label)) is None:
                continue
            more = suffix(answer.condition, answer.repeat)
            name = answer.item_id + more
            item = answer.item
            units[name] = Unit(
                name, item.group, style=item.style, condition=answer.condition, repeat=answer.repeat,
                where=f"the study {path.name}",
            )  # fmt: skip
            ratings.append(Rating(name, label.rater, label.dimension, value, f"the study {path.name}"))
    if not ratings:
        raise _none(path, reading.name)
    return Labels(path, LAYOUT, units, ratings)


def of_runs(runs: Mapping[str, Path], study: str, path: Path, *, rubrics: tuple[str, ...] = ()) -> Labels:
    """Return a study's labels of all its runs, with the texts and sounds that a judge gets.

    `runs` maps the study's names to the runs' folders, `rubrics` are the study's. Raises DataError if no run holds any.
    """
    units: dict[str, Unit] = {}
    ratings: list[Rating] = []
    described: LabelStudy | None = None
    raters: dict[str, str] = {}  # results are written to files, which no withdrawal reaches
    for name, folder in runs.items():
        with Store.read(folder) as store:
            held = read_studies(store).get(study)
            if held is None:
                continue
            described = held
            for label, unit in _units(store, name, held, runs):
                value = _value(label)
                if value is not None:
                    units[unit.id] = unit
                    rater = raters.setdefault(label.rater, f"rater {len(raters) + 1}")
                    ratings.append(Rating(unit.id, rater, label.dimension, value, f"the study {path.name}"))
    if described is None or not ratings:
        raise _none(path, ", ".join(runs))
    notes = tuple(_shown_note(described))
    return Labels(path, LAYOUT, units, ratings, rubrics[0] if len(rubrics) == 1 else "", notes)


def _none(path: Path, where: str) -> DataError:
    return DataError(
        f"{shown(where)} holds no usable label of the study {shown(str(path))}; bring people's answers there: "
        f"overtone studio sync {shown(str(path))}"
    )


def _shown_note(study: LabelStudy) -> Iterator[str]:
    identities = sorted({question.rubric for question in study.questions.values() if question.rubric})
    seen = ", ".join(study.shows) or "no text"
    yield f"people of the study answered {', '.join(identities) or study.design}, and saw {seen}"


def _value(label: Label) -> float | str | None:
    """Return an answer as a label file would have it; None for a missing answer, and for one that is a list."""
    value: Value = label.value
    if not label.usable or isinstance(value, list) or value == _MISSING:
        return None
    if label.kind != "pair":
        return value if isinstance(value, str) else float(value)
    if isinstance(value, str):
        return "tie" if value in _TIES else value
    return "B" if value > 0 else "A" if value < 0 else "tie"  # how much better B is


def _units(store: Store, name: str, study: LabelStudy, runs: Mapping[str, Path]) -> Iterator[tuple[Label, Unit]]:
    """Yield every label of a run about a reply or a pair; a pair is taken from the run on its side A."""
    labels: dict[int, list[Label]] = {}
    for label in read_labels(store):
        if label.study == study.id and label.kind in ("reply", "pair") and label.seen.side != "B":
            labels.setdefault(label.ask, []).append(label)
    root = store.meta().get("root", "")
    others: dict[str, dict[tuple[str, str, int], tuple[Ask, Path | None]]] = {}
    for ask in answered(store):
        for label in labels.get(ask.id, ()):
            other = label.seen.other
            if not other:
                yield label, _reply(store, name, ask, root)
                continue
            if other not in others:
                others[other] = _replies(runs[other]) if other in runs else {}
            match = others[other].get((ask.item.id, ask.condition, ask.repeat))
            if match is not None:
                yield label, _pair(store, (name, other), ask, match, root)


def _reply(store: Store, name: str, ask: Ask, root: str) -> Unit:
    more = suffix(ask.condition, ask.repeat)
    sounds = {"reply": _sound(store, ask), "clip": _clip(ask, root)}
    return Unit(
        f"{name}/{ask.item.id}{more}", ask.item.group, texts(ask), _there(sounds), {"reply": name}, style(ask.item),
        ask.condition, ask.repeat,
    )  # fmt: skip


def _pair(store: Store, names: tuple[str, str], ask: Ask, match: tuple[Ask, Path | None], root: str) -> Unit:
    more = suffix(ask.condition, ask.repeat)
    own, (other, sound) = texts(ask), match
    sounds = {"a": _sound(store, ask), "b": sound, "clip": _clip(ask, root)}
    shared = {key: own[key] for key in _SHARED}
    return Unit(
        f"{'|'.join(names)}/{ask.item.id}{more}", ask.item.group,
        {**shared, "reply_a": ask.reply.text, "reply_b": other.reply.text}, _there(sounds),
        dict(zip("ab", names, strict=True)), style(ask.item), ask.condition, ask.repeat,
    )  # fmt: skip


def _replies(folder: Path) -> dict[tuple[str, str, int], tuple[Ask, Path | None]]:
    with Store.read(folder) as store:
        return {(a.item.id, a.condition, a.repeat): (a, _sound(store, a)) for a in answered(store)}


def _sound(store: Store, ask: Ask) -> Path | None:
    return store.audio_path(ask.reply.audio) if ask.reply.audio else None


def _clip(ask: Ask, root: str) -> Path | None:
    clip = ask.item.turns[-1].clip
    return inside(Path(root), clip.path) if clip is not None and root else None


def _there(sounds: Mapping[str, Path | None]) -> dict[str, Path]:
    return {key: path for key, path in sounds.items() if path is not None and path.is_file()}
