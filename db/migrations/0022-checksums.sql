-- Each row that states a fact carries a checksum of it (db/integrity/checksums.h): integrity_check
-- sees neither a flipped bit inside a value nor a row that was edited.  reprod_sum is a
-- function of reprod's connections; others read these tables without it.
ALTER TABLE run ADD COLUMN sum INTEGER;              -- NULL: not finished
ALTER TABLE cell ADD COLUMN sum INTEGER;
ALTER TABLE cell_history ADD COLUMN sum INTEGER;
ALTER TABLE run_log ADD COLUMN sum INTEGER;
ALTER TABLE run_telemetry ADD COLUMN sum INTEGER;
ALTER TABLE run_trace ADD COLUMN sum INTEGER;
ALTER TABLE run_tensor ADD COLUMN sum INTEGER;
ALTER TABLE tensor_blob ADD COLUMN sum INTEGER;
ALTER TABLE job ADD COLUMN sum INTEGER;
ALTER TABLE job_item ADD COLUMN sum INTEGER;
ALTER TABLE case_key ADD COLUMN sum INTEGER;
ALTER TABLE environment ADD COLUMN sum INTEGER;
ALTER TABLE library_list ADD COLUMN sum INTEGER;
ALTER TABLE localisation ADD COLUMN sum INTEGER;
ALTER TABLE input_decision ADD COLUMN sum INTEGER;
ALTER TABLE host ADD COLUMN sum INTEGER;
ALTER TABLE device ADD COLUMN sum INTEGER;
ALTER TABLE schedule ADD COLUMN sum INTEGER;
ALTER TABLE schedule_job ADD COLUMN sum INTEGER;
UPDATE run SET sum = reprod_sum(id, job, item, case_key, device, intent_ms, pid,
    process_start, boot_id, started_ms, finished_ms, environment, cell, libraries, outcome,
    circumstances, refused, cause, iterations, distinct_digests, digest, input_digest,
    weight_sum, loss, algorithm, claim, min_ns, median_ns, max_ns, elements, bytes_hashed,
    device_read_back, wall_ns, max_rss_kb,
    (SELECT reprod_sums(d.digest, d.iterations, d.first_iteration) FROM run_digest d
     WHERE d.run = run.id),
    (SELECT reprod_sums(k.state, k.digest, k.share_ppm, k.words) FROM run_check k
     WHERE k.run = run.id))
    WHERE outcome IS NOT NULL;
UPDATE cell SET sum = reprod_sum(id, case_key, environment, subject, subject_name,
    has_reference, completed, unsupported, timeout, crashed, out_of_memory, lost, infra,
    cancelled, invalid, iterations, distinct_digests, devices, disturbed, contended,
    claimed, warned, completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns,
    max_ns, median_ns_sum, checks_passed, checks_failed, checks_given_up,
    checks_unanswered, checks_cut_off, digests_passed, check_share_ppm, digest_runs,
    digest_iterations, digest_first_runs, digest_only_runs, last_failed_run, failed_check,
    failed_check_words, digest, verdict, reason, vouched_ms, changed_ms);
UPDATE cell_history SET sum = reprod_sum(cell, at_ms, run, verdict, reason, runs,
    iterations, distinct_digests, vouched_ms);
UPDATE run_log SET sum = reprod_sum(run, log, written);
UPDATE run_telemetry SET sum = reprod_sum(run, at_start, at_end);
UPDATE run_trace SET sum = reprod_sum(run, trace, records, dropped);
UPDATE run_tensor SET sum = reprod_sum(run, role, seq, name, blob);
UPDATE tensor_blob SET sum = reprod_sum(number, digest, dtype, shape, total, bytes, data);
UPDATE job SET sum = reprod_sum(number, id, state, priority, survey, stop_when_varies,
    iterations, timeout_ms, created_ms, finished_ms, request, idempotency_key);
UPDATE job_item SET sum = reprod_sum(job, seq, case_key, device, stack, runs_wanted,
    given_up_reason, options, timeout_ms, subject, subject_name);
UPDATE case_key SET sum = reprod_sum(number, workload, version, variant, size, dtype, seed,
    is_control, no_control, siblings, kind);
UPDATE environment SET sum = reprod_sum(number, id, title, json);
UPDATE library_list SET sum = reprod_sum(number, json);
UPDATE localisation SET sum = reprod_sum(job, runs_min, state, reason, ended_ms, search,
    difference);
UPDATE input_decision SET sum = reprod_sum(number, siblings, digest, reason, at_ms);
UPDATE host SET sum = reprod_sum(name, boot_id, first_seen_ms, last_seen_ms);
UPDATE device SET sum = reprod_sum(id, host, backend, model, attributes, first_seen_ms,
    last_seen_ms);
UPDATE schedule SET sum = reprod_sum(number, id, name, every_seconds, calendar,
    spread_seconds, paused, created_ms, next_ms, skipped, problem, problem_ms, request,
    idempotency_key, posted);
UPDATE schedule_job SET sum = reprod_sum(schedule, due_ms, job);
-- What a cell cannot stand on: a run whose row is not what was stored, or, with run '',
-- runs that do not give what the cell counted.
CREATE TABLE quarantine (
    cell        INTEGER NOT NULL REFERENCES cell (id),
    run         TEXT NOT NULL,
    reason      TEXT NOT NULL CHECK (reason <> ''),
    found_ms    INTEGER NOT NULL,
    accepted_ms INTEGER, -- when a person acknowledged it; the cell stays what it is
    PRIMARY KEY (cell, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX quarantine_open ON quarantine (found_ms) WHERE accepted_ms IS NULL;
-- A control in quarantine vouches for nothing.
DROP VIEW cell_control;
CREATE VIEW cell_control (cell, control, vouches) AS
    SELECT c.id, o.id, s.kind = k.kind
        AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.cell = o.id)
    FROM cell c JOIN case_key k ON k.number = c.case_key AND NOT k.is_control
    JOIN case_key s ON s.siblings = k.siblings AND s.is_control
    JOIN cell o ON o.case_key = s.number AND +o.environment = +c.environment;
-- One row: how many commits there were, in which database (db/integrity/witness.h).
CREATE TABLE commits (
    lineage INTEGER NOT NULL, -- drawn when the database was made
    number  INTEGER NOT NULL
) STRICT;
INSERT INTO commits VALUES (random(), 0);
-- What a person acknowledged: commits that were lost, rows that were not what was stored.
CREATE TABLE accepted_loss (
    number INTEGER PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    what   TEXT NOT NULL
) STRICT;
