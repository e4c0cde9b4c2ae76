"""The taxonomy: EchoMind's 39 vocal cues in 12 categories and 3 dimensions, and its names for them.

`slug` is the name of a cue in Overtone. `labels` are the names in EchoMind's files (`spoken_info` and folder names).
`option` is our sentence for the cue in a multiple-choice question, and `phrase` our words for it in a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DIMENSIONS = ("speaker", "paralinguistic", "environment")

CATEGORIES: dict[str, str] = {  # category → dimension, in EchoMind's order
    "gender": "speaker",
    "age": "speaker",
    "physiological": "paralinguistic",
    "emotion": "paralinguistic",
    "volume": "paralinguistic",
    "speed": "paralinguistic",
    "nonverbal": "paralinguistic",
    "weather": "environment",
    "location": "environment",
    "voices": "environment",
    "event": "environment",
    "other": "environment",
}

UNDERSTANDING: dict[str, str] = {  # the eight voice-understanding tasks → our question
    "coarse": "Which of these statements fits the recording best?",
    "gender": "Is the speaker more likely a man or a woman?",
    "age": "Which age group does the speaker most likely belong to?",
    "style": "Which of these describes the speaker's voice best?",
    "emotion": "Which emotion does the speaker's voice most likely carry?",
    "pace": "How fast does the speaker talk?",
    "nonverbal": "Which sound other than words does the speaker make?",
    "background": "What can be heard behind the speaker?",
}

TASK_OF_CATEGORY: dict[str, str] = {
    "gender": "gender",
    "age": "age",
    "physiological": "style",
    "volume": "style",
    "emotion": "emotion",
    "speed": "pace",
    "nonverbal": "nonverbal",
    "weather": "background",
    "location": "background",
    "voices": "background",
    "event": "background",
    "other": "background",
}

VOICE_TASKS: dict[str, str] = {  # category of a question about the voice → its name
    "coarse": "Coarse-grained",
    "gender": "Gender",
    "age": "Age group",
    "style": "Voice style",
    "emotion": "Emotion",
    "pace": "Speaking pace",
    "nonverbal": "Non-verbal sound",
    "background": "Background sound",
}

REASONING: dict[str, str] = {  # the ten reasoning categories → EchoMind's name
    "people": "Multiple People Detection",
    "laughter": "Laughter Sentiment Detection",
    "shouting": "Shouting Sentiment Detection",
    "consistency": "Audio-Text Sentiment Consistency",
    "response-style": "Response Style Matching",
    "recommendation": "Personalized Recommendation Matching",
    "suggestion": "Contextual Suggestion Generation",
    "preceding-event": "Preceding Event Inference",
    "intent": "Speaker Intent Recognition",
    "empathy": "Empathy-Aware Response Selection",
}

EXTENSION_STEMS: dict[str, str] = {
    "false-cue": "What stands out in this recording, if anything?",
    "conflict-words": "Going by the words alone, which of these would one expect to hear?",
    "conflict-voice": "Whatever the words say, which of these does one hear?",
    "conflict-agreement": "Do the words agree with how the recording sounds?",
}
NOTHING_SPECIAL = "Nothing special in the voice, and nothing behind it."


@dataclass(frozen=True)
class Cue:
    """One vocal attribute."""

    slug: str
    category: str
    phrase: str
    option: str
    labels: tuple[str, ...]
    pattern: str  # what an option sentence about this cue contains, in ours or EchoMind's words
    counted: bool = True  # one of the 39 (adult serves as an option only)

    @property
    def dimension(self) -> str:
        return CATEGORIES[self.category]

    @property
    def task(self) -> str:
        """The voice-understanding task that asks about this cue."""
        return TASK_OF_CATEGORY[self.category]


def _emotion(slug: str, noun: str, pattern: str) -> Cue:
    return Cue(
        slug,
        "emotion",
        f"a voice full of {noun}",
        f"The voice carries {noun}.",
        (f"{slug}-toned expressive voice", slug),
        pattern,
    )


def _scene(slug: str, category: str, phrase: str, labels: tuple[str, ...], pattern: str) -> Cue:
    return Cue(
        slug, category, f"{phrase} in the background", f"One hears {phrase} behind the speaker.", labels, pattern
    )


_ALL: tuple[Cue, ...] = (
    Cue("male", "gender", "a man's voice", "The speaker is a man.", ("male",), r"\b(male|man)\b"),
    Cue("female", "gender", "a woman's voice", "The speaker is a woman.", ("female",), r"\b(female|woman)\b"),
    Cue("child", "age", "a child's voice", "The speaker is a child.", ("child",), r"\ba child\b|^child$"),
    Cue(
        "elderly",
        "age",
        "an old person's voice",
        "The speaker is an old person.",
        ("elderly",),
        r"\b(elderly|old person)\b",
    ),
    Cue(
        "adult",
        "age",
        "an adult's voice",
        "The speaker is a grown-up of middle age.",
        ("adult",),
        r"\b(adult|grown-up)\b",
        False,
    ),
    Cue("hoarse", "physiological", "a hoarse voice", "The voice is hoarse.", ("Hoarse voice", "hoarse"), r"\bhoarse"),
    Cue(
        "breath",
        "physiological",
        "a speaker out of breath",
        "The speaker is out of breath.",
        ("breathless sound / gasping sound / heavy breathing sound", "breath"),
        r"\b(gasp|breath)",
    ),
    Cue(
        "tired",
        "physiological",
        "a worn-out voice",
        "The voice is worn out.",
        ("vocal fatigue", "tired"),
        r"\b(fatigue|tired|worn out)",
    ),
    Cue(
        "sobbing",
        "physiological",
        "sobbing while speaking",
        "The speaker sobs.",
        ("sobbing sound", "sobbing"),
        r"\bsob",
    ),
    _emotion("happy", "happiness", r"\bhapp(y|iness)\b(?! music)"),
    _emotion("sad", "sadness", r"\bsad(ness)?\b(?! music)"),
    _emotion("surprise", "surprise", r"\bsurprise"),
    _emotion("angry", "anger", r"\b(anger|angry)\b(?! music)"),
    _emotion("fear", "fear", r"\bfear"),
    _emotion("disgust", "disgust", r"\bdisgust"),
    Cue("shout", "volume", "a shouting voice", "The speaker shouts.", ("shout",), r"\bshout"),
    Cue("whisper", "volume", "a whispering voice", "The speaker whispers.", ("whisper",), r"\bwhisper"),
    Cue("fast", "speed", "very fast speech", "The speaker talks fast.", ("fast speaking pace", "fast"), r"\bfast\b"),
    Cue("slow", "speed", "very slow speech", "The speaker talks slowly.", ("slow speaking pace", "slow"), r"\bslow"),
    Cue("cough", "nonverbal", "coughing", "The speaker coughs.", ("cough voice", "cough"), r"\bcough"),
    Cue("sigh", "nonverbal", "sighing", "The speaker sighs.", ("sigh sound", "sigh"), r"\bsigh"),
    Cue("laughter", "nonverbal", "laughing", "The speaker laughs.", ("laughter sound", "laughter"), r"\blaugh"),
    Cue("yawn", "nonverbal", "yawning", "The speaker yawns.", ("yawn sound", "yawn"), r"\byawn"),
    Cue("moan", "nonverbal", "moaning", "The speaker moans.", ("moan sound", "moan"), r"\bmoan"),
    _scene("wind", "weather", "wind", ("sound of wind blowing",), r"\bwind\b"),
    _scene("thunder", "weather", "a thunderstorm", ("sound of thunderstorm and thunder",), r"\bthunder"),
    _scene("rain", "weather", "rain", ("sound of raining",), r"\brain"),
    _scene("waves", "location", "sea waves", ("sound of sea waves",), r"\bwaves\b"),
    _scene("basketball", "location", "a basketball game", ("sound of playing basketball",), r"\bbasketball"),
    _scene("car", "location", "a car being driven", ("sound of driving a car",), r"\b(driving|driven)\b"),
    _scene("subway", "location", "an underground train", ("sound of subway",), r"\b(subway|underground train)\b"),
    _scene("applause", "voices", "applause", ("sound of applause from a crowd",), r"\bapplau"),
    _scene("cheering", "voices", "a cheering crowd", ("sound of crowd cheering",), r"\bcheer"),
    _scene("chatter", "voices", "many people chatting", ("sound of crowd's chatter",), r"\bchatt"),
    _scene(
        "children", "voices", "children", ("sound of children playing", "sound of children speaking"), r"\bchildren\b"
    ),
    _scene("alarm", "event", "an alarm clock", ("sound of alarm clock ringing",), r"\balarm\b"),
    _scene("ringtone", "event", "a ringing phone", ("sound of ringtone",), r"\b(ringtone|ringing phone)\b"),
    _scene("honking", "event", "car horns", ("sound of vehicle honking",), r"\b(honk\w*|car horns)\b"),
    _scene("dog", "other", "a barking dog", ("sound of dog(s) barking",), r"\bdogs?\b|\bbarking\b"),
    _scene(
        "music",
        "other",
        "music",
        tuple(f"sound of {mood} music" for mood in ("happy", "funny", "sad", "exciting", "angry")),
        r"\bmusic\b",
    ),
)

BY_SLUG: dict[str, Cue] = {c.slug: c for c in _ALL}
CUES: tuple[Cue, ...] = tuple(c for c in _ALL if c.counted)
_BY_LABEL: dict[str, Cue] = {label.casefold(): c for c in _ALL for label in (c.slug, *c.labels)}
_PATTERNS: tuple[tuple[re.Pattern[str], Cue], ...] = tuple((re.compile(c.pattern, re.I), c) for c in _ALL)


ALSO_TRUE: dict[str, frozenset[str]] = {  # cue → other cues that a listener may correctly report for its clip
    # Not symmetric: a speaker who is out of breath may sound worn out, but a worn-out speaker does not gasp.
    slug: frozenset(also.split())
    for slug, also in {
        "child": "male female happy surprise children",
        "elderly": "hoarse tired slow sad breath fear",
        "hoarse": "tired elderly disgust cough",
        "breath": "sigh tired fear moan sobbing fast wind",
        "tired": "slow sad hoarse elderly sigh yawn disgust",
        "sobbing": "sad breath moan sigh fear child elderly laughter",
        "happy": "surprise child",
        "sad": "tired slow elderly sigh",
        "surprise": "happy child",
        "angry": "shout fast disgust",
        "fear": "fast breath sobbing child elderly",
        "disgust": "angry slow tired hoarse elderly",
        "shout": "angry surprise happy fear child",
        "whisper": "fear elderly child wind",
        "fast": "fear breath angry",
        "slow": "tired sad disgust elderly",
        "cough": "hoarse dog",
        "sigh": "tired sad breath moan slow disgust wind",
        "laughter": "happy surprise child sobbing children",
        "yawn": "tired slow sad",
        "moan": "sad tired sigh sobbing disgust slow breath",
        "wind": "waves car subway breath",
        "thunder": "rain wind",
        "rain": "applause waves thunder",
        "waves": "wind rain",
        "basketball": "cheering chatter children",
        "car": "subway wind honking",
        "subway": "car wind",
        "applause": "cheering rain",
        "cheering": "applause chatter children basketball shout laughter happy",
        "chatter": "cheering children",
        "children": "chatter cheering child laughter shout happy",
        "alarm": "ringtone",
        "ringtone": "alarm music",
        "honking": "car",
        "dog": "cough",
        "music": "ringtone",
    }.items()
}

ALSO_TRUE_OF_KIND: dict[tuple[str, str], frozenset[str]] = {  # the same for one kind of a cue with several kinds
    kind: frozenset(also.split())
    for kind, also in {
        ("laughter", "nervous"): "fear",
        ("shout", "joyful"): "laughter",
        ("music", "happy"): "happy",
        ("music", "funny"): "happy laughter",
        ("music", "sad"): "sad slow",
        ("music", "exciting"): "happy surprise fast",
        ("music", "angry"): "angry fast",
    }.items()
}


EVEN = "an even voice without any particular emotion"
PLAIN = ("neutral", "calm", "none", "normal", EVEN)  # benchmarks' words for a clip without a cue


def find_cue(label: str) -> Cue | None:
    """Return the cue with this slug or EchoMind label. Return None if there is no such cue."""
    return _BY_LABEL.get(" ".join(label.split()).casefold())


def cue_of_option(sentence: str) -> Cue | None:
    """Return the cue that an option's sentence names, in our wording or EchoMind's.

    Return None if the sentence names no cue or more than one.
    """
    named = {c.slug: c for pattern, c in _PATTERNS if pattern.search(sentence)}
    for slug in ("music", "children"):  # their sentences may also name other cues
        if slug in named:
            return named[slug]
    return next(iter(named.values())) if len(named) == 1 else None


def slugs(cues: Iterable[Cue] = CUES) -> tuple[str, ...]:
    return tuple(c.slug for c in cues)


def cues_in(text: str) -> list[str]:
    """Return the slugs of the cues that a text names."""
    return [cue.slug for cue in BY_SLUG.values() if re.search(cue.pattern, text, re.I)]
