"""These tests borrow torch from the workers' environment, as those of echat do."""

from __future__ import annotations

from tests.echat import conftest as _borrowed
from tests.echat.conftest import environment

__all__ = ["_borrowed", "environment"]
