"""A person's state: the step, the notices, the screen, or how the person leaves."""

from __future__ import annotations

from overtone.errors import StoreError
from overtone.studio import contents, stimuli
from overtone.studio.server import screens
from overtone.studio.server.messages import (
    ConsentPart,
    End,
    Headphones,
    Progress,
    Qualification,
    Screen,
    State,
    Step,
    StudyInfo,
    StudyTexts,
    Trial,
)
from overtone.studio.server.messages import Person as About
from overtone.studio.server.open_study import Studio, stimulus
from overtone.studio.sounds import LostSound
from overtone.studio.stimuli import Test
from overtone.studio.store.store_records import Person, Slot

PROLIFIC = "https://app.prolific.com/submissions/complete?cc="
ENDS: dict[str, str] = {
    "done": "Thank you. All your answers are saved.",
    "withdrawn": "You have withdrawn. Your answers were deleted.",
    "closed": "This study has ended. Thank you for your interest.",
    "full": "This study has all the answers that it needs. Thank you for your interest.",
    "screened_out": "Thank you. This study needs other listening conditions or another group of people.",
    "refused": "You did not agree to take part, so this is the end. You can close this page.",
}
CODES = {"done": "completion_code", "screened_out": "screen_out_code", "refused": "no_consent_code"}
DEBRIEFED = ("done", "screened_out", "withdrawn", "closed")
MICROPHONE = ("record",)  # layouts that need one
TEST: Test = "woods"
RESERVING = ("rating", "break")


def state(studio: Studio, label: str) -> State:
    """Return a person's state. If the sound of a place is lost, another place replaces it before anything is shown."""
    store = studio.store
    while True:
        person = store.people.get(label)
        step = store.sessions.step(label)
        places = store.sessions.places(label) if step in RESERVING else []
        lost = [slot for slot in places if slot.state == "open" and not prepare(studio, slot)]
        if not lost:
            break
    progress = store.sessions.progress(label)
    return State(
        study=info(studio, step),
        person=About(person.role, person.label),
        step=step,
        progress=Progress(progress.done, progress.total),
        screen=_screen(studio, person, places) if step == "rating" else None,
        headphones=headphones(studio, person) if step == "headphones" else None,
        qualification=qualification(studio) if step == "qualification" else None,
        end=end(studio, person, step),
    )


def prepare(studio: Studio, slot: Slot) -> bool:
    """Render the sounds of a place. If one is lost, block its unit, tell the owner, and return False."""
    try:
        for one in screens.heard(studio, slot):
            studio.seconds(one.wanted)
    except LostSound as lost:
        block(studio, slot.unit, lost)
        return False
    return True


def block(studio: Studio, unit: str, lost: LostSound) -> None:
    """Leave out a unit whose sound is lost, and tell the owner."""
    studio.store.sessions.block(unit, str(lost))
    studio.warn(f"{lost} (its questions are left out until the file is restored and the server started again)")


def _screen(studio: Studio, person: Person, places: list[Slot]) -> Screen:
    for number, slot in enumerate(places, 1):
        if slot.state == "open":
            saved = studio.store.answers.of_slot(slot.id)
            return screens.screen(studio, slot, person, saved, number)
    raise StoreError("a session without open places is being rated")


def info(studio: Studio, step: Step) -> StudyInfo:
    """Return the facts about the study that pages receive."""
    study = studio.study
    people = study.people
    texts = StudyTexts(
        consent=people.consent, consent_sha=study.consent_sha, controller=people.controller, contact=people.contact,
        approval=people.approval, retention=people.retention, warning=people.warning,
        withdraw_until=people.withdraw_until,
        debriefing=people.debriefing if step in DEBRIEFED else "",
    )  # fmt: skip
    return StudyInfo(
        title=study.title,
        design=study.design,
        version=study.consent_sha,
        texts=texts,
        consents=tuple(ConsentPart(one.key, one.text, one.required, one.default) for one in people.parts),
        reserve_minutes=study.reserve_minutes,
        needs_microphone=studio.contents.design.layout in MICROPHONE,
        languages=study.languages,
    )


def qualification(studio: Studio) -> Qualification:
    """Return the questions about a person."""
    return Qualification(studio.study.qualification.text, contents.qualification(studio.study))


def trials(studio: Studio, person: Person) -> tuple[stimuli.Trial, ...]:
    """Return the trials of a person's next attempt at the headphone test."""
    return stimuli.trials(TEST, studio.secret + person.label.encode(), len(person.headphones))


def trial_id(studio: Studio, person: Person, number: int) -> str:
    """Return the id of a trial's sound."""
    return stimuli.name_key(studio.secret, "trial", person.label, str(len(person.headphones)), str(number))


def headphones(studio: Studio, person: Person) -> Headphones:
    """Return the headphone test for a person's next attempt."""
    asked = trials(studio, person)
    for one in asked:
        stimulus(one.name)
    seconds = stimuli.trial_seconds()
    links = [Trial(f"api/headphones/{trial_id(studio, person, number)}", seconds) for number in range(len(asked))]
    return Headphones(TEST, tuple(links), stimuli.NEEDED[TEST])


def end(studio: Studio, person: Person, step: Step) -> End | None:
    """Return how a person's session ends, with the platform's code for this outcome."""
    if step not in ENDS:
        return None
    recruitment = studio.study.recruitment
    code = getattr(recruitment, CODES[step]) if step in CODES else ""
    base = recruitment.return_url or (PROLIFIC if code and person.source == "prolific" else "")
    url = f"{base}{code}" if base and step in CODES else ""
    submit = {"code": code} if code and person.source == "mturk" else None
    return End(message=ENDS[step], code=code, redirect_url=url, again=may_go_on(studio, person, step), submit=submit)


def may_go_on(studio: Studio, person: Person, step: Step) -> bool:
    """Return whether a person who finished may begin another session."""
    if step != "done" or studio.study.sessions == 1:
        return False
    sessions = [slot.session for slot in studio.store.sessions.places(person.label)]
    return max(sessions, default=0) < studio.study.sessions and studio.store.status().missing > 0
