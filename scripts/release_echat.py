"""Package a trained checkpoint for release: its weights, unchanged, and documents. It is read like any checkpoint.

    python -m scripts.release_echat runs/mini out/mini --trained-on data/echat/manifest.json
    … --scores scores.json --arm whole               # with its scores on the model card

OUT becomes a checkpoint's folder (`echat:OUT`, `overtone serve OUT`), and OUT.tar contains it. The same input on the
same machine gives the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import math
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec.structs import replace

from overtone.build.licence import FREE
from overtone.corpora import is_open
from overtone.echat.exam.exam_scores import Scores
from overtone.echat.net import checkpoint
from overtone.echat.net.config import PARTS, Config
from overtone.errors import DataError, OvertoneError, UsageError
from overtone.models.echat import checkpoint_folder
from overtone.paths import read_plain, sha256, shown, write_whole

OPEN = (*FREE, "CC-BY-4.0")  # what the data may be under for the weights to be Apache-2.0
LICENCE = Path(__file__).parent.parent / "LICENSE"
CARD = Path(__file__).with_suffix(".md")
MANIFEST = "manifest.json"
FILE_BYTES = 15_900_000  # of weights in one file, so that every file is below 16 MB
SHOWN = ("named", "words", "own")  # sources of scores that go on the card


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path, help="a checkpoint, or a run's folder")
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("--megabytes", metavar="MB", type=float, default=50.0, help="size limit (default: 50)")
    parser.add_argument("--trained-on", metavar="FILE", type=Path, action="append", required=True,
                        help="manifest.json of a set, or of pairs, it learnt from; all must be open")  # fmt: skip
    parser.add_argument("--scores", metavar="FILE", type=Path, help="what 'overtone evaluate scores' wrote")
    parser.add_argument("--arm", metavar="NAME", default="", help="which of its arms this is, where it has several")
    args = parser.parse_args(argv)
    try:
        folder = checkpoint_folder(args.checkpoint)
        free(folder, args.out)
        if not 0 < args.megabytes < math.inf:
            raise UsageError(f"--megabytes must be a number above 0, not {args.megabytes:g}")
        sets = [trained_on(path) for path in args.trained_on]
        learnt_from(checkpoint.index(folder), sets)
        heard_open(folder)
        notice(checkpoint.index(folder))  # what is wrong with papers is told before the long work
        rows = scores(args.scores, args.arm) if args.scores else []
        with beside(args.out) as fresh:
            write(folder, fresh)
            papers(fresh, args.out.name, sets, rows)
            archive = publish(fresh, args.out, args.megabytes)
    except OvertoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, SHA-256 {sha256(archive)}")
    return 0


# ── places ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def free(folder: Path, out: Path) -> None:
    """Raise UsageError where a release in `out` would take the place of anything but an older release."""
    source, target = folder.resolve(), out.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise UsageError(f"{shown(str(out))}: there lies the checkpoint that is to be released; give another folder")
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / checkpoint.INDEX).is_file()):
        raise UsageError(f"{shown(str(out))}: holds other files; give a folder of its own for a release")
    if (out / checkpoint.INDEX).is_file() and not (out / MANIFEST).is_file():
        raise UsageError(f"{shown(str(out))}: holds a checkpoint that is no release; give another folder")


@contextlib.contextmanager
def beside(out: Path) -> Iterator[Path]:
    """A folder for a release on its way; what is left there at the end goes."""
    fresh = out.absolute().with_name(f".{out.name}.release")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def publish(fresh: Path, out: Path, megabytes: float) -> Path:
    """The release takes its place, and OUT.tar beside it, unless it is too large."""
    size = sum(path.stat().st_size for path in fresh.iterdir())
    if size > megabytes * 1e6:
        raise UsageError(f"{shown(str(out))}: {size / 1e6:.1f} MB, more than {megabytes:g}; give more --megabytes")
    packed = packing(fresh, out.name)
    checkpoint.take_place(fresh, out)
    archive = out.with_name(f"{out.name}.tar")
    write_whole(archive, packed)
    return archive


def packing(folder: Path, name: str) -> bytes:
    """The folder as one tar file, under that name."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.iterdir()):
            info = tarfile.TarInfo(f"{name}/{path.name}")  # no owner, no date
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as one:
                tar.addfile(info, one)
    return file.getvalue()


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(folder: Path, out: Path) -> None:
    """Write the checkpoint's weights as they are, in files of a limited size, without paths of the training machine.

    Raises DataError if the checkpoint's number type cannot hold its weights, because replies would change.
    """
    model, config = checkpoint.load(folder, merged=False)
    notes = checkpoint.index(folder).notes
    half = torch.float16 if config.dtype == "float16" else None
    for part in PARTS:
        for name, value in checkpoint.part_state(model, part).items():
            if half and not torch.equal(value, value.half().float()):
                raise DataError(
                    f"{shown(str(folder))}: {part}: {name} is not in half precision, although its configuration says "
                    "so; copy the checkpoint again"
                )
    checkpoint.save(
        model, out, _anywhere(config), dtype=half, notes=notes, heard=checkpoint.heard(folder), file_bytes=FILE_BYTES
    )


def _anywhere(config: Config) -> Config:
    """The configuration without files of the machine it was trained on."""
    parts = config.model
    encoder, lm = replace(parts.encoder, weights=""), replace(parts.lm, weights="")
    return replace(config, model=replace(parts, encoder=encoder, lm=lm))


# ── papers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def trained_on(path: Path) -> dict[str, Any]:
    """What a set's manifest says. Raises UsageError for one whose licence does not let weights be given away."""
    try:
        found = msgspec.json.decode(read_plain(path, 50_000_000))
        told = {key: found[key] for key in ("name", "version", "licence", "seed")}
        told["sha256"] = dict(found.get("sha256", {}))
        told["records"] = {part: row["records"] for part, row in found["parts"].items()}
        used = [one for one in found.get("ingredients", ()) if one["what"] == "recordings"]
        closed = {f"{one['source']}, {one['licence']}" for one in used if not is_open(one["licence"])}
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise DataError(f"{shown(str(path))}: not a set's manifest.json ({error})") from None
    if told["licence"] not in OPEN or closed:
        which = f" (because of {', '.join(sorted(closed))})" if closed else ""
        raise UsageError(
            f"{shown(str(path))}: {shown(str(told['licence']))}{shown(which)}; weights that learnt from it are not to "
            f"be given away under a permissive licence (open are {', '.join(OPEN)})"
        )
    return told


def learnt_from(index: checkpoint.Index, sets: Sequence[dict[str, Any]]) -> None:
    """Raise UsageError where the checkpoint learnt from lists that none of these sets has, or does not say which."""
    known = {digest for told in sets for digest in told.pop("sha256").values()}
    learnt = set(index.notes.get("data", ()))
    if not learnt:
        raise UsageError(
            "it does not say what it learnt from (its notes have no `data`), so that nobody can tell whether all of it "
            "is open: train it with a newer version, from a start that says so too"
        )
    if strange := learnt - known:
        raise UsageError(
            f"it learnt from {len(strange)} lists that are in none of the sets named by --trained-on (SHA-256 "
            f"{min(strange)[:16]} …): name the manifest of every set it learnt from, and of every export of preferences"
        )


def heard_open(folder: Path) -> None:
    """Raise UsageError if the checkpoint heard recordings whose licence does not allow this release, even if a manifest
    calls their list open."""
    heard = checkpoint.heard(folder)
    for name, corpus in sorted(heard.corpora.items()) if heard is not None else ():
        if closed := sorted(licence for licence in corpus.licences if not is_open(licence)):
            raise UsageError(
                f"{shown(str(folder))}: it heard {shown(name)}, under {shown(closed[0])}; weights that learnt from it "
                "are not to be given away under a permissive licence: train without it"
            )


def scores(path: Path, arm: str) -> list[list[str]]:
    """Rows of the card's table: what, on which part, value with interval, chance, n."""
    try:
        found = msgspec.json.decode(read_plain(path, 50_000_000), type=Scores)
    except msgspec.DecodeError as error:
        raise DataError(f"{shown(str(path))}: not what 'overtone evaluate scores' writes ({error})") from None
    if not arm and len(found.arms) > 1:
        raise UsageError(f"{shown(str(path))}: has several arms; say which this is: --arm {' or '.join(found.arms)}")
    arm = arm or next(iter(found.arms), "")
    rows = [row for row in found.rows if row.arm == arm and row.source in SHOWN and row.value is not None]
    if not rows:
        raise UsageError(f"{shown(str(path))}: no scores of arm {shown(arm)!r}; it has {', '.join(found.arms)}")
    out = []
    for row in rows:
        between = f" ({row.low:.2f} to {row.high:.2f})" if row.low is not None and row.high is not None else ""
        chance = "" if row.chance is None else f"{row.chance:.2f}"
        out.append([f"{row.measure} ({row.source})", row.part, f"{row.value:.2f}{between}", chance, str(row.n)])
    return out


def papers(out: Path, name: str, sets: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[str]]) -> None:
    """LICENSE, NOTICE, README.md and manifest.json beside the weights."""
    index = checkpoint.index(out)
    write_whole(out / "LICENSE", LICENCE.read_bytes())
    write_whole(out / "NOTICE", notice(index).encode())
    write_whole(out / "README.md", card(index, sets, rows).encode())
    told = {
        "name": name,
        "overtone": index.overtone,
        "licence": "Apache-2.0",
        "trained_on": list(sets),
        "notes": index.notes,
        "sha256": {path.name: sha256(path) for path in sorted(out.iterdir())},
    }
    write_whole(out / MANIFEST, msgspec.json.format(msgspec.json.encode(told)))


def notice(index: checkpoint.Index) -> str:
    """Whose weights it began with, under their licences, which must go along."""
    model = index.config["model"]
    lines = ["Trained with Overtone (Apache-2.0).\n"]
    if model["lm"]["source"] == "smollm2":
        changed = "which is not included; the matrices here change it" if index.base else "changed by training"
        lines.append(f"The language model is SmolLM2-135M-Instruct by Hugging Face (Apache-2.0), {changed}.\n")
    if model["encoder"]["source"] == "package":
        try:
            files = importlib.metadata.files("moonshine-voice") or []
            text = next(file for file in files if file.name == "LICENSE").read_text("utf-8")
        except (importlib.metadata.PackageNotFoundError, StopIteration):
            raise UsageError(
                "moonshine-voice is not installed here: its licence must go along ('overtone setup local')"
            ) from None
        lines.append(f"The encoder is Moonshine tiny's, changed by training. Its licence:\n\n{text}")
    return "\n".join(lines)


def card(index: checkpoint.Index, sets: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[str]]) -> str:
    """The model card, out of release_echat.md."""
    parts = [
        [
            name,
            f"{sum(file.parameters for file in part.files):,}",
            f"{sum(file.bytes for file in part.files) / 1e6:.1f} MB",
        ]
        for name, part in index.parts.items()
    ]
    if index.base:
        parts.append([f"frozen language model ({shown(index.config['model']['lm']['source'])})",
                      f"{index.base.parameters:,}", "not included"])  # fmt: skip
    data = [
        f"- `{shown(str(s['name']))}` (overtone {s['version']}, seed {s['seed']}), {s['licence']}: "
        + ", ".join(f"{part} {n}" for part, n in s["records"].items())
        for s in sets
    ]
    taught = ", ".join(
        f"{key} {value}" for key, value in index.notes.items() if key != "data" and value not in ([], "")
    )
    slots = {
        "NAME": shown(str(index.config["name"])),
        "PARTS": _table(["part", "parameters", "size"], parts),
        "DATA": "\n".join(data),
        "NUMBERS": "half" if index.config["dtype"] == "float16" else "single",
        "TAUGHT": taught,
        "SCORES": _table(["measure", "part", "value (95 %)", "chance", "n"], rows) if rows else "None were given.",
        "OVERTONE": index.overtone,
    }
    text = CARD.read_text("utf-8")
    for name, value in slots.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    raise SystemExit(main())
