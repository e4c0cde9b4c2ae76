"""Small runs that answered the same cases, and a judge that reads how much a reply is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from overtone.runs.store import Store
from overtone.schema import Clip, Item, Reply, Turn
from tests.judges.server import Verdict, keys_asked
from tests.servers import Asked, tone

CUES = ("sad", "happy", "tired")


def item(number: int, style: str, cue: str, **more: object) -> Item:
    return Item(
        id=f"toy/s{number}/{style}",
        benchmark="toy",
        level=3,
        task="converse",
        category="conversation",
        case=f"synthesis/s{number}/{style}",
        group=f"synthesis/s{number}",
        style=style,
        turns=(Turn(Clip(f"s{number}-{style}.wav", seconds=0.4), f"words of {number}", cue),),
        cue=cue,
        topic="work",
        **more,  # type: ignore[arg-type]
    )


def voiced(number: int, source: str) -> Item:
    """One script's clip, spoken by a source."""
    one = item(number, "target", "sad", source=source)
    own = {"id": f"toy/{source}/{number}", "case": f"{source}/s{number}/target", "group": f"{source}/s{number}"}
    return msgspec.structs.replace(one, **own)


def items(scripts: int) -> list[Item]:
    found = []
    for number in range(scripts):
        found.append(item(number, "target", CUES[number % 3]))
        found.append(item(number, "neutral", ""))
    return found


def make_run(
    folder: Path,
    worth: float,
    *,
    scripts: int = 9,
    leave_out: tuple[str, ...] = (),
    spoken: bool = False,
    root: Path | None = None,
    others: tuple[Item, ...] = (),
    words: Mapping[str, str] | None = None,
    longer: float = 1,
) -> Path:
    """A finished run whose every reply says what it is worth. `longer`: sounds are so many times longer."""
    all_items = [*items(scripts), *others]
    if root is not None:
        root.mkdir(exist_ok=True)
        for one in all_items:
            assert one.turns[0].clip
            (root / one.turns[0].clip.path).write_bytes(tone(1, 0.2 * longer, 16_000))
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "toy", "model": folder.name} | ({"root": str(root)} if root else {}))
        store.plan([(one, ["enhance/audio"]) for one in all_items], 1)
        store.commit()
        for number, ask in enumerate(store.open_asks(0, 10_000)):
            if ask.item.id in leave_out:
                continue
            text = (words or {}).get(ask.item.id, f"A reply to {ask.item.id} worth {worth:g} " + "so " * (number % 4))
            sound = tone(int(worth) + 2, (0.3 + 0.1 * (number % 3)) * longer, 16_000) if spoken else None
            store.add_reply(ask, 0, Reply(text.strip(), sound), sent=b"[]", latency=1.0, attempts=1)
        store.commit()
    return folder


def runs(folder: Path, worths: Mapping[str, float], **options: object) -> list[Path]:
    return [make_run(folder / name, worth, **options) for name, worth in worths.items()]  # type: ignore[arg-type]


def by_worth(asked: Asked) -> Verdict:
    """Prefers the reply that is worth more; a tie where both are the same."""
    worth = [float(re.search(rf"(?s)<reply_{s}>.*?worth ([\d.]+)", asked.text)[1]) for s in "ab"]  # type: ignore[index]
    said = "tie" if worth[0] == worth[1] else "A" if worth[0] > worth[1] else "B"
    return dict.fromkeys(keys_asked(asked.text), said)
