-- Version 10: a job's lines have the time that their workloads need.

ALTER TABLE job_item ADD COLUMN timeout_ms INTEGER NOT NULL DEFAULT 0
    CHECK (timeout_ms >= 0); -- of each run; 0: the job's
