"""The study file: what is written is read back, and mistakes are found and named with their line."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from overtone import cues
from overtone.errors import DataError, UsageError
from overtone.studio import study
from overtone.studio.study import (
    Care,
    Checks,
    ConsentPart,
    LabelSettings,
    Loudness,
    MushraSettings,
    People,
    Qualification,
    Question,
    Recruitment,
    Source,
    Study,
)
from overtone.studio.study_file import text_of
from tests.studio.designs.helpers import study_of
from tests.studio.helpers import new_study

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


# ── what is written is read back ──────────────────────────────────────────────────────────────────────────────────────
@settings(deadline=None)
@given(texts=st.lists(TEXT, min_size=8, max_size=8), names=st.lists(NAME, min_size=2, max_size=3, unique=True))
def test_any_texts_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], names: list[str]
) -> None:
    title, *notices = texts
    people = People(
        consent="I agree. " + notices[0], controller=notices[1], debriefing=notices[2], warning=notices[3],
        withdraw_until="2027-01-31", parts=(ConsentPart(key="publish", text=notices[4], required=True),),
    )  # fmt: skip
    asked = Question(key="ears", question=notices[5], options={"yes": notices[6], "n o": "No"}, accept=("yes",))
    made = replace(
        study_of("acr"), title=title, people=people, qualification=Qualification(text=title, questions=(asked,)),
        sources=tuple(Source(name=name, path=name, gain_db=-3.25) for name in names),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("studies") / "s.toml"
    path.write_bytes(text_of(made).encode())
    assert study.read(path) == replace(made, path=path)


@pytest.mark.parametrize(
    "made",
    [
        replace(study_of("acr", "a"), loudness=Loudness(per="set", cap_db=-20, clips_gain_db=-1.5), remark=True),
        replace(study_of("acr", "a"), checks=Checks(headphones=False, gold=2, traps=0), one_question_per_person=True),
        replace(study_of("ab", "a", "b"), adaptive=True, reasons=True, languages=("en", "de"), shows=("cue",)),
        replace(study_of("cmos", "a", "b"), care=Care(break_every=0, skippable=()), reserve_minutes=5.5),
        replace(
            study_of("mushra", "a"), mushra=MushraSettings(reference="clip", anchor=False, gain_db=-2.0),
            checks=Checks(gold=0), loudness=Loudness(per="clip"),
        ),
        replace(
            study_of("label", "a"), of="clips", sources=(Source(kind="set", name="s", path="clips"),),
            label=LabelSettings(cues=("sad", "rain"), intensity=False, sliders=True), checks=Checks(gold=0),
        ),
        replace(
            study_of("transcribe", "a"), play_clip=False,
            recruitment=Recruitment(platform="prolific", completion_code="C1", screen_out_code="C2"),
        ),
    ],
    ids=lambda made: made.design,
)  # fmt: skip
def test_every_setting_survives_the_file(tmp_path: Path, made: Study) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(text_of(made).encode())
    assert study.read(path) == replace(made, path=path)


def test_every_setting_of_the_file_has_a_comment_or_speaks_for_itself(tmp_path: Path) -> None:
    text = new_study(tmp_path).path.read_text()
    plain = {"id", "title", "consent", "completion_code", "no_consent_code", "kind", "name", "path"}
    for line in text.splitlines():
        key, equals, rest = line.partition(" = ")
        if equals and key.isidentifier() and key not in plain:
            assert "#" in rest, line
    assert max(map(len, (line for line in text.splitlines() if not line.startswith("We store")))) <= 160


def test_the_file_has_all_settings_but_those_of_other_designs(tmp_path: Path) -> None:
    tree = tomllib.loads(new_study(tmp_path).path.read_text())
    own = {"label", "mushra"}
    missing = set(Study.__struct_encode_fields__) - tree.keys() - {"path"}
    assert missing <= own | {"record", "review"}


# ── mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("votes = 3", "votes = ", r"study.toml, line 11: is not valid TOML \(Invalid value at column 11\); correct"),
        ("votes = 3", "votes = 0", "line 11: votes must be"),
        (
            "votes = 3",
            "vots = 3",
            "study.toml, line 11: unknown setting 'vots'; did you mean 'votes'; correct the file",
        ),
        ("votes = 3", 'votes = "many"', "line 11: Expected `int`"),
        ("overlap = 2", "overlap = 99", "line 12: overlap .99. must not be larger than session"),
        ("shows = []", 'shows = ["name"]', "raters can see cue, topic, words, reply"),
        ("gold = 1", "gold = -1", "checks.gold"),
        ("gold = 1", "golds = 1", r"line \d+: unknown setting 'golds' in \[checks\]; did you mean 'gold'"),
        ('url = "sqlite:', 'url = "mysql:', "store.url"),
        ('url = "sqlite:study.db"', 'url = "postgresql://me:secret@host/db"', "must not contain a password"),
        ('name = "friday"', 'name = "monday"', r"line \d+: two sources are called 'monday'"),
        ("reserve_minutes = 30", "reserve_minutes = 0", "reserve_minutes"),
        ('design = "acr"', 'design = "acs"', r"line 5: unknown design 'acs'; did you mean 'acr'"),
        ('rubrics = ["echomind"]', 'rubrics = ["echomint"]', r"line 6: .*echomint"),
        ('rubrics = ["echomind"]', "rubrics = []", "line 6: the design acr needs a rubric"),
        ('of = "replies"', 'of = "clips"', 'line 7: of = "clips" belongs to the design label'),
        ("adaptive = false", "adaptive = true", "adaptive chooses pairs"),
        ('per = "system"', 'per = "clip"', "would delete the cue that is asked about .the rubric echomind"),
        ('per = "system"', 'per = "loud"', r"line \d+: Invalid enum value 'loud'"),
        ("cap_db = -12.0", "cap_db = 3", "loudness.cap_db must be"),
        ("languages = []", 'languages = ["eng"]', "languages: 'eng' has a shorter code"),
        ('"sobbing"', '"crying"', "care.skippable has 'crying'"),
        ("break_every = 10", "break_every = -1", "care.break_every"),
        ('withdraw_until = ""', 'withdraw_until = "31.1.2027"', "a date such as 2027-01-31, not '31.1.2027'"),
        ('platform = ""', 'platform = "prolific"', "prolific needs a completion_code"),
        ('return_url = ""', 'return_url = "javascript:x"', "return_url must begin with https://"),
        ("require_headphones = false", "require_headphones = true\nheadphones = false", "Cannot overwrite a value"),
        ("headphones = true", "headphones = false", ""),
        ('"monday"\ngain_db = -', '"monday"\ngain_db = -9', "gain_db of monday must be from -60 to 60"),
        ("clips_gain_db = -", "clips_gain_db = -9", r"line \d+: clips_gain_db must be from -60 to 60"),
        ('kind = "run"', 'kinds = "run"', r"line \d+: unknown setting 'kinds' in \[source\]; did you mean 'kind'"),
        ("votes = 3", 'votes = 3\npath = "x"', "line 12: unknown setting 'path'; correct the file"),
        ('kind = "run"', 'kind = "set"', r"line \d+: monday is a set; the design acr needs a run"),
    ],
)
def test_a_damaged_study_file_is_refused_with_the_reason(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = new_study(tmp_path).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    if not message:  # an allowed change
        study.read(path)
        return
    with pytest.raises(DataError, match=message):
        study.read(path)


def test_the_line_of_a_mistake_is_that_of_the_setting(tmp_path: Path) -> None:
    path = new_study(tmp_path).path
    lines = path.read_text().splitlines()
    number = next(
        n for n, line in enumerate(lines, 1) if line.startswith("gain_db") and n > lines.index("[[source]]") + 6
    )
    lines[number - 1] = "gain_db = 100"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=f"line {number}: gain_db of friday"):
        study.read(path)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (study_of("ab", "a"), "needs at least 2 sources"),
        (replace(study_of("ab", "a", "b"), one_question_per_person=True), "it needs the design acr"),
        (replace(study_of("ab", "a", "b"), loudness=Loudness(per="clip")), "would delete the cue"),
        (replace(study_of("acr", "a", rubrics=("ves",)), loudness=Loudness(per="clip")), "asks how a voice sounds"),
        (replace(study_of("label", "a", checks=Checks(gold=0)), loudness=Loudness(per="clip")), "cues and emotions"),
        (study_of("label", "a"), "no question of this study has a right answer"),
        (study_of("mushra", "a"), "no question of this study has a right answer"),
        (replace(study_of("label", "a", checks=Checks(gold=0)), shows=("cue",)), "gives the answer away"),
        (replace(study_of("transcribe", "a"), shows=("reply",)), "gives the answer away"),
        (study_of("label", "a", checks=Checks(gold=0), label=LabelSettings(cues=("sat",))), "did you mean 'sad'"),
        (
            replace(study_of("acr", "a"), recruitment=Recruitment(completion_code="X", screen_out_code="X")),
            "could not tell the outcomes apart",
        ),
        (replace(study_of("acr", "a"), checks=Checks(headphones=False, require_headphones=True)), "headphones = true"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, made: Study, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text_of(made))
    with pytest.raises(DataError, match=message):
        study.read(path)


@pytest.mark.parametrize(
    "made",
    [
        replace(study_of("transcribe", "a"), loudness=Loudness(per="clip")),
        replace(study_of("cmos", "a", "b", rubrics=()), loudness=Loudness(per="clip")),
        replace(study_of("acr", "a", rubrics=("uro-open",)), loudness=Loudness(per="clip")),
    ],
    ids=["transcribe", "cmos", "acr"],
)
def test_each_clip_may_be_normalised_where_its_level_carries_no_answer(tmp_path: Path, made: Study) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text_of(made))
    assert study.read(path).loudness.per == "clip"


def test_a_missing_study_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="overtone studio new"):
        study.read(tmp_path / "none.toml")


def test_texts_for_people_may_change_without_changing_what_is_asked(tmp_path: Path) -> None:
    made = new_study(tmp_path)
    text = made.path.read_text()
    made.path.write_text(text.replace('contact = ""', 'contact = "a@example.org"'))
    changed = study.read(made.path)
    assert changed.sha256 == made.sha256 and changed.consent_sha != made.consent_sha
    for old, new in (
        ("seed = 0", "seed = 1"),
        ("play_clip = true", "play_clip = false"),
        ("cap_db = -12.0", "cap_db = -20"),
    ):
        made.path.write_text(text.replace(old, new))
        assert study.read(made.path).sha256 != made.sha256


def test_a_study_lists_the_notices_that_people_elsewhere_need(tmp_path: Path) -> None:
    assert new_study(tmp_path).missing_notices == ["controller", "contact", "approval", "retention", "debriefing"]


def test_what_can_be_skipped_are_cues() -> None:
    assert set(study.DISTRESSING) <= set(cues.slugs())


def test_people_can_withdraw_until_the_day_in_the_file() -> None:
    made = replace(study_of("acr"), people=People(consent="Yes.", withdraw_until="2027-01-31"))
    assert made.withdrawal_open(datetime.date(2027, 1, 31)) and not made.withdrawal_open(datetime.date(2027, 2, 1))
    assert study_of("acr").withdrawal_open(datetime.date(2100, 1, 1))
