"""What a released archive loses against the checkpoint it was made from: weights, loss on held-out records, answers."""

from __future__ import annotations

import difflib
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

from overtone.echat.data.containers import Pack
from overtone.echat.exam import evaluate
from overtone.echat.exam.asking import Machine
from overtone.echat.exam.evaluate import Wanted, chosen, chosen_modes
from overtone.echat.learn.batches import Clips
from overtone.echat.learn.stages import StageRun, stages
from overtone.echat.learn.stream import Corpus, Stream
from overtone.echat.net import checkpoint, compact
from overtone.echat.net.backbone import doubles, open_lm
from overtone.echat.net.config import Config
from overtone.echat.net.model import EChat, fill
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import UsageError

HELD_OUT = 32  # records of each feed whose loss is taken


def compare(
    whole: Path, archive: Path, data: Sequence[Path], limit: int, *, lm: str = "", say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Errors of matrices; with packs also losses by feed and how often answers agree. `lm`: the packaged weights."""
    if not data:
        raise UsageError("--compare needs held-out records: --data PACK")
    form = checkpoint.index(archive).parts["lm"].form
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    first, config = checkpoint.load(whole, device=device)
    second, _ = checkpoint.load(archive, device=device, check=False, lm=lm)
    errors = weights(first, second, config, form, lm)
    table = errors.pop("matrices")
    worst = max(table, key=lambda name: table[name])
    say(
        f"relative error of a matrix: median {statistics.median(table.values()):.3f}, "
        f"worst {table[worst]:.3f} ({worst})"
    )
    say(f"squared error: {errors['error']:.2%} of {errors['of']}")
    found: dict[str, Any] = {**errors, "matrices": table}
    taught = checkpoint.index(whole).notes
    found["loss"] = {}
    told = {"whole": first, "archive": second}
    for name, model in told.items():
        for feed, value in losses(model, config, data, str(taught.get("stage", "")), device).items():
            found["loss"].setdefault(feed, {})[name] = round(value, 4)
    if form == compact.DELTA:  # how much there was to lose
        state = {k: v.clone() for k, v in checkpoint.part_state(second, "lm").items()}
        spare = doubles(second.lm)
        base = checkpoint.lm_state(open_lm(replace(config.model.lm, weights=lm)))
        fill(second.lm, base, "base", spare)
        for feed, value in losses(second, config, data, str(taught.get("stage", "")), device).items():
            found["loss"][feed]["untrained language model"] = round(value, 4)
        fill(second.lm, state, "archive", spare)
    for feed, row in found["loss"].items():
        say(f"loss, {feed}: " + ", ".join(f"{name} {value:.3f}" for name, value in row.items()))
    found["answers"] = answers(first, second, config, taught, data, limit, device)
    for name, value in found["answers"].items():
        say(f"{name}: {value}")
    return found


def weights(first: EChat, second: EChat, config: Config, form: str, lm: str) -> dict[str, Any]:
    """Relative error of each matrix of the language model: of its change for a delta, else of itself."""
    old, new = checkpoint.part_state(first, "lm"), checkpoint.part_state(second, "lm")
    base = {}
    if form == compact.DELTA:
        made = open_lm(replace(config.model.lm, weights=lm))
        base = {name: value.to(old[name].device) for name, value in checkpoint.lm_state(made).items()}
    rows, lost, total = {}, 0.0, 0.0
    for name, value in old.items():
        if value.dim() == 2:
            error = float((new[name] - value).double().square().sum())
            size = float((value - base[name] if base else value).double().square().sum())
            rows[name] = round((error / size) ** 0.5 if size else 0.0, 4)
            lost, total = lost + error, total + size
    what = "what training changed" if base else "the weights' own"
    return {"error": round(lost / total if total else 0.0, 6), "of": what, "matrices": rows}


def losses(model: EChat, config: Config, data: Sequence[Path], stage: str, device: torch.device) -> dict[str, float]:
    """Loss of each feed of the stage it was taught last, on records that are not learnt from."""
    table = stages(config.stage, config.name)
    last = table.get(stage) or table[max(name for name in table if name[:1].isdigit())]
    corpus = Corpus(data)
    run = StageRun(stage, last, last.steps, last.steps * last.targets)
    tok = open_tokenizer(config.model)
    stream = Stream(corpus, Clips(corpus.packs, device), run, config.model, tok, learn=False)
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        return {n: float(model(stream.ready(batch, 0)).loss) for n, batch in stream.held_out(HELD_OUT).items()}


def answers(
    first: EChat, second: EChat, config: Config, notes: dict[str, Any], data: Sequence[Path], limit: int,
    device: torch.device,
) -> dict[str, str]:  # fmt: skip
    """How often the likeliest answers of the two agree."""
    wanted = Wanted(limit=limit)
    records = [record for path in data for record in chosen(Pack(path).records, wanted)]
    modes = tuple(m for m in chosen_modes((), config, notes) if m in ("labels", "words", "plain", "label"))
    tok = open_tokenizer(config.model)
    a, b = (evaluate.predict(Machine(model, tok, device), records, modes, wanted) for model in (first, second))
    labels = [x.named[d] == y.named[d] for x, y in zip(a, b, strict=True) for d in x.named]
    out = {"same label named": _share(labels)}
    words = [x.words == y.words for x, y in zip(a, b, strict=True) if x.words is not None]
    out["same transcript"] = _share(words)
    for mode in ("plain", "label"):
        pairs = [(x.said[mode], y.said[mode]) for x, y in zip(a, b, strict=True) if mode in x.said]
        if pairs:
            near = sum(difflib.SequenceMatcher(None, x.split(), y.split(), False).ratio() for x, y in pairs) / len(
                pairs
            )
            name = "reply without a thought" if mode == "plain" else "thought and reply"
            out[f"same {name}"] = f"{_share([x == y for x, y in pairs])}; words in common {near:.0%}"
    return out


def _share(same: Sequence[bool]) -> str:
    return f"{sum(same)} of {len(same)}"
