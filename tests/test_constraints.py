"""constraints.txt pins everything that the core installs, with hashes, at versions that the packages accept."""

from __future__ import annotations

import re

import pytest
from packaging.tags import Tag

from scripts.lock_core import FILE, core, fits


def pinned() -> dict[str, tuple[str, list[str]]]:
    """Name → version and hashes."""
    found = {}
    for entry in re.split(r"\n(?=[a-z])", FILE.read_text("utf-8")):
        if match := re.match(r"([a-z0-9-]+)==(\S+) \\\n", entry):
            found[match[1]] = (match[2], re.findall(r"--hash=sha256:([0-9a-f]{64})(?: \\)?\n", entry + "\n"))
    return found


def test_every_package_of_the_core_is_pinned_and_no_other() -> None:
    assert set(pinned()) == set(core())


@pytest.mark.parametrize("name", sorted(core()))
def test_a_pinned_version_is_one_that_every_package_accepts(name: str) -> None:
    version, hashes = pinned()[name]
    for requirement in core()[name]:
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} refuses {version}"
    assert hashes and len(set(hashes)) == len(hashes)


def test_every_line_is_a_pin_or_a_hash() -> None:
    lines = FILE.read_text("utf-8").splitlines()
    odd = [
        line
        for line in lines
        if not re.fullmatch(r"#.*|[a-z0-9-]+==[\w.]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line)
    ]
    assert not odd
    assert sum(len(hashes) for _, hashes in pinned().values()) == sum("--hash" in line for line in lines)


def test_only_wheels_for_supported_systems_count() -> None:
    for text in (
        "py3-none-any",
        "cp311-cp311-manylinux_2_28_x86_64",
        "cp39-abi3-win_amd64",
        "cp313-cp313-macosx_11_0_arm64",
    ):
        assert fits(Tag(*text.split("-", 2)))
    for text in (
        "cp310-cp310-manylinux_2_28_x86_64",
        "cp314-cp314t-win_amd64",
        "pp311-pypy311_pp73-win_amd64",
        "cp315-abi3-any",
    ):
        assert not fits(Tag(*text.split("-", 2)))
