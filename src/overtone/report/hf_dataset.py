"""Write a run as a data set of Hugging Face: Parquet files with playable sounds, and a card.

`datasets.load_dataset(FOLDER)` reads the folder, and the hub's viewer shows and plays it. The columns are those of
`overtone export --format parquet`; `clip_file` and `audio_file` become the columns `clip_audio` and `reply_audio`,
which hold the sounds themselves.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from overtone.errors import MissingExtra, UsageError, install_line
from overtone.paths import shown, write_whole
from overtone.report.run_summary import headline_numbers
from overtone.results.load import open_run
from overtone.runs.export_rows import TIMINGS, check_condition, flat_rows
from overtone.runs.store import Store
from overtone.text import count
from overtone.version import __version__

SHARD_ROWS = 1000  # rows with sounds that are kept in memory at a time: one Parquet file
CARD = "README.md"
_SOUNDS = {"clip_file": "clip_audio", "audio_file": "reply_audio"}
_NUMBERS = {"level", "repeat", "turn", "attempts", "input_tokens", "output_tokens"}


def write_hf_dataset(store: Store, out: Path, condition: str | None = None, *, sounds: bool = True) -> int:
    """Write the data set of a run; return the number of rows.

    Raises UsageError if the folder holds anything but an earlier export.
    """
    if condition is not None:
        check_condition(condition, {ask.condition for ask, _ in store.asks()})
    _make_folder(out)
    data = out / "data"
    for old in data.glob("*.parquet*"):
        old.unlink()
    total, seconds = 0, Counter[str]()
    rows = flat_rows(store, condition)
    shards = iter(lambda: list(itertools.islice(rows, SHARD_ROWS)), [])
    names: list[str] = []
    for number, shard in enumerate(shards):
        names.append(f"run-{number:05d}.parquet")
        total += len(shard)
        seconds.update(str(row["condition"]) for row in shard)
        _write_shard(data / names[-1], shard, store.scored_metrics(), sounds)
    write_whole(out / CARD, _card(store, total, seconds, sounds).encode())
    return total


def _make_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"{shown(str(out))} is a file; a data set is a folder: give another -o")
    if out.is_dir() and (strange := sorted(p.name for p in out.iterdir() if p.name not in ("data", CARD))):
        raise UsageError(f"{shown(str(out))} contains {shown(strange[0])}; give an empty folder or an earlier export")
    if (out / CARD).is_file() and "overtone" not in (out / CARD).read_text("utf-8", errors="replace"):
        raise UsageError(f"{shown(str(out))} holds another data set; give another -o")
    (out / "data").mkdir(parents=True, exist_ok=True)


def _write_shard(path: Path, shard: list[dict[str, Any]], metrics: list[str], sounds: bool) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"this format needs pyarrow; run: {install_line('export')}") from None
    types: dict[str, Any] = {f"score_{metric}": pyarrow.float64() for metric in metrics}
    types |= dict.fromkeys(("latency", *TIMINGS), pyarrow.float64()) | {"refused": pyarrow.bool_()}
    types |= dict.fromkeys(_NUMBERS, pyarrow.int64())
    columns: dict[str, list[Any]] = {}
    for name in shard[0]:
        values = [row[name] for row in shard]
        if name not in _SOUNDS:
            columns[name] = values
        elif sounds:
            columns[_SOUNDS[name]] = [_sound(value) for value in values]
    sound_type = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    types |= dict.fromkeys(_SOUNDS.values(), sound_type)
    arrays = {name: pyarrow.array(values, type=types.get(name)) for name, values in columns.items()}
    table = pyarrow.table(arrays)
    features = {name: _feature(name, table.schema.field(name).type) for name in arrays}
    described = json.dumps({"info": {"features": features}})
    table = table.replace_schema_metadata({"huggingface": described})
    temporary = path.with_name(path.name + ".part")
    try:
        pyarrow.parquet.write_table(table, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sound(path: str) -> dict[str, Any] | None:
    return {"bytes": Path(path).read_bytes(), "path": Path(path).name} if path else None


def _feature(name: str, kind: Any) -> dict[str, Any]:
    """Return how the library `datasets` reads a column."""
    if name in _SOUNDS.values():
        return {"_type": "Audio"}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


def _card(store: Store, total: int, conditions: Counter[str], sounds: bool) -> str:
    """Return the card: a YAML head that the hub reads, and what the run is."""
    meta = store.meta()
    name, model = meta.get("label") or store.folder.name, meta.get("model", "")
    benchmark = meta.get("benchmark", "")
    size = next((f"{text}" for limit, text in _SIZES if total < limit), "n>1M")
    lines = [
        "---",
        f"pretty_name: {json.dumps(f'{benchmark}: replies of {model}', ensure_ascii=False)}",
        "task_categories: [audio-text-to-text]" if sounds else "task_categories: [text-generation]",
        f"size_categories: [{size}]",
        "tags: [overtone, speech, evaluation]",
        "configs:",
        "- config_name: default",
        "  data_files: [{split: run, path: data/*.parquet}]",
        "---",
        "",
        f"# {_plain(benchmark)}: replies of {_plain(model)}",
        "",
        f"The run `{_plain(name)}` of Overtone {__version__}, begun {meta.get('created', '')}: {count(total, 'row')},",
        "one per request and turn, with the request, the reply, its scores and their signatures.",
        "",
        "| condition | rows |",
        "|---|---|",
        *(f"| {_plain(condition)} | {rows:,} |" for condition, rows in sorted(conditions.items())),
        "",
        "| number | value | 95 % interval | replies |",
        "|---|---|---|---|",
    ]
    for number in headline_numbers(open_run(store.folder, light=True)):
        e = number.estimate
        ends = "" if e.low is None or e.high is None else f"{e.low:.4g} to {e.high:.4g}"
        value = "" if e.value is None else f"{e.value:.4g}"
        lines.append(f"| {_plain(number.name)} | {value} | {ends} | {e.scored:,} of {e.asked:,} |")
    lines += [
        "",
        "The licence of the clips is that of the benchmark. A run does not record it: add it to the head of this card",
        "before you publish the data set.",
        "",
    ]
    return "\n".join(lines)


_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", shown(text))
