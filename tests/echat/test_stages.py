"""The stages' tables, and that every arm of an ablation learns as long and from as many target tokens."""

from __future__ import annotations

import itertools

import pytest

from overtone.echat.learn.stages import Feed, Rates, Stage, StageRun, apportion, plan, rate_at, stages, warm_up
from overtone.echat.net import config
from overtone.echat.net.config import PARTS, Share
from overtone.errors import UsageError
from tests.conftest import REPOSITORY

FIRST = {
    "full": ["1"],
    "mini": ["1a", "1b"],
    "people": ["1a", "1b", "1c"],
    "short": ["1a", "1b"],
    "tiny": ["1"],
}  # understanding
ARMS = [(), ("understanding",), ("think",), ("understanding", "think")]


def preset(name: str) -> dict[str, Stage]:
    made = config.read(name)
    return stages(made.stage, name, made.shares)


def simple(**changes: object) -> Stage:
    given = {"title": "t", "steps": 100, "targets": 50, "lr": Rates(lm=1.0), "feeds": (Feed("t2t"),)}
    return Stage(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(FIRST))
@pytest.mark.parametrize("scale", [1.0, 0.13])
def test_every_arm_takes_the_same_steps_and_target_tokens(name: str, scale: float) -> None:
    spent = set()
    for arm in ARMS:
        runs = plan(preset(name), arm, scale)
        spent.add((sum(run.steps for run in runs), sum(run.targets for run in runs)))
    assert len(spent) == 1


@pytest.mark.parametrize("name", list(FIRST))
def test_so_many_steps_a_stage_are_the_same_in_every_arm_too(name: str) -> None:
    found = [plan(preset(name), arm, each=3) for arm in ARMS]
    assert [run.steps for run in found[0]] == [3] * len(preset(name))
    spent = {(sum(run.steps for run in runs), sum(run.targets for run in runs)) for runs in found}
    assert len(spent) == 1


@pytest.mark.parametrize("name", list(FIRST))
def test_without_understanding_there_is_no_first_stage_and_without_thinking_no_thought(name: str) -> None:
    whole = plan(preset(name))
    assert [run.name for run in whole] == [*FIRST[name], "2a", "2b", "3"]
    assert any(feed.think for feed in whole[-1].stage.feeds)
    assert [run.name for run in plan(preset(name), ["understanding"])] == ["2a", "2b", "3"]
    assert not any(feed.think for run in plan(preset(name), ["think"]) for feed in run.stage.feeds)


@pytest.mark.parametrize("name", list(FIRST))
def test_the_language_model_is_frozen_in_the_first_stage_alone(name: str) -> None:
    learning = {run.name: set(run.stage.lr.learning()) for run in plan(preset(name))}
    first = [learning.pop(stage) for stage in FIRST[name]]
    assert first[-1] == {"encoder", "adapter"} and set().union(*first) == {"encoder", "adapter"}
    assert all(parts == {"encoder", "adapter", "speech", "lm"} for parts in learning.values())


@pytest.mark.parametrize("name", list(FIRST))
def test_the_last_stage_thinks_in_about_half_of_its_dialogues(name: str) -> None:
    feeds = preset(name)["3"].feeds
    thinking = sum(feed.weight for feed in feeds if feed.think)
    plain = sum(feed.weight for feed in feeds if feed.style == "chat" and feed.task[0] == "s" and not feed.think)
    assert thinking == pytest.approx(plain, rel=0.1)
    assert {feed.task for feed in feeds} == {"s2t", "s2s", "t2s", "t2t"}


def test_thoughts_that_are_left_out_leave_feeds_and_weights_as_they_were() -> None:
    stage = simple(feeds=(Feed("s2s", 2.0, think=True), Feed("s2s", 1.5), Feed("t2t", 0.5)))
    [run] = plan({"3": stage}, ["think"])
    assert run.stage.feeds == (Feed("s2s", 2.0), Feed("s2s", 1.5), Feed("t2t", 0.5))


def test_stages_are_chosen_by_name_or_by_number() -> None:
    assert [run.name for run in plan(preset("tiny"), only="2")] == ["2a", "2b"]
    assert [run.name for run in plan(preset("tiny"), only="2b")] == ["2b"]
    with pytest.raises(UsageError, match="unknown stage '1'"):
        plan(preset("tiny"), ["understanding"], only="1")
    with pytest.raises(UsageError, match="did you mean 'think'"):
        plan(preset("tiny"), ["thinking"])


def test_shares_follow_their_weights_and_add_up() -> None:
    for whole, weights in itertools.product((0, 1, 7, 1000), ([1], [1, 1, 1], [5, 1, 9])):
        shares = apportion(whole, weights)
        assert sum(shares) == whole
        assert all(abs(s - whole * w / sum(weights)) <= 1 for s, w in zip(shares, weights, strict=True))


def test_the_rate_warms_up_and_then_follows_its_schedule() -> None:
    for schedule, last in (("constant", 1.0), ("root", (10 / 100) ** 0.5), ("cosine", 0.1)):
        run = StageRun("1", simple(warmup=10, schedule=schedule), 100, 5000)
        rates = [rate_at(step, run) for step in range(1, 101)]
        assert rates[:10] == sorted(rates[:10]) and rates[0] < 0.1
        assert max(rates) == pytest.approx(1.0, abs=0.1)
        assert rates[-1] == pytest.approx(last)


def test_a_warm_up_keeps_its_share_of_a_run() -> None:
    stage = simple(steps=400, warmup=40)
    steps = {scale: plan({"1": stage}, scale=scale)[0] for scale in (2.0, 1.0, 0.5, 0.1, 0.02)}
    assert {scale: warm_up(run) for scale, run in steps.items()} == {2.0: 80, 1.0: 40, 0.5: 20, 0.1: 5, 0.02: 4}
    rates = [rate_at(step, steps[0.5]) for step in range(1, 22)]
    assert rates == sorted(rates) and rates[19] < 1.0 == rates[20]
    assert warm_up(plan({"1": simple(warmup=0)}, scale=0.5)[0]) == 0
    assert warm_up(plan({"1": simple(warmup=3)}, scale=0.5)[0]) == 3


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"warm_up": 3}, "unknown key 'warm_up'.*did you mean 'warmup'"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"feeds": []}, "at least one"),
        ({"lr": {}}, "no part is trained"),
        ({"feeds": [{"task": "s2x"}]}, "s2x"),
        ({"listen": True, "ctc": 1.0}, "listen: only encoder and adapter can be trained"),
        ({"listen": True, "lr": {"adapter": 1.0}}, "can be trained; set ctc, cues or both"),
        ({"listen": True, "lr": {"adapter": 1.0}, "cues": 1.0}, "listen: every feed must have audio"),
    ],
)
def test_a_wrong_table_is_told_with_its_place(changes: dict[str, object], told: str) -> None:
    table = {"title": "t", "steps": 1, "targets": 1, "lr": {"lm": 1.0}, "feeds": [{"task": "t2t"}], **changes}
    with pytest.raises(UsageError, match=rf"mine\.toml: \[stage\.7\].*{told}"):
        stages({"7": table}, "mine.toml")


def test_the_page_on_training_tells_minis_schedule_as_it_is() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "train-echat.md").read_text()
    for name, stage in preset("mini").items():
        after = "cosine to a tenth" if stage.schedule == "cosine" else stage.schedule
        rates = ", ".join(written(stage.lr.rate_of(part)) for part in PARTS)
        assert f"| {name} | {stage.steps} | {stage.targets:,} | {stage.warmup} | {after} | {rates} |" in page


def written(rate: float) -> str:
    return f"{rate:.1e}".replace(".0e", "e").replace("e-0", "e-") if rate else "–"


def test_minis_understanding_goes_on_beside_everything_that_is_heard() -> None:
    for stage in preset("mini").values():
        hears = any(feed.task in ("s2t", "s2s") for feed in stage.feeds)
        assert any(feed.style == "understand" for feed in stage.feeds) == hears


SHARES = (
    Share("synthetic", 0.5),
    Share("acted", 0.3, ("ravdess", "crema*"), ("twin-ravdess",)),
    Share("read", 0.2, ("speechocean",), ("twin-speechocean",)),
)
TABLE = {
    "title": "t", "steps": 10, "targets": 50, "lr": {"adapter": 1.0, "lm": 0.5},
    "feeds": [{"task": "s2t", "style": "understand"}, {"task": "s2t"}, {"task": "t2s", "datasets": ["own"]}],
}  # fmt: skip


def test_shares_divide_every_understanding_list_and_no_other() -> None:
    synthetic, acted, read, chat, own = stages({"1": TABLE}, "x", SHARES)["1"].feeds
    assert [feed.share for feed in (synthetic, acted, read, chat, own)] == [0.5, 0.3, 0.2, 0, 0]
    assert [feed.name for feed in (synthetic, acted, chat, own)] == [
        "s2t-understand-synthetic", "s2t-understand-acted", "s2t", "t2s-own",
    ]  # fmt: skip
    assert acted.has("ravdess") and acted.has("crema-d") and not acted.has("twin-ravdess")
    assert synthetic.has("overtone-echat") and not any(map(synthetic.has, ("ravdess", "crema-d", "twin-speechocean")))
    assert chat.has("ravdess") and not own.has("ravdess")
    assert not any(feed.needed for feed in (synthetic, acted, read)) and chat.needed


def test_without_people_their_stand_ins_take_their_share_and_no_list_has_people() -> None:
    both = {n: plan(stages({"1": TABLE}, "x", SHARES), n) for n in ((), ("people",))}
    for whole, without in zip(both[()], both[("people",)], strict=True):
        assert (whole.steps, whole.targets) == (without.steps, without.targets)
        assert [feed.share for feed in whole.stage.feeds] == [feed.share for feed in without.stage.feeds]
        for feed in without.stage.feeds:
            assert not any(map(feed.has, ("ravdess", "crema-d", "speechocean")))
        assert [feed.has("twin-ravdess") for feed in without.stage.feeds] == [False, True, False, True, False]
    with pytest.raises(UsageError, match="no feed of this preset has `stand_in`"):
        plan(stages({"1": TABLE}, "x"), ["people"])


def test_without_tuning_the_language_model_is_frozen_and_everything_else_is_as_it_was() -> None:
    for whole, frozen in zip(plan(preset("people")), plan(preset("people"), ["tuning"]), strict=True):
        assert "lm" not in frozen.stage.lr.learning() and frozen.stage.lr.adapter == whole.stage.lr.adapter
        assert (frozen.steps, frozen.targets, frozen.stage.feeds) == (whole.steps, whole.targets, whole.stage.feeds)


def test_what_we_give_away_learns_from_open_speech_alone() -> None:
    for name in ("mini", "short"):
        closed = ("ravdess", "tess", "savee", "emodb", "nonverbal", "esc50")
        assert not any(name in share.datasets for share in config.read(name).shares for name in closed)
        assert any("speechocean*" in share.datasets for share in config.read(name).shares)


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"speed": 0.5}, "speed must be at least 0 and below 0.5"), ({"silence": 9}, "silence must be 0 to 5 s")],
)
def test_an_augmentation_that_cannot_be_is_told(changes: dict[str, float], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        stages({"1": TABLE | {"augment": changes}}, "mine.toml")
