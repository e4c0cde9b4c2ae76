"""A foreign path stays in its folder and cannot write to a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import DataError
from overtone.paths import inside, shown


def test_a_path_below_the_folder_is_resolved_whether_or_not_it_exists(tmp_path: Path) -> None:
    assert inside(tmp_path, "audio/a b.wav") == tmp_path.resolve() / "audio" / "a b.wav"
    assert inside(tmp_path, "audio/../b.wav") == tmp_path.resolve() / "b.wav"


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a\0b", "C:\\x", "C:/x", "\\\\host\\x"]
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(DataError):
        inside(tmp_path, path)


def test_a_sibling_with_the_same_beginning_is_outside(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data-secret").mkdir()
    with pytest.raises(DataError, match="leaves its folder"):
        inside(tmp_path / "data", "../data-secret/x")


def test_a_link_is_followed_before_it_is_judged(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.wav").write_bytes(b"x")
    (root / "link.wav").symlink_to(tmp_path / "outside.wav")
    (root / "loop").symlink_to("loop")
    with pytest.raises(DataError):
        inside(root, "link.wav")
    (root / "real.wav").write_bytes(b"x")
    (root / "near.wav").symlink_to("real.wav")
    assert inside(root, "near.wav") == (root / "real.wav").resolve()


def test_control_and_direction_characters_are_escaped() -> None:
    assert shown("plain name é.wav") == "plain name é.wav"
    assert shown("a\x1b[31m\n\u202eb\udcff") == "a\\x1b[31m\\n\\u202eb\\udcff"
