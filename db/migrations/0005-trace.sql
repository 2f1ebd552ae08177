-- Version 5: what the probes of runs saw.

-- A trace, packed (daemon/trace/trace_pack.h).  Runs that saw the same share it.
CREATE TABLE trace (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL CHECK (length(digest) = 32), -- as at the end of `packed`
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX trace_digest ON trace (digest);

-- The runs that have one, whatever their outcome.
CREATE TABLE run_trace (
    run     TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    trace   INTEGER NOT NULL REFERENCES trace (number),
    records INTEGER NOT NULL CHECK (records BETWEEN 1 AND 262144), -- kept in it …
    dropped INTEGER NOT NULL CHECK (dropped >= 0)                  -- … and those beyond
) STRICT, WITHOUT ROWID;
CREATE INDEX run_trace_trace ON run_trace (trace);
