"""AEQ-Bench's headline tables: scores on [0, 1] two ways, as given, what replies go by, and what goes wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from overtone.schema import Item
from overtone.suite import Column, Facts, Groups, Headline, Published, Release, Scored, Suite

REPLIES: Mapping[str, tuple[str | int, ...]] = {"task": ("converse",)}
SCALES = {  # score → its label, its least and its greatest value
    "naturalness": ("Naturalness", 1, 4),
    "coherence": ("Coherence", 1, 3),
    "supportiveness": ("Supportiveness", 1, 3),
    "delivery": ("Delivery", 1, 3),
    "discrimination": ("Discrimination", 1, 6),
}
RELIANCE = ("both", "audio only", "context only", "neither")
BLIND = {"context": "audio only", "tone": "context only"}  # setting → the one modality that lacks what varies


def goes_by(reply: Scored, *words: str) -> float | None:
    """The share of the verdicts on one reply, by all judges and repeats, that say one of `words`."""
    found = [t for key, t in reply.told.items() if key.startswith("reliance@") and key.endswith(".values")]
    said = [word for told in found for word in told.split(",") if word in RELIANCE]
    return sum(word in words for word in said) / len(said) if said else None


def _reading(word: str) -> Callable[[Scored], float | None]:
    return lambda reply: goes_by(reply, word)


def conflicting(item: Item) -> bool:
    """Whether one modality alone leads astray: the context varies, or a tone is heard that nothing else tells."""
    return item.category == "context" or (item.category == "tone" and bool(item.cue))


def failed(reply: Scored) -> float | None:
    """Of a reply to such an item: it goes by neither, or by the one modality that lacks what varies."""
    return goes_by(reply, "neither", BLIND.get(reply.item.category, ""))


def _ends(score: str) -> Callable[[Scored], float | None]:
    """The share of the judges' verdicts on a reply that are the least or the greatest answer there is."""
    low, high = SCALES[score][1:]
    names = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "Poor": 1, "Fair": 2, "Good": 3}

    def read(reply: Scored) -> float | None:
        found = [t for key, t in reply.told.items() if key.startswith(f"{score}@") and key.endswith(".values")]
        said = [names[word] for told in found for word in told.split(",") if word in names]
        return sum(value in (low, high) for value in said) / len(said) if said else None

    return read


def extreme(reply: Scored) -> float | None:
    """Of a model as a judge: whether it says Good or Poor."""
    letter = reply.told.get("accuracy.answer")
    return float(letter in ("A", "C")) if letter else None


def kappa(groups: Groups) -> float | None:
    """Cohen's κ with quadratic weights between the model's ratings and people's: 1 less the mean square difference over
    what two who rate independently would have. None where neither varies."""
    steps = {"A": 3.0, "B": 2.0, "C": 1.0}
    told = [reply.told for group in groups for reply in group]
    pairs = [(steps.get(t.get("accuracy.answer", "")), steps.get(t.get("accuracy.gold", ""))) for t in told]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None
    n = len(known)
    apart = sum((a - b) ** 2 for a, b in known) / n
    mean_a, mean_b = sum(a for a, _ in known) / n, sum(b for _, b in known) / n
    chance = sum(a * a + b * b for a, b in known) / n - 2 * mean_a * mean_b
    return 1 - apart / chance if chance else None


def _is_rating(item: Item) -> bool:
    return item.category.startswith("judge-rate")


def _of(prefix: str, way: str) -> Iterator[Column]:
    """Every score on [0, 1], by min–max or as a part of the greatest value."""
    told = "share of replies that go by both the situation and the voice"
    yield Column(f"{prefix}integration", "Integration", "reliance", REPLIES, kind="number", help=told)
    for score, (label, low, high) in SCALES.items():
        low = low if way == "min–max" else 0
        how = f"(x − {low}) ÷ {high - low}" if low else f"x ÷ {high}"
        told = f"{way}: {how}" + ("; each group counts once" if score == "discrimination" else "")
        yield Column(
            f"{prefix}{score}", label, score, REPLIES, kind="number", scale=1 / (high - low),
            offset=-low, help=told, each="group" if score == "discrimination" else "reply",
        )  # fmt: skip


def _raw() -> Iterator[Column]:
    for score, (label, low, high) in SCALES.items():
        yield Column(
            f"raw_{score}", label, score, REPLIES, kind="number", help=f"{low} to {high}, as given",
            each="group" if score == "discrimination" else "reply",
        )  # fmt: skip
    told = "the same groups with every reply under another variant: a judge that looks goes down to 1"
    yield Column(
        "raw_shuffled", "Discrimination, replies shuffled", "discrimination_shuffled", REPLIES, kind="number",
        better="neither", help=told, each="group",
    )  # fmt: skip
    yield Column(
        "raw_seen", "Real less shuffled", "discrimination", REPLIES, kind="number", read=_seen, each="group",
        help="group by group: what a judge sees of the replies; near 0 it does not look, or there is nothing to see",
    )  # fmt: skip


def _seen(reply: Scored) -> float | None:
    real, exchanged = (reply.values.get(name) for name in ("discrimination", "discrimination_shuffled"))
    return None if real is None or exchanged is None else real - exchanged


def _measured() -> Iterator[Column]:
    yield Column("expressiveness", "Expressiveness", "expressiveness", REPLIES, kind="number", better="neither",
                 help="movement of pitch, level and rhythm; 1 is like neutral acting")  # fmt: skip
    for part, label, digits in (
        ("f0_hz", "Pitch (Hz)", 0),
        ("f0_sd_st", "Pitch spread (st)", 2),
        ("level_dbfs", "Level (dB)", 1),
        ("rate_hz", "Rate (syllables/s)", 2),
    ):
        yield Column(f"voice_{part}", label, f"expressiveness.{part}", REPLIES, kind="number", digits=digits,
                     better="neither", help="measured in the reply's audio")  # fmt: skip


HINT = (
    "Judged by the rubrics aeq, aeq-delivery and aeq-discrimination. The paper does not say how it comes to [0, 1]: "
    "here by min–max, (x − least) ÷ (greatest − least)."
)

SUITE = Suite(
    Facts(
        title="AEQ-Bench",
        cues="tone of voice (EmoV-DB's five; ours: ten cues), and the situation in words",
        tasks="reply to a situation and a voice; choose or rate spoken replies",
        hears="context text, utterance audio (as a judge: reply audios)",
        answers="text and speech; as a judge a letter",
        turns="one",
        metrics="Modality Reliance, Naturalness, Coherence, Supportiveness, Delivery, Discrimination",
        data="gracehuggingface/AEQ-Bench (hub), or an open set built here",
        licence="MIT; the open set CC BY 4.0",
        offline="the open set (`overtone build aeq`); its scores need a judge",
    ),
    release=Release("gracehuggingface/AEQ-Bench", "MIT, as on its dataset card"),
    headlines=(
        Headline(
            "aeq", "AEQ-Bench, on [0, 1] by min–max", tuple(_of("", "min–max")), hint=HINT,
            differences="AEQ-Bench, differences between conditions",
        ),
        Headline("aeq-settings", "AEQ-Bench by what varies, on [0, 1] by min–max", tuple(_of("", "min–max")),
                 rows="category", hint=HINT),
        Headline("aeq-ratio", "AEQ-Bench, on [0, 1] as a part of the greatest value", tuple(_of("", "x/max")),
                 hint="The other reading of [0, 1]: x ÷ greatest. Discrimination cannot fall below 0.17 here, nor "
                 "Naturalness below 0.25."),
        Headline("aeq-raw", "AEQ-Bench, scores as given", tuple(_raw()), rows="category",
                 hint="Poor, Fair and Good count 1, 2 and 3. Where the shuffled replies score like the real ones, "
                 "the judge does not look, or the replies cannot be told apart."),
        Headline(
            "aeq-reliance", "AEQ-Bench: what replies go by, and what goes wrong",
            (
                *(
                    Column(f"reliance_{name.replace(' ', '_')}", name.capitalize(), "reliance", REPLIES,
                           read=_reading(name),
                           better="higher" if name == "both" else "lower" if name == "neither" else "neither")
                    for name in RELIANCE
                ),
                Column("conflict", "Conflict failures", "reliance", REPLIES, better="lower",
                       where=conflicting, read=failed,
                       help="of items where one modality alone leads astray: neither, or audio only where the context "
                       "varies, or context only where the tone does"),
                Column("opening", "Template openings", "template_opening", REPLIES, better="lower",
                       help="first three words shared by 5 % of the replies or more"),
                Column("ending", "Template endings", "template_ending", REPLIES, better="lower",
                       help="last three words shared by 5 % of the replies or more"),
                Column("closing", "Template last sentences", "template_closing", REPLIES, better="lower",
                       help="first three words of the last of several sentences, shared by 5 % of the replies or more: "
                       "a set tail such as “But you know, …”"),
                Column("sentence", "Templates anywhere", "template_sentence", REPLIES, better="lower",
                       help="first three words of any sentence, shared by 5 % of the replies or more"),
                Column("analytic", "Descriptions", "analytic", REPLIES, better="lower",
                       help="speaks about the recording instead of to the person"),
                Column("flat", "Flat delivery", "expressiveness.flat", REPLIES, better="lower",
                       help="expressiveness below 0.7: flatter than almost all acted speech"),
            ),
            rows="category",
        ),
        Headline("aeq-voice", "AEQ-Bench: how replies are spoken, measured", tuple(_measured()),
                 differences="AEQ-Bench: how replies are spoken, differences between conditions",
                 hint="Asked under the prompts warm and plain, this tells whether a voice follows its instruction."),
        Headline(
            "aeq-ends", "AEQ-Bench: how far judges keep to the ends of their scales",
            tuple(
                Column(f"ends_{score}", label, score, REPLIES, read=_ends(score), better="neither",
                       each="group" if score == "discrimination" else "reply",
                       help=f"share of verdicts that are {low} or {high}")
                for score, (label, low, high) in SCALES.items()
            ),
            hint="A polarised judge has no middle. Whether people are as extreme on the same replies, and whether a "
            "judge favours its own family, is measured by 'overtone judge validate'.",
        ),
        Headline(
            "aeq-judging", "AEQ-Bench: the model as a judge",
            (
                Column("consistency", "Consistency with people", "accuracy", {"task": ("choose",)},
                       help="share of answers that are people's; three steps: one in three by chance"),
                Column("kappa", "Weighted κ", "accuracy", {"task": ("choose",)}, kappa, "number", where=_is_rating,
                       help="Cohen's κ with quadratic weights, of ratings"),
                Column("extreme", "Good or Poor", "accuracy", {"task": ("choose",)}, better="neither",
                       where=_is_rating, read=extreme,
                       help="share of ratings at an end of the scale: a polarised judge has no Fair"),
            ),
            rows="category",
        ),
    ),
    published=(
        Published(
            "AEQ-Bench",
            "AEQ-Bench (arXiv 2601.10513), as told in a summary of it; its tables were not seen",
            {"integration": "Integration", "discrimination": "Discrimination", "naturalness": "Naturalness"},
            (
                ("GPT omni series", (0.91, None, None)),
                ("Qwen Omni series", (0.87, None, None)),
                ("Qwen-Audio", (None, 0.77, 0.46)),
            ),
            comparable="its judge's prompts and its way to [0, 1] are not known, and its items are others than "
            "the open set's",
        ),
    ),
    rubrics=("aeq", "aeq-delivery", "aeq-discrimination"),
    layout=("aeq.json",),
)  # fmt: skip
