-- Version 16: what a run computed is compared with the float64 reference before it can be green.

-- Runs that were asked to compare the outputs of their last iteration with the reference
-- (daemon/jobs/check.h).  The row is there before the run starts.
-- Version 19 makes the table anew, with what it may hold.
CREATE TABLE run_check (run TEXT PRIMARY KEY, state TEXT, digest TEXT, share_ppm INTEGER, words TEXT)
    STRICT, WITHOUT ROWID;

-- Of a cell's completed runs.  What was measured before has no check: a reproducible cell needs one.
ALTER TABLE cell ADD COLUMN has_reference INTEGER NOT NULL DEFAULT 1 -- 0: a command of the
    CHECK (has_reference IN (0, 1));                                  -- configuration
ALTER TABLE cell ADD COLUMN checks_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN checks_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN checks_given_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN checks_unanswered INTEGER NOT NULL DEFAULT 0; -- asked in vain
ALTER TABLE cell ADD COLUMN check_share_ppm INTEGER NOT NULL DEFAULT 0;   -- the largest
ALTER TABLE cell ADD COLUMN failed_check TEXT;       -- the first run, by id, that failed; NULL: none
ALTER TABLE cell ADD COLUMN failed_check_words TEXT; -- its worst element
UPDATE cell SET has_reference = 0 WHERE id IN (SELECT r.cell FROM run r
    JOIN job_item i ON i.job = r.job AND i.seq = r.item
    WHERE i.stack IN ('external', 'external-cuda'));
