-- Version 39: runs that other services measured and that were pulled from there
-- (db/peers/peer_rows.h).

-- Where they come from: one row for each service that a peer was, and its version.
CREATE TABLE peer_origin (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    peer     TEXT NOT NULL CHECK (peer <> ''),            -- its name in the configuration, then
    service  TEXT NOT NULL CHECK (length(service) = 16),  -- as it calls itself
    reprod   TEXT NOT NULL,                               -- its version
    first_ms INTEGER NOT NULL,
    sum      INTEGER,
    UNIQUE (peer, service, reprod)
) STRICT;
-- Jobs of other services: those whose runs are not our own.
CREATE TABLE peer_job (
    job    INTEGER PRIMARY KEY REFERENCES job (number),
    origin INTEGER NOT NULL REFERENCES peer_origin (number), -- when the first of its runs was taken
    sum    INTEGER
) STRICT;
-- How far each peer was read.  The cursor moves in the transaction that takes what it passes.
CREATE TABLE peer (
    name         TEXT NOT NULL PRIMARY KEY,
    service      TEXT NOT NULL CHECK (length(service) = 16),
    reprod       TEXT NOT NULL,
    cursor       TEXT NOT NULL CHECK (length(cursor) = 26), -- id of the last run that was passed
    taken        INTEGER NOT NULL DEFAULT 0, -- runs
    known        INTEGER NOT NULL DEFAULT 0, -- that were here already
    folded       INTEGER NOT NULL DEFAULT 0, -- that it had folded before they were read: a gap
    of_peers     INTEGER NOT NULL DEFAULT 0, -- that it has from others: it does not hand them on
    pulled_ms    INTEGER NOT NULL,           -- the last page
    caught_up_ms INTEGER NOT NULL DEFAULT 0, -- the last page behind which there was nothing; 0: none
    waits_for    TEXT NOT NULL DEFAULT '',   -- its run that goes on and holds later ones back
    sum          INTEGER
) STRICT, WITHOUT ROWID;
-- Runs that were not taken.
CREATE TABLE peer_refusal (
    peer   TEXT NOT NULL,
    reason TEXT NOT NULL,    -- enum peer_refusal (daemon/jobs/peer_run.h)
    runs   INTEGER NOT NULL CHECK (runs >= 1),
    run    TEXT NOT NULL,    -- the last one
    words  TEXT NOT NULL,    -- what was wrong with it
    at_ms  INTEGER NOT NULL,
    sum    INTEGER,
    PRIMARY KEY (peer, reason)
) STRICT, WITHOUT ROWID;
INSERT INTO table_total
    SELECT 'peer', count(*), reprod_xor(sum) FROM peer
    UNION ALL SELECT 'peer_job', count(*), reprod_xor(sum) FROM peer_job
    UNION ALL SELECT 'peer_origin', count(*), reprod_xor(sum) FROM peer_origin
    UNION ALL SELECT 'peer_refusal', count(*), reprod_xor(sum) FROM peer_refusal;
