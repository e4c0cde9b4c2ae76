"""Weights in less room, for a checkpoint that is given away: 8 bits each with a scale a row, or what training changed
in a model that everybody can install.

A change is kept as its strongest directions (low rank, 8 bits), the rows of a table that moved most, and, where that is
nearer for the same bytes, the sign of everything that is left. How much of each a matrix gets is decided over all
matrices at once: whatever takes most of the squared error away for a byte comes first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from overtone.errors import DataError, UsageError
from overtone.paths import shown

State = Mapping[str, Tensor]
DELTA, INT8 = "delta", "int8"
FORMS = ("", DELTA, INT8)
SIGNS = 2 / math.pi  # of normal numbers' squared error that their signs and one size take away
HEAD = 160  # bytes at most that a tensor's name, type and place take in its file
_TABLE = 16  # times as many rows as columns: a table, whose rows are looked up


class Change(Struct, frozen=True):
    """What training changed in a matrix, and how much of it each direction holds, the strongest first."""

    matrix: Any  # (m, n)
    gains: Any  # (k,) squares of singular values; k = min(m, n)
    basis: Any  # (k, k) directions of the shorter side, in columns

    @property
    def cost(self) -> int:
        """Bytes of a direction."""
        return int(sum(self.matrix.shape)) + 4

    def factors(self, rank: int) -> tuple[Tensor, Tensor]:
        """(m, rank), (rank, n): their product is nearest to the matrix."""
        some = self.basis[:, :rank]
        tall = self.matrix.shape[0] >= self.matrix.shape[1]
        return (self.matrix @ some, some.T) if tall else (some, some.T @ self.matrix)


class Share(Struct, frozen=True):
    """What a matrix gets."""

    rank: int
    rows: int = 0
    signs: bool = False


# ── 8 bits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def int8(state: State) -> dict[str, Tensor]:
    """Matrices as 8-bit numbers with a scale for each row; the rest as it is."""
    out: dict[str, Tensor] = {}
    for name, value in state.items():
        if value.dim() != 2:
            out[name] = value.detach().float()
            continue
        out[f"{name}:q"], out[f"{name}:step"] = _rounded(value.detach().float(), 1)
    return out


def _rounded(x: Tensor, along: int) -> tuple[Tensor, Tensor]:
    """8-bit numbers, and the step of each line along that dimension."""
    step = x.abs().amax(along).div(127).clamp(min=1e-30)
    return (x / step.unsqueeze(along)).round().to(torch.int8), step


# ── what was changed ────────────────────────────────────────────────────────────────────────────────────────────────


def delta(state: State, base: State, budget: int, rank: int = 0) -> dict[str, Tensor]:
    """What tells `state` from `base`, in at most `budget` bytes; `rank`: directions of a matrix at most (0: any)."""
    if set(state) != set(base):
        raise UsageError(f"not the model it was trained from: only one of them has {min(set(state) ^ set(base))}")
    out = {name: value.detach().float() for name, value in state.items() if value.dim() != 2}
    changes = {name: _change(state[name], base[name]) for name in state if name not in out}
    spent = sum(4 * value.numel() + HEAD for value in out.values())
    shares = allot(changes, budget - spent, rank)
    for name, share in shares.items():
        out |= {f"{name}:{what}": value for what, value in _pieces(changes[name], share).items()}
    return out


def _change(new: Tensor, old: Tensor) -> Change:
    if new.shape != old.shape:
        raise UsageError(f"not the model it was trained from: {tuple(new.shape)} instead of {tuple(old.shape)}")
    d = new.detach().float() - old.detach().float()
    small = d.double()
    values, basis = torch.linalg.eigh(small.T @ small if d.shape[0] >= d.shape[1] else small @ small.T)
    basis = basis.flip(1)
    sign = basis.gather(0, basis.abs().argmax(0, keepdim=True)).sign()  # else a direction may point either way
    return Change(d, values.flip(0).clamp(min=0), (basis * sign).float())


def allot(changes: Mapping[str, Change], budget: int, rank: int = 0) -> dict[str, Share]:
    """What each matrix gets of the bytes: the better of the two ways, with and without signs."""
    plans = [plan for signs in (False, True) if (plan := _plan(changes, budget, rank, signs))]
    if not plans:
        raise UsageError(f"{max(0, budget)} bytes are left for {len(changes)} matrices: too few; allow more")
    return min(plans, key=lambda plan: plan[0])[1]


def _plan(changes: Mapping[str, Change], budget: int, rank: int, signs: bool) -> tuple[float, dict[str, Share]] | None:
    """Squared error that is left, and the shares that leave it."""
    names = list(changes)
    shapes = [changes[name].matrix.shape for name in names]
    room = budget - len(names) * 8 * HEAD
    if signs:
        room -= sum(m * (-(-n // 8) + 4) for m, n in shapes)
    if room < 0:
        return None
    # Directions first; then rows of the tables compete with them, as they are after the directions chosen so far.
    gains = [changes[name].gains.numpy() for name in names]
    gains = [g[:rank] if rank else g for g in gains]
    costs = [changes[name].cost for name in names]
    taken = _greedy(gains, costs, room)
    rows: list[int] = [0] * len(names)
    tables = [i for i, (m, n) in enumerate(shapes) if m >= _TABLE * n]
    if tables:
        left = []
        for i in tables:
            a, b = changes[names[i]].factors(taken[i])
            left.append(
                (changes[names[i]].matrix - a @ b).square().sum(1).sort(descending=True).values.double().numpy()
            )
            gains[i] = gains[i][: taken[i]]
        both = _greedy([*gains, *left], [*costs, *(int(shapes[i][1]) + 8 for i in tables)], room)
        taken = both[: len(names)]
        for i, count in zip(tables, both[len(names) :], strict=True):
            rows[i] = count
    error = 0.0
    for i, name in enumerate(names):
        rest = changes[name].gains.sum().item() - gains[i][: taken[i]].sum()
        if rows[i]:
            rest -= left[tables.index(i)][: rows[i]].sum()
        error += max(rest, 0.0) * (1 - SIGNS if signs else 1)
    return error, {name: Share(taken[i], rows[i], signs) for i, name in enumerate(names)}


def _greedy(gains: Sequence[Any], costs: Sequence[int], room: int) -> list[int]:
    """How many of each list (largest first) to take so that gain a byte is best."""
    owner = np.repeat(np.arange(len(gains)), [len(g) for g in gains])
    price = np.array(costs)[owner]
    worth = np.concatenate([np.asarray(g, np.float64) for g in gains]) / price
    order = np.argsort(-worth, kind="stable")
    order = order[worth[order] > 0]
    bought = order[np.cumsum(price[order]) <= room]
    return [int(n) for n in np.bincount(owner[bought], minlength=len(gains))]


def _pieces(change: Change, share: Share) -> dict[str, Tensor]:
    """A matrix's change as it is kept. Each piece holds what those before it leave."""
    out: dict[str, Tensor] = {}
    rest = change.matrix
    if share.rank:
        left, right = change.factors(share.rank)
        (out["left"], a), (out["right"], b) = _rounded(left, 0), _rounded(right, 1)
        out["size"] = a * b
        rest = rest - _low_rank(out)
    if share.rows:
        at = rest.square().sum(1).topk(share.rows).indices.sort().values
        out["rows"] = at.int()
        out["moved"], out["step"] = _rounded(rest[at], 1)
        rest = rest.clone()
        rest[at] = 0
    if share.signs:
        out["mean"] = rest.abs().mean(1)
        out["signs"] = torch.from_numpy(np.packbits((rest > 0).numpy(), axis=1))  # (m, n/8)
    return out


def _low_rank(pieces: State) -> Tensor:
    return (pieces["left"].float() * pieces["size"]) @ pieces["right"].float()


# ── and back ────────────────────────────────────────────────────────────────────────────────────────────────────────


def whole(form: str, tensors: State, base: State, where: str) -> dict[str, Tensor]:
    """The weights again. `base` is needed for a delta. Raises DataError for what is no such file."""
    if form not in FORMS:
        raise DataError(f"{shown(where)}: kept as {shown(form)!r}, which this version of overtone cannot read")
    grouped: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, _, what = key.partition(":")
        grouped.setdefault(name, {})[what] = value
    out = {}
    try:
        for name in {**base, **grouped} if form == DELTA else grouped:
            pieces = grouped.get(name, {})
            if "" in pieces:
                out[name] = pieces[""]
            elif form == INT8:
                out[name] = pieces["q"].float() * pieces["step"][:, None]
            else:
                out[name] = _changed(base[name], pieces)
    except (KeyError, IndexError, RuntimeError, ValueError) as error:
        raise DataError(f"{shown(where)}: does not fit the model it is a change of ({error})") from None
    return out


def _changed(old: Tensor, pieces: State) -> Tensor:
    value = old.detach().float().clone()
    if "left" in pieces:
        value += _low_rank(pieces)
    signed = None
    if "signs" in pieces:
        bits = np.unpackbits(pieces["signs"].numpy(), axis=1, count=value.shape[1])
        signed = (torch.from_numpy(bits).float() * 2 - 1) * pieces["mean"][:, None]
    if "rows" in pieces:
        at = pieces["rows"].long()
        value[at] += pieces["moved"].float() * pieces["step"][:, None]
        if signed is not None:
            signed[at] = 0
    return value if signed is None else value + signed


def fingerprint(state: State) -> str:
    """A SHA-256 over names and weights in half precision, by which a delta knows what it was taken from."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(f"{name} {tuple(state[name].shape)}\n".encode())
        digest.update(state[name].detach().half().cpu().contiguous().numpy().data)
    return digest.hexdigest()
