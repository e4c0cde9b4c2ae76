"""`overtone export --format preferences`: who prefers what, who agrees, what is dropped and why, how it is split."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.arena.preferences import Preference, Wanted, find
from overtone.cli import main
from overtone.errors import DataError, StoreError, UsageError
from overtone.runs.store import Store
from overtone.schema import Item, Reply, Score
from tests.arena.helpers import by_worth, item, items, make_run, runs
from tests.judges.server import JudgeServer, Verdict
from tests.servers import Asked

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERTONE_JUDGES", str(tmp_path / "proofs"))
    monkeypatch.chdir(tmp_path)


def read(path: Path) -> list[Preference]:
    return [msgspec.json.decode(line, type=Preference) for line in path.read_bytes().splitlines()]


def votes(path: Path, rows: list[Mapping[str, str]]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def vote(script: int, winner: str, rater: str, style: str = "target", **more: str) -> dict[str, str]:
    case = f"synthesis/s{script}/{style}"
    return {"case": case, "a": "good", "b": "bad", "winner": winner, "rater": rater, **more}


def scored(folder: Path, values: Mapping[tuple[str, int], Mapping[str, float]], *, signature: str = "v1") -> Path:
    """A run asked as often as the values say, with scores by item and repeat."""
    repeats = 1 + max(repeat for _, repeat in values)
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "toy", "model": f"toy:{folder.name}"})
        store.plan([(one, ["enhance/audio"]) for one in items(4)], repeats)
        store.commit()
        for ask in store.open_asks(0, 1000):
            text = f"{folder.name} says {ask.repeat} to {ask.item.id}"
            store.add_reply(ask, 0, Reply(text), sent=b"[]", latency=1.0, attempts=1)
            given = values.get((ask.item.id, ask.repeat), {})
            store.add_scores([(ask.id, Score(name, f"{name}|{signature}", x)) for name, x in given.items()])
        store.commit()
    return folder


# ── votes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_people_who_agree_make_a_pair_and_others_are_counted(tmp_path: Path, capsys: Capture) -> None:
    names = runs(tmp_path, {"good": 3, "bad": 1}, root=tmp_path / "clips", scripts=6)
    file = votes(
        tmp_path / "people.jsonl",
        [
            *(vote(0, "A", rater) for rater in ("ann", "bob", "cem")),  # all agree
            *(vote(1, winner, rater) for winner, rater in (("A", "ann"), ("A", "bob"), ("B", "cem"))),  # two of three
            *(vote(2, winner, rater) for winner, rater in (("A", "ann"), ("tie", "bob"))),  # one of two, and a tie
            *(vote(3, winner, rater) for winner, rater in (("A", "ann"), ("B", "bob"))),  # even
            vote(4, "A", "ann"),  # alone
            *(vote(5, "B", rater) for rater in ("ann", "bob")),  # the other one
        ],
    )
    out = tmp_path / "pairs.jsonl"
    words = ["export", *map(str, names), "--format", "preferences", "--votes", str(file), "-o", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "3 pairs of 6 considered: 3 train of 3 scripts, 0 held-out" in printed
    assert "1 pairs dropped: a tie" in printed and "1 pairs dropped: fewer than 2 voters" in printed
    assert "1 pairs dropped: fewer than 0.67 of the voters agree" in printed
    pairs = {pair.group: pair for pair in read(out)}
    assert list(pairs) == ["synthesis/s0", "synthesis/s1", "synthesis/s5"]
    first, second, third = pairs.values()
    assert (first.agreement, first.margin, first.votes) == (1.0, 1.0, {"chosen": 3, "rejected": 0, "tie": 0})
    assert (round(second.agreement, 2), round(second.margin, 2)) == (0.67, 0.33)
    assert (first.chosen.run, third.chosen.run) == ("good", "bad")
    assert "worth 3" in first.chosen.text and "worth 1" in first.rejected.text
    assert {(v.name, v.kind, v.prefers) for v in second.voters} == {
        ("ann", "person", "chosen"), ("bob", "person", "chosen"), ("cem", "person", "rejected")
    }  # fmt: skip
    assert first.item == "toy/s0/target" and first.words == "words of 0" and first.condition == "enhance/audio"
    assert Path(first.clip).is_file()
    about = msgspec.json.decode((tmp_path / "pairs.about.json").read_bytes())
    assert about["dropped"]["a tie"] == 1 and about["considered"] == 6
    assert about["voters"] == [["person", "ann"], ["person", "bob"], ["person", "cem"]]
    assert about["scripts"]["train"] == sorted(pairs)
    before = out.read_bytes()
    assert main(words) == 0 and out.read_bytes() == before, "the same again"


def moody(asked: Asked) -> Verdict:
    """By worth; on scripts of an even number it takes whatever stands first."""
    (key, said), *_ = by_worth(asked).items()
    return {key: "A" if re.search(r"words of \d*[02468]\b", asked.text) else said}


def test_a_judge_counts_where_both_orders_agree(tmp_path: Path, capsys: Capture) -> None:
    names = runs(tmp_path, {"good": 3, "bad": 1}, scripts=4)
    with JudgeServer(verdict=moody) as server:
        assert main(["arena", *map(str, names), "--judge", server.spec(), "--pairs", "8"]) in (0, 3)
    found = find(names, Wanted(arena=tmp_path / "arena", voters=1))
    assert found.left["judges' verdicts that turned with the order"] == 4
    assert sorted({pair.group for pair in found.pairs}) == ["synthesis/s1", "synthesis/s3"]
    assert len(found.pairs) == 4 and all(pair.chosen.run == "good" for pair in found.pairs)
    assert [v.kind for v in found.pairs[0].voters] == ["judge"] and found.pairs[0].voters[0].by.startswith("pair")
    with pytest.raises(DataError, match=r"fewer than 2 voters"):
        main_find(names, Wanted(arena=tmp_path / "arena"), tmp_path / "none.jsonl")
    # a person who agrees makes it two voters; one who does not makes it a tie
    people = votes(tmp_path / "p.jsonl", [vote(1, "A", "ann"), vote(3, "B", "ann")])
    both = find(names, Wanted(arena=tmp_path / "arena", votes=(people,)))
    assert [(pair.group, pair.agreement) for pair in both.pairs] == [("synthesis/s1", 1.0)]
    assert both.dropped["a tie"] == 1
    alone = find(names, Wanted(arena=tmp_path / "arena", votes=(people,), kinds=("person",), voters=1))
    assert [(pair.group, pair.chosen.run) for pair in alone.pairs] == [
        ("synthesis/s1", "good"),
        ("synthesis/s3", "bad"),
    ]


def main_find(names: list[Path], wanted: Wanted, out: Path) -> None:
    from overtone.arena.preferences import write

    write(find(names, wanted), names, wanted, out)


def test_a_verdict_in_one_order_only_is_left_out(tmp_path: Path) -> None:
    names = runs(tmp_path, {"good": 3, "bad": 1}, scripts=2)
    other = {"kind": "judge", "rater": "j"}
    rows = [vote(0, "A", **other), vote(1, "A", **other), {**vote(1, "B", **other), "a": "bad", "b": "good"}]
    found = find(names, Wanted(votes=(votes(tmp_path / "v.jsonl", rows),), voters=1))
    assert found.left["judges' verdicts in one order only"] == 1
    assert [pair.group for pair in found.pairs] == ["synthesis/s1"]


def test_a_person_who_votes_twice_and_an_arena_that_is_none_are_told(tmp_path: Path) -> None:
    names = runs(tmp_path, {"good": 3, "bad": 1}, scripts=2)
    one = votes(tmp_path / "one.jsonl", [vote(0, "A", "ann")])
    two = votes(tmp_path / "two.jsonl", [vote(0, "B", "ann")])
    with pytest.raises(DataError, match=r"two\.jsonl, line 1: 'ann' has voted on this pair before"):
        find(names, Wanted(votes=(one, two)))
    with pytest.raises(StoreError, match="is not an arena"):
        find(names, Wanted(arena=tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────
TARGET = [f"toy/s{n}/target" for n in range(4)]


def test_repeats_of_one_run_are_compared_by_a_score_with_a_margin(tmp_path: Path) -> None:
    values = {
        (TARGET[0], 0): {"semsim": 0.2}, (TARGET[0], 1): {"semsim": 0.9}, (TARGET[0], 2): {"semsim": 0.5},
        (TARGET[1], 0): {"semsim": 0.50}, (TARGET[1], 1): {"semsim": 0.55}, (TARGET[1], 2): {"semsim": 0.52},
        (TARGET[2], 0): {"semsim": 0.5}, (TARGET[2], 1): {}, (TARGET[2], 2): {},
    }  # fmt: skip
    run = scored(tmp_path / "mine", values)
    found = find([run], Wanted(by=("semsim",), margins={"": 0.3}, voters=1))
    (pair,) = found.pairs
    assert (pair.item, pair.chosen.repeat, pair.rejected.repeat) == (TARGET[0], 1, 0)
    assert pair.voters[0].margin == pytest.approx(0.7) and pair.voters[0].kind == "score"
    assert found.dropped == {"a tie": 3, "more than 1 of one item: the clearest stay": 2}
    every = find([run], Wanted(by=("semsim",), margins={"": 0.3}, voters=1, per_item=9))
    assert {(p.chosen.repeat, p.rejected.repeat) for p in every.pairs} == {(1, 0), (1, 2), (2, 0)}


def test_less_is_better_where_the_score_says_so_and_scores_vote_together(tmp_path: Path) -> None:
    one = scored(
        tmp_path / "one", {(TARGET[0], 0): {"semsim": 0.9, "wer": 0.1}, (TARGET[1], 0): {"semsim": 0.9, "wer": 0.9}}
    )
    two = scored(
        tmp_path / "two", {(TARGET[0], 0): {"semsim": 0.1, "wer": 0.8}, (TARGET[1], 0): {"semsim": 0.1, "wer": 0.1}}
    )
    wanted = Wanted(by=("semsim", "wer"), margins={"semsim": 0.2, "wer": 0.3})
    found = find([one, two], wanted)
    (pair,) = found.pairs
    assert (pair.item, pair.chosen.run, pair.agreement) == (TARGET[0], "one", 1.0)
    assert {v.name: v.margin for v in pair.voters} == {"semsim": 0.8, "wer": 0.7}
    assert found.dropped["a tie"] == 1


def test_a_judges_scale_gives_its_own_margin_and_other_signatures_are_not_compared(tmp_path: Path) -> None:
    one = scored(tmp_path / "one", {(name, 0): {"fit@j": 4.0} for name in TARGET})
    two = scored(
        tmp_path / "two", {(name, 0): {"fit@j": x} for name, x in zip(TARGET, (3.0, 3.5, 5.0, 4.0), strict=True)}
    )
    with pytest.raises(UsageError, match=r"fit@j needs a minimum difference: --margin fit@j=X"):
        find([one, two], Wanted(by=("fit@j",)))
    told = {"fit": {"label": "Fit", "low": 1, "high": 5, "better": "higher", "rubric": "r"}}
    for run in (one, two):
        with Store.create(run) as store:
            store.set_meta({"rubrics": msgspec.json.encode(told).decode()})
    found = find([one, two], Wanted(by=("fit@j",), voters=1))
    assert found.notes == ("fit@j: the judge has not been validated for this",)
    assert [(p.item, p.chosen.run) for p in found.pairs] == [(TARGET[0], "one"), (TARGET[2], "two")]
    three = scored(tmp_path / "three", {(name, 0): {"fit@j": 1.0} for name in TARGET}, signature="v2")
    found = find([one, three], Wanted(by=("fit@j",), voters=1))
    assert not found.pairs and found.left["pairs whose fit@j was measured in two ways"] == 4


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted(), "name the voters"),
        (Wanted(by=("semsin",)), "did you mean 'semsim'"),
        (Wanted(by=("reply_words",)), "neither direction of reply_words is better"),
        (Wanted(by=("semsim",), margins={"wer": 1.0}), "no --by names that score"),
        (Wanted(by=("semsim",), margins={"": 0.0}), "above 0"),
        (Wanted(votes=(Path("x.csv"),)), "votes compare runs"),
        (Wanted(by=("semsim",), agreement=0.5), "above 0.5"),
        (Wanted(by=("semsim",), hold_out=1.0), "below 1"),
        (Wanted(by=("semsim",), voters=0), "at least 1"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(tmp_path: Path, wanted: Wanted, told: str) -> None:
    run = scored(tmp_path / "mine", {(TARGET[0], 0): {"semsim": 0.2, "reply_words": 3.0}})
    with pytest.raises(UsageError, match=told):
        find([run], wanted)


# ── what takes part, and how it is split ──────────────────────────────────────────────────────────────────────────────
def test_parts_to_measure_with_dialogues_and_other_inputs_take_no_part(tmp_path: Path) -> None:
    with Store.create(tmp_path / "r") as store:
        store.set_meta({"benchmark": "toy", "model": "m"})
        kept = item(1, "target", "sad", part="false-cue")
        store.plan([(item(0, "target", "sad"), ["enhance/audio", "enhance/transcript", "oracle/audio"])], 2)
        store.plan([(kept, ["enhance/audio"])], 2)
        store.commit()
        for ask in store.open_asks(0, 100):
            empty = ask.condition == "enhance/audio" and ask.repeat == 1 and not ask.item.part
            text = "" if empty else f"reply {ask.repeat}"
            store.add_reply(ask, 0, Reply(text), sent=b"[]", latency=1.0, attempts=1)
            store.add_scores([(ask.id, Score("semsim", "s", float(ask.repeat)))])
        store.commit()
    found = find([tmp_path / "r"], Wanted(by=("semsim",), margins={"": 0.5}, voters=1))
    assert not found.pairs
    assert found.left == {
        "replies to something else than the clip alone": 4,
        "replies in parts of the benchmark that are kept to measure with": 2,
        "replies without words, or refused": 1,
    }
    named = find([tmp_path / "r"], Wanted(by=("semsim",), margins={"": 0.5}, voters=1, condition="oracle/audio"))
    assert [pair.condition for pair in named.pairs] == ["oracle/audio"]


def spoken_by(number: int, source: str, words: str) -> Item:
    one = item(number, "target", "sad")
    return msgspec.structs.replace(
        one, id=f"toy/{source}/{number}", group=f"{source}/s{number}", source=source,
        case=f"{source}/s{number}/target", turns=(msgspec.structs.replace(one.turns[0], words=words),),
    )  # fmt: skip


def test_pairs_of_all_sources_name_theirs_and_one_source_can_be_chosen(tmp_path: Path, capsys: Capture) -> None:
    others = tuple(spoken_by(n, source, f"words of {n}") for n in range(3) for source in ("synthesis", "human"))
    both = [make_run(tmp_path / name, worth, scripts=0, others=others) for name, worth in (("good", 2), ("bad", 1))]
    cast = [
        vote(n, "A", rater) | {"case": f"{source}/s{n}/target"}
        for n in range(3)
        for source in ("synthesis", "human")
        for rater in ("ann", "bob")
    ]
    words = ["export", *map(str, both), "--format", "preferences"]
    words += ["--votes", str(votes(tmp_path / "v.jsonl", cast)), "-o", "p.jsonl"]
    assert main(words) == 0
    assert sorted(pair.source for pair in read(Path("p.jsonl"))) == ["human"] * 3 + ["synthesis"] * 3
    about = msgspec.json.decode(Path("p.about.json").read_bytes())
    assert about["sources"] == {"human": 3, "synthesis": 3}
    assert about["notes"] == ["over the clips of all sources together: human, synthesis"]
    assert main([*words, "--source", "human"]) == 0
    assert [pair.source for pair in read(Path("p.jsonl"))] == ["human"] * 3
    told = capsys.readouterr().out
    assert "6 left out: replies to clips of another source" in told
    assert "6 left out: votes on replies that take no part" in told
    assert "note: over the clips of human, 3 of 6 shared cases" in told
    with pytest.raises(UsageError, match="they have human, synthesis"):
        find(both, Wanted(votes=(tmp_path / "v.jsonl",), source="robot"))


def test_no_script_stands_on_both_sides(tmp_path: Path) -> None:
    """Whoever speaks it, and whatever it is called: the same words are the same script."""
    others = [spoken_by(n, source, f"Words, of {n}!") for n in range(60) for source in ("synthesis", "human")]
    others += [spoken_by(100 + n, "synthesis", f"words of {n}") for n in range(20)]
    names = [make_run(tmp_path / name, worth, scripts=0, others=tuple(others)) for name, worth in (("a", 1), ("b", 2))]
    for run, value in zip(names, (1.0, 2.0), strict=True):
        with Store.create(run) as store:
            store.add_scores([(ask.id, Score("semsim", "s", value)) for ask, _ in list(store.asks())])
    wanted: dict[str, Any] = {"by": ("semsim",), "margins": {"": 0.5}, "voters": 1}
    found = find(names, Wanted(**wanted, hold_out=0.3))
    assert len(found.pairs) == 140
    sides: dict[str, set[str]] = {}
    for pair in found.pairs:
        number = int(pair.words.strip("!").split()[-1])
        sides.setdefault(str(number), set()).add(pair.part)
    assert all(len(parts) == 1 for parts in sides.values())
    held = sum(parts == {"held-out"} for parts in sides.values())
    assert 8 <= held <= 28  # of 60, 18 expected
    again = find(names, Wanted(**wanted, hold_out=0.3))
    assert [p.part for p in again.pairs] == [p.part for p in found.pairs]
    assert [p.part for p in find(names, Wanted(**wanted, hold_out=0.3, seed=1)).pairs] != [p.part for p in found.pairs]
    words = ["export", *map(str, names), "--format", "preferences", "--by", "semsim", "--margin", "semsim=0.5",
             "--voters", "1", "--hold-out", "0.3", "-o", "p.jsonl"]  # fmt: skip
    assert main(words) == 0
    train, rest = read(Path("p.jsonl")), read(Path("p.held-out.jsonl"))
    assert {p.part for p in train} == {"train"} and {p.part for p in rest} == {"held-out"}
    assert len(train) + len(rest) == 140


def test_thoughts_and_speech_tokens_that_a_model_told_come_along(tmp_path: Path) -> None:
    with Store.create(tmp_path / "r") as store:
        store.set_meta({"benchmark": "toy", "model": "m"})
        store.plan([(item(0, "target", "sad"), ["enhance/audio"])], 2)
        store.commit()
        for ask in store.open_asks(0, 100):
            told = ("thought: <think>sad<think end>", "reply emotion: caring", "speech tokens: 3 1 4")
            notes = told if ask.repeat else (f"speech tokens: {'9' * 5000}",)  # no token has so many digits
            store.add_reply(ask, 0, Reply(f"r{ask.repeat}", notes=notes), sent=b"[]", latency=1.0, attempts=1)
            store.add_scores([(ask.id, Score("semsim", "s", float(ask.repeat)))])
        store.commit()
    (pair,) = find([tmp_path / "r"], Wanted(by=("semsim",), margins={"": 0.5}, voters=1)).pairs
    assert (pair.chosen.thought, pair.chosen.speech_tokens) == ("<think>sad<think end>", (3, 1, 4))
    assert (pair.chosen.emotion, pair.rejected.emotion) == ("caring", "")
    assert (pair.rejected.thought, pair.rejected.speech_tokens) == ("", ())


def test_the_command_refuses_what_it_cannot_write(tmp_path: Path, capsys: Capture) -> None:
    one, two = (str(scored(tmp_path / n, {(TARGET[0], 0): {"semsim": x}})) for n, x in (("one", 0.1), ("two", 0.9)))
    assert main(["export", one, two, "--format", "csv"]) == 2
    assert "takes one run" in capsys.readouterr().err
    pairs = ["export", one, two, "--format", "preferences", "--by", "semsim"]
    assert main([*pairs, "--margin", "much"]) == 2 and "write a number" in capsys.readouterr().err
    assert main([*pairs, "--margin", "0.1", "-o", "x.csv"]) == 2 and ".jsonl" in capsys.readouterr().err
    assert main([*pairs, "--margin", "0.1", "-o", "x.jsonl"]) == 2 and "lower --voters" in capsys.readouterr().err
    assert not Path("x.jsonl").exists()


def test_one_script_at_least_is_held_out_where_there_are_two(tmp_path: Path) -> None:
    one = scored(tmp_path / "one", {(name, 0): {"semsim": 0.1} for name in TARGET})
    two = scored(tmp_path / "two", {(name, 0): {"semsim": 0.9} for name in TARGET})
    wanted = Wanted(by=("semsim",), margins={"": 0.5}, voters=1, hold_out=1e-9)
    assert sorted(pair.part for pair in find([one, two], wanted).pairs) == ["held-out", "train", "train", "train"]
