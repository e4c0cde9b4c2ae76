"""Rows end to end are read as padded ones are, and kernels that were recorded compute what the others do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.echat.learn import fast
from overtone.echat.learn.graphs import Reader, Rows, next_size
from tests.echat import small
from tests.echat.test_fast import ROWS, learnt, model


@given(st.lists(st.integers(1, 700), min_size=1, max_size=80), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_position_lies_in_one_row_and_at_its_place_in_it(lengths: list[int], more: int) -> None:
    width = max(lengths) + more
    rows = Rows(lengths, width)
    assert rows.total == sum(lengths) <= rows.size == next_size(rows.total)
    assert rows.edges[0] == 0 and rows.edges[-1] == rows.size and len(rows.edges) == rows.count + 1
    sizes = np.diff(rows.edges)
    assert sizes[: len(lengths)].tolist() == lengths and (sizes >= 0).all() and sizes.max() <= rows.longest
    padded = [(row, at) for row, n in enumerate(lengths) for at in range(n)]
    assert [divmod(place, width) for place in rows.places.tolist()] == padded
    assert rows.positions[: rows.total].tolist() == [at for _, at in padded]
    assert (rows.positions >= 0).all() and rows.positions.max() < rows.longest


def test_sizes_are_few_and_waste_little() -> None:
    sizes = [next_size(n) for n in range(1, 40_000)]
    assert sizes == sorted(sizes) and len(set(sizes)) < 30
    assert all(n <= size < max(1025, 1.25 * n + 1) for n, size in zip(range(1, 40_000), sizes, strict=True))


class Counted(Reader):
    """A reader that counts what it is asked for."""

    times = 0

    def __call__(self, x: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
        self.times += 1
        return super().__call__(x, lengths)


@pytest.mark.parametrize("kind", ["small", "moonshine"])
def test_rows_end_to_end_teach_the_same_as_padded_ones(kind: str) -> None:
    plain, made = model(kind), model(kind)
    made.reader = Counted(made.lm.base_model, 1024, record=False)
    for rows in ROWS:
        (a, first), (b, second) = learnt(plain, rows), learnt(made, rows)
        assert abs(a - b) < 1e-5
        assert all(torch.allclose(x, y, atol=1e-5) for x, y in zip(first, second, strict=True))
    assert made.reader.times == len(ROWS)
    assert made.lm.config._attn_implementation == "sdpa"


def test_what_is_hidden_within_rows_and_what_is_only_looked_at_is_read_padded() -> None:
    made = model()
    made.reader = Counted(made.lm.base_model, 1024, record=False)
    learnt(made, ROWS[0], holes=True)
    made.eval()
    learnt(made, ROWS[0])
    assert made.reader.times == 0


def test_recordings_are_kept_while_weights_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "Reader", lambda lm, most, record: Reader(lm, most, record=False))
    made = model()
    fast.record(made, False, 2000)
    assert made.reader is None and made.block == made.encoder.block == 1
    fast.record(made, True, 2000)
    first = made.reader
    fast.record(made, True, 1500)
    assert made.reader is first and (made.block, made.encoder.block) == (8, 32)
    fast.record(made, True, 4000)
    assert made.reader is not first  # its memory would not do
    first = made.reader
    made.lm.requires_grad_(False)
    fast.record(made, True, 2000)
    second = made.reader
    assert second is not first
    exact = fast.freeze(made.lm, narrow=True)
    fast.record(made, True, 2000)
    assert made.reader not in (first, second)
    fast.thaw(made.lm, exact)
    fast.record(made, False, 2000)
    assert made.reader is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("frozen", [False, True])
def test_recorded_kernels_teach_what_others_do(frozen: bool) -> None:
    """Gradients of several batches are added up, in and out of the order in which their sizes were recorded."""
    kinds = {"padded": None, "rows": False, "recorded": True}
    found = {}
    for name, record in kinds.items():
        made = model("moonshine").cuda()
        made.lm.requires_grad_(not frozen)
        exact = fast.freeze(made.lm, narrow=True) if frozen else []
        made.reader = None if record is None else Reader(made.lm.base_model, 4096, record=record)
        made.ctc = 0.3
        losses = []
        for rows in (ROWS[0] * 30, ROWS[1] * 40, ROWS[2] * 10, ROWS[0] * 30):
            batch = small.batch(made.config, rows)
            for field in fields(batch):
                setattr(batch, field.name, getattr(batch, field.name).cuda())
            batch.holes = False  # type: ignore[attr-defined]
            with torch.autocast("cuda", torch.bfloat16):
                loss = made(batch).loss
            loss.backward()
            losses.append(loss.item())
        found[name] = losses, torch.cat([p.grad.flatten() for p in made.parameters() if p.grad is not None])
        if record:
            assert len(made.reader.recordings) == 4  # and the largest, which came first
        assert len(exact) == (len(list(made.lm.parameters())) if frozen else 0)
    losses, slopes = found["padded"]
    for name in ("rows", "recorded"):
        assert found[name][0] == pytest.approx(losses, abs=0.02), name
        assert torch.nn.functional.cosine_similarity(found[name][1], slopes, dim=0) > 0.995, name
        assert float(found[name][1].norm() / slopes.norm()) == pytest.approx(1, abs=0.02), name
    assert torch.allclose(found["rows"][1], found["recorded"][1], rtol=0.1, atol=2e-3 * float(slopes.abs().max()))
