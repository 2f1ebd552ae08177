-- Version 30: devices that are measured in full before anything else (daemon/evidence/screening.h).

-- The newest row of a device holds what is known of it.
CREATE TABLE screening (
    number      INTEGER PRIMARY KEY,
    device      TEXT NOT NULL REFERENCES device (id),
    host        TEXT NOT NULL,
    facts       TEXT NOT NULL CHECK (json_valid(facts)),       -- object
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32), -- of both
    reason      TEXT NOT NULL CHECK (reason IN ('new', 'returned', 'moved', 'upgraded')),
    words       TEXT NOT NULL,    -- what changed, "" if nothing did
    at_ms       INTEGER NOT NULL, -- when that was seen
    planned_ms  INTEGER,          -- when its jobs were made, with those of others that have
                                  -- the same; NULL: not yet
    outcome     TEXT CHECK (outcome IN ('passed', 'dissents', 'inconclusive')), -- NULL: not yet
    cause       TEXT NOT NULL DEFAULT '', -- of the outcome
    counts      TEXT CHECK (counts IS NULL OR json_valid(counts)), -- object; NULL: nothing was judged
    ended_ms    INTEGER,
    CHECK ((outcome IS NULL) = (ended_ms IS NULL))
) STRICT;
CREATE INDEX screening_device ON screening (device, number);
CREATE INDEX screening_open ON screening (number) WHERE outcome IS NULL;
CREATE INDEX screening_planned ON screening (planned_ms) WHERE planned_ms IS NOT NULL;

-- Its jobs: one, or, in the survey of a fleet that is too large for one, several.
CREATE TABLE screening_job (
    screening INTEGER NOT NULL REFERENCES screening (number),
    job       INTEGER NOT NULL REFERENCES job (number),
    PRIMARY KEY (screening, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX screening_job_job ON screening_job (job);
