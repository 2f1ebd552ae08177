-- Version 3: what the sensors of a run's device said.

-- At the start and at the end of a run, as reported; no row where they said nothing, which
-- is so on a CPU.
CREATE TABLE run_telemetry (
    run      TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    at_start TEXT CHECK (at_start IS NULL OR json_valid(at_start)), -- object; NULL: nothing
    at_end   TEXT CHECK (at_end IS NULL OR json_valid(at_end)),     -- likewise
    CONSTRAINT says_something CHECK (at_start IS NOT NULL OR at_end IS NOT NULL),
    CONSTRAINT is_small CHECK (ifnull(length(CAST(at_start AS BLOB)), 0) <= 4096
                               AND ifnull(length(CAST(at_end AS BLOB)), 0) <= 4096)
) STRICT, WITHOUT ROWID;
