-- Version 6: runs that computed beside load, in poisoned memory or with moved allocations.

-- As the run said them, a canonical object (workloads/PROTOCOL.md, "Circumstances"); NULL: none.
ALTER TABLE run ADD COLUMN circumstances TEXT
    CHECK (circumstances IS NULL OR (json_valid(circumstances)
           AND json_type(circumstances) = 'object'));

-- Completed runs under any circumstances, whose times count for nothing, and those of them
-- that had load beside them.
ALTER TABLE cell ADD COLUMN disturbed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN contended INTEGER NOT NULL DEFAULT 0;
