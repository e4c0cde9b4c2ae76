"""Review scripts in three rounds with CSV sheets, measure the reviewers' agreement, and decide which are accepted.

A sheet has one row per script: `round,reviewer,script,verdict,note`, then columns with the text to review. The reviewer
writes accept, revise or reject into `verdict`. Columns after `note` are ignored when a sheet is read.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from overtone.build.script import Dialogue, Script
from overtone.cues import BY_SLUG
from overtone.errors import DataError, UsageError
from overtone.spec import suggest
from overtone.stats.agreement import Agreement, agreement

ROUNDS = 3
COLUMNS = ("round", "reviewer", "script", "verdict", "note")
VERDICTS = ("accept", "revise", "reject")  # from best to worst
_SPELLINGS = {"accepted": "accept", "rejected": "reject"}
_AFTERWARDS = {"revised": "accept"}  # a reviewer who revised a script accepts the new version
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Review(Struct, frozen=True):
    """One reviewer's verdict on one script in one round. `revised`: the reviewer changed the script and accepted it."""

    round: int
    reviewer: str
    script: str
    verdict: str  # one of VERDICTS
    note: str = ""
    revised: bool = False
    where: str = ""  # file and line


class Reviewed(Protocol):
    """Something that is reviewed: a script, a dialogue, or a question or clip of a review desk."""

    @property
    def id(self) -> str:
        """The name by which verdicts refer to it."""


class Round(Struct, frozen=True):
    """One round: its reviewers, the agreement on scripts with two or more reviewers, and the disputed scripts."""

    number: int
    reviewers: tuple[str, ...]
    verdicts: dict[str, int]
    agreement: Agreement
    disputed: dict[str, dict[str, str]]  # script → reviewer → verdict


class Decision(Struct, frozen=True):
    """The result of all rounds. Pending scripts have not been through all rounds, or wait for a revision."""

    accepted: tuple[str, ...]
    pending: dict[str, str]  # script → the next step that it waits for
    rejected: dict[str, str]  # script → reviewers who rejected it, and their notes
    rounds: tuple[Round, ...]


# ── sheets ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sheet(scripts: Sequence[Script | Dialogue], round: int, reviewers: Sequence[str]) -> dict[str, bytes]:
    """Return an empty sheet for each reviewer by file name, as UTF-8 CSV that spreadsheets open."""
    if not 1 <= round <= ROUNDS:
        raise UsageError(f"--round must be 1 to {ROUNDS}, not {round}")
    names = [" ".join(name.split()) for name in reviewers]
    if not names or not all(names) or len(set(map(_file_part, names))) != len(names):
        raise UsageError("name the reviewers, each once: --reviewers anna,ben")
    files = {}
    for name in names:
        out = io.StringIO()
        write = csv.writer(out, lineterminator="\n")
        write.writerow([*COLUMNS, *_SHOWN])
        for script in scripts:
            write.writerow([str(round), _cell(name), script.id, "", "", *map(_cell, material(script).values())])
        files[f"ROUND{round}-{_file_part(name)}.csv"] = b"\xef\xbb\xbf" + out.getvalue().encode()
    return files


_SHOWN = (
    "words", "target cue", "alternative cue", "says", "reply to target", "reply to alternative", "reply to neutral",
    "questions",
)  # fmt: skip


def material(script: Script | Dialogue) -> dict[str, str]:
    """Return the texts that a reviewer reads, by the name of their column; "" if the script has no such text."""
    texts = _shown_dialogue(script) if isinstance(script, Dialogue) else _shown(script)
    return dict(zip(_SHOWN, texts, strict=True))


def _shown(s: Script) -> list[str]:
    def cue(slug: str, style: str) -> str:
        kind = s.manner_in(style) if style else ""
        return " ".join(filter(None, (BY_SLUG[slug].phrase, f"({kind})" if kind else ""))) if slug else ""

    questions = "\n\n".join(
        "\n".join(
            [f"{r.category}: {r.question}"]
            + [f"  {p}: {text}" for p in ("target", "alternative", "words", "harmful") if (text := getattr(r, p))]
        )
        for r in s.reasoning
    )
    replies = [
        f"{s.reply[style]} [{s.style.get(style, '')}]" if style in s.reply else ""
        for style in ("target", "alternative", "neutral")
    ]
    return [s.words, cue(s.cue, "target"), cue(s.alternative, "alternative"), cue(s.says, ""), *replies, questions]


def _shown_dialogue(d: Dialogue) -> list[str]:
    """Return both turns as cells for the columns of a script. The reply of the steady variant is in the column for
    neutral."""
    first, second = d.turn
    cues = [BY_SLUG[t.cue].phrase if t.cue else "a plain voice" for t in d.turn]
    replies = [f"{t.reply} [{t.style}]" for t in d.turn]
    return [f"1: {first.words}\n2: {second.words}", *cues, "", *replies, f"{d.steady_reply} [{d.steady_style}]", ""]


def _file_part(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "reviewer"


def _cell(text: str) -> str:
    """Escape a text that a spreadsheet would interpret as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_reviews(folder: Path) -> list[Review]:
    """Read all filled sheets of a folder. Rows without a verdict are skipped as not yet reviewed. Any other fault
    raises DataError with file and line."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; 'overtone build review SCRIPTS --reviewers a,b' writes sheets")
    reviews: dict[tuple[int, str, str], Review] = {}
    for review in (one for path in sorted(folder.glob("*.csv")) for one in _read(path) if one.verdict):
        first = reviews.setdefault((review.round, review.reviewer, review.script), review)
        if first is not review:
            raise DataError(f"{review.where}: {review.reviewer} has judged {review.script} already, in {first.where}")
    return [review for _, review in sorted(reviews.items())]


def filled(reviews: Sequence[Review]) -> dict[str, bytes]:
    """Return completed sheets by file name, one per round and reviewer, as `read_reviews` reads them."""
    files: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        files[f"ROUND{review.round}-{_file_part(review.reviewer)}.csv"].append(review)
    out = {}
    for name, rows in files.items():
        text = io.StringIO()
        write = csv.writer(text, lineterminator="\n")
        write.writerow(COLUMNS)
        for r in rows:
            verdict = "revised" if r.revised else r.verdict
            write.writerow([str(r.round), _cell(r.reviewer), r.script, verdict, _cell(r.note)])
        out[name] = b"\xef\xbb\xbf" + text.getvalue().encode()
    return out


def _read(path: Path) -> Iterable[Review]:
    try:
        rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        missing = [c for c in COLUMNS if c not in (rows.fieldnames or ())]
        if missing:
            raise DataError(f"{path.name}: line 1: no column {', '.join(missing)}; a sheet has {','.join(COLUMNS)}")
        line = rows.line_num + 1
        for row in rows:
            where, line = f"{path.name}: line {line}", rows.line_num + 1  # a cell may hold several lines
            number, reviewer, script, given, note = ((row.get(c) or "").strip() for c in COLUMNS)
            if not any((number, reviewer, script, given, note)):
                continue
            if note and not given:
                raise DataError(f"{where}: a note on {script or 'no script'} but no verdict; write one")
            if not number.isdecimal() or not 1 <= int(number) <= ROUNDS:
                raise DataError(f"{where}: round must be 1 to {ROUNDS}, not {number!r}")
            if not reviewer or not script:
                raise DataError(f"{where}: a row needs a reviewer and a script")
            if not given:
                yield Review(int(number), reviewer, script, "", where=where)
                continue
            plain = _SPELLINGS.get(given.lower(), given.lower())
            verdict = _AFTERWARDS.get(plain, plain)
            if verdict not in VERDICTS:
                raise DataError(
                    f"{where}: no verdict {given!r}{suggest(plain, (*VERDICTS, *_AFTERWARDS))}; "
                    f"write {', '.join(VERDICTS)}, or revised for a script changed by its reviewer"
                )
            if verdict == "reject" and not note:
                raise DataError(f"{where}: {script} is rejected without a note; say why")
            yield Review(int(number), reviewer, script, verdict, note, plain in _AFTERWARDS, where)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name}: cannot be read as a review sheet: {error}") from error


def missing(scripts: Sequence[Script | Dialogue], folder: Path) -> list[str]:
    """Return the gaps of a round: rows without a verdict, and scripts that are in no sheet."""
    rows = [review for path in sorted(folder.glob("*.csv")) for review in _read(path)]
    out = [f"{r.where}: {r.script} has no verdict yet" for r in rows if not r.verdict]
    listed: dict[int, set[str]] = defaultdict(set)
    for r in rows:
        listed[r.round].add(r.script)
    for number, ids in sorted(listed.items()):
        out += [f"round {number}: no sheet has {s.id}" for s in scripts if s.id not in ids]
    return out


# ── deciding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def decide(scripts: Sequence[Reviewed], reviews: Sequence[Review], *, seed: int = 0) -> Decision:
    """Accept the scripts that more than half of their last round's reviewers accept and none rejects. A script that no
    one rejects is pending if its last round is not the third, or if no majority accepts it."""
    known = {s.id for s in scripts}
    for r in reviews:
        if r.script not in known:
            raise DataError(f"{r.where}: no script {r.script!r}{suggest(r.script, known)} in this set")
    by_script: dict[str, dict[int, list[Review]]] = defaultdict(lambda: defaultdict(list))
    for r in reviews:
        by_script[r.script][r.round].append(r)
    accepted: list[str] = []
    pending: dict[str, str] = {}
    rejected: dict[str, str] = {}
    for script in scripts:
        rounds = by_script[script.id]
        last = max(rounds, default=0)
        final = rounds.get(last, [])
        against = [r for r in final if r.verdict == "reject"]
        if against:
            rejected[script.id] = "; ".join(f"{r.reviewer} in round {last}: {r.note}" for r in against)
        elif last < ROUNDS:
            pending[script.id] = f"round {last + 1}"
        elif 2 * sum(r.verdict == "accept" for r in final) > len(final):
            accepted.append(script.id)
        else:
            notes = "; ".join(f"{r.reviewer}: {r.note or r.verdict}" for r in final if r.verdict != "accept")
            pending[script.id] = f"a revision and another look ({notes})"
    numbers = sorted({r.round for r in reviews})
    return Decision(tuple(accepted), pending, rejected, tuple(_round(n, reviews, seed) for n in numbers))


def _round(number: int, reviews: Sequence[Review], seed: int) -> Round:
    mine = [r for r in reviews if r.round == number]
    readers = tuple(sorted({r.reviewer for r in mine}))
    verdicts: dict[str, dict[str, str]] = defaultdict(dict)
    for r in mine:
        # a script that its reviewer changed before accepting it counts as "revise" for agreement
        verdicts[r.script][r.reviewer] = "revise" if r.revised else r.verdict
    table = [
        [float(VERDICTS.index(v)) if (v := given.get(reader)) else None for given in verdicts.values()]
        for reader in readers
    ]
    disputed = {script: given for script, given in sorted(verdicts.items()) if len(set(given.values())) > 1}
    counts = Counter(v for given in verdicts.values() for v in given.values())
    totals = {v: counts[v] for v in VERDICTS}
    return Round(number, readers, totals, agreement(table, "ordinal", seed=seed), disputed)


def summary(decision: Decision) -> list[str]:
    """Return the lines that summarise a decision on the terminal."""
    lines = []
    for r in decision.rounds:
        a = r.agreement
        if a.units == 0:
            agreed = "agreement cannot be measured, because no script has two reviewers"
        elif math.isnan(a.alpha):
            agreed = f"α is not defined, because all verdicts on the {a.units} scripts with two or more are the same"
        else:
            agreed = f"α {a.alpha:.2f} [{a.low:.2f}, {a.high:.2f}], {a.percent:.0%} of pairs agree, {a.units} scripts"
        counted = ", ".join(f"{n} {v}" for v, n in r.verdicts.items())
        names = ", ".join(r.reviewers)
        lines.append(f"round {r.number}: {len(r.reviewers)} reviewers ({names}): {counted}; {agreed}")
        lines += [
            f"  {script}: " + ", ".join(f"{who} {what}" for who, what in given.items())
            for script, given in r.disputed.items()
        ]
    lines += [f"rejected {script}: {why}" for script, why in decision.rejected.items()]
    lines.append(
        f"{len(decision.accepted)} accepted, {len(decision.pending)} pending, {len(decision.rejected)} rejected"
    )
    return lines
