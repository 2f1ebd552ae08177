-- Version 19: what varies counts when two of its digests were compared with the float64 reference.

-- What a run compares may fail it, and then no run of its cell is asked for ever.
CREATE TABLE run_check_19 (
    run       TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    state     TEXT NOT NULL CHECK (state IN ('asked', 'passed', 'failed', 'given_up', 'cut_off')),
    digest    TEXT CHECK (length(digest) = 32), -- of what was compared
    share_ppm INTEGER NOT NULL DEFAULT 0, -- passed: millionths of its bound, of the worst element
    words     TEXT,                       -- the worst element, or why it was given up
    CHECK ((digest IS NOT NULL) = (state IN ('passed', 'failed')))
) STRICT, WITHOUT ROWID;
INSERT INTO run_check_19 SELECT run, state, digest, share_ppm, words FROM run_check;
DROP TABLE run_check;
ALTER TABLE run_check_19 RENAME TO run_check;

ALTER TABLE cell ADD COLUMN checks_cut_off INTEGER NOT NULL DEFAULT 0; -- runs that failed so
ALTER TABLE cell ADD COLUMN digests_passed INTEGER NOT NULL DEFAULT 0; -- different ones
UPDATE cell SET digests_passed = (SELECT count(*) FROM cell_digest d
    WHERE d.cell = cell.id AND d.checked = 'passed');
