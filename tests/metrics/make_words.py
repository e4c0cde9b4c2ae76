"""Write words.json anew: pairs of replies and references with what the reference libraries say of them.

Run it as `python -m tests.metrics.make_words` in an environment of its own that has nltk 3.10, sacrebleu 2.6 and
rouge_score 0.1.2, with NLTK_DATA naming a folder that holds its punkt_tab and Debian's WordNet as corpora/wordnet
(whose file `lexnames` may be made up: METEOR does not read it). Everyone else reads the file.
"""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import msgspec

FILE = Path(__file__).with_name("words.json")
PAIRS = 1500

REPLIES = """
Oh no, that sounds really hard. I'm so sorry you had to go through that on your own.
Hey, congratulations! You must be thrilled; I can hear how happy you are about the new job.
You sound exhausted... Maybe take a short break, drink some water, and call me at 9:30 p.m. if you can't sleep?
It's noisy where you are -- are you driving? Let's talk when you've parked the car.
Dr. Lee said it won't hurt. We'll be there by five o'clock, and I'll hold your hand.
Well, Mr. Grey lives in the U.S. now. He moved there in 1990. He doesn't visit often, e.g. only at Christmas.
I cannot believe it! Gonna celebrate? Gimme a minute, I wanna hear everything.
That cough doesn't sound good. Have you seen a doctor, or are you just resting at home?
The kids are playing outside, so I'll speak up. "Can you hear me now?" she asked.
Sure, the museum opens at 10:00 and costs $3.50 (children get in free).
I understand why you're worried. Studies show that walking helps; try it for a week or two.
Please don't cry. Things will get better, believe me — they always do.
Your grandmother's recipe needs 1,000 grams of flour, 50% sugar & a pinch of salt.
What a beautiful evening! The rain has stopped and the birds are singing again.
You whispered, so I guess it's a secret. I won't tell anybody, I promise.
“That's wonderful,” he said. ‘Truly wonderful.’ It’s the best news we’ve heard all year…
The children were running happily through the large houses, buying big presents and gifts.
Begin slowly: start the engine, shut the door, close the window, purchase a ticket and finish the job.
""".strip().splitlines()

EDGES = """
|hello||Hello.|hello|. . .|...|?!|'|''|"|``|a|a b|a b c|a b c d|a b c d e|the the the the
the cat sat on the mat
café naïve Ångström|中文 没有 空格|😀 😀 ok|e.g. this. i. e. that.|No. 5. is alive|born in 1990. it was cold
U.S. and U.K. officials met vs. the rest|st. john's|wait . . . what|so.... yes|(end.) "next." 'last.'
a--b---c
<skipped> &quot;quoted&quot; &amp; &lt;b&gt;|line one-\nline two\nthree|1,000.50-2.5
$3.88, 5% @ #1 *star*
dogs' rock'n'roll 'tis 'twas d'ye more'n 'em|can't won't shan't ain't they'd've
skies dying news innings succeed
“curly” ‘quotes’ «guillemets» „low“|trailing space   |\ttabs\tand\nnewlines\n\n|ALL CAPS TEXT|MiXeD cAsE
agreed flies died tied hopping sized falling relational|a.m. p.m. ph.d. jan. ltd. inc.|x. y. z. then
mid-1990. 3. two
children geese mice better went largest happily|dog domestic_dog canine|ice_cream is cold
big large huge great
;:,.|!!!|— – -|()[]{}<>|* * *|…|¿Qué? ¡Sí!|#@$%&|~^_=+\\/|"."|'.'|.5 0.5 -3 +7 1e9 3/4 50% 1st 2nd
12:30:45 on 01.02.2003.
call 555-0123. or 1.800.555.0199|$1,234,567.89 is £9 or 8€.|3.14159. ok|in 2020. 5 of 7. done|10 000
½ ¾ ² x²
i'm you're he's she'd we'll they've isn't wouldn't've y'all o'clock ma'am
let's that's who'd it'd 'cause 'bout '90s
I’m you’re isn’t — curly apostrophes|cannot gonna gotta lemme gimme wanna whatcha dunno
cannot. gonna. wanna.|wanna
Mr. Mrs. Ms. Dr. Prof. Sen. Rep. Gen. Col. Lt. Maj. Jr. Sr. St. all came.
Acme Corp. and Sons Inc. vs. Bros. Ltd. Co.
on Jan. 5, Feb. 6, Aug. 7, Sept. 8, Oct. 9, Nov. 10 and Dec. 11.
at 5 a.m. or 6 p.m. on Tues. Wed. or Fri. we met
in Washington, D.C. he met the U.N. and the U.S.S.R. too.|he has a Ph.D. an M.B.A. and a C.V. ok. yes
J.K. said hi. bye
from Calif. to Fla. via Ariz. Okla. and Tenn. and N.Y. N.J. N.C.|etc. and so on|e.g. apples, i.e. fruit.
no. 7, approx. 3
p. 5 of vol. 2, c. 1990, d. 1991. b. 1950.|5th Ave. and 42nd St. in N.Y.|6 ft. 2 in. tall, 50 mg. a day
a. b. c. d. 1. 2. 3.
👩‍👩‍👧‍👦 family 👍🏽 ok 🇩🇪|😭😭😭|i❤you 💔.|so happy 😀. really 🎉!|zero\u200bwidth\u00a0space\u2003wide
ﬁne ligature ﬀ|İstanbul ẞ ß
Здравствуйте, как дела? Хорошо.|مرحبا كيف حالك؟|שלום. מה שלומך?|नमस्ते। आप कैसे हैं?|日本語。テスト！|한국어 문장입니다.
Ελλάδα; ναι.|é é
supercalifragilisticexpialidocious pneumonoultramicroscopicsilicovolcanoconiosis
http://a.b/c?d=e&f#g x@y.zz www.q.com.
<b>bold</b> **md** `code` ~~no~~|- one\n- two\n1. three|"Quote." "Again?" 'so.'
He said: "no." She said "yes".|wait...what?!
""".replace("\n", "|").replace("\\n", "\n").replace("\\t", "\t").split("|")  # fmt: skip

SWAPS = {
    "hard": "difficult", "sorry": "regretful", "happy": "glad", "job": "occupation", "short": "brief", "car": "auto",
    "call": "phone", "doctor": "physician", "large": "big", "gifts": "presents", "purchase": "buy", "start": "begin",
    "shut": "close", "finish": "end", "kids": "children", "beautiful": "lovely", "evening": "eve", "secret": "secrets",
    "playing": "played", "worried": "worry", "running": "runs", "houses": "house", "helps": "help", "talk": "speak",
}  # fmt: skip


def pairs(n: int, seed: int) -> list[tuple[str, str]]:
    """Replies and references: every edge case with its neighbours, then replies cut, mixed, reworded and garbled."""
    rng = random.Random(seed)
    out = [(a, b) for i, a in enumerate(EDGES) for b in (a, EDGES[i - 1], EDGES[i - 7])]
    long = [" ".join(rng.choices(REPLIES, k=40)) for _ in range(3)]
    out += [(long[0], long[1]), (long[2], REPLIES[0]), (REPLIES[0], long[2]), ("word " * 2000, "word " * 1999)]
    while len(out) < n:
        reference = rng.choice(REPLIES)
        found = (reference if rng.random() < 0.7 else rng.choice(REPLIES)).split(" ")
        start = rng.randint(0, len(found) // 2)
        found = found[start : start + rng.randint(1, len(found))]
        found = [SWAPS.get(w, w) if rng.random() < 0.6 else w for w in found if rng.random() > 0.1]
        if rng.random() < 0.3:
            found = [rng.choice(rng.choice(REPLIES).split()) if rng.random() < 0.3 else w for w in found]
        if rng.random() < 0.2:
            rng.shuffle(found)
        reply = rng.choice([" ", " ", " ", "  ", "\n"]).join(found)
        if rng.random() < 0.15:
            reply = "".join(rng.choice(string.printable[:95]) if rng.random() < 0.08 else c for c in reply)
        words = reference.split(" ")
        out.append((reply, " ".join(words[: rng.randint(4, len(words))])))
    return out


def stemmed() -> list[str]:
    """Words to stem: those of the texts, and roots with every ending the stemmer knows."""
    roots = "happi relat hop fil agre trouble size general connect vile geo y ski oscill digit sens proce ti"
    ends = (
        "s ss sses ies ied ed eed ing ings y ly alli ational tional enci izer bli entli eli ousli ization ator alism "
        "iveness fulness aliti biliti fulli logi icate ative alize ical ful ness ement ment ion ism ous e ll ate"
    )
    texts = {w.strip(string.punctuation).lower() for text in (*REPLIES, *EDGES) for w in text.split()}
    return sorted((texts | {root + end for root in roots.split() for end in ends.split()}) - {""})


def _synonyms(synsets: list[Any]) -> list[str]:
    return sorted({name for synset in synsets for name in synset.lemma_names() if "_" not in name})


def main() -> None:
    import nltk
    from nltk.corpus import wordnet
    from nltk.stem.porter import PorterStemmer
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.meteor_score import meteor_score
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics import BLEU

    smooth = SmoothingFunction().method1
    plain, stemming = (RougeScorer(["rougeL"], use_stemmer=flag) for flag in (False, True))
    rows: list[list[Any]] = []
    for reply, reference in pairs(PAIRS, 11):
        ours, theirs = nltk.word_tokenize(reply.lower()), nltk.word_tokenize(reference.lower())
        values = [
            sentence_bleu([theirs], ours, smoothing_function=smooth) if ours and theirs else 0.0,
            BLEU().corpus_score([reply], [[reference]]).score / 100,
            plain.score(reference, reply)["rougeL"].fmeasure,
            stemming.score(reference, reply)["rougeL"].fmeasure,
            meteor_score([reference.lower().split()], reply.lower().split()),
        ]
        rows.append([reply, reference, *(round(float(v), 9) for v in values)])
    corpora = []
    for size in (1, 3, 10, 100, PAIRS):
        for start in range(0, PAIRS, max(size, 200)):
            part = [row for row in rows[start : start + size] if row[1].strip()]
            if part:
                score = BLEU().corpus_score([r[0] for r in part], [[r[1] for r in part]]).score / 100
                corpora.append([start, size, round(score, 9)])
    stemmer = PorterStemmer()
    looked_up = sorted({stemmer.stem(word) for row in rows for text in row[:2] for word in text.lower().split()})
    synonyms = {word: _synonyms(wordnet.synsets(word)) for word in looked_up}
    told = {
        "made_with": {name: __import__(name).__version__ for name in ("nltk", "sacrebleu")} | {"rouge_score": "0.1.2"},
        "columns": ["reply", "reference", "bleu", "bleu_corpus", "rouge_l", "rouge_l_stemmed", "meteor"],
        "pairs": rows,
        "corpora": corpora,
        "tokens": {text: nltk.word_tokenize(text.lower()) for text in (*EDGES, *REPLIES)},
        "synonyms": {word: found for word, found in synonyms.items() if found},  # as METEOR takes them from WordNet
        "stems": {word: stemmer.stem(word) for word in stemmed()},
    }
    FILE.write_bytes(msgspec.json.encode(told) + b"\n")


if __name__ == "__main__":
    main()
