-- Version 27: what each device showed, so that a device that is wrong can be told from a workload
-- that varies (daemon/evidence/dissent.h).

-- The digests of a cell's completed runs by device and conditions.
CREATE TABLE cell_device_digest (
    cell       INTEGER NOT NULL REFERENCES cell (id),
    device     TEXT NOT NULL,
    options    TEXT NOT NULL,
    digest     TEXT NOT NULL CHECK (length(digest) = 32),
    runs       INTEGER NOT NULL CHECK (runs >= 1), -- that showed it
    iterations INTEGER NOT NULL,                   -- likewise
    only_runs  INTEGER NOT NULL,                   -- that showed no other
    PRIMARY KEY (cell, device, options, digest)
) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE shown AS
    SELECT r.cell, r.device, i.options, r.digest, r.iterations, 1 AS alone, 1 AS runs
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    WHERE r.outcome = 'completed' AND r.distinct_digests = 1
    UNION ALL
    SELECT s.cell, i.device, i.options, s.digest, s.iterations, s.runs, s.runs
    FROM run_summary s JOIN job_item i ON i.job = s.job AND i.seq = s.item WHERE NOT s.refused
    UNION ALL
    SELECT r.cell, r.device, i.options, d.digest, d.iterations, 0, 1
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    JOIN run_digest d ON d.run = r.id
    WHERE r.outcome = 'completed' AND r.distinct_digests > 1;
INSERT INTO cell_device_digest SELECT cell, device, options, digest, sum(runs), sum(iterations), sum(alone)
    FROM shown GROUP BY 1, 2, 3, 4;
DROP TABLE shown;

ALTER TABLE cell_device ADD COLUMN iterations INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell_device ADD COLUMN first_ms INTEGER NOT NULL DEFAULT 0; -- earliest start of a run
ALTER TABLE cell_device ADD COLUMN first_run TEXT NOT NULL DEFAULT '';  -- smallest id
ALTER TABLE cell_device ADD COLUMN last_run TEXT NOT NULL DEFAULT '';   -- greatest id
ALTER TABLE cell_device ADD COLUMN mode TEXT;     -- the digest that most of its runs showed alone, then
                                                  -- the smallest; NULL: none did
ALTER TABLE cell_device ADD COLUMN mode_runs INTEGER NOT NULL DEFAULT 0;
CREATE TEMP TABLE summed AS
    SELECT cell, device, options, sum(iterations) AS iterations, min(first_ms) AS first_ms,
           min(first_run) AS first_run, max(last_run) AS last_run FROM (
        SELECT r.cell, r.device, i.options, r.iterations, ifnull(r.started_ms, r.intent_ms) AS first_ms,
               r.id AS first_run, r.id AS last_run
        FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item WHERE r.outcome = 'completed'
        UNION ALL
        SELECT s.cell, i.device, i.options, s.iterations, s.first_ms, s.first_run, s.last_run
        FROM run_summary s JOIN job_item i ON i.job = s.job AND i.seq = s.item WHERE NOT s.refused)
    GROUP BY 1, 2, 3;
CREATE INDEX temp.summed_key ON summed (cell, device, options);
UPDATE cell_device AS c SET (iterations, first_ms, first_run, last_run) =
    (SELECT iterations, first_ms, first_run, last_run FROM summed s
     WHERE s.cell = c.cell AND s.device = c.device AND s.options = c.options)
    WHERE EXISTS (SELECT 1 FROM summed s
     WHERE s.cell = c.cell AND s.device = c.device AND s.options = c.options);
DROP TABLE summed;
UPDATE cell_device AS c SET (mode, mode_runs) =
    (SELECT d.digest, d.only_runs FROM cell_device_digest d
     WHERE d.cell = c.cell AND d.device = c.device AND d.options = c.options AND d.only_runs > 0
     ORDER BY d.only_runs DESC, d.digest LIMIT 1)
    WHERE EXISTS (SELECT 1 FROM cell_device_digest d
     WHERE d.cell = c.cell AND d.device = c.device AND d.options = c.options AND d.only_runs > 0);

-- The devices that are named as dissenting, since they were.
CREATE TABLE cell_dissenter (
    cell     INTEGER NOT NULL REFERENCES cell (id),
    device   TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (cell, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX cell_dissenter_device ON cell_dissenter (device, cell);

-- What the verdict says of devices.
ALTER TABLE cell ADD COLUMN agreement TEXT NOT NULL DEFAULT 'none' -- enum dissent_state
    CHECK (agreement IN ('none', 'varies', 'disagree', 'both', 'undecided'));
-- Of `devices_disagree` with named dissenters: what the other devices earned, and from what.
ALTER TABLE cell ADD COLUMN agreeing_devices INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN agreeing_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN agreeing_iterations INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN agreeing TEXT NOT NULL DEFAULT 'unmeasured'
    CHECK (agreeing IN ('unmeasured', 'reproducible', 'inconclusive', 'failing', 'unsupported')
        AND (agreeing = 'unmeasured' OR verdict = 'devices_disagree')
        AND (agreeing <> 'reproducible' OR (agreeing_runs >= 2 AND agreeing_devices >= 2)));
-- What is damaged stays so.
UPDATE cell SET sum = reprod_sum(id, case_key, environment, subject, subject_name, has_reference, completed,
    unsupported, timeout, crashed, out_of_memory, lost, infra, cancelled, invalid,
    iterations, distinct_digests, devices, disturbed, contended, claimed, warned,
    completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns, max_ns,
    median_ns_sum, checks_passed, checks_failed, checks_given_up, checks_unanswered,
    checks_cut_off, digests_passed, check_share_ppm, challenges_passed, challenges_repeated,
    challenges_unchanged, challenges_failed, digest_runs, digest_iterations,
    digest_first_runs, digest_only_runs, last_failed_run, failed_check, failed_check_words,
    challenge_run, digest, verdict, reason, vouched_ms, changed_ms, agreement, agreeing,
    agreeing_devices, agreeing_runs, agreeing_iterations)
    WHERE sum IS reprod_sum(id, case_key, environment, subject, subject_name, has_reference, completed,
    unsupported, timeout, crashed, out_of_memory, lost, infra, cancelled, invalid,
    iterations, distinct_digests, devices, disturbed, contended, claimed, warned,
    completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns, max_ns,
    median_ns_sum, checks_passed, checks_failed, checks_given_up, checks_unanswered,
    checks_cut_off, digests_passed, check_share_ppm, challenges_passed, challenges_repeated,
    challenges_unchanged, challenges_failed, digest_runs, digest_iterations,
    digest_first_runs, digest_only_runs, last_failed_run, failed_check, failed_check_words,
    challenge_run, digest, verdict, reason, vouched_ms, changed_ms);
-- Runs that a job wants beyond those that were requested, since devices may disagree.
ALTER TABLE job_item ADD COLUMN runs_more INTEGER NOT NULL DEFAULT 0;
-- A further verdict.  SQLite's way to change what a CHECK says (lang_altertable.html, 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''failing'')),', '''failing'', ''devices_disagree'')),')
    WHERE type = 'table' AND name = 'cell';
PRAGMA writable_schema = RESET;
