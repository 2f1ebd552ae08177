-- Version 2: how the times of a cell's runs are distributed.

-- Completed runs of a cell by their median time, in the buckets of
-- daemon/evidence/times.h.  Can be computed again from `run`.
CREATE TABLE cell_time (
    cell   INTEGER NOT NULL REFERENCES cell (id),
    bucket INTEGER NOT NULL CHECK (bucket >= 0), -- 32 * power of two + part of it
    runs   INTEGER NOT NULL CHECK (runs >= 1),
    PRIMARY KEY (cell, bucket)
) STRICT, WITHOUT ROWID;

WITH RECURSIVE octave (power, least) AS (
    VALUES (0, 1) UNION ALL SELECT power + 1, least * 2 FROM octave WHERE power < 57)
INSERT INTO cell_time (cell, bucket, runs)
    SELECT r.cell, power * 32 + (r.median_ns * 32 / least - 32) AS b, count(*)
    FROM run r JOIN octave ON r.median_ns >= least AND r.median_ns / 2 < least
    WHERE r.outcome = 'completed' AND r.median_ns > 0
    GROUP BY r.cell, b;
