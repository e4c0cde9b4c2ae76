"""Make some forty small runs over real data for `scripts/reference_outputs.py`, and OUT/reference.json.

    python scripts/reference_runs.py OUT [--shared DIR]

It builds small sets and runs the embedded models on them, as the demo does. All other models and judges are this file
itself, as a program: what it answers is a function of the request. The runs have several prompts, inputs, repeats,
judges, a reader, failures, refusals, unread verdicts, an exhausted budget, predictions, a replay and an arena.

The same command again resumes: it asks judges nothing, and models only what failed or what a budget had left open, and
prints how many requests were sent. To test another version of the code, copy OUT and run this there with that version's
Python: both must send the same number. DIR holds the real data (default: ../shared/data).
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))  # so that `scripts` is found

ASKED = Path("asked.log")  # a line for each request
CLIPS = Path("data/open")  # spoken replies are clips of this set
REPLIES = (
    "That sounds like a lot. Shall we look at it together, one thing at a time?",
    "I can hear that you are happy about this. Tell me more!",
    "All right.",
    "You sound tired. Would you like me to write that down, so that you can rest?",
    "It is raining where you are, is it not? Take an umbrella.",
    "I am sorry to hear that; it must be hard for you.",
    "你听起来很累，要不要先休息一下？",
    "The user sounds sad and asks for help with the report, so a fitting reply would be to offer it.",
)
TRANSCRIPT = "the report is done and i left the window open on the way to the door"
FAILURES = ("timeout", "rejected", "too_large", "malformed", "server")


def number_of(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("\n".join(parts).encode()).digest()[:8])


def serve(kind: str, name: str) -> None:
    """Answer one request per line, as `command:` models and judges do."""
    for line in sys.stdin:
        request = json.loads(line)
        with ASKED.open("a") as log:
            log.write(f"{kind} {name}\n")
        parts = [part for message in request["messages"] for part in message["parts"]]
        texts = [part["text"] for part in parts if "text" in part]
        sounds = [part["sha256"] for part in parts if "sha256" in part]
        seed = str(request["parameters"].get("seed", ""))
        number = number_of(name, seed, *texts, *([] if name == "deaf" else sounds))
        reply = verdict(texts[-1], number) if kind == "judge" else answer(name, request, texts, number)
        print(json.dumps({"id": request["id"], **reply}), flush=True)


def verdict(text: str, number: int) -> dict[str, Any]:
    """Values from the menus at the end of a request; some cannot be read."""
    given: dict[str, Any] = {}
    for key, menu in re.findall(r'^  "(\w+)": (a whole number .*|".*"(?: or ".*")+),?$', text, re.M):
        own = number_of(key, str(number))
        bounds = [int(one) for one in re.findall(r"\d+", menu)] if menu.startswith("a ") else []
        choices: list[int | str] = [*range(bounds[0], bounds[1] + 1)] if bounds else re.findall(r'"([^"]+)"', menu)
        given |= {f"{key}_reason": f"Reason {own % 7}.", key: choices[own % len(choices)]}
        if number % 17 == 0:
            given[key] = 77
    return {"text": json.dumps(given), "usage": {"input_tokens": len(text) // 4, "output_tokens": 20}}


def answer(name: str, request: dict[str, Any], texts: list[str], number: int) -> dict[str, Any]:
    if number % (3 if name == "failing" else 23) == 0:
        return {"error": {"message": "made up", "reason": FAILURES[number // 23 % len(FAILURES)], "retry": False}}
    if number % 29 == 0:
        return {"text": "I cannot help with that.", "refused": True}
    usage = {"input_tokens": sum(map(len, texts)) // 4, "output_tokens": number % 40}
    if request["task"] == "choose":
        place = number // 64 % len(request["options"])
        letter, text = "ABCDEFGH"[place], request["options"][place]
        forms = (
            f"The answer is: [{letter}]",
            letter,
            f"({letter.lower()}) {text}",
            f"{text}.",
            "It could be any of these.",
        )
        return {"text": forms[number % (5 if name == "sloppy" else 4)], "finish": "stop", "usage": usage}
    if request["task"] == "transcribe":
        first, last = number % 5, 5 + number // 8 % 10
        return {"text": " ".join(TRANSCRIPT.split()[first:last]), "finish": "stop", "usage": usage}
    text = "" if number % 31 == 0 else " ".join(dict.fromkeys((REPLIES[number % 8], REPLIES[number // 8 % 8])))
    spoken = sorted(CLIPS.rglob("*.wav")) if request["speech"] and name != "deaf" else []
    sound = base64.b64encode(spoken[number % len(spoken)].read_bytes()).decode() if spoken else None
    return {"text": text, "audio": sound, "finish": "length" if number % 37 == 0 else "stop", "usage": usage}


class Run(NamedTuple):
    name: str
    benchmark: str
    data: str
    model: str
    flags: str = ""


def program(kind: str, name: str, more: str = "") -> str:
    return f"command:./model.py?args={kind}%20{name}{more}"


def mind(name: str) -> str:
    return program("answer", name)


def judge(label: str, more: str = "") -> str:
    return f"--judge {program('judge', label, f'&label={label}{more}')}"


ONE, TWO = judge("one"), judge("two", "&repeats=2")
EVERY = judge("one", "&rubrics=echomind,implicit,ves,false-cue")
DESCRIBED = judge("ear", "&rubrics=ves&hears=description")
PROMPTS = "--prompt basic,enhance,oracle,oracle-false --limit 160"
EMBEDDED, HEARING = "cascade?max_tokens=16", "cascade?hear=acoustic&max_tokens=16"
CORE, HEARD = "--parts core", "--metric emoalign --metric consistency"
SETS = {"open": "2 --only happy,sad,whisper,rain,laughter,elderly", "aeq": "3", "echat-eval": "3"}  # of each cue, …
ANYWHERE = ("echomind", "sakura", "sd-eval", "mmau", "air-bench", "uro-bench", "voxdialogue", "empathyeval")
RUNS = (
    Run("demo-deaf", "open", "open", EMBEDDED, f"{CORE} --styles target --limit 60"),
    Run("demo-deaf", "open", "open", EMBEDDED, f"{CORE} --levels 3 --styles target --prompt basic,oracle,oracle-false"),
    Run("demo-acoustic", "open", "open", HEARING, f"{CORE} --styles target --limit 60"),
    Run("demo-acoustic", "open", "open", HEARING, f"{CORE} --levels 1 --styles target --input transcript --limit 30"),
    Run("demo-aeq", "aeq", "aeq", HEARING, "--input audio,context --limit 12"),
    Run("demo-echat-eval", "echat-eval", "echat-eval", HEARING, "--limit 12"),
    Run("open-plain", "open", "open", mind("plain"), f"{PROMPTS} --input audio,transcript --asr all {EVERY} {TWO}"),
    Run("open-other", "open", "open", mind("other"), f"{PROMPTS} {EVERY} {TWO}"),
    Run("open-deaf", "open", "open", mind("deaf"), judge("one", "&calls=apart")),
    Run("open-repeats", "open", "open", mind("plain"), "--repeats 3 --seed 5 --limit 40"),
    Run("open-warm", "open", "open", mind("plain"), f"--levels 3 --prompt warm,plain {HEARD} --limit 20"),
    Run("open-inputs", "open", "open", mind("other"), "--input audio,both,silence,alone,transcript --limit 40"),
    Run("open-failing", "open", "open", mind("failing"), f"--limit 60 {ONE}"),
    Run("open-sloppy", "open", "open", mind("sloppy"), f"--levels 1,2 --reader {program('judge', 'reader')}"),
    Run("open-budget", "open", "open", mind("other"), "--budget-requests 25"),
    Run("open-described", "open", "open", mind("other"), f"--levels 3 --limit 24 {DESCRIBED}"),
    Run("open-replay", "open", "open", "replay:open-repeats", "--limit 60"),
    *(Run(f"{name}-plain", name, name, mind("plain"), f"{ONE} {TWO}") for name in ("aeq", "echat-eval")),
    *(Run(f"{name}-other", name, name, mind("other"), ONE) for name in ("aeq", "echat-eval")),
    *(Run(f"{name}-plain", name, name, mind("plain"), f"--prompt zero,enhance {ONE}") for name in ANYWHERE),
    *(Run(f"{name}-other", name, name, mind("other"), ONE) for name in ("echomind", "sakura", "sd-eval", "uro-bench")),
    Run("mmau-predictions", "mmau", "mmau", "predictions:data/mmau.jsonl"),
    Run("sakura-repeats", "sakura", "sakura", mind("sloppy"), f"--repeats 2 {ONE}"),
)  # fmt: skip
MINDS = ("chain", "deaf", "parrot", "mute", "stubborn", "plain-6")
GROUPS = {
    "demo": ["demo-deaf", "demo-acoustic"],
    "open": ["open-plain", "open-other", "open-deaf"],
    "sizes": ["open-failing", "open-budget", "open-repeats"],
    "aeq": ["aeq-plain", "aeq-other", "demo-aeq"],
    "echat-eval": ["echat-eval-plain", "echat-eval-other"],
    "mmau": ["mmau-plain", "mmau-predictions"],
    "sakura": ["sakura-plain", "sakura-other", "sakura-repeats"],
    **{name: [f"{name}-plain", f"{name}-other"] for name in ("echomind", "sd-eval", "uro-bench")},
    "minds": list(MINDS),
    "once": ["once-chain", "once-deaf"],
    "mixed": ["open-plain", "echomind-plain", "sakura-plain"],
}
ARENA = ("open-plain", "open-other", "open-deaf")
REFERENCE = {
    "groups": GROUPS,
    "formats": ["open", "once", "echomind", "uro-bench"],
    "quick": ["open", "sakura", "once"],
    "rescore": ["open-repeats", "sd-eval-plain", "sakura-plain", "uro-bench-plain", "mmau-plain", "air-bench-plain"],
    "labels": {"open-plain": "labels.csv"},
    "arenas": {"vote": {"runs": list(ARENA), "folder": "arena", "votes": "votes.csv"}},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    shared = Path(__file__).resolve().parents[2] / "shared/data"
    parser.add_argument(
        "--shared", type=Path, default=shared, metavar="DIR", help="real data (default: ../shared/data)"
    )
    args = parser.parse_args()
    args.shared = args.shared.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    os.chdir(args.out)
    if not Path("model.py").exists():  # a copy: this file may change while the runs are resumed
        shutil.copy(__file__, "model.py")
    ASKED.touch()
    before = ASKED.read_text().splitlines()
    make_sets(args.shared)
    for run in RUNS:
        overtone(f"run {run.benchmark} --data data/{run.data} --out {run.name} --model {run.model} {run.flags} -q")
    make_minds()
    make_arena()
    make_labels("open-plain", "cspeechrel", "one")
    Path("reference.json").write_text(json.dumps(REFERENCE, indent=1))
    asked = ASKED.read_text().splitlines()[len(before) :]
    runs = len(list(Path().glob("*/run.db")))
    print(f"{runs} runs; requests sent now: {len(asked)}, of them to judges {sum('judge' in one for one in asked)}")
    return 0


def overtone(words: str) -> None:
    from overtone.cli import main as command

    code = command(words.split())
    print(f"exit {code}: overtone {words}", flush=True)
    if code not in (0, 3, 4):  # 3: something is missing, 4: a budget is spent; both are wanted here
        sys.exit(f"this command must not fail: overtone {words}")


def make_sets(shared: Path) -> None:
    from overtone.cli import demo
    from scripts.reference_layouts import Layouts

    sets = demo.SETS if hasattr(demo, "SETS") else (demo.OPEN, *demo.OTHERS)  # older versions have SETS
    for name, _, (limit, *_) in sets:  # flags begin with the name of the limit, which differs between versions
        if not Path("data", name, "manifest.json").exists():
            overtone(f"build {name} {limit} {SETS[name]} --no-gates --out data/{name}")
    for name, made in (("echomind", "echomind_demo"), ("sakura", "sakura_sample"), ("sd-eval", "sd_eval")):
        if not Path("data", name).exists():
            shutil.copytree(shared / made, Path("data", name))
    Layouts(shared).write()


def make_minds() -> None:
    """Runs of made-up models whose findings are known, by the bench of the same version as the package."""
    import overtone

    sys.path.insert(0, str(Path(overtone.__file__).parents[2]))
    from bench.findings_items import make_items
    from bench.findings_minds import minds
    from bench.findings_runs import make_run

    items = list(make_items(20))
    for number, one in enumerate(minds(len(MINDS))):
        for name in (one.name, f"once-{one.name}"):
            if not Path(name).exists() and (name == one.name or number < 2):
                make_run(Path(name), one, items, seed=number, once=name != one.name)


def make_arena() -> None:
    from scripts.reference_layouts import rows_of

    runs, votes = " ".join(ARENA), Path("votes.csv")
    if not votes.exists():
        overtone(f"arena {runs} --pairs 60 --out arena --export pairs.csv")
        rows = rows_of(Path("pairs.csv"))
        with votes.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("pair", "winner", "rater"))
            for rater in ("ann", "ben", "cem"):
                for row in rows:
                    writer.writerow((row["pair"], ("A", "B", "tie", "A")[number_of(rater, row["pair"]) % 4], rater))
        overtone(f"arena {runs} --pairs 60 --out arena --votes votes.csv")
    overtone(f"arena {runs} --pairs 60 --out arena {judge('pairs')}")  # with the votes that were imported once


def make_labels(run: str, question: str, label: str) -> None:
    """People's ratings near the judge's, for some of a run's scripts."""
    if Path("labels.csv").exists():
        return
    overtone(f"export {run} -o {run}.jsonl")
    lines = [json.loads(line) for line in Path(f"{run}.jsonl").read_text().splitlines()]
    with Path("labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "condition", "group", "rater", "dimension", "value"))
        for row in lines:
            judged = row["scores"].get(f"{question}@{label}")
            if judged is not None and number_of(row["group"]) % 3:
                value = min(max(round(judged) + number_of(row["item"]) % 3 - 1, 1), 5)
                writer.writerow((row["item"], row["condition"], row["group"], "ann", question, value))


if __name__ == "__main__":
    if sys.argv[1:2] in (["answer"], ["judge"]):
        serve(sys.argv[1], sys.argv[2])
    else:
        sys.exit(main())
