-- Version 4: what the runs of a job's item are asked for beside their case.

-- Canonical JSON object of the worker's further arguments, strings and integers, as in
-- workloads/PROTOCOL.md ("How a run is asked for"); '': none.  They change what is observed
-- of a run or the circumstances it computes under, never what it computes.
ALTER TABLE job_item ADD COLUMN options TEXT NOT NULL DEFAULT ''
    CHECK (options = '' OR (json_valid(options) AND json_type(options) = 'object'));
