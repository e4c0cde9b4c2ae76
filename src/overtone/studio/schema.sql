-- The tables of a study. Only what SQLite and PostgreSQL both understand; {serial} is each dialect's counting key.
-- Times are seconds since 1970 (UTC); structured values are JSON. No network address is stored anywhere.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);

-- what can be asked, frozen at the first serve; grp is the script, which a person meets at most once
CREATE TABLE unit (
    id TEXT PRIMARY KEY, place INTEGER NOT NULL UNIQUE, grp TEXT NOT NULL, system TEXT NOT NULL, content TEXT NOT NULL
);

-- label: a random pseudonym; number: the order of arrival
CREATE TABLE person (
    label TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, role TEXT NOT NULL, source TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, consent_sha TEXT NOT NULL DEFAULT '', consented DOUBLE PRECISION,
    agreed INTEGER, parts TEXT NOT NULL DEFAULT '{}', device TEXT NOT NULL DEFAULT '{}', level DOUBLE PRECISION,
    headphones TEXT NOT NULL DEFAULT '[]', qualification TEXT NOT NULL DEFAULT '{}',
    rested INTEGER NOT NULL DEFAULT 0, ended TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT ''
);

-- the SHA-256 of every token; a person can have several
CREATE TABLE token (hash TEXT PRIMARY KEY, person TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, revoked INTEGER NOT NULL);
CREATE INDEX token_person ON token (person);

-- ids of a payment service, erased when the study is closed
CREATE TABLE payment (
    person TEXT PRIMARY KEY, source TEXT NOT NULL, external TEXT NOT NULL, session TEXT NOT NULL,
    submission TEXT NOT NULL, UNIQUE (source, external)
);

-- places in sessions; state is open, done, skipped or released
CREATE TABLE slot (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
    unit TEXT NOT NULL, grp TEXT NOT NULL, swap INTEGER NOT NULL, target INTEGER NOT NULL, state TEXT NOT NULL,
    stage INTEGER NOT NULL DEFAULT 0, reserved_until DOUBLE PRECISION NOT NULL, opened DOUBLE PRECISION NOT NULL,
    finished DOUBLE PRECISION, reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX slot_person ON slot (person, session, seq);
CREATE INDEX slot_unit ON slot (unit, state);
CREATE UNIQUE INDEX slot_once ON slot (person, grp) WHERE kind = 'real' AND state <> 'released';

-- append only: the newest answer of a slot and field counts
CREATE TABLE answer (
    number {serial}, slot TEXT NOT NULL, person TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL,
    plays TEXT NOT NULL, ms INTEGER NOT NULL, consent_sha TEXT NOT NULL, client_key TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL, UNIQUE (person, client_key, field)
);
CREATE INDEX answer_slot ON answer (slot);

-- requests that were carried out, so that repeating one changes nothing
CREATE TABLE request (person TEXT NOT NULL, client_key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (person, client_key));

CREATE TABLE take (
    id TEXT PRIMARY KEY, person TEXT NOT NULL, slot TEXT NOT NULL, unit TEXT NOT NULL, part TEXT NOT NULL,
    client_key TEXT NOT NULL, sha256 TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, settings TEXT NOT NULL,
    checks TEXT NOT NULL, verdict TEXT NOT NULL, reasons TEXT NOT NULL, kept INTEGER, at DOUBLE PRECISION NOT NULL,
    number INTEGER NOT NULL, UNIQUE (person, client_key)
);
CREATE INDEX take_slot ON take (slot);
CREATE INDEX take_sha ON take (sha256);

-- sounds that are deleted unless a take has them: of deleted takes, and of takes that are being stored
CREATE TABLE orphan (sha256 TEXT PRIMARY KEY);

-- units that are not given out, because a sound is lost
CREATE TABLE block (unit TEXT PRIMARY KEY, reason TEXT NOT NULL);

CREATE TABLE withdrawn (person TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, answers INTEGER NOT NULL, takes INTEGER NOT NULL);

CREATE TABLE flag (
    person TEXT NOT NULL, session INTEGER NOT NULL, slot TEXT NOT NULL, rule TEXT NOT NULL, version INTEGER NOT NULL,
    detail TEXT NOT NULL
);

CREATE TABLE event (
    number {serial}, at DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, person TEXT NOT NULL, detail TEXT NOT NULL
);
