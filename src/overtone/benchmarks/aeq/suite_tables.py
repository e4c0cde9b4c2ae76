"""AEQ-Bench's headline tables: scores on [0, 1] in two scalings and unscaled, modality reliance, and failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from overtone.suite import Column, Difference, Facts, Headline, Kappa, NoteIn, Published, Release, Suite, VerdictShare

REPLIES: Mapping[str, tuple[str | int, ...]] = {"task": ("converse",)}
SCALES = {  # score → its label, its lowest and its highest value
    "naturalness": ("Naturalness", 1, 4),
    "coherence": ("Coherence", 1, 3),
    "supportiveness": ("Supportiveness", 1, 3),
    "delivery": ("Delivery", 1, 3),
    "discrimination": ("Discrimination", 1, 6),
}
RELIANCE = ("both", "audio only", "context only", "neither")
BLIND = {"context": ("audio only",), "tone": ("context only",)}  # setting → the modality that does not vary


# Every verdict and its value. Columns count those at the ends of a scale.
VERDICTS = {"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "6": 6, "Poor": 1, "Fair": 2, "Good": 3}
AGREEMENT = Kappa("accuracy.answer", "accuracy.gold", {"A": 3.0, "B": 2.0, "C": 1.0})  # with people
RATINGS = ({"category": ("judge-rate*",)},)
# Items where one modality alone misleads: the context varies, or the tone is a cue that only the voice has.
CONFLICTING = ({"category": ("context",)}, {"category": ("tone",), "cue": ("?*",)})


def _at_ends(low: int, high: int) -> tuple[str, ...]:
    """Return the verdicts whose value is the lowest or the highest of the scale."""
    return tuple(verdict for verdict, value in VERDICTS.items() if value in (low, high))


def _unit(score: str) -> Literal["group", "reply"]:
    return "group" if score == "discrimination" else "reply"


def _scaled(scaling: str) -> Iterator[Column]:
    """Yield the columns of scores on [0, 1]: scaled by min–max, or divided by the highest value."""
    help = "Share of replies that rely on both the situation and the voice"
    yield Column("integration", "Integration", "reliance", REPLIES, kind="number", help=help)
    for score, (label, low, high) in SCALES.items():
        low = low if scaling == "min–max" else 0
        formula = f"(x − {low}) ÷ {high - low}" if low else f"x ÷ {high}"
        help = f"{scaling}: {formula}" + ("; each group counts once" if score == "discrimination" else "")
        yield Column(
            score, label, score, REPLIES, kind="number", scale=1 / (high - low), offset=-low, help=help,
            each=_unit(score),
        )  # fmt: skip


def _unscaled() -> Iterator[Column]:
    for score, (label, low, high) in SCALES.items():
        yield Column(
            f"raw_{score}", label, score, REPLIES, kind="number", help=f"{low} to {high}, as given", each=_unit(score)
        )
    yield Column(
        "raw_shuffled", "Discrimination, replies shuffled", "discrimination_shuffled", REPLIES, kind="number",
        better="neither", each="group",
        help="The same groups with every reply under another variant: a judge who looks at the replies gives 1",
    )  # fmt: skip
    yield Column(
        "raw_seen", "Real minus shuffled", "discrimination", REPLIES, kind="number", each="group",
        read=Difference("discrimination", "discrimination_shuffled"),
        help="Difference per group; near 0, the judge ignores the replies or the replies do not differ",
    )  # fmt: skip


def _measured() -> Iterator[Column]:
    yield Column("expressiveness", "Expressiveness", "expressiveness", REPLIES, kind="number", better="neither",
                 help="Movement of pitch, level and rhythm; 1 is neutral acting")  # fmt: skip
    for part, label, digits in (
        ("f0_hz", "Pitch (Hz)", 0),
        ("f0_sd_st", "Pitch spread (st)", 2),
        ("level_dbfs", "Level (dB)", 1),
        ("rate_hz", "Rate (syllables/s)", 2),
    ):
        yield Column(f"voice_{part}", label, f"expressiveness.{part}", REPLIES, kind="number", digits=digits,
                     better="neither", help="Measured in the reply's audio")  # fmt: skip


HINT = (
    "Judged by the rubrics aeq, aeq-delivery and aeq-discrimination. The paper does not say how it scales scores to "
    "[0, 1]; here by min–max, (x − lowest) ÷ (highest − lowest)."
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
            "aeq", "AEQ-Bench, on [0, 1] by min–max", tuple(_scaled("min–max")), hint=HINT,
            differences="AEQ-Bench, differences between conditions",
        ),
        Headline("aeq-settings", "AEQ-Bench by what varies, on [0, 1] by min–max", tuple(_scaled("min–max")),
                 rows="category", hint=HINT),
        Headline("aeq-ratio", "AEQ-Bench, on [0, 1] as a share of the highest value", tuple(_scaled("x/max")),
                 hint="The other possible scaling to [0, 1]: x ÷ highest. Here Discrimination is at least 0.17 and "
                 "Naturalness at least 0.25."),
        Headline("aeq-raw", "AEQ-Bench, scores as given", tuple(_unscaled()), rows="category",
                 hint="Poor, Fair and Good count 1, 2 and 3. If the shuffled replies score as high as the real ones, "
                 "the judge ignores the replies or the replies do not differ."),
        Headline(
            "aeq-reliance", "AEQ-Bench: what replies rely on, and what goes wrong",
            (
                *(
                    Column(f"reliance_{name.replace(' ', '_')}", name.capitalize(), "reliance", REPLIES,
                           read=VerdictShare("reliance", (name,), RELIANCE),
                           better="higher" if name == "both" else "lower" if name == "neither" else "neither")
                    for name in RELIANCE
                ),
                Column("conflict", "Conflict failures", "reliance", REPLIES, better="lower",
                       where=CONFLICTING, read=VerdictShare("reliance", ("neither",), RELIANCE, BLIND),
                       help="Items where one modality alone misleads: share of verdicts neither, audio only if the "
                       "context varies, or context only if the tone varies"),
                Column("opening", "Template openings", "template_opening", REPLIES, better="lower",
                       help="First three words shared by 5 % of the replies or more"),
                Column("ending", "Template endings", "template_ending", REPLIES, better="lower",
                       help="Last three words shared by 5 % of the replies or more"),
                Column("closing", "Template last sentences", "template_closing", REPLIES, better="lower",
                       help="First three words of the last of several sentences, shared by 5 % of the replies or more: "
                       "a standard ending such as “But you know, …”"),
                Column("sentence", "Templates anywhere", "template_sentence", REPLIES, better="lower",
                       help="First three words of any sentence, shared by 5 % of the replies or more"),
                Column("analytic", "Descriptions", "analytic", REPLIES, better="lower",
                       help="Replies that speak about the recording instead of to the person"),
                Column("flat", "Flat delivery", "expressiveness.flat", REPLIES, better="lower",
                       help="Expressiveness below 0.7: flatter than almost all acted speech"),
            ),
            rows="category",
        ),
        Headline("aeq-voice", "AEQ-Bench: how replies are spoken, measured", tuple(_measured()),
                 differences="AEQ-Bench: how replies are spoken, differences between conditions",
                 hint="With the prompts warm and plain, this shows whether a voice follows its instruction."),
        Headline(
            "aeq-ends", "AEQ-Bench: how often judges use the ends of their scales",
            tuple(
                Column(f"ends_{score}", label, score, REPLIES, better="neither", each=_unit(score),
                       read=VerdictShare(score, _at_ends(low, high), tuple(VERDICTS)),
                       help=f"Share of verdicts that are {low} or {high}")
                for score, (label, low, high) in SCALES.items()
            ),
            hint="A polarised judge avoids the middle. 'overtone judge validate' measures whether people are as "
            "extreme on the same replies, and whether a judge favours models of its own family.",
        ),
        Headline(
            "aeq-judging", "AEQ-Bench: the model as a judge",
            (
                Column("consistency", "Consistency with people", "accuracy", {"task": ("choose",)},
                       help="Share of answers that agree with people; with three steps, chance is one in three"),
                Column("kappa", "Weighted κ", "accuracy", {"task": ("choose",)}, AGREEMENT, "number", where=RATINGS,
                       help="Cohen's κ of the ratings, with quadratic weights"),
                Column("extreme", "Good or Poor", "accuracy", {"task": ("choose",)}, better="neither",
                       where=RATINGS, read=NoteIn("accuracy.answer", ("A", "C")),
                       help="Share of ratings at an end of the scale: a polarised judge never says Fair"),
            ),
            rows="category",
        ),
    ),
    published=(
        Published(
            "AEQ-Bench",
            "AEQ-Bench (arXiv 2601.10513), as quoted in a summary; its tables were not available",
            {"integration": "Integration", "discrimination": "Discrimination", "naturalness": "Naturalness"},
            (
                ("GPT omni series", (0.91, None, None)),
                ("Qwen Omni series", (0.87, None, None)),
                ("Qwen-Audio", (None, 0.77, 0.46)),
            ),
            comparable="its judge's prompts and its scaling to [0, 1] are not known, and its items differ from those "
            "of the open set",
        ),
    ),
    rubrics=("aeq", "aeq-delivery", "aeq-discrimination"),
    layout=("aeq.json",),
)  # fmt: skip
