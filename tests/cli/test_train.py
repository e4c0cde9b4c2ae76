"""`overtone train`: what is refused before anything is read, and what a plain command asks for."""

from __future__ import annotations

import pytest

from overtone.cli import main

OF_ECHAT = {
    "--preset": "mini", "--stage": "1", "--from": "x", "--ablate": "think", "--scale": "1", "--encoder": "x",
    "--lm": "x", "--look-every": "0", "--samples": "4", "--workers": "0", "--no-graphs": "",
}  # fmt: skip
OF_TEXT = {
    "--model": "smollm2", "--target": "tokens", "--held-out": "x", "--lr": "0.0001", "--batch": "16",
    "--longest": "1024",
}  # fmt: skip
REFUSED = [("text", "echat", flag, value) for flag, value in OF_ECHAT.items()]
REFUSED += [("echat", "text", flag, value) for flag, value in OF_TEXT.items()]


@pytest.mark.parametrize(("what", "whose", "flag", "value"), REFUSED)
def test_a_flag_of_the_other_kind_is_refused_and_not_ignored(what, whose, flag, value, tmp_path, capsys) -> None:
    assert main(["train", what, "--data", "x", "--out", str(tmp_path / "out"), flag, *filter(None, [value])]) == 2
    assert capsys.readouterr().err == f"overtone: {flag} applies to {whose} only; remove it for {what!r}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["echat", "--seed", "-1"], "--seed -1: give a whole number from 0 to"),
        (["text", "--seed", str(2**63)], "give a whole number from 0 to 9223372036854775807"),
        (["text", "--batch", "0"], "--batch 0: give 1 or more"),
        (["text", "--longest", "0"], "--longest 0: give 1 or more"),
        (["text", "--lr", "0"], "--lr 0: give a number above 0"),
        (["text", "--lr", "-1"], "--lr -1: give a number above 0"),
        (["text", "--lr", "nan"], "--lr nan: give a number above 0"),
        (["text", "--lr", "inf"], "--lr inf"),
        (["echat", "--minutes", "nan"], "--minutes nan: give a number above 0"),
        (["echat", "--save-minutes", "nan"], "--save-minutes nan: give 0 or more"),
        (["echat", "--samples", "-1"], "--samples -1: give 0 or more"),
        (["echat", "--look-every", "-3"], "--look-every -3: give 0 or more"),
        (["echat", "--workers", "99999"], "--workers 99999: give a number from 0 to"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_at_once(words, told, tmp_path, capsys) -> None:
    assert main(["train", *words, "--data", "x", "--out", str(tmp_path / "out")]) == 2
    assert told in capsys.readouterr().err
