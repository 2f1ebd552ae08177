-- Version 9: a control counts for what faced the same.

-- Completed runs of a cell by device and by what was asked for beside their case
-- (job_item.options).  Can be computed again from `run`.
DROP TABLE cell_device;
CREATE TABLE cell_device (
    cell    INTEGER NOT NULL REFERENCES cell (id),
    device  TEXT NOT NULL,
    options TEXT NOT NULL,
    runs    INTEGER NOT NULL CHECK (runs >= 1),
    digest  TEXT CHECK (length(digest) = 32), -- of all their iterations; NULL: they differ
    PRIMARY KEY (cell, device, options)
) STRICT, WITHOUT ROWID;
INSERT INTO cell_device (cell, device, options, runs, digest)
    SELECT r.cell, r.device, i.options, count(*),
           iif(max(r.distinct_digests) = 1 AND min(r.digest) = max(r.digest),
               min(r.digest), NULL)
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    WHERE r.outcome = 'completed' GROUP BY r.cell, r.device, i.options;

-- The same over all devices: what judging reads.
CREATE TABLE cell_alike (
    cell    INTEGER NOT NULL REFERENCES cell (id),
    options TEXT NOT NULL,
    runs    INTEGER NOT NULL CHECK (runs >= 1),
    varied  INTEGER NOT NULL CHECK (varied IN (0, 1)), -- a device has more than one digest
    PRIMARY KEY (cell, options)
) STRICT, WITHOUT ROWID;
INSERT INTO cell_alike (cell, options, runs, varied)
    SELECT cell, options, sum(runs), max(digest IS NULL) FROM cell_device
    GROUP BY cell, options;

-- Which rules the stored verdicts follow: VERDICT_RULES of daemon/evidence/verdict.h.
-- Cells are judged anew, in one transaction, by the first program that has others.
CREATE TABLE judged (
    rules INTEGER NOT NULL
) STRICT;
INSERT INTO judged (rules) VALUES (0);
