"""A pilot for the study of two perspectives: which learning rate, how many steps, and how many seconds an arm takes.

SmolLM2-135M learns to rate sentences of EmoBank as their writer and as a reader: three digits from 1 to 9, for valence,
arousal and dominance. Labels are soft: a mean of 5.4 is "5" with weight .6 and "6" with weight .4, so that the expected
digit is the label. Only EmoBank's dev rows choose settings. DREAM (dev, by likelihood) shows what tuning costs.

    python -m experiments.perspectives.pilot --emobank DIR --dream DIR --lm SmolLM2.gguf --out rows.jsonl [--minutes 8]

Each finished row is appended to --out, and rows that are there are not computed again. Needs torch, transformers and
gguf; a GPU for anything but a smoke test (--smoke).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import torch
import torch.nn.functional as F

from overtone.echat.net import config as configs
from overtone.echat.net.backbone import open_lm
from overtone.echat.net.tokenizer import IM_END, open_tokenizer

DIMENSIONS = ("V", "A", "D")
BUCKETS = (64, 80, 96, 128, 192, 256)  # padded lengths; each has one recorded step
ROWS = 32  # sequences per step
TOKENS = 80  # at most, of a reply of the base model
WHO = {
    "reader": "How does a reader of this sentence feel?",
    "writer": "How does the writer of this sentence feel?",
    "merged": "Which feeling is in this sentence?",
}
ASK = '{who} Rate valence, arousal and dominance from 1 to 9.\nSentence: "{text}"'
PLAIN = Path(__file__).parents[2] / "src/overtone/echat/making/texts/plain.toml"


@dataclass(frozen=True)
class Sentence:
    """One sentence of EmoBank with the means and the single ratings of both perspectives."""

    id: str
    text: str
    split: str
    document: str
    genre: str
    means: dict[str, np.ndarray]
    ratings: dict[str, np.ndarray]  # (n, 3)


@dataclass(frozen=True)
class Example:
    """Token ids, the positions whose next token is learnt, and for each a distribution over tokens."""

    ids: list[int]
    at: list[int]
    targets: list[list[tuple[int, float]]]


@dataclass(frozen=True)
class Setting:
    """One training run."""

    arm: str
    lr: float = 3e-5
    steps: int = 750
    replay: float = 0.25  # share of the base model's own replies among the sequences
    seed: int = 0
    split: str = "official"

    @property
    def key(self) -> str:
        return f"{self.arm} lr={self.lr:g} steps={self.steps} replay={self.replay:g} seed={self.seed} {self.split}"


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_emobank(folder: Path) -> list[Sentence]:
    """Read the sentences that have both perspectives. The authors dropped ratings of 1, 1, 1, and so does this."""
    with (folder / "meta.tsv").open(encoding="utf-8", newline="") as file:
        meta = {row["id"]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    means = {who: {row["id"]: _numbers(row) for row in _rows(folder / f"{who}.csv")} for who in ("reader", "writer")}
    ratings: dict[str, dict[str, list[np.ndarray]]] = {"reader": {}, "writer": {}}
    for who, by_id in ratings.items():
        for row in _rows(folder / f"individual_{who}_ratings.csv"):
            rating = _numbers(row)
            if not (rating == 1).all():
                by_id.setdefault(row["id"], []).append(rating)
    out = []
    for row in _rows(folder / "emobank.csv"):
        name = row["id"]
        about = meta[name]
        both = ("reader", "writer")
        out.append(
            Sentence(
                name, row["text"], row["split"], about["document"], about["category"],
                {who: means[who][name] for who in both}, {who: np.array(ratings[who][name]) for who in both},
            )
        )  # fmt: skip
    return out


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _numbers(row: dict[str, str]) -> np.ndarray:
    return np.array([float(row[d]) for d in DIMENSIONS])


def by_document(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Split anew so that no document is in two parts: a hash of its name puts 80, 10 and 10 of 100 into each."""

    def part(document: str) -> str:
        share = int(hashlib.sha256(document.encode()).hexdigest()[:8], 16) / 2**32
        return "train" if share < 0.8 else "dev" if share < 0.9 else "test"

    return [replace(s, split=part(s.document)) for s in sentences]


def labels(sentences: Sequence[Sentence], arm: str, seed: int) -> list[tuple[Sentence, str, np.ndarray]]:
    """Return what an arm learns: (sentence, perspective asked for, label), two rows a sentence in every arm."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in sentences:
        reader, writer = s.means["reader"], s.means["writer"]
        n = {who: len(r) for who, r in s.ratings.items()}
        merged = (reader * n["reader"] + writer * n["writer"]) / (n["reader"] + n["writer"])
        if arm in ("both", "permuted"):
            rows += [(s, "reader", reader), (s, "writer", writer)]
        elif arm in ("reader", "writer"):
            rows += [(s, arm, s.means[arm])] * 2
        elif arm == "merged":
            rows += [(s, "merged", merged)] * 2
        elif arm == "matched":  # as many ratings as one perspective has
            drawn = [s.ratings[who][rng.permutation(n[who])[:k]] for who, k in (("reader", 2), ("writer", 3))]
            rows += [(s, "merged", np.concatenate(drawn).mean(0))] * 2
        elif arm == "pseudo":  # two sets of labels without two perspectives
            pooled = rng.permutation(np.concatenate([s.ratings["reader"], s.ratings["writer"]]))
            rows += [(s, "reader", pooled[: n["reader"]].mean(0)), (s, "writer", pooled[n["reader"] :].mean(0))]
        elif arm == "shuffled":
            first, second = (reader, writer) if rng.random() < 0.5 else (writer, reader)
            rows += [(s, "reader", first), (s, "writer", second)]
        else:
            raise SystemExit(f"there is no arm {arm!r}")
    if arm == "permuted":
        order = rng.permutation(len(rows))
        rows = [(s, who, rows[int(i)][2]) for (s, who, _), i in zip(rows, order, strict=True)]
    return rows


def soft_digits(label: float) -> list[tuple[int, float]]:
    """Return the two digits around a label from 1 to 5 on the scale from 1 to 9, with their weights."""
    value = min(9.0, max(1.0, 2 * label - 1))
    low = min(8, int(value))
    return [(low, low + 1 - value), (low + 1, value - low)]


def read_dream(path: Path) -> list[tuple[str, list[str], int]]:
    """Read questions as (dialogue and question, options, index of the answer)."""
    out = []
    for turns, questions, _ in json.loads(path.read_text(encoding="utf-8")):
        for q in questions:
            asked = "\n".join(turns) + f"\n\nQuestion: {q['question']}"
            out.append((asked, q["choice"], q["choice"].index(q["answer"])))
    return out


# ── model ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
class Subject:
    """SmolLM2, its first weights, and one recorded training step per padded length, shared by all runs."""

    def __init__(self, gguf: str, device: str) -> None:
        base = configs.read("mini").model
        model = replace_lm(base, gguf)
        self.tok, self.device = open_tokenizer(model), device
        self.lm = open_lm(model.lm).to(device)
        self.first = [p.detach().clone() for p in self.lm.parameters()]
        self.lr = torch.tensor(0.0, device=device)
        fast = {"fused": True, "capturable": True} if device == "cuda" else {}
        self.optimizer = torch.optim.AdamW(
            self.lm.parameters(), lr=self.lr if fast else 0.0, betas=(0.9, 0.95), weight_decay=0.01, **fast
        )
        self.digits = [self.tok.encode(str(d)) for d in range(10)]
        assert all(len(d) == 1 for d in self.digits), "the tokenizer splits digits"
        self.asked: dict[str, list[int]] = {}  # prompts as tokens: every run asks the same
        self.graphs: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, dict[str, torch.Tensor], torch.Tensor]] = {}

    def chat(self, asked: str) -> list[int]:
        if asked not in self.asked:
            self.asked[asked] = self.tok.encode(f"<|im_start|>user\n{asked}<|im_end|>\n<|im_start|>assistant\n")
        return list(self.asked[asked])

    def rating(self, sentence: Sentence, who: str, label: np.ndarray) -> Example:
        asked = self.chat(ASK.format(who=WHO[who], text=sentence.text))
        answer = " ".join(str(max(soft_digits(x), key=lambda pair: pair[1])[0]) for x in label)
        ids = asked + self.tok.encode(answer)
        at = [len(asked) - 1 + 2 * i for i in range(3)]  # digits and spaces alternate, one token each
        targets = [[(self.digits[d][0], w) for d, w in soft_digits(x)] for x in label]
        return Example(ids, at, targets)

    def reset(self) -> None:
        with torch.no_grad():
            for p, first in zip(self.lm.parameters(), self.first, strict=True):
                p.copy_(first)
            for state in self.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def loss(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            hidden = self.lm.base_model(input_ids=batch["ids"], use_cache=False).last_hidden_state
            few = hidden.flatten(0, 1)[batch["at"]]  # (N, d); padded places have weight 0
            logits = F.linear(few, self.lm.get_output_embeddings().weight).float()
        logp = logits - logits.logsumexp(-1, keepdim=True)
        taken = logp.gather(1, batch["token"])  # (N, 2)
        return -(taken * batch["weight"]).sum() / batch["weight"].sum()

    def step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=self.device != "cuda")
        loss = self.loss(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.lm.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        return loss.detach()

    def train_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        if self.device != "cuda":
            self.optimizer.param_groups[0]["lr"] = float(self.lr)
            return self.step(batch)
        shape = (batch["ids"].shape[1], batch["at"].shape[0])
        if shape not in self.graphs:
            self._record(shape, batch)
        graph, held, loss = self.graphs[shape]
        for name, value in batch.items():
            held[name].copy_(value, non_blocking=True)
        graph.replay()
        return loss

    def _record(self, shape: tuple[int, int], batch: dict[str, torch.Tensor]) -> None:
        """Record a step as a CUDA graph. Weights and optimiser are put back afterwards."""
        kept = [p.detach().clone() for p in self.lm.parameters()]
        states = [{k: v.clone() for k, v in self.optimizer.state[p].items()} for p in self.lm.parameters()]
        held = {name: value.to(self.device).clone() for name, value in batch.items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step(held)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        pool = next(iter(self.graphs.values()))[0].pool() if self.graphs else None
        with torch.cuda.graph(graph, pool=pool):
            loss = self.step(held)
        self.graphs[shape] = (graph, held, loss)
        with torch.no_grad():
            for p, old, state in zip(self.lm.parameters(), kept, states, strict=True):
                p.copy_(old)
                for name, value in self.optimizer.state[p].items():
                    value.copy_(state[name]) if name in state else value.zero_()

    @torch.no_grad()
    def next_tokens(
        self, rows: Sequence[list[int]], at: Sequence[list[int]], size: int = 128
    ) -> Iterator[torch.Tensor]:
        """Yield per row the log-probabilities of the next token at its places, (len(at), vocabulary)."""
        table = self.lm.get_output_embeddings().weight
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            longest = max(map(len, part))
            ids = torch.tensor([row + [0] * (longest - len(row)) for row in part], device=self.device)
            with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
                hidden = self.lm.base_model(input_ids=ids, use_cache=False).last_hidden_state
                for i, places in enumerate(at[first : first + size]):
                    yield F.linear(hidden[i, places], table).float().log_softmax(-1)

    def rate(self, sentences: Sequence[Sentence], who: str) -> np.ndarray:
        """Return expected digits, put back on the scale from 1 to 5: (n, 3). Earlier digits are the likeliest ones."""
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i].text))
        rows = [self.chat(ASK.format(who=WHO[who], text=sentences[i].text)) for i in order]
        columns = torch.tensor([d[0] for d in self.digits[1:]], device=self.device)
        values = torch.arange(1, 10, device=self.device).float()
        out = np.zeros((len(sentences), 3))
        space = self.tok.encode("5 5")[1]
        for d in range(3):
            at = [[len(row) - 1] for row in rows]
            found = torch.stack([logp[0, columns] for logp in self.next_tokens(rows, at)])
            out[order, d] = ((found.softmax(-1) * values).sum(-1).cpu().numpy() + 1) / 2
            best = found.argmax(-1).tolist()
            rows = [[*row, self.digits[b + 1][0], space] for row, b in zip(rows, best, strict=True)]
        return out

    def choose(self, questions: Sequence[tuple[str, list[str], int]]) -> dict[str, float]:
        """Answer multiple choice by the likeliest option: sum and mean of its tokens' log-probabilities."""
        rows, at, spans = [], [], []
        for q, (asked, options, _) in enumerate(questions):
            start = self.chat(asked)
            for o, option in enumerate(options):
                answer = self.tok.encode(option)
                rows.append(start + answer)
                at.append(list(range(len(start) - 1, len(start) + len(answer) - 1)))
                spans.append((q, o, answer))
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        total = np.full((len(questions), 3), -np.inf)
        mean = total.copy()
        logps = self.next_tokens([rows[i] for i in order], [at[i] for i in order], 64)
        for i, logp in zip(order, logps, strict=True):
            q, o, answer = spans[i]
            taken = float(logp[torch.arange(len(answer)), torch.tensor(answer)].sum())
            total[q, o], mean[q, o] = taken, taken / len(answer)
        gold = np.array([q[2] for q in questions])
        return {"sum": float((total.argmax(1) == gold).mean()), "mean": float((mean.argmax(1) == gold).mean())}

    @torch.no_grad()
    def replies(self, prompts: Sequence[str], tokens: int = TOKENS) -> list[Example]:
        """Return the model's own greedy replies as examples to learn again, each with the weight of a rating."""
        end = self.tok.encode(IM_END)[0]
        rows = [self.chat(p) for p in prompts]
        starts = [len(row) for row in rows]
        live = set(range(len(rows)))
        for _ in range(tokens):
            places = sorted(live, key=lambda i: len(rows[i]))
            nexts = self.next_tokens([rows[i] for i in places], [[len(rows[i]) - 1] for i in places], 256)
            for i, logp in zip(places, nexts, strict=True):
                rows[i].append(int(logp[0].argmax()))
                if rows[i][-1] == end:
                    live.discard(i)
        return [
            Example(row, list(range(start - 1, len(row) - 1)), [[(t, 3 / (len(row) - start))] for t in row[start:]])
            for row, start in zip(rows, starts, strict=True)
        ]


def replace_lm(model: configs.ModelConfig, gguf: str) -> configs.ModelConfig:
    return msgspec.structs.replace(model, lm=msgspec.structs.replace(model.lm, weights=gguf))


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def collate(examples: Sequence[Example], length: int, places: int) -> dict[str, torch.Tensor]:
    """Pad to one shape: recorded steps need it. Places beyond the last one have weight 0."""
    ids = [example.ids + [0] * (length - len(example.ids)) for example in examples]
    at = [i * length + place for i, example in enumerate(examples) for place in example.at]
    pairs = [(target * 2)[:2] for example in examples for target in example.targets]
    token = [[pairs[i][0][0], pairs[i][1][0]] for i in range(len(pairs))]
    weight = [[t[0][1], t[1][1] if t[0] is not t[1] else 0.0] for t in pairs]
    spare = places - len(at)
    return {
        "ids": torch.tensor(ids),
        "at": torch.tensor(at + [0] * spare),
        "token": torch.tensor(token + [[0, 0]] * spare),
        "weight": torch.tensor(weight + [[0.0, 0.0]] * spare),
    }


@dataclass
class Batches:
    """Batches without end: `replay` of ROWS sequences are replies, the rest ratings of about the same length."""

    ratings: list[Example]
    replies: list[Example]
    setting: Setting
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.setting.seed)

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        n_replies = round(ROWS * self.setting.replay) if self.replies else 0
        queue: list[list[Example]] = []
        while True:
            if not queue:
                order = self.rng.sample(self.ratings, len(self.ratings))
                size = ROWS - n_replies
                # Neighbours in length share a batch, within blocks of 50 batches, so that padding stays small.
                for first in range(0, len(order), size * 50):
                    block = sorted(order[first : first + size * 50], key=lambda e: len(e.ids))
                    queue += [block[i : i + size] for i in range(0, len(block) - size + 1, size)]
                self.rng.shuffle(queue)
            part = queue.pop() + self.rng.choices(self.replies, k=n_replies)
            longest = max(len(e.ids) for e in part)
            length = next((b for b in BUCKETS if b >= longest), None)
            if length is None:
                continue  # a handful of very long sentences
            yield collate(part, length, 3 * (ROWS - n_replies) + TOKENS * n_replies)


def train(subject: Subject, ratings: list[Example], replies: list[Example], setting: Setting) -> list[float]:
    """Train from the first weights; return the loss every tenth of the way."""
    subject.reset()
    warmup = max(1, setting.steps // 20)
    losses: list[torch.Tensor] = []
    for step, batch in enumerate(Batches(ratings, replies, setting)):
        if step == setting.steps:
            break
        share = min((step + 1) / warmup, 0.5 * (1 + np.cos(np.pi * step / setting.steps)))
        subject.lr.fill_(setting.lr * share)
        loss = subject.train_step(batch)
        if (step + 1) % max(1, setting.steps // 10) == 0:
            losses.append(loss.clone())
    return [round(float(x), 4) for x in losses]


def correlations(subject: Subject, sentences: Sequence[Sentence], arm: str) -> dict[str, float]:
    """Pearson r per perspective and dimension, of the mean of both, and of the gap where an arm has two prompts."""
    both = ("reader", "writer")
    one = arm in ("merged", "matched")
    rated = {who: subject.rate(sentences, "merged" if one else who) for who in (both[:1] if one else both)}
    if one:
        rated["writer"] = rated["reader"]
    truth = {who: np.array([s.means[who] for s in sentences]) for who in both}
    rated["mean"], truth["mean"] = (rated["reader"] + rated["writer"]) / 2, (truth["reader"] + truth["writer"]) / 2
    if not one:
        rated["gap"], truth["gap"] = rated["reader"] - rated["writer"], truth["reader"] - truth["writer"]

    def pearson(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else 0.0

    return {
        f"{who}_{name}": round(pearson(rated[who][:, d], truth[who][:, d]), 4)
        for who in rated
        for d, name in enumerate(DIMENSIONS)
    }


def grid() -> Iterable[Setting]:
    """The runs in order of interest."""
    yield Setting("base", steps=0)
    for lr in (1e-5, 3e-5, 1e-4, 2e-4):
        yield Setting("both", lr=lr)
    for steps in (300, 1500, 3000):
        for lr in (3e-5, 1e-4):
            yield Setting("both", lr=lr, steps=steps)
    for replay in (0.0, 0.5):
        yield Setting("both", lr=1e-4, replay=replay)
    for seed in range(5):
        for arm in ("both", "merged", "shuffled", "pseudo"):
            yield Setting(arm, lr=1e-4, seed=seed, split="document")
    for seed in range(3):
        for arm in ("permuted", "reader", "writer", "matched"):
            yield Setting(arm, lr=1e-4, seed=seed, split="document")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emobank", type=Path, required=True)
    parser.add_argument("--dream", type=Path, required=True)
    parser.add_argument("--lm", default="", help="SmolLM2's GGUF file (default: the installed package's)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument(
        "--part", default="1/1", help="of n processes the i-th, each with an --out of its own (default: 1/1)"
    )
    parser.add_argument("--done", type=Path, action="append", default=[], help="rows that need not be computed again")
    parser.add_argument("--smoke", action="store_true", help="a few steps and sentences, to test the script")
    args = parser.parse_args()
    deadline = time.monotonic() + 60 * args.minutes
    rows_before = [line for path in (args.out, *args.done) if path.exists() for line in path.read_text().splitlines()]
    done = {json.loads(line)["key"] for line in rows_before}
    part, parts_in_all = map(int, args.part.split("/"))
    torch.manual_seed(0)
    subject = Subject(args.lm, "cuda" if torch.cuda.is_available() else "cpu")
    official = read_emobank(args.emobank)
    splits = {"official": official, "document": by_document(official)}
    dream = read_dream(args.dream / "dev.json")[:600]
    questions = [pair["question"] for pair in tomllib.loads(PLAIN.read_text())["plain"]][:400]
    settings = list(grid())[part - 1 :: parts_in_all]
    if args.smoke:
        splits = {name: s[:: max(1, len(s) // 120)] for name, s in splits.items()}
        dream, questions = dream[:6], questions[:4]
        settings = [settings[0], *(replace(s, steps=3) for s in settings[1:2])]
    start = time.monotonic()
    replies = subject.replies(questions, 8 if args.smoke else TOKENS)
    print(f"{len(replies)} replies of the base model in {time.monotonic() - start:.1f} s", flush=True)
    for setting in settings:
        if setting.key in done:
            continue
        if time.monotonic() > deadline:
            print("the time is up; the same command continues")
            break
        sentences = splits[setting.split]
        parts = {p: [s for s in sentences if s.split == p] for p in ("train", "dev", "test")}
        start = time.monotonic()
        losses: list[float] = []
        if setting.arm == "base":
            subject.reset()
        else:
            rows = labels(parts["train"], setting.arm, setting.seed)
            ratings = [subject.rating(s, who, label) for s, who, label in rows]
            losses = train(subject, ratings, replies, setting)
        if subject.device == "cuda":
            torch.cuda.synchronize()
        trained = time.monotonic() - start
        dev = correlations(subject, parts["dev"], setting.arm)
        row = {
            "key": setting.key, "setting": vars(setting), "losses": losses, "train_s": round(trained, 2),
            "dev": dev, "dream_dev": subject.choose(dream), "all_s": round(time.monotonic() - start, 2),
        }  # fmt: skip
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        short = {k: v for k, v in dev.items() if k.startswith(("mean", "gap"))}
        print(f"{setting.key}: {trained:.1f} s, dev {short}, DREAM {row['dream_dev']}", flush=True)


if __name__ == "__main__":
    main()
