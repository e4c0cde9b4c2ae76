-- A store is compared with these statements word for word when it is opened: another wording is another version. What a
-- version changes stands below its line `-- version N`; an upgrade executes just that.

-- version 1

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- What is asked. seq is the benchmark's own order; body is the whole Item as JSON, the other columns are for queries.
CREATE TABLE items (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, level INTEGER NOT NULL, task TEXT NOT NULL,
    category TEXT NOT NULL, case_id TEXT NOT NULL, group_id TEXT NOT NULL, style TEXT NOT NULL, cue TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX items_by_case ON items (case_id);

-- An item under a condition, a number of times. state: 0 not answered yet, 1 answered, 2 failed.
CREATE TABLE asks (
    id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES items (seq), condition TEXT NOT NULL,
    repeat INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, wanted INTEGER NOT NULL DEFAULT 1,
    UNIQUE (item, condition, repeat)
);
CREATE INDEX asks_open ON asks (id) WHERE state <> 1;

CREATE TABLE replies (
    ask INTEGER NOT NULL REFERENCES asks (id), turn INTEGER NOT NULL, text TEXT NOT NULL, audio TEXT NOT NULL,
    finish TEXT NOT NULL, refused INTEGER NOT NULL, model TEXT NOT NULL, notes BLOB NOT NULL, usage BLOB NOT NULL,
    sent BLOB NOT NULL, latency REAL NOT NULL, attempts INTEGER NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (ask, turn)
) WITHOUT ROWID;
CREATE INDEX replies_by_audio ON replies (audio) WHERE audio <> '';

-- The last failure of an ask that has no reply (yet).
CREATE TABLE failures (
    ask INTEGER PRIMARY KEY REFERENCES asks (id), turn INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL,
    attempts INTEGER NOT NULL, at REAL NOT NULL
);

-- The sounds a run has used: a clip whose bytes changed since is another clip.
CREATE TABLE clips (
    path TEXT PRIMARY KEY, sha256 TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE signatures (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

-- kind says what subject is: 'reply' (an ask's id: its last reply), 'turn 0' (an ask's id: its reply to an earlier turn),
-- later 'group', 'pair' or 'run'.
CREATE TABLE scores (
    kind TEXT NOT NULL, subject NOT NULL, metric TEXT NOT NULL, signature INTEGER NOT NULL REFERENCES signatures (id),
    value REAL, reason TEXT NOT NULL, detail BLOB NOT NULL,
    PRIMARY KEY (kind, subject, metric, signature)
) WITHOUT ROWID;

-- What a reader of the run should know: warnings while loading, changes of concurrency, interruptions.
CREATE TABLE events (at REAL NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL);

-- version 2

-- What each score is: label, scale, direction, where it applies. body is a ScoreInfo as JSON.
CREATE TABLE declarations (score TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- What the benchmark says of itself: one row, a Suite as JSON.
CREATE TABLE suite (benchmark TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- Never written.
CREATE TABLE headline_cells (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- version 3

DROP TABLE headline_cells;

-- version 4

-- How likely the model finds each possible answer, where it was asked for that. body is JSON: steps of alternatives.
CREATE TABLE likelihoods (
    ask INTEGER NOT NULL REFERENCES asks (id), turn INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (ask, turn)
) WITHOUT ROWID;

-- version 5

-- What people said about replies in studies. rater is a pseudonym; value and body are JSON (see runs/people_labels.py).
CREATE TABLE labels (
    ask INTEGER NOT NULL REFERENCES asks (id), study TEXT NOT NULL, unit TEXT NOT NULL, rater TEXT NOT NULL,
    dimension TEXT NOT NULL, value BLOB NOT NULL, usable INTEGER NOT NULL, at TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (ask, study, unit, rater, dimension)
) WITHOUT ROWID;

-- What each study asked: title, questions and scales. body is a LabelStudy as JSON.
CREATE TABLE studies (id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;

-- version 6

-- When the parts of a streamed reply arrived. body is a Timings as JSON.
CREATE TABLE timings (
    ask INTEGER NOT NULL REFERENCES asks (id), turn INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (ask, turn)
) WITHOUT ROWID;

-- version 7

-- What the model heard in training of an item: mark is clip, speaker or corpus, '' for nothing; origin names it.
-- Only items that were compared with a model's statement have a row.
CREATE TABLE heard (item INTEGER PRIMARY KEY REFERENCES items (seq), mark TEXT NOT NULL, origin TEXT NOT NULL);

-- version 8

-- The record of a turn in a realtime session. audio names a sound of two channels, user and model; events is JSON.
CREATE TABLE sessions (
    ask INTEGER NOT NULL REFERENCES asks (id), turn INTEGER NOT NULL, audio TEXT NOT NULL, events BLOB NOT NULL,
    PRIMARY KEY (ask, turn)
) WITHOUT ROWID;
CREATE INDEX sessions_by_audio ON sessions (audio) WHERE audio <> '';
