-- Version 17: how often a varying cell shows another digest than its most frequent one.

-- Of completed runs: whose first iteration showed it, and that showed no other.
ALTER TABLE cell_digest ADD COLUMN first_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell_digest ADD COLUMN only_runs INTEGER NOT NULL DEFAULT 0;
CREATE TEMP TABLE begun AS
    SELECT cell, digest, count(*) AS first_runs, sum(distinct_digests = 1) AS only_runs
    FROM run WHERE outcome = 'completed' GROUP BY cell, digest;
CREATE INDEX temp.begun_digest ON begun (cell, digest);
UPDATE cell_digest AS c SET (first_runs, only_runs) =
    (SELECT first_runs, only_runs FROM begun b WHERE b.cell = c.cell AND b.digest = c.digest)
    WHERE EXISTS (SELECT 1 FROM begun b WHERE b.cell = c.cell AND b.digest = c.digest);
DROP TABLE begun;

-- The same of the cell's digest, the most frequent one.
ALTER TABLE cell ADD COLUMN digest_first_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN digest_only_runs INTEGER NOT NULL DEFAULT 0;
UPDATE cell AS c SET (digest_first_runs, digest_only_runs) =
    (SELECT first_runs, only_runs FROM cell_digest d WHERE d.cell = c.id AND d.digest = c.digest)
    WHERE digest IS NOT NULL;
