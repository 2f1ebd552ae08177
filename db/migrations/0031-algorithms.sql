-- Version 31: which algorithms the runs of a cell say that they used.

-- Of its completed runs; those that say none have no row.
CREATE TABLE cell_algorithm (
    cell      INTEGER NOT NULL REFERENCES cell (id),
    algorithm TEXT NOT NULL CHECK (algorithm <> ''),
    runs      INTEGER NOT NULL CHECK (runs >= 1),
    PRIMARY KEY (cell, algorithm)
) STRICT, WITHOUT ROWID;
INSERT INTO cell_algorithm SELECT cell, algorithm, sum(runs) FROM (
    SELECT cell, algorithm, 1 AS runs FROM run WHERE outcome = 'completed'
    UNION ALL SELECT cell, algorithm, runs FROM run_summary WHERE NOT refused)
    WHERE cell IS NOT NULL AND algorithm <> '' GROUP BY 1, 2;
