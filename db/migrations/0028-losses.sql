-- Version 28: a loss of commits that was found stays known, whatever becomes of the witness
-- (db/integrity/losses.h).
CREATE TABLE lost_commits (
    last_number INTEGER NOT NULL, -- of the database, when it was found
    witnessed   INTEGER NOT NULL, -- was durable
    found_ms    INTEGER NOT NULL,
    accepted_ms INTEGER           -- when a person acknowledged it
) STRICT;
