-- Version 21: recurring jobs.

CREATE TABLE schedule (
    number        INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
    name          TEXT NOT NULL UNIQUE CHECK (name <> ''),
    every_seconds INTEGER NOT NULL CHECK (every_seconds >= 0), -- 0: it has a calendar
    calendar      TEXT NOT NULL,             -- five fields, UTC; '': it has a period
    spread_seconds INTEGER NOT NULL,         -- -1: chosen by reprod
    paused        INTEGER NOT NULL CHECK (paused IN (0, 1)),
    created_ms    INTEGER NOT NULL,          -- where periods are counted from
    next_ms       INTEGER NOT NULL,          -- when it is due
    skipped       INTEGER NOT NULL DEFAULT 0, -- times due while its last job was open
    problem       TEXT NOT NULL DEFAULT '',  -- why no job was made when it was last due
    problem_ms    INTEGER NOT NULL DEFAULT 0,
    request       TEXT NOT NULL CHECK (json_valid(request)), -- of its jobs, canonical
    idempotency_key TEXT UNIQUE,             -- NULL: posted without one
    posted        TEXT NOT NULL,             -- as it was posted, canonical
    CHECK ((every_seconds = 0) = (calendar <> ''))
) STRICT;
-- The jobs that a schedule made, one each time that it was due.
CREATE TABLE schedule_job (
    schedule INTEGER NOT NULL REFERENCES schedule (number) ON DELETE CASCADE,
    due_ms   INTEGER NOT NULL,
    job      INTEGER NOT NULL REFERENCES job (number),
    PRIMARY KEY (schedule, due_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_job_job ON schedule_job (job);
-- Lists without background evidence.
CREATE INDEX job_requested ON job (id) WHERE priority <> 'background' OR survey = 1;
