"""A table of prices that cannot be used is a clear error before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import UsageError
from overtone.runs.prices import price_of
from overtone.spec import parse_spec


@pytest.mark.parametrize(
    "text",
    [
        b"openai = 5",
        b"[openai]\ngpt = 5",
        b"[openai.gpt]\ntext_in = 'x'",
        b"[openai.gpt]\ntext_in = nan",
        b"[openai.gpt]\ntext_in = -1.0",
        b"[openai.gpt]\nunknown = 1.0",
        b"\xff\xfe",
        b"not toml",
    ],
)
def test_a_wrong_table_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    (tmp_path / "prices.toml").write_bytes(text)
    monkeypatch.setenv("OVERTONE_PRICES", str(tmp_path / "prices.toml"))
    with pytest.raises(UsageError):
        price_of(parse_spec("openai:gpt-4o"))
