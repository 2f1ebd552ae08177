-- Version 20: the inputs of a case are those of the majority, not those of its first run.

-- Which inputs the runs of a case and its siblings had: of those that completed, or would
-- have, were it not for their inputs.
CREATE TABLE case_input (
    siblings INTEGER NOT NULL, -- as in case_key
    digest   TEXT NOT NULL CHECK (length(digest) = 32),
    device   TEXT NOT NULL,
    runs     INTEGER NOT NULL CHECK (runs >= 1),
    run      TEXT NOT NULL REFERENCES run (id), -- the smallest id of them
    PRIMARY KEY (siblings, digest, device)
) STRICT, WITHOUT ROWID;
-- What a person said about contested inputs; the latest row of a case rules.
CREATE TABLE input_decision (
    number   INTEGER PRIMARY KEY,
    siblings INTEGER NOT NULL,
    digest   TEXT CHECK (length(digest) = 32), -- NULL: the majority rules again
    reason   TEXT NOT NULL CHECK (reason <> ''),
    at_ms    INTEGER NOT NULL
) STRICT;
CREATE INDEX input_decision_case ON input_decision (siblings, number);
ALTER TABLE run ADD COLUMN refused INTEGER NOT NULL DEFAULT 0 -- invalid for its inputs alone
    CHECK (refused IN (0, 1) AND (refused = 0 OR outcome = 'invalid'));
UPDATE run SET refused = 1 WHERE outcome = 'invalid' AND cell IS NOT NULL
    AND cause GLOB 'the inputs of run * have digest *, those of run * of the same case have *';
INSERT INTO case_input SELECT k.siblings, r.input_digest, r.device, count(*), min(r.id)
    FROM run r JOIN case_key k ON k.number = r.case_key
    WHERE r.outcome = 'completed' OR r.refused GROUP BY 1, 2, 3;
DROP TABLE expected_input;
