"""Prices of replies: from a dated table, or from the user's own. Models that run on this machine are free."""

from __future__ import annotations

import os
import tomllib
from importlib import resources
from pathlib import Path

from msgspec import Struct

from overtone.errors import UsageError
from overtone.schema import Usage
from overtone.spec import Spec

FREE_KINDS = ("cascade", "command", "replay", "worker")


class Price(Struct, frozen=True):
    """US dollars per million tokens."""

    text_in: float = 0.0
    text_out: float = 0.0
    audio_in: float = 0.0
    audio_out: float = 0.0
    date: str = ""

    def of(self, usage: Usage) -> float:
        """Return the dollars for one reply. Audio tokens are part of the input and output totals, as in endpoints."""
        text_in = max(0, usage.input_tokens - usage.input_audio_tokens)
        text_out = max(0, usage.output_tokens - usage.output_audio_tokens)
        return (
            text_in * self.text_in
            + text_out * self.text_out
            + usage.input_audio_tokens * self.audio_in
            + usage.output_audio_tokens * self.audio_out
        ) / 1e6


def price_of(spec: Spec) -> Price | None:
    """Return the price of a model, or None if it is unknown, as for a self-hosted server."""
    if spec.kind in FREE_KINDS:
        return Price(date="free")
    own = os.environ.get("OVERTONE_PRICES")
    try:
        text = Path(own).read_text() if own else resources.files("overtone.runs").joinpath("prices.toml").read_text()
        table = tomllib.loads(text)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"OVERTONE_PRICES={own}: {error}") from None
    if spec.options.get("base_url") and not own:
        return None
    named = table.get(spec.kind, {})
    if not isinstance(named, dict):
        raise UsageError(f"OVERTONE_PRICES={own}: {spec.kind} must be a table with one table of prices for each model")
    matches = [name for name in named if spec.name.startswith(name)]
    if not matches:
        return None
    try:
        prices = {k: float(v) for k, v in named[max(matches, key=len)].items()}
        if not all(0 <= price < float("inf") for price in prices.values()):
            raise ValueError("a price must be a number, 0 or more")
        return Price(**prices, date=str(table.get("date", "")))
    except (AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"the price of {spec.kind}:{spec.name} is not readable: {error}") from None
