-- Version 7: jobs that look for the place where their runs part, and what was captured there.

-- Such a job has two items of one case: the runs of item 0 leave traces, those of item 1
-- capture the place which the traces showed.  Where it stands follows from the job's runs;
-- what is kept here is what was concluded from them.
CREATE TABLE localisation (
    job        INTEGER NOT NULL PRIMARY KEY REFERENCES job (number),
    runs_min   INTEGER NOT NULL CHECK (runs_min >= 2), -- before a place counts as earliest
    state      TEXT NOT NULL DEFAULT 'searching' CHECK (state IN ('searching', 'capturing',
               'localised', 'not_found', 'failed')),
    reason     TEXT NOT NULL DEFAULT '', -- of the state, in a sentence; '' while searching
    ended_ms   INTEGER,                  -- NULL: it goes on; the job is not finished before
    search     TEXT CHECK (search IS NULL OR json_valid(search)), -- what the traces showed:
                                         -- member "search" of the API's localisation
    difference TEXT CHECK (difference IS NULL OR json_valid(difference)), -- likewise
    CHECK ((state IN ('searching', 'capturing')) = (ended_ms IS NULL)),
    CHECK (state NOT IN ('capturing', 'localised') OR search IS NOT NULL)
) STRICT;

-- Contents of tensors, each stored once.
CREATE TABLE tensor_blob (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 32), -- of dtype, shape and data
    dtype  TEXT NOT NULL,
    shape  TEXT NOT NULL CHECK (json_valid(shape)), -- array
    total  INTEGER NOT NULL CHECK (total >= 0),     -- bytes of the whole tensor
    bytes  INTEGER NOT NULL CHECK (bytes BETWEEN 0 AND total), -- of these, from the
                                                    -- beginning, are here
    data   BLOB NOT NULL CHECK (length(data) = bytes)
) STRICT;

-- Which run captured which: what the place read and wrote, in the order of its arguments.
CREATE TABLE run_tensor (
    run  TEXT NOT NULL REFERENCES run (id),
    role TEXT NOT NULL CHECK (role IN ('in', 'out')),
    seq  INTEGER NOT NULL CHECK (seq >= 0),
    name TEXT NOT NULL, -- '': it has none
    blob INTEGER NOT NULL REFERENCES tensor_blob (number),
    PRIMARY KEY (run, role, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_tensor_blob ON run_tensor (blob);
