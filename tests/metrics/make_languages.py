"""Write languages.json anew: what sacreBLEU says of replies in Chinese, Japanese, German and Spanish.

Run it as `python -m tests.metrics.make_languages` in an environment of its own that has sacrebleu 2.6. Everyone else
reads the file. A row is a language, a reply, its reference, and the corpus BLEU (0 to 100) of that one pair.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

FILE = Path(__file__).with_name("languages.json")
TOKENIZERS = {"zh": "char", "ja": "char", "de": "13a", "es": "13a"}
TEXTS = {
    "zh": [
        "听到这个消息我很难过。你想聊聊吗？",
        "恭喜你！找到新工作一定很开心吧，周五我们一起庆祝。",
        "你听起来很累，先喝点水，9:30 再给我打电话好吗？",
        "我喜欢用 iPhone 12 听音乐，声音（特别是低音）很好。",
    ],
    "ja": [
        "それは大変でしたね。少し休んでください。",
        "おめでとうございます！新しい仕事が決まって本当に嬉しいです。",
        "声が疲れているようですが、お水を飲みましたか？",
        "「大丈夫」と言われても、1人では難しいですよね。",
    ],
    "de": [
        "Das tut mir wirklich leid. Möchtest du darüber sprechen?",
        "Herzlichen Glückwunsch! Du freust dich bestimmt über die neue Stelle, oder?",
        "Du klingst müde – trink ein Glas Wasser und ruf mich um 9:30 Uhr an.",
        "Schöne Grüße aus der Straße, z.B. für 1.000,50 € im Jahr.",
    ],
    "es": [
        "¡Qué pena! ¿Quieres que hablemos de lo que pasó ayer?",
        "Enhorabuena, seguro que estás muy contenta con el nuevo trabajo.",
        "Suenas cansado: bebe un poco de agua y llámame a las 9:30.",
        "El niño corrió por la calle, según dijo su abuela, sin zapatos.",
    ],
}


def pairs(seed: int = 6) -> list[tuple[str, str, str]]:
    """Every text against itself, another one, nothing, and itself with characters or words changed."""
    rng = random.Random(seed)
    out = []
    for language, texts in TEXTS.items():
        for i, reference in enumerate(texts):
            out += [(language, reference, reference), (language, texts[i - 1], reference), (language, "", reference)]
            join = "" if TOKENIZERS[language] == "char" else " "
            units = list(reference) if not join else reference.split()
            for _ in range(5):
                reply = [rng.choice(units) if rng.random() < 0.15 else u for u in units if rng.random() > 0.1]
                out.append((language, join.join(reply), reference))
    return out


def main() -> None:
    import sacrebleu

    rows = []
    for language, reply, reference in pairs():
        found = sacrebleu.corpus_bleu([reply], [[reference]], tokenize=TOKENIZERS[language])
        rows.append([language, reply, reference, round(found.score, 9)])
    made_with = {"sacrebleu": sacrebleu.__version__, **TOKENIZERS}
    FILE.write_text(json.dumps({"made_with": made_with, "rows": rows}, ensure_ascii=False, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
