"""Configurations: presets are whole, and what is wrong in a file is told with its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.echat.net import config
from overtone.errors import UsageError

FILE = """
[model.encoder]
kind = "small"
dim = 16
layers = 1
heads = 2
ffn = 32
[model.adapter]
dim = 16
ffn = 32
[model.lm]
source = "random"
tokenizer = "bytes"
hidden = 32
layers = 2
heads = 2
kv_heads = 1
ffn = 64
vocab = 260
[model.speech]
codes = 20
"""


def test_there_are_six_presets_and_a_file_of_ones_own_works_like_them(tmp_path: Path) -> None:
    assert config.names() == ["full", "mini", "mini-lora", "people", "short", "tiny"]
    for name in config.names():
        assert config.read(name).name == name
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    assert config.read(str(path)).model.adapter.layers == 4
    assert config.read(str(path)).name == "mine"


def test_a_file_may_be_like_a_preset_but_for_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('like = "mini"\n[model.adapter]\nffn = 64\n[stage.2a]\nsteps = 7\n')
    mine, mini = config.read(str(path)), config.read("mini")
    assert (mine.name, mine.model.adapter.ffn, mine.stage["2a"]["steps"]) == ("mine", 64, 7)
    assert mine.model.lm == mini.model.lm and mine.model.adapter.dim == mini.model.adapter.dim
    assert mine.stage["2a"]["feeds"] == mini.stage["2a"]["feeds"] and mine.stage["3"] == mini.stage["3"]
    path.write_text('like = "minni"\n')
    with pytest.raises(UsageError, match="like = 'minni' is not a preset; did you mean 'mini'"):
        config.read(str(path))
    path.write_text("like = 3\n")
    with pytest.raises(UsageError, match="like = '3' is not a preset"):
        config.read(str(path))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("ffn = 32\n[model.lm]", "fnn = 32\n[model.lm]", r"unknown key model\.adapter\.'fnn'; did you mean 'ffn'"),
        ("[model.speech]", "[model.speach]", r"unknown key model\.'speach'; did you mean 'speech'"),
        ("codes = 20", "", r"codes.*model\.speech"),
        ("codes = 20", 'codes = "many"', r"model\.speech\.codes"),
        ("codes = 20", "codes = 0", r"model\.speech\.codes must be at least 1"),
        ('kind = "small"', 'kind = "large"', r"model\.encoder\.kind"),
        ("dim = 16\nffn = 32\n[model.lm]", "dim = 16\nffn = 32\nvoice = 4\n[model.lm]", "voice.*taps; give both"),
        ("[model.speech]", '[[shares]]\nname = "x"\nshare = 2.0\n[model.speech]', "shares: x must be above 0"),
        ("heads = 2\nkv_heads = 1", "heads = 3\nkv_heads = 1", r"model\.lm: 32 is not divisible by 3 heads"),
        ("dim = 16\nffn = 32\n[model.lm]", "dim = 16\nffn = 32\ndropout = 1.5\n[model.lm]", "dropout must be"),
        (
            "layers = 1\nheads = 2",
            "layers = 1\ntaps = [1]\nheads = 2",
            r"model\.encoder\.taps: 1 is outside 0 to 0",
        ),
        ("[model.encoder]", "[model.encoder]\nlongest = -1.0", r"model\.encoder\.longest must be a number above 0"),
        ("[model.encoder]", "[model.encoder]\nlongest = nan", r"model\.encoder\.longest must be a number above 0"),
        ("[model.encoder]", "[model.encoder", "not a TOML file"),
    ],
)
def test_a_mistake_is_told_with_its_key(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "mine.toml"
    assert old in FILE
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(UsageError, match=told) as caught:
        config.read(str(path))
    assert "mine.toml" in str(caught.value)


def test_an_unknown_preset_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'mini'"):
        config.read("mimi")


def test_a_clip_takes_about_ten_positions_a_second() -> None:
    full, mini = config.read("full").model, config.read("mini").model
    assert config.positions(full, 10 * 16_000) == 125  # 12.5 a second: one each 80 ms
    assert config.positions(mini, 10 * 16_000) == 104
    assert config.positions(mini, 1) == config.positions(mini, config.SHORTEST) == 2
