"""EChat's labels in its own spellings: what they are in our words, and which of our cues they are."""

from __future__ import annotations

from msgspec import Struct

from overtone.cues import BY_SLUG, EVEN

KINDS = ("emotion", "age", "gender", "event")
KEYS = {  # kind → where a record says it
    "emotion": ("q_emotion", "emotion"),
    "age": ("age",),
    "gender": ("gender",),
    "event": ("caption", "event"),
}
_NOTHING = frozenset(
    {"", "&&", "none", "null", "unknown", "other", "其他", "其它"}
)  # no label, or the default for none
_SPELT: dict[str, dict[str, str]] = {
    "emotion": {
        "happy": "happiness joy 开心 高兴",
        "sad": "sadness 悲伤 难过",
        "angry": "anger 愤怒 生气",
        "fear": "fearful afraid 害怕 恐惧",
        "surprise": "surprised 惊讶",
        "disgust": "disgusted 厌恶",
        "neutral": "中立 中性",
    },
    "age": {"child": "儿童", "adult": "youth young middle middle-aged 成年 成人 青年 中年", "old": "elderly 老年 老人"},
    "gender": {"male": "man 男 男性", "female": "woman 女 女性"},
    "event": {
        "laughter": "laugh laughing 笑 笑声",
        "cough": "coughing 咳嗽",
        "sobbing": "cry crying 哭 哭声",
        "sigh": "sighing 叹气",
        "sneeze": "sneezing 打喷嚏",
        "throat-clearing": "清嗓子",
        "scream": "screaming 尖叫",
        "rain": "raining",
        "thunder": "thunderstorm",
        "wind": "",
        "waves": "sea-waves",
        "dog": "dog-barking",
        "alarm": "clock-alarm",
        "honking": "car-horn",
        "applause": "clapping",
        "subway": "train",
    },
}
_LABELS = {
    kind: {spelt: label for label, others in found.items() for spelt in (label, *others.split())}
    for kind, found in _SPELT.items()
}
_VOCAL = ("sneeze", "throat-clearing", "scream")  # by the speaker, and none of our cues: a scream is no shout
REPLY_EMOTIONS = {  # the tag that a reply begins with → in words; these beside the emotions
    "愉悦": "joyful",
    "抱歉": "apologetic",
    "哭腔": "tearful",
    "安慰鼓励": "comforting and encouraging",
    "sorry": "apologetic",
}


class Label(Struct, frozen=True):
    """One label of a query: `slug` is our cue, "" where it is none of ours."""

    kind: str
    name: str
    slug: str

    @property
    def words(self) -> str:
        if self.slug:
            return BY_SLUG[self.slug].phrase
        if self.name == "neutral":
            return EVEN
        return self.name.replace("-", " ")

    @property
    def dimension(self) -> str:
        if self.slug:
            return BY_SLUG[self.slug].dimension
        return "paralinguistic" if self.kind == "emotion" or self.name in _VOCAL else "environment"


def label(kind: str, told: str) -> Label | None:
    """The label that a record gives, None where it gives none. A word we do not know stays what it is."""
    plain = bare(told)
    if plain in _NOTHING:
        return None
    name = _LABELS[kind].get(plain, plain)
    slug = {"old": "elderly"}.get(name, name)
    return Label(kind, name, slug if slug in BY_SLUG else "")


def wanted(told: str) -> str:
    """The emotion that a reply's voice should carry, in words; "" where none is told."""
    plain = bare(told)
    return "" if plain in _NOTHING else REPLY_EMOTIONS.get(plain) or _LABELS["emotion"].get(plain, plain)


def bare(told: str) -> str:
    """A label without its angle brackets, in small letters, its words joined by hyphens."""
    return "-".join(told.strip().strip("<>").lower().replace("_", " ").split())
