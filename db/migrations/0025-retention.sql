-- Version 25: old runs that are alike become one row; which cells fsck has verified.

-- Completed runs of one item and one cell that are alike in everything that evidence depends on
-- (db/retention.h).  Their own rows are gone; each counts as it did before.
CREATE TABLE run_summary (
    number        INTEGER PRIMARY KEY,
    cell          INTEGER NOT NULL REFERENCES cell (id),
    job           INTEGER NOT NULL,
    item          INTEGER NOT NULL,
    runs          INTEGER NOT NULL CHECK (runs >= 1),
    ids           BLOB NOT NULL CHECK (length(ids) = 26 * runs), -- ascending, one after the other
    first_run     TEXT NOT NULL CHECK (first_run = CAST(substr(ids, 1, 26) AS TEXT)),
    last_run      TEXT NOT NULL CHECK (last_run = CAST(substr(ids, -26) AS TEXT)),
    first_ms      INTEGER NOT NULL,  -- earliest start
    last_ms       INTEGER NOT NULL,  -- latest end
    iterations    INTEGER NOT NULL CHECK (iterations >= runs), -- of all of them
    digest        TEXT NOT NULL CHECK (length(digest) = 32),   -- of each iteration of each run
    input_digest  TEXT NOT NULL CHECK (length(input_digest) = 32),
    weight_sum    TEXT,              -- these, where not NULL, as in `run`
    loss          TEXT,
    algorithm     TEXT,
    claim         TEXT,
    circumstances TEXT,
    libraries     INTEGER REFERENCES library_list (number),
    elements      INTEGER NOT NULL CHECK (elements > 0),      -- of an iteration
    bytes_hashed  INTEGER NOT NULL CHECK (bytes_hashed > 0),  -- of all of them
    min_ns        INTEGER,           -- shortest iteration; NULL: no times are known
    max_ns        INTEGER,           -- longest
    median_ns_sum INTEGER,           -- sum of the runs' medians
    times         TEXT NOT NULL CHECK (json_valid(times)), -- object: how many medians fell into
                                     -- which bucket of daemon/evidence/times.h
    milliseconds  INTEGER NOT NULL,  -- lives of the processes, each in whole ones, together
    refused       INTEGER NOT NULL DEFAULT 0 CHECK (refused IN (0, 1)), -- as in `run`: then all
                                     -- of them count as invalid
    folded_ms     INTEGER NOT NULL,  -- when this row was made
    sum           INTEGER,           -- checksum of the others (db/integrity/checksums.h)
    FOREIGN KEY (job, item) REFERENCES job_item (job, seq)
) STRICT;
CREATE INDEX run_summary_cell ON run_summary (cell);
CREATE INDEX run_summary_job ON run_summary (job, item);
CREATE INDEX run_summary_span ON run_summary (last_run, first_run);

-- Which runs others refer to is asked for each run that may be folded.
CREATE INDEX case_input_run ON case_input (run);
CREATE INDEX cell_history_run ON cell_history (run) WHERE run IS NOT NULL;

-- How often the rows changed that a cell is the sum of.  Kept by triggers, so that whoever
-- changes them is noticed.
CREATE TABLE cell_changes (
    cell    INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL
) STRICT;
-- Cells that fsck found to be what their runs give.
CREATE TABLE cell_verified (
    cell        INTEGER PRIMARY KEY,
    changes     INTEGER NOT NULL, -- as in cell_changes, when it was; another number: no more
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32), -- of the cell's rows, then
    at_ms       INTEGER NOT NULL
) STRICT;

CREATE TRIGGER run_inserted AFTER INSERT ON run WHEN NEW.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_updated AFTER UPDATE ON run WHEN NEW.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_moved AFTER UPDATE OF cell ON run
    WHEN OLD.cell IS NOT NULL AND OLD.cell IS NOT NEW.cell BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_deleted AFTER DELETE ON run WHEN OLD.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_inserted AFTER INSERT ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_updated AFTER UPDATE ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_deleted AFTER DELETE ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
-- Digests and checks come and go with the end of their run, which counts already; what happens to
-- them before it or later counts here.
CREATE TRIGGER run_digest_inserted AFTER INSERT ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = NEW.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_digest_updated AFTER UPDATE ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id IN (OLD.run, NEW.run)
        AND cell IS NOT NULL ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_digest_deleted AFTER DELETE ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = OLD.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_inserted AFTER INSERT ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = NEW.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_updated AFTER UPDATE ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id IN (OLD.run, NEW.run)
        AND cell IS NOT NULL ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_deleted AFTER DELETE ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = OLD.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER job_item_updated AFTER UPDATE OF options, subject, subject_name, stack ON job_item
    BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM (SELECT DISTINCT cell FROM run
        WHERE job = NEW.job AND item = NEW.seq AND cell IS NOT NULL
        UNION SELECT cell FROM run_summary WHERE job = NEW.job AND item = NEW.seq) WHERE true
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
