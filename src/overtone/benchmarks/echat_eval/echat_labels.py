"""EChat's labels: the spellings of each label, our name for it, and the cue that it corresponds to."""

from __future__ import annotations

from msgspec import Struct

from overtone.cues import BY_SLUG, EVEN

KINDS = ("emotion", "age", "gender", "event")
KEYS = {  # kind → the keys of a record that may hold it
    "emotion": ("q_emotion", "emotion"),
    "age": ("age",),
    "gender": ("gender",),
    "event": ("caption", "event"),
}
_NO_LABEL = frozenset({"", "&&", "none", "null", "unknown", "other", "其他", "其它"})
_SPELLINGS: dict[str, dict[str, str]] = {  # kind → label → other spellings
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
    kind: {spelling: label for label, others in labels.items() for spelling in (label, *others.split())}
    for kind, labels in _SPELLINGS.items()
}
_VOCAL = ("sneeze", "throat-clearing", "scream")  # made by the speaker; not cues of ours: a scream is not a shout
REPLY_EMOTIONS = {  # tag that a reply begins with → its meaning, in addition to the emotions
    "愉悦": "joyful",
    "抱歉": "apologetic",
    "哭腔": "tearful",
    "安慰鼓励": "comforting and encouraging",
    "sorry": "apologetic",
}


class Label(Struct, frozen=True):
    """One label of a query. `slug` is the cue, or "" if the label does not correspond to one."""

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


def label(kind: str, text: str) -> Label | None:
    """Return the label for a record's text, or None for a text like "none". An unknown word becomes a label too."""
    plain = bare(text)
    if plain in _NO_LABEL:
        return None
    name = _LABELS[kind].get(plain, plain)
    slug = {"old": "elderly"}.get(name, name)
    return Label(kind, name, slug if slug in BY_SLUG else "")


def wanted(text: str) -> str:
    """Return an English name for the emotion that a reply's voice should have; "" for a text like "none"."""
    plain = bare(text)
    return "" if plain in _NO_LABEL else REPLY_EMOTIONS.get(plain) or _LABELS["emotion"].get(plain, plain)


def bare(text: str) -> str:
    """Return a label without angle brackets, in lower case, with hyphens between its words."""
    return "-".join(text.strip().strip("<>").lower().replace("_", " ").split())
