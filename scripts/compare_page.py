"""Put the worked numbers into docs/how-to: two made-up runs, compared, checked and planned from by the commands.

python scripts/compare_page.py
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from overtone.cli import main
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Option, Reply, Score, Turn

HOW_TO = Path(__file__).parent.parent / "docs" / "how-to"
PAGES = {  # page → its blocks
    HOW_TO / "compare.md": ("compare",),
    HOW_TO / "check.md": ("check", "check baseline"),
    HOW_TO / "plan.md": ("plan", "plan from"),
}
MONDAY, FRIDAY = "runs/monday", "runs/friday"
CUES = ("sad", "happy", "whisper", "rain")
SCRIPTS = 120
OPTIONS = tuple(Option(letter, f"option {letter}") for letter in "ABCD")
JUDGE = "cspeechrel@judge"
RUBRICS = {"cspeechrel": {"label": "Speech relevance (C4)", "low": 1, "high": 5, "styles": ["target", "alternative"]}}
SHOWN = {  # what stands on the page → the command, and how many lines of what it says
    "compare": (f"compare {MONDAY} {FRIDAY}", 12),
    "check": (f'check {FRIDAY} --baseline {MONDAY} --require "voice_accuracy >= 60%" --no-worse c4:0.1', 99),
    "check baseline": (f"check {FRIDAY} --baseline {MONDAY}", 99),
    "plan": ("plan --detect 0.03", 99),
    "plan from": (f"plan --detect 0.03 --from {MONDAY} --from {FRIDAY}", 99),
}


def make_runs(folder: Path) -> None:
    """Friday hears the voice better than Monday, reasons as before, and replies about as well."""
    rng = np.random.default_rng(11)
    ease = rng.random((SCRIPTS, 3))  # what is easy for one of them is easy for the other
    for name, hears, reasons, replies in ((MONDAY, 0.55, 0.5, 3.4), (FRIDAY, 0.7, 0.5, 3.42)):
        with Store.create(folder / name) as store:
            store.plan([(item, [_condition(item)]) for number in range(SCRIPTS) for item in _items(number)], 1)
            for ask in store.open_asks(0, 10 * SCRIPTS):
                number = int(ask.item.group.partition("_")[2])
                own = rng.random()
                if ask.item.task == "choose":
                    level = ask.item.level
                    right = 0.7 * ease[number, level] + 0.3 * own < (hears, reasons)[level - 1]
                    scores = [_choice(right)]
                else:
                    value = round(float(np.clip(replies + 2.4 * (ease[number, 0] - 0.5) + own - 0.5, 1, 5)))
                    scores = [Score(JUDGE, f"{JUDGE}|v1|judge:made-up|text:stream", float(value))]
                store.add_reply(ask, 0, Reply("made up"), sent=b"[]", latency=1.0, attempts=1)
                store.add_scores((ask.id, score) for score in scores)
            store.set_meta({"benchmark": "made-up", "label": Path(name).name, "model": f"the model of {name[5:]}"})
            store.set_meta({"rubrics": msgspec.json.encode(RUBRICS).decode()})


def _condition(item: Item) -> str:
    return "enhance/audio" if item.task == "converse" else "task/audio"


def _items(number: int) -> list[Item]:
    def item(level: int, task: str, category: str, options: tuple[Option, ...]) -> Item:
        case, cue = f"synthesis/id_{number}", CUES[number % len(CUES)]
        return Item(
            id=f"made-up/{category}/id_{number}",
            benchmark="made-up",
            level=level,
            task=task,
            category=category,
            case=f"{case}/target",
            group=case,
            style="target",
            turns=(Turn(Clip(f"{number}.wav"), "made-up words", cue),),
            cue=cue,
            question="which?" if options else "",
            options=options,
            gold="A" if options else "",
        )

    return [
        item(1, "choose", "coarse", OPTIONS),
        item(2, "choose", "suggestion", OPTIONS),
        item(3, "converse", "conversation", ()),
    ]


def _choice(right: bool) -> Score:
    detail: dict[str, float | int | str | None] = {"status": "parsed", "answer": "A" if right else "B"}
    return Score("accuracy", "accuracy|v1|extract:lenient-3", float(right), detail=detail)


def blocks() -> dict[str, str]:
    """Return the blocks of the pages, as the commands print them."""
    found = {}
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(home):
        make_runs(Path())
        for name, (command, most) in SHOWN.items():
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = main(shlex.split(command))
            lines = [line.rstrip() for line in out.getvalue().splitlines()]
            kept = "\n".join(lines[:most])
            cut = f" | head -{most}" if len(lines) > most else ""
            left = f"\n$ echo $?\n{code}" if code else ""
            found[name] = f"```console\n$ overtone {command}{cut}\n{kept}{left}\n```"
    return found


def filled(page: str, blocks: dict[str, str]) -> str:
    """Return the page with its blocks put between their marks."""
    for name, block in blocks.items():
        mark = f"<!-- {name}: scripts/compare_page.py -->"
        pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.S)
        assert len(pattern.findall(page)) == 1, f"the page has no place for {name}"
        page = pattern.sub(lambda _, new=f"{mark}\n{block}\n<!-- end -->": new, page)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    made = blocks()
    for path, names in PAGES.items():
        page = filled(path.read_text(encoding="utf-8"), {name: made[name] for name in names})
        path.write_text(page, encoding="utf-8")
