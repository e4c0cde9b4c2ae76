"""iEval's chats (Svikhnushina, Filippova and Pu, SIGDIAL 2022): four bots rated by the person who chatted with them.

Each task is one rater with two situations and four bots: eight chats, each rated once. The rater is the group, because
one person's ratings of eight chats are not independent. Reverse-worded questions have separate names.
"""

from __future__ import annotations

from pathlib import Path

from overtone.errors import DataError
from overtone.judge_trust.labels import Labels, Rating, Row, Unit
from overtone.paths import shown

VALENCES = ("positive", "negative")
KEYS = {  # iEval's key → dimension
    "P": "polite",
    "^P": "insulting",
    "A": "attentive",
    "^A": "inattentive",
    "EU": "understood",
    "ER": "responded",
    "L": "likable",
    "R": "repetitive",
    "S": "sensible",
    "Rating": "overall",
}


def recognise(first: dict[str, object]) -> bool:
    return "TEQ_raw" in first and all(isinstance(first.get(valence), dict) for valence in VALENCES)


def labels(path: Path, rows: list[Row]) -> Labels:
    units: dict[str, Unit] = {}
    ratings: list[Rating] = []
    for row in rows:
        for valence in VALENCES:
            scene = row.cells.get(valence)
            if not isinstance(scene, dict) or not isinstance(scene.get("conv_id"), str):
                raise DataError(f"{shown(str(path))}, {row.where}: has no {valence} situation")
            for bot, chat in scene.items():
                if isinstance(chat, dict):
                    _add_chat(path, row, valence, scene, str(bot), chat, units, ratings)
    return Labels(path, "ieval", units, ratings, "chat")


def _add_chat(
    path: Path,
    row: Row,
    valence: str,
    scene: dict[str, object],
    bot: str,
    chat: dict[str, object],
    units: dict[str, Unit],
    ratings: list[Rating],
) -> None:
    part = row.cells.get("part")
    name = f"{part}/{valence}/{bot}"
    log = chat.get("chat_log")
    if not isinstance(log, str) or name in units:
        raise DataError(f"{shown(str(path))}, {row.where}: {shown(name)} has no chat, or is repeated")
    texts = {
        "context": str(scene.get("prompt", "")).strip(),
        "topic": str(scene.get("emotion", "")),
        "valence": valence,
        "reply": _with_speakers(log),
    }
    units[name] = Unit(name, str(part), texts, systems={"reply": bot}, where=row.where)
    for theirs, ours in KEYS.items():
        value = chat.get(theirs)
        if isinstance(value, int):
            ratings.append(Rating(name, str(part), ours, float(value), row.where))


def _with_speakers(log: str) -> str:
    """Return the chat with the speaker's name before each line. The person begins, then bot and person alternate."""
    lines = [line.removeprefix("-").strip() for line in log.split("\n") if line.strip()]
    return "\n".join(f"{'Bot' if number % 2 else 'Person'}: {line}" for number, line in enumerate(lines))
