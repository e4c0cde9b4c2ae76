"""The rooms of the house: who may import whom, that a plug-in is one file, and that the core stays light."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "overtone"
MAP = SOURCE.parents[1] / "docs" / "architecture.md"
ANYTHING = {"*"}


def _rules(heading: str) -> dict[str, set[str]]:
    """Read one table of the map: room or module → what it may import."""
    rows = re.search(rf"^\| {heading} \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", MAP.read_text(encoding="utf-8"), re.M)
    assert rows is not None, f"{MAP} has no table of the column {heading!r}"
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in rows[1].splitlines()]
    return {room.strip("`"): set(re.findall(r"`([^`]+)`", allowed)) for room, _, allowed in cells}


MAY = _rules("room")
ECHAT_MAY = _rules("room of echat")
GROUND_MAY = _rules("module")
GROUND = set(GROUND_MAY)
COMPOSERS = set(re.findall(r"`(\w+)`", re.search(r"^These modules join rooms.*$", MAP.read_text("utf-8"), re.M)[0]))  # type: ignore[index]
EXCEPTIONS = {
    ("models/replay.py", "runs"),  # a stored run as a model reads the store
    ("build/voices/recordings.py", "studio"),  # the takes of a study as a voice come from the study's store
    ("echat/talk/worker_program.py", "workers"),  # it speaks their protocol
}


def imports(path: Path, below: str = "overtone") -> set[str]:
    """The first name below a package of everything a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == below:
                names = [f"{below}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix(f"{below}.").split(".")[0] for name in names if name.startswith(f"{below}.")}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    relative = path.relative_to(SOURCE)
    room = relative.parts[0] if len(relative.parts) > 1 else relative.stem
    if room in COMPOSERS:
        return
    if room in GROUND:
        allowed = GROUND_MAY[room]
    elif MAY[room] == ANYTHING:
        return
    else:
        allowed = MAY[room] | GROUND | {room}
    extra = {name for name in imports(path) - allowed if (str(relative), name) not in EXCEPTIONS}
    assert not extra, f"{relative} must not import {sorted(extra)}"


@pytest.mark.parametrize("room", ECHAT_MAY)
def test_a_room_of_echat_imports_only_what_it_may(room: str) -> None:
    found = {
        (path.name, name) for path in (SOURCE / "echat" / room).glob("*.py") for name in imports(path, "overtone.echat")
    }
    assert not {(file, name) for file, name in found if name not in ECHAT_MAY[room] | {room}}


def test_every_room_has_a_rule() -> None:
    for folder, rules in ((SOURCE, MAY), (SOURCE / "echat", ECHAT_MAY)):
        assert {p.name for p in folder.iterdir() if p.is_dir() and any(p.glob("*.py"))} == set(rules)


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    long = {str(p.relative_to(SOURCE)): n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 450}
    assert not long


def test_scripts_import_only_names_that_exist() -> None:
    missing = []
    for path in (
        path for folder in ("bench", "experiments", "scripts") for path in MAP.parents[1].glob(f"{folder}/**/*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("overtone."):
                place = SOURCE.parent.joinpath(*str(node.module).split("."))
                file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
                text = file.read_text() if file.exists() else ""
                missing += [
                    f"{path.name}: {node.module}.{one.name}"
                    for one in node.names
                    if not re.search(rf"\b{one.name}\b", text) and not (place / f"{one.name}.py").exists()
                ]
    assert not missing


def test_few_module_names_are_used_twice() -> None:
    names = Counter(path.stem for path in SOURCE.rglob("*.py") if not path.stem.startswith("__"))
    assert len({name for name, count in names.items() if count > 1}) < 15


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_overtone_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'scipy', 'pandas', 'numpy', 'aiohttp', 'rich', 'jinja2', 'huggingface_hub', 'ray'}"
    assert run(f"import sys, overtone; print(sorted({heavy} & set(sys.modules)))").strip() == "[]"


def test_a_run_imports_nothing_that_only_an_extra_installs() -> None:
    own = ("api", "models.openai", "report.page", "scoring", "cluster.held_model", "cluster.ray_tasks")
    code = f"import sys, {', '.join(f'overtone.{name}' for name in own)}; "
    heavy = "{'torch', 'scipy', 'pandas', 'huggingface_hub', 'ray'}"
    assert run(code + f"print(sorted({heavy} & set(sys.modules)))").strip() == "[]"


def test_only_the_lock_imports_a_module_that_windows_lacks() -> None:
    posix = r"^\s*(?:import|from) (fcntl|grp|posix|pty|pwd|resource|syslog|termios|tty)\b"
    found = {str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if re.search(posix, p.read_text("utf-8"), re.M)}
    assert found == {"locks.py"}


def test_the_core_is_imported_where_the_system_is_not_posix() -> None:
    code = """
import asyncio, multiprocessing, os, signal, subprocess, sys, tempfile, types  # whose own use of these names stays
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
for name in ("SIGKILL", "SIGHUP", "SIGUSR1"):
    delattr(signal, name)
for name in ("fork", "getuid", "killpg", "sched_getaffinity", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"):
    delattr(os, name)
import overtone.api, overtone.cli.run, overtone.models.command, overtone.models.openai, overtone.models.worker
import overtone.report.page, overtone.scoring, overtone.build.builder
print("imported")
"""
    assert run(code).strip() == "imported"


def _needed(name: str, found: dict[str, str]) -> None:
    """Every distribution the core install brings, with its version, from the installed metadata."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    if plain in found:
        return
    found[plain] = importlib.metadata.version(name)
    for requirement in importlib.metadata.requires(name) or ():
        text, _, marker = requirement.partition(";")
        if "extra" in marker or ("python_version" in marker and "<" in marker) or "platform" in marker:
            continue
        _needed(re.match(r"[A-Za-z0-9._-]+", text.strip())[0], found)  # type: ignore[index]


def test_the_core_install_is_at_most_thirty_packages() -> None:
    found: dict[str, str] = {}
    _needed("overtone", found)
    assert len(found) <= 30, sorted(found)


def test_the_client_of_the_hub_brings_nothing_heavy() -> None:
    found: dict[str, str] = {}
    _needed("huggingface-hub", found)
    assert len(found) <= 16 and not {"numpy", "pandas", "pyarrow", "torch"} & set(found), sorted(found)


@pytest.mark.network
@pytest.mark.timeout(180)
def test_the_pinned_core_installs_by_its_hashes_and_is_at_most_forty_megabytes_of_wheels(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--dest", str(tmp_path)]
    lock = Path(__file__).parent.parent / "constraints.txt"
    done = subprocess.run([*command, "-r", str(lock)], capture_output=True, text=True, check=False)
    assert not re.search(r"HASHES|require-hashes mode", done.stderr), done.stderr
    if done.returncode:
        pytest.skip("no package index to weigh wheels from")
    size = sum(path.stat().st_size for path in tmp_path.iterdir()) / 1e6
    assert size <= 40, size


def test_no_cuda_package_is_installed() -> None:
    worker = Path(__file__).parent.parent / ".venv-worker"
    folders = [Path(p) for p in sys.path if p.endswith("site-packages")] + list(worker.glob("lib/*/site-packages"))
    assert folders
    assert not [d.name for folder in folders for d in folder.glob("nvidia*")]


def test_the_public_interface_is_what_it_was() -> None:
    names = run("import overtone; print(*sorted(overtone.__all__))").split()
    assert names == [
        "Item", "OvertoneError", "Reply", "Request", "Run", "Score", "__version__", "bertscore", "bleu", "compare",
        "meteor", "open_run", "register", "rouge_l", "run", "score", "wer",
    ]  # fmt: skip
    assert run("import overtone; print(all(getattr(overtone, n) for n in overtone.__all__))").strip() == "True"


def test_every_test_file_is_collected() -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here.parent)
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert collected == {str(path.relative_to(here.parent)) for path in here.rglob("test_*.py")}
