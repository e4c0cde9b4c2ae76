"""OSUM-EChat's labels for queries and reply emotions, their tags, and the corresponding cues of Overtone.

A label is a lower-case English name ("throat clearing"); "" means unknown. A model reads and writes it as a tag
(`<THROAT CLEARING>`). EChat-200K writes some labels in Chinese or with other names; `label` and `reply` read these
names too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from overtone.errors import DataError
from overtone.spec import suggest

EMOTIONS = ("sad", "anger", "neutral", "happy", "surprise", "fear", "disgust", "other")
AGES = ("child", "adult", "old")
GENDERS = ("male", "female")
VOCAL = ("laugh", "cough", "cry", "screaming", "sigh", "throat clearing", "sneeze", "other")
STYLES = (
    "news and science",
    "horror story",
    "fairy tale",
    "customer service",
    "poetry and prose",
    "audiobook",
    "everyday speech",
    "other",
)

_SCENE_OF_CUE = {  # the captions of the open set for EChat-eval first, then the other background sounds
    "rain": "rain",
    "thunder": "thunderstorm",
    "wind": "wind",
    "waves": "sea waves",
    "dog": "dog",
    "alarm": "clock alarm",
    "honking": "car horn",
    "applause": "clapping",
    "subway": "train",
    "car": "engine",
    "cheering": "crowd cheering",
    "chatter": "crowd chatter",
    "children": "children playing",
    "ringtone": "phone ringing",
    "basketball": "basketball",
    "music": "music",
}
SCENES = tuple(_SCENE_OF_CUE.values())
_FIFTY = (  # the rest of the fifty sounds of ESC-50; EChat has not published its own fifty names
    "rooster, pig, cow, frog, cat, hen, insects, sheep, crow, crackling fire, crickets, chirping birds, water drops, "
    "pouring water, toilet flush, crying baby, breathing, footsteps, brushing teeth, snoring, drinking, door knock, "
    "mouse click, keyboard typing, door creak, can opening, washing machine, vacuum cleaner, clock tick, "
    "glass breaking, helicopter, chainsaw, siren, church bells, airplane, fireworks, hand saw"
)
CAPTIONS = (*SCENES, *_FIFTY.split(", "))  # every background sound that data may have
EVENTS = (*VOCAL, *CAPTIONS)
DIMENSIONS: dict[str, tuple[str, ...]] = {  # in the order in which labels follow a transcript
    "emotion": EMOTIONS,
    "age": AGES,
    "gender": GENDERS,
    "event": EVENTS,
    "style": STYLES,
}
DEFAULTS = {"emotion": "neutral", "age": "adult", "gender": "male", "event": "other", "style": "other"}
UNKNOWN = -1  # the index of an unknown label
MISSING = "&&"  # the tag's content for an unknown label

REPLY = (  # reply emotions
    "joyful",
    "apologetic",
    "happy",
    "angry",
    "surprised",
    "disgusted",
    "sad",
    "afraid",
    "tearful",
    "comforting",
    "neutral",
)
OLDER_REPLY: dict[str, str] = {  # the older set of fourteen → the set above; those without a counterpart become neutral
    "anger": "angry",
    "fear": "afraid",
    "happy": "happy",
    "surprise": "surprised",
    "sad": "sad",
    "disgust": "disgusted",
    "confused": "neutral",
    "sarcasm": "neutral",
    "embarrassed": "neutral",
    "curious": "neutral",
    "worried": "neutral",
    "shy": "neutral",
    "sorry": "apologetic",
    "neutral": "neutral",
}
SPOKEN: dict[str, tuple[str, float]] = {  # reply emotion → the cue whose recipe delivers it, and its strength
    # An assistant's emotions are restrained: none is as strong as in a query.
    "joyful": ("happy", 0.6),  # pleased, less than happy
    "apologetic": ("sad", 0.6),
    "happy": ("happy", 0.9),
    "angry": ("angry", 0.7),
    "surprised": ("surprise", 0.8),
    "disgusted": ("disgust", 0.8),
    "sad": ("sad", 0.9),
    "afraid": ("fear", 0.8),
    "tearful": ("sobbing", 0.5),
    # Comfort is soft and slow, like a third of sadness: 6 % slower, 2 dB softer, slightly breathy, narrower pitch.
    "comforting": ("sad", 0.35),
    "neutral": ("", 0.0),
}

_SYNONYMS: dict[str, dict[str, str]] = {  # dimension → label → other spellings
    "emotion": {
        "sad": "sadness, 悲伤, 难过, 伤心",
        "anger": "angry, 愤怒, 生气",
        "neutral": "calm, 中立, 中性",
        "happy": "happiness, joy, 开心, 高兴, 快乐",
        "surprise": "surprised, surprising, 惊讶, 吃惊",
        "fear": "fearful, afraid, 害怕, 恐惧",
        "disgust": "disgusted, 厌恶",
        "other": "others, 其他, 其它",
    },
    "age": {
        "child": "children, 儿童, 小孩",
        "adult": "youth, young, middle, middle-aged, middle aged, 成年, 成人, 青年, 中年",
        "old": "elderly, 老年, 老人",
    },
    "gender": {"male": "man, 男, 男性", "female": "woman, 女, 女性"},
    "event": {
        "laugh": "laughter, laughing, 笑, 笑声",
        "cough": "coughing, 咳嗽",
        "cry": "crying, sobbing, 哭, 哭声",
        "screaming": "scream, 尖叫",
        "sigh": "sighing, 叹气",
        "throat clearing": "throat-clearing, throatclearing, 清嗓子, 清嗓",
        "sneeze": "sneezing, 打喷嚏, 喷嚏",
        "other": "others, 其他, 其它",
        "thunderstorm": "thunder",
        "sea waves": "sea-waves, waves",
        "clock alarm": "clock-alarm, alarm",
        "car horn": "car-horn",
        "clapping": "applause",
        "drinking": "drinking sipping, drinking-sipping",
        "door creak": "door wood creaks",
        "door knock": "door wood knock",
    },
    "style": {
        "news and science": "news, science, news/science, 新闻科普",
        "horror story": "horror, 恐怖故事",
        "fairy tale": "fairytale, 童话故事",
        "customer service": "客服",
        "poetry and prose": "poetry, prose, poetry/prose, 诗歌散文",
        "audiobook": "有声书",
        "everyday speech": "everyday, spontaneous, 日常口语",
        "other": "others, 其他, 其它",
    },
}
_REPLY_SYNONYMS = {
    "joyful": "愉悦",
    "apologetic": "抱歉, sorry",
    "happy": "开心, cheerful",
    "angry": "愤怒, anger",
    "surprised": "惊讶, surprise",
    "disgusted": "厌恶, disgust",
    "sad": "悲伤",
    "afraid": "害怕, fear",
    "tearful": "哭腔",
    "comforting": "安慰鼓励, encouraging, comforting and encouraging, comforting/encouraging",
    "neutral": "中立",
}
_NOTHING = frozenset({"", MISSING, "none", "null", "unknown", "未知"})


def numbers(known: Mapping[str, str]) -> list[int]:
    """Return the index of the label in each dimension, or UNKNOWN."""
    return [labels.index(known[name]) if known.get(name) else UNKNOWN for name, labels in DIMENSIONS.items()]


def _by_spelling(names: Iterable[str], synonyms: dict[str, str]) -> dict[str, str]:
    table = {other: name for name, others in synonyms.items() for other in others.split(", ")}
    return table | {name: name for name in names}


_LABELS = {dimension: _by_spelling(names, _SYNONYMS[dimension]) for dimension, names in DIMENSIONS.items()}
_REPLIES = _by_spelling(REPLY, _REPLY_SYNONYMS)

LABEL_OF_CUE: dict[str, tuple[str, str]] = {  # slug → (dimension, label)
    "male": ("gender", "male"),
    "female": ("gender", "female"),
    "child": ("age", "child"),
    "adult": ("age", "adult"),
    "elderly": ("age", "old"),
    "happy": ("emotion", "happy"),
    "sad": ("emotion", "sad"),
    "surprise": ("emotion", "surprise"),
    "angry": ("emotion", "anger"),
    "fear": ("emotion", "fear"),
    "disgust": ("emotion", "disgust"),
    "laughter": ("event", "laugh"),
    "cough": ("event", "cough"),
    "sobbing": ("event", "cry"),
    "sigh": ("event", "sigh"),
    **{slug: ("event", name) for slug, name in _SCENE_OF_CUE.items()},
}
CUE_OF_LABEL = {label: slug for slug, label in LABEL_OF_CUE.items()}


class Labels(Struct, frozen=True):
    """The labels of a clip by dimension; "" means unknown."""

    emotion: str = ""
    age: str = ""
    gender: str = ""
    event: str = ""  # a vocal or background sound
    style: str = ""

    def known(self) -> dict[str, str]:
        """Return the known labels by dimension, in the order of DIMENSIONS."""
        return {name: value for name in DIMENSIONS if (value := getattr(self, name))}

    def cues(self) -> tuple[str, ...]:
        """Return the slugs of the corresponding cues. "neutral", and sounds that Overtone cannot synthesise, have no
        cue."""
        return tuple(CUE_OF_LABEL[pair] for pair in self.known().items() if pair in CUE_OF_LABEL)

    def problems(self) -> list[str]:
        """Return a message for each unknown label, with the nearest known name."""
        return [
            f"unknown {dimension} {name!r}{suggest(name, DIMENSIONS[dimension])}"
            for dimension, name in self.known().items()
            if name not in DIMENSIONS[dimension]
        ]


def of_cues(slugs: Iterable[str]) -> Labels:
    """Return the labels of cues. Cues without a label (hoarse, fast, yawn …) are ignored.

    Raises DataError for two labels of one dimension.
    """
    labels: dict[str, str] = {}
    for slug in slugs:
        if slug in LABEL_OF_CUE:
            dimension, name = LABEL_OF_CUE[slug]
            if labels.setdefault(dimension, name) != name:
                raise DataError(f"two labels for {dimension}: {labels[dimension]} and {name}; give one")
    return Labels(**labels)


def tag(name: str) -> str:
    """Return the tag of a label: `<ANGER>` for "anger"."""
    return f"<{name.upper()}>"


def bare(text: str) -> str:
    """Return a tag without brackets, in lower case, with single spaces: "anger" for `<ANGER>`."""
    return " ".join(text.strip().strip("<>").lower().replace("_", " ").split())


def label(dimension: str, text: str) -> str:
    """Return the label of a tag or word, or "".

    Unknown words are returned unchanged, so that `problems` reports them.
    """
    plain = bare(text)
    return "" if plain in _NOTHING else _LABELS[dimension].get(plain, plain)


def reply(text: str) -> str:
    """Return the reply emotion of a tag or word, or "". Unknown words become neutral, as in the published code."""
    plain = bare(text)
    return "" if plain in _NOTHING else _REPLIES.get(plain) or OLDER_REPLY.get(plain, "neutral")


def is_reply(text: str) -> bool:
    """Return whether a tag or word is a reply emotion of either set."""
    return bare(text) in _REPLIES or bare(text) in OLDER_REPLY
