"""Thresholds and margins as they are typed, and on the scale of a measure."""

from __future__ import annotations

import pytest

from overtone.errors import UsageError
from overtone.results.operations import TOTALS
from overtone.results.requirements import (
    Margin,
    Requirement,
    amount,
    limit,
    margin_on,
    parse_margin,
    parse_most,
    parse_requirement,
    parse_share,
    threshold_on,
)
from overtone.scores import ScoreInfo, built_in, rating

SHARE, WER, RATING = built_in()["accuracy"], built_in()["wer"], rating("C4")
SECONDS, DOLLARS = TOTALS["latency_p95"].about, TOTALS["cost_usd"].about
UNKNOWN = ScoreInfo("a stranger's", "mos", "higher", None, None)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("voice_accuracy >= 0.60", Requirement("voice_accuracy", ">=", 0.6)),
        ("voice_accuracy >= 60%", Requirement("voice_accuracy", ">=", 60, "%")),
        ("wer<.1", Requirement("wer", "<", 0.1)),
        (" c4@gpt-4o.mini > 3 ", Requirement("c4@gpt-4o.mini", ">", 3)),
        ("style_margin <= -1e-2", Requirement("style_margin", "<=", -0.01)),
        ("latency_p95 <= 800 ms", Requirement("latency_p95", "<=", 800, "ms")),
    ],
)
def test_a_requirement_is_a_name_a_sign_and_a_number_with_its_unit(text: str, wanted: Requirement) -> None:
    assert parse_requirement(text) == wanted
    assert parse_requirement(str(wanted)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "wer",
        "wer 0.1",
        "wer = 0.1",
        "wer == 1",
        "wer >= x",
        "0.1 < wer",
        "wer < 1 c4 > 2",
        "wer < 1e999",
        "wer < %",
    ],
)
def test_an_invalid_requirement_is_an_error_that_shows_a_valid_one(text: str) -> None:
    with pytest.raises(UsageError):
        parse_requirement(text)


@pytest.mark.parametrize("text", ["c4", "c4:", "c4:-1", "c4:0", "c4:0%", "c4:x", ":0.1", "c4:0.1:2"])
def test_an_invalid_margin_is_an_error_that_shows_a_valid_one(text: str) -> None:
    assert parse_margin("c4@j:0.1") == Margin("c4@j", 0.1)
    assert parse_margin("voice_accuracy:5%") == Margin("voice_accuracy", 5, "%")
    with pytest.raises(UsageError, match=r"like c4:0\.1"):
        parse_margin(text)


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.5", 0.5), ("100 %", 1.0), ("0", 0.0), ("57%", 0.57)])
def test_a_share_is_a_percentage_or_a_part_of_one(text: str, value: float) -> None:
    assert parse_share(text, "--flag") == value


@pytest.mark.parametrize("text", ["5", "101%", "-1%", "x", "", "1s"])
def test_a_share_outside_its_scale_is_refused_with_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--flag takes a share"):
        parse_share(text, "--flag")


def test_a_limit_that_nothing_could_exceed_is_refused() -> None:
    assert parse_most("99%", "--flag") == 0.99
    with pytest.raises(UsageError, match="the check could never fail; for 1 percent write 1%"):
        parse_most("1", "--flag")
    with pytest.raises(UsageError, match=r"the check could never fail$"):
        parse_most("100%", "--flag")


@pytest.mark.parametrize(
    ("about", "typed", "value"),
    [
        (SHARE, "x >= 57%", 0.57),
        (SHARE, "x >= 0.57", 0.57),
        (SHARE, "x >= 1", 1.0),
        (WER, "x <= 150%", 1.5),
        (RATING, "x >= 3.4", 3.4),
        (SECONDS, "x <= 800ms", 0.8),
        (SECONDS, "x <= 2s", 2.0),
        (SECONDS, "x <= 2", 2.0),
        (DOLLARS, "x <= 12.5", 12.5),
        (UNKNOWN, "x >= 70", 70.0),
        (built_in()["style_margin"], "x > -0.5", -0.5),
    ],
)
def test_a_threshold_is_read_in_the_measure_s_own_unit(about: ScoreInfo, typed: str, value: float) -> None:
    assert threshold_on(parse_requirement(typed), about) == value


@pytest.mark.parametrize(
    ("about", "typed", "hint"),
    [
        (SHARE, "x >= 60", "for 60 percent write 60%"),
        (SHARE, "x >= 0", "every value of x .* meets this, so the check could never fail$"),
        (SHARE, "x <= 1", "so the check could never fail; for 1 percent write 1%"),
        (SHARE, "x <= 100%", "so the check could never fail$"),
        (WER, "x >= 0%", "so the check could never fail$"),
        (RATING, "x >= 1", "so the check could never fail$"),
        (SECONDS, "x >= 0", "so the check could never fail$"),
        (SHARE, "x >= 101%", r"101 % is outside the scale of x \(0 % to 100 %\)"),
        (SHARE, "x >= -0.1", "outside"),
        (WER, "x <= 5", "for 5 percent write 5%"),
        (RATING, "x >= 6", r"6 is outside the scale of x \(1 to 5\)"),
        (RATING, "x >= 60%", r"not measured in percent; write a number \(1 to 5\)"),
        (RATING, "x >= 3s", "not measured in seconds"),
        (SECONDS, "x <= -1", "outside"),
        (
            SECONDS,
            "x <= 5%",
            r"not measured in percent; write a number of seconds \(2 or 2s\) or milliseconds \(800ms\)",
        ),
        (built_in()["utmos"], "x > 9", "outside"),
        (built_in()["reply_words"], "x > -1", "outside"),
    ],
)
def test_a_threshold_outside_the_scale_is_refused(about: ScoreInfo, typed: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        threshold_on(parse_requirement(typed), about)


@pytest.mark.parametrize(
    ("about", "typed", "value"),
    [
        (SHARE, "x:5%", 0.05),
        (SHARE, "x:0.05", 0.05),
        (RATING, "x:0.1", 0.1),
        (RATING, "x:2", 2.0),
        (UNKNOWN, "x:9", 9.0),
    ],
)
def test_a_margin_is_read_in_the_measure_s_own_unit(about: ScoreInfo, typed: str, value: float) -> None:
    assert margin_on(parse_margin(typed), about) == value


@pytest.mark.parametrize(
    ("about", "typed", "hint"),
    [
        (SHARE, "x:5", "for 5 percent write 5%"),
        (SHARE, "x:1", "covers all of x .* for 1 percent write 1%"),
        (SHARE, "x:100%", "the check could never fail"),
        (WER, "x:5", "write 5%"),
        (WER, "x:100%", "the check could never fail"),
        (RATING, "x:4", r"covers all of x \(1 to 5\)"),
        (RATING, "x:5%", "not measured in percent"),
    ],
)
def test_a_margin_that_nothing_could_exceed_is_refused(about: ScoreInfo, typed: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        margin_on(parse_margin(typed), about)


def test_numbers_are_shown_in_the_unit_of_the_tables() -> None:
    assert [amount(x, about) for x, about in ((0.6123, SHARE), (3.456, RATING), (1.2, SECONDS))] == [
        "61.2 %",
        "3.46",
        "1.20 s",
    ]
    assert [amount(x, DOLLARS) for x in (12.345, 0.03125)] == ["$12.35", "$0.0312"]
    assert amount(-0.25, built_in()["style_margin"]) == "−0.250"
    assert [limit(x, about) for x, about in ((0.6, SHARE), (0.625, SHARE), (3.4, RATING), (0.8, SECONDS))] == [
        "60 %",
        "62.5 %",
        "3.4",
        "0.8 s",
    ]
