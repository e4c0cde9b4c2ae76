"""The text of a study file: every setting with one line that explains it, so that a person can edit it."""

from __future__ import annotations

from overtone.studio.study import Question, Source, Study
from overtone.studio.toml_text import toml

CONSENT = """\
You will listen to short recordings of speech and answer questions about them.
We store your answers, how long they took, and the results of the sound check, under a random number: neither your \
name nor your network address. You can stop at any time by closing the page. You can withdraw on every later page: \
your answers are then deleted.
I am an adult, I have read this, and I take part of my own free will."""
WARNING = "Some recordings contain crying, shouting or fear. You can skip them without loss of pay."

_FILE = """\
# A study of Overtone's studio. Everything can be edited before the first answer; afterwards only [people], [care],
# [recruitment], [checks], [qualification], raters, session, votes, overlap and reserve_minutes.
id = {id}
title = {title}
design = {design}  # {designs}
rubrics = {rubrics}  # whose questions are asked, with their scales and anchors
of = {of}  # replies; clips: the user's clips (design label)
raters = {raters}  # people expected
session = {session}  # {noun} that one person answers
sessions = {sessions}  # that one person may do, one after the other
votes = {votes}  # wanted per screen; more {noun} with 3 votes compare systems better than more votes
overlap = {overlap}  # answered by everybody, to measure agreement
units = {units}  # {noun} in the study, drawn with the seed; 0: all
seed = {seed}  # of the assignment
reserve_minutes = {reserve_minutes}  # without an answer, a person's open places go back to the others
shows = {shows}  # texts that raters see: cue, topic, words (of the user), reply
play_clip = {play_clip}  # what the user said is heard before the reply
reasons = {reasons}  # ab: also ask what decided
remark = {remark}  # a field for free remarks on every screen
one_question_per_person = {one_question_per_person}  # questions on one screen echo each other
adaptive = {adaptive}  # ab, cmos: next come the pairs of systems whose order is least certain
languages = {languages}  # that raters must understand, e.g. ["en"]

[people]
# controller, contact, approval, retention and debriefing are needed before the server listens beyond this machine.
consent = {consent}
controller = {controller}  # who is responsible for the data
contact = {contact}  # an address for questions and withdrawal
approval = {approval}  # number of the ethics approval, or why none is needed
retention = {retention}  # when the data will be deleted
debriefing = {debriefing}  # shown at the end: what the study is about
warning = {warning}  # shown before the consent
withdraw_until = {withdraw_until}  # last day on which people can withdraw, e.g. "2027-01-31"; "": always
{parts}
[checks]
headphones = {headphones}  # six trials; the result is stored with the answers
require_headphones = {require_headphones}  # true: who fails twice cannot take part
training = {training}  # answered first and not counted
traps = {traps}  # "how many tones do you hear?"
gold = {gold}  # questions with a known answer: one sound is played backwards
repeats = {repeats}  # screens that come a second time, to see whether a person answers the same again
anchors = {anchors}  # from a source named "anchor", whose quality is known to be low or high; without one: none

[qualification]
text = {qualification}  # shown above the questions
{questions}
[loudness]
per = {per}  # one gain for each system, for the set (all systems), or for each clip (deletes differences in level)
clips_gain_db = {clips_gain_db}  # for what the user said
cap_db = {cap_db}  # no 0.4 s are played louder than this (dB of full scale), to protect ears

[care]
break_every = {break_every}  # screens; 0: no breaks
skippable = {skippable}  # cues for which a new study warns people; every recording can be skipped

[recruitment]
platform = {platform}  # "", "prolific" or "mturk"
completion_code = {completion_code}
screen_out_code = {screen_out_code}  # for people who do not pass the qualification or the headphone test
no_consent_code = {no_consent_code}
return_url = {return_url}  # where people go at the end; the code is added

[store]
url = {url}  # or postgresql://USER@HOST/DATABASE, password in PGPASSWORD
"""
_OWN = {  # design → its section
    "label": """
[label]
cues = {cues}  # design label: "all" (39), "emotions", or names of cues
intensity = {intensity}  # also ask how strong it is
sliders = {sliders}  # also ask for valence, arousal and dominance
""",
    "mushra": """
[mushra]
reference = {reference}  # the benchmark's spoken "reply"; "clip": the original that a codec's run was given
anchor = {anchor}  # add the reference below 3.5 kHz
gain_db = {gain_db}  # for the reference and the anchor
""",
    "record": """
[record]
licence = {licence}  # of recordings whose speakers agree to their publication
examples = {examples}  # a built set whose clips speakers can hear as examples; "": none
""",
    "review": """
[review]
subject = {subject}  # "scripts"; "questions": each question of the scripts alone; "clips": the clips of a built set
round = {round}  # 1 to 3; each round is a study of its own
earlier = {earlier}  # study files of the earlier rounds, whose verdicts reviewers see
""",
}
_EXAMPLE = """\
# [[qualification.question]]
# key = "hearing"
# question = "Do you hear normally with both ears?"
# options = { yes = "Yes", no = "No" }
# accept = ["yes"]  # other answers screen a person out
"""


def text_of(study: Study) -> str:
    """Return the text of a study file, from which `study.read` returns the same study. Settings of other designs than
    its own are left out."""
    from overtone import registry
    from overtone.studio import designs

    sections = (study.people, study.checks, study.loudness, study.care, study.recruitment, study.label, study.mushra,
                study.record, study.review)  # fmt: skip
    values = {name: getattr(one, name) for one in (study, *sections) for name in one.__struct_fields__}
    values |= {"qualification": study.qualification.text, "url": study.store.url}
    texts = {name: toml(value) for name, value in values.items() if not isinstance(value, tuple) or _plain(value)}
    texts["parts"] = "".join(_table("people.part", part) for part in study.people.parts)
    texts["questions"] = "".join(_question(one) for one in study.qualification.questions) or _EXAMPLE
    texts["noun"] = designs.find(study.design).noun
    texts["designs"] = ", ".join(registry.listing("designs"))
    own = _OWN.get(study.design, "")
    return (_FILE + own).format(**texts) + "".join(_source(source) for source in study.sources)


def _plain(value: tuple[object, ...]) -> bool:
    return all(isinstance(one, str) for one in value)


def _table(name: str, section: object) -> str:
    rows = [f"{key} = {toml(getattr(section, key))}\n" for key in section.__struct_fields__]  # type: ignore[attr-defined]
    return f"\n[[{name}]]\n" + "".join(rows)


def _question(question: Question) -> str:
    return _table("qualification.question", question)


def _source(source: Source) -> str:
    comment = "  # for all its sounds; keeps the differences in level within it"
    return _table("source", source).rstrip("\n") + f"{comment}\n"
