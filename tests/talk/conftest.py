"""A browser for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.studio.browser import rater


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One Chromium for all tests of a file."""
    with rater.browser() as browser:
        yield browser
