"""The settings of a run: merged from flags, run file and environment, checked, and stored without secrets.

A flag overrides the run file, which overrides the environment (`OVERTONE_LIMIT=…`), which overrides the default.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from overtone.cluster.placement import OF_MODEL, Placement, placement
from overtone.errors import UsageError
from overtone.paths import check_name, narrow, shown, user_path
from overtone.runs.run_shards import Shard, parse_shard
from overtone.safety import is_loopback
from overtone.schema import INPUTS, LIKELIHOOD, PARTS, STYLES
from overtone.spec import NOT_IDENTITY, Spec, parse_spec, suggest

PROMPTS = ("zero", "basic", "enhance", "oracle", "oracle-false")  # the prompts that `all` includes
SPOKEN = ("warm", "plain")  # prompts that ask for a tone of the reply; used only if named
QUESTIONS = ("task", LIKELIHOOD)  # how questions are asked; `task` is implied unless `likelihood` is named alone


class Settings(Struct, frozen=True, kw_only=True):
    """One run: one model on one benchmark."""

    benchmark: str
    data: str
    model: Spec
    out: str = ""
    levels: tuple[int, ...] = (1, 2, 3)
    prompt: tuple[str, ...] = ("enhance",)
    styles: tuple[str, ...] = STYLES
    parts: tuple[str, ...] = PARTS
    input: tuple[str, ...] = ("audio",)
    asr: str = "target"
    repeats: int = 1
    limit: int | None = None
    max_connections: int = 16
    budget_requests: int | None = None
    budget_usd: float | None = None
    wait: float = 0.0  # seconds for an endpoint that is still loading
    patience: float = 600.0  # seconds for one that becomes unavailable after its first reply
    seed: int | None = None
    fsync: bool = False
    metrics: tuple[str, ...] = ()  # metrics computed on request, each as name or name?key=value
    reader: Spec | None = None  # of multiple-choice replies that the rules cannot read
    judges: tuple[Spec, ...] = ()
    plugins: tuple[str, ...] = ()
    ray: Placement | None = None  # where the model runs, if not in this process
    shard: str | None = None  # the part of the run that is asked, such as 2/8

    @property
    def whole_folder(self) -> Path:
        """The folder of the whole run: --out, or a name that is the same for the same model and benchmark."""
        return Path(self.out) if self.out else Path("runs") / f"{self.benchmark}-{model_label(self.model)}"

    @property
    def folder(self) -> Path:
        """The folder that is written: that of the whole run, or that of the shard, next to it."""
        whole, part = self.whole_folder, self.part
        return whole.with_name(whole.name + part.suffix) if part else whole

    @property
    def part(self) -> Shard | None:
        """The shard that is asked; None for the whole run."""
        return None if self.shard is None else parse_shard(self.shard)


def model_label(spec: Spec) -> str:
    """Return a short folder name: kind, name, and a few hex digits of the options that identify the model's answers."""
    kept = {k: v for k, v in spec.options.items() if k not in NOT_IDENTITY}
    label = re.sub(r"[^A-Za-z0-9.]+", "-", f"{spec.kind}-{spec.name}").strip("-.")[:60]
    if not kept:
        return label
    return f"{label}-{hashlib.sha256(repr(sorted(kept.items())).encode()).hexdigest()[:6]}"


def identity(spec: Spec) -> str:
    """Return the SPEC without options that may change when a run is resumed, such as its URL and timeouts."""
    return str(Spec(spec.kind, spec.name, {k: v for k, v in spec.options.items() if k not in NOT_IDENTITY}))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────
_KEYS = tuple(f for f in Settings.__struct_fields__ if f not in ("benchmark", "model", "judges", "plugins", "ray"))
_LISTS = ("levels", "prompt", "styles", "parts", "input", "metrics")
_WRITTEN = ("out", "report")
_OF_COMMAND = ("report", "jobs")  # keys of [run] that belong to the command, not to one run
_MOST = 2**31


class RunFile(Struct, frozen=True):
    """A run file, before it is merged with flags."""

    path: Path
    sha256: str  # of its bytes
    run: dict[str, Any]
    models: tuple[dict[str, Any], ...]
    benchmarks: tuple[dict[str, Any], ...]
    judges: tuple[dict[str, Any], ...]
    ray: dict[str, Any] | None = None  # the table [ray]

    @property
    def plugins(self) -> tuple[Path, ...]:
        return tuple(self.path.parent / p for p in self.run.get("plugins", ()))

    def needs_trust(self, given: Mapping[str, Any] | None = None) -> list[str]:
        """Return the actions of this file that need the user's trust.

        These run code that its author chose, send secrets or recordings to an address that its author chose, or write
        outside its folder and the working directory. `given` has the command's flags, which the user chose."""
        actions = [f"{'use' if p.endswith('.toml') else 'run'} plug-in {p}" for p in self.run.get("plugins", ())]
        for table in (self.run, *self.benchmarks):  # an option can name weights or code to be loaded
            actions += [f"compute {metric}" for metric in _words(table.get("metrics", ())) if "?" in metric]
        for spec in self._specs():
            if spec.kind in ("command", "worker") or "python" in spec.options:
                actions.append(f"run {spec}")
            if variable := spec.options.get("api_key_env"):
                actions.append(f"send ${variable} to {spec.options.get('base_url', spec.kind)}")
        given = given or {}
        own = self.ray is not None and given.get("ray") is not False and not given.get("ray_address")
        if own and self.ray and (address := self.ray.get("address", "auto")) not in ("auto", "local", ""):
            actions.append(f"run the models, with the recordings and their keys, on the Ray cluster at {address}")
        return [*actions, *self._recordings_sent(given), *self._written_elsewhere(given)]

    def _recordings_sent(self, given: Mapping[str, Any]) -> list[str]:
        """List the recordings from outside the file's folder that would be sent to hosts that the file names."""
        if given.get("data"):
            return []
        urls = [spec.options["base_url"] for spec in self._specs() if "base_url" in spec.options]
        urls = [url for url in dict.fromkeys(urls) if not is_loopback(urlsplit(url).hostname or "")]
        named = [table["data"] for table in (self.run, *self.benchmarks) if "data" in table]
        own = self.path.resolve().parent
        folders = [data for data in dict.fromkeys(named) if not (own / data).resolve().is_relative_to(own)]
        return [f"send recordings from {folder} to {url}" for folder in folders for url in urls]

    def _written_elsewhere(self, given: Mapping[str, Any]) -> list[str]:
        """List the runs and reports that would be written outside the file's folder and the working directory."""
        by_key = {key: [table[key] for table in (self.run, *self.benchmarks) if key in table] for key in _WRITTEN}
        places = [name for key, names in by_key.items() if not given.get(key) for name in dict.fromkeys(names)]
        own = [self.path.resolve().parent, *narrow(Path.cwd())]
        return [
            f"write {name}"
            for name in places
            if (Path(name).is_absolute() or ".." in Path(name).parts)
            and not any(Path(name).resolve().is_relative_to(folder) for folder in own)
        ]

    def code(self) -> list[Path]:
        """Return the files with code that need the user's trust: plug-ins, and files that programs are started with.

        Programs on the search path are left out, because they are installed on this machine.
        """
        files = list(self.plugins)
        for spec in self._specs():
            names = [spec.options["python"]] if "python" in spec.options else []
            if spec.kind == "command":
                names += [] if shutil.which(spec.name) and "/" not in spec.name else [spec.name]
                names += [word for word in spec.options.get("args", "").split() if Path(word).is_file()]
            elif spec.kind == "worker" and spec.name.endswith(".py"):
                names.append(spec.name)
            files += [user_path(name) for name in names]
        return files

    def _specs(self) -> list[Spec]:
        readers = [table["reader"] for table in (self.run, *self.benchmarks) if "reader" in table]
        return [parse_spec(text) for text in (*(t["spec"] for t in (*self.models, *self.judges)), *readers)]


def read_run_file(path: Path) -> RunFile:
    """Read a run file. Raises UsageError with a suggestion for unknown tables and keys."""
    try:
        data = path.read_bytes()
        tree = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read run file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a run file: {error}") from None
    tables = {"run", "model", "benchmark", "judge", "ray"}
    for name in tree:
        if name not in tables:
            raise UsageError(
                f"{path}: unknown table [{name}]{suggest(name, tables)}; known: {', '.join(sorted(tables))}"
            )
    run = tree.get("run", {})
    _check_keys(path, "[run]", run, (*_KEYS, *_OF_COMMAND, "plugins"))
    ray = tree.get("ray")
    if ray is not None:
        _check_keys(path, "[ray]", ray, Placement.__struct_fields__)
        placement(f"{path}: [ray]", ray)
    lists: dict[str, tuple[dict[str, Any], ...]] = {}
    for name, keys in (("model", ("spec", *OF_MODEL)), ("benchmark", ("name", *_KEYS)), ("judge", ("spec",))):
        entries = tree.get(name, [])
        if not isinstance(entries, list):
            raise UsageError(f"{path}: write [[{name}]], with two brackets: there can be several")
        for table in entries:
            _check_keys(path, f"[[{name}]]", table, keys)
            if keys[0] not in table:
                raise UsageError(f"{path}: a [[{name}]] has no {keys[0]}")
        lists[name] = tuple(entries)
    digest = hashlib.sha256(data).hexdigest()
    return RunFile(path, digest, run, lists["model"], lists["benchmark"], lists["judge"], ray)


def _check_keys(path: Path, table: str, content: Any, known: tuple[str, ...]) -> None:
    if not isinstance(content, dict):
        raise UsageError(f"{path}: {table} must be a table of keys and values, not {content!r:.60}")
    for key, value in content.items():
        if any("\0" in text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)):
            raise UsageError(f"{path}: {key} in {table} contains a NUL character; remove it")
        if key.replace("-", "_") not in known:
            raise UsageError(f"{path}: unknown key {key!r} in {table}{suggest(key, known)}; known: {', '.join(known)}")
        if key in ("spec", "name", "data", "out", "report", "reader") and not (isinstance(value, str) and value):
            raise UsageError(f"{path}: {key} in {table} must be a text in quotes, not {value!r:.60}")
        if key == "plugins" and not (isinstance(value, list) and all(isinstance(v, str) and v for v in value)):
            raise UsageError(f'{path}: plugins must be a list of files, like ["my_metric.py"], not {value!r:.60}')


def resolve(flags: Mapping[str, Any], file: RunFile | None, environment: Mapping[str, str]) -> list[Settings]:
    """Merge flags, file and environment into the settings of each run: one per model and benchmark."""
    given = {k: v for k, v in flags.items() if v is not None}
    variables = {k: environment[f"OVERTONE_{k.upper()}"] for k in _KEYS if environment.get(f"OVERTONE_{k.upper()}")}
    models = [{"spec": spec} for spec in given.get("model") or ()] or list(file.models if file else ())
    if not models and environment.get("OVERTONE_MODEL"):
        models = [{"spec": environment["OVERTONE_MODEL"]}]
    if not models:
        raise UsageError("no model given; use --model SPEC, e.g. --model cascade or --model openai:NAME?base_url=…")
    benchmarks: list[dict[str, Any]] = [dict(b) for b in (file.benchmarks if file else ())]
    if given.get("benchmark"):
        benchmarks = [{"name": given["benchmark"]}]
    if not benchmarks:
        raise UsageError(
            "no benchmark given; name one, e.g. 'overtone run echomind …', or write [[benchmark]] in the run file"
        )
    judges = tuple(parse_spec(j) for j in given.get("judge") or [j["spec"] for j in (file.judges if file else ())])
    pairs = [(benchmark, parse_spec(model["spec"]), model) for benchmark in benchmarks for model in models]
    runs = []
    for benchmark, spec, model in pairs:
        merged: dict[str, Any] = {**variables, **_plain(file.run if file else {}), **_plain(benchmark)}
        for key in _OF_COMMAND:
            merged.pop(key, None)
        merged |= {k: v for k, v in given.items() if k in _KEYS}
        if given.get("metric"):
            merged["metrics"] = list(given["metric"])
        named = (*(file.plugins if file else ()), *map(Path, given.get("plugin") or ()))
        merged["plugins"] = list(dict.fromkeys(str(path.absolute()) for path in named))
        name = merged.pop("name")
        data = benchmark.get("data") or (file.run.get("data") if file else None)
        if file and data and "data" not in given:
            merged["data"] = str(file.path.parent / data)
        if len(pairs) > 1 and merged.get("out"):
            merged["out"] = str(Path(merged["out"]) / f"{name}-{model_label(spec)}")
        if not merged.get("data"):
            raise UsageError(f"no folder given for {name}; use --data DIR (or data in the run file, or OVERTONE_DATA)")
        merged["ray"] = _placement(given, file, model)
        runs.append(_settings(name, spec, judges, merged))
    folders = [r.folder for r in runs]
    if len(set(folders)) < len(folders):
        raise UsageError("two runs would write the same folder: the same model and benchmark are named twice")
    return runs


def report_file(flag: str | None, file: RunFile | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file for one report of all runs, or None if no report is wanted."""
    path = flag or (file.run.get("report") if file else None) or environment.get("OVERTONE_REPORT")
    if path and not path.lower().endswith((".html", ".htm")):
        raise UsageError(f"report: {path!r} is not an HTML file; name one, e.g. report.html")
    return Path(path) if path else None


def runs_at_once(flag: int | None, file: RunFile | None, environment: Mapping[str, str]) -> int:
    """Return how many runs of the command may be asked at the same time."""
    in_file = file.run.get("jobs") if file else None
    given = next(jobs for jobs in (flag, in_file, environment.get("OVERTONE_JOBS"), 1) if jobs is not None)
    jobs = _whole("jobs", str(given))
    if not 1 <= jobs <= 1000:
        raise UsageError(f"jobs must be from 1 to 1000, not {jobs}")
    return jobs


def _placement(given: Mapping[str, Any], file: RunFile | None, model: Mapping[str, Any]) -> Placement | None:
    """Return where a model runs on Ray, or None if it runs in this process."""
    flags = {key.removeprefix("ray_"): value for key, value in given.items() if key.startswith("ray_")}
    asked = given.get("ray")  # from Python, it may be the table itself
    table = file.ray if file else None
    if asked is False or (table is None and asked is None and not flags):
        return None
    if isinstance(asked, Mapping):
        flags = {**asked, **flags}
    own = {key: value for key, value in model.items() if key in OF_MODEL}
    return placement("ray", table or {}, own, flags)


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {k.replace("-", "_"): v for k, v in table.items()}


def _settings(name: str, spec: Spec, judges: tuple[Spec, ...], merged: dict[str, Any]) -> Settings:
    for key in _LISTS:
        if key in merged:
            merged[key] = _words(merged[key])
    if "levels" in merged:
        merged["levels"] = tuple(_whole("levels", v) for v in merged["levels"])
    if merged.get("reader"):
        merged["reader"] = msgspec.to_builtins(parse_spec(merged["reader"]))
    if "all" in merged.get("prompt", ()):
        merged["prompt"] = PROMPTS
    try:
        settings = msgspec.convert(
            {**merged, "benchmark": name, "model": msgspec.to_builtins(spec), "judges": msgspec.to_builtins(judges),
             "ray": msgspec.to_builtins(merged.get("ray"))},
            Settings,
            strict=False,
        )  # fmt: skip
    except msgspec.ValidationError as error:
        raise UsageError(f"a setting is wrong: {error}") from None
    _check(settings)
    return settings


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(str(v) for v in value)
    return tuple(w.strip() for w in str(value).split(",") if w.strip())


def _whole(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"{key}: {value!r} is not a whole number") from None


def _check(s: Settings) -> None:
    for key, values, known in (
        ("levels", [str(v) for v in s.levels], ("1", "2", "3")),
        ("prompt", s.prompt, (*PROMPTS, *SPOKEN, *QUESTIONS)),
        ("styles", s.styles, STYLES),
        ("parts", s.parts, PARTS),
        ("input", s.input, INPUTS),
        ("asr", [s.asr], ("target", "all")),
    ):
        if not values:
            raise UsageError(f"{key} is empty; known: {', '.join(known)}")
        for value in values:
            if value not in known:
                raise UsageError(f"{key}: unknown {value!r}{suggest(value, known)}; known: {', '.join(known)}")
    for key in ("data", "out"):
        try:
            getattr(s, key).encode()
        except UnicodeEncodeError:
            raise UsageError(f"{key}: {getattr(s, key)!r} is not written in UTF-8; rename the folder") from None
        check_name(getattr(s, key))
    if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in s.out):  # control and direction characters
        raise UsageError(f"out: {shown(s.out)!r} has invisible characters in it; name another folder")
    for key in ("repeats", "limit", "max_connections", "budget_requests", "budget_usd"):
        value = getattr(s, key)
        if value is not None and not 0 < value <= _MOST:  # also refuses NaN
            raise UsageError(f"{key} must be greater than 0 and at most {_MOST}, not {value}")
    for key in ("wait", "patience"):
        if not 0 <= getattr(s, key) <= _MOST:
            raise UsageError(f"{key} must be a number of seconds from 0 to {_MOST}, not {getattr(s, key)}")
    if s.part is not None and not s.whole_folder.name.strip("."):
        raise UsageError(f"out: {s.out!r} has no name to which a shard's number could be added; name a folder")
    if s.seed is not None and not -(2**62) < s.seed < 2**62:
        raise UsageError(f"seed must be between -2**62 and 2**62, not {s.seed}")


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def to_toml(s: Settings) -> str:
    """Return the settings as a run file that repeats the run."""
    fields = {k: getattr(s, k) for k in _KEYS if k not in ("data", "out") and getattr(s, k) is not None}
    fields["out"] = s.whole_folder.absolute()
    lines = ["# The resolved configuration of this run.", "[run]"]
    if s.plugins:
        fields["plugins"] = s.plugins
    lines += [f"{k} = {_toml(v)}" for k, v in fields.items()]
    if s.ray is not None:
        table = {k: v for k, v in msgspec.structs.asdict(s.ray).items() if v != getattr(Placement(), k)}
        lines += ["", "[ray]", *(f"{k} = {_toml(v)}" for k, v in table.items())]
    lines += ["", "[[benchmark]]", f"name = {_toml(s.benchmark)}", f"data = {_toml(Path(s.data).absolute())}"]
    lines += ["", "[[model]]", f"spec = {_toml(str(s.model))}"]
    for judge in s.judges:
        lines += ["", "[[judge]]", f"spec = {_toml(str(judge))}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    # A JSON string is a valid TOML basic string, except for one character that TOML forbids.
    return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")
