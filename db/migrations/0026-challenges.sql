-- Version 26: commands of the configuration are challenged: asked with another seed than their case has.

-- A challenge counts as a run of the case that it computed, with the seed that it was asked with, and
-- for no job.  What it shows of the case that was requested is how it answered.
ALTER TABLE run ADD COLUMN challenge INTEGER NOT NULL DEFAULT 0 -- 1: case_key is not its item's
    CHECK (challenge IN (0, 1));
ALTER TABLE run ADD COLUMN challenged INTEGER -- of a challenge: the cell that learns how it answered;
    REFERENCES cell (id);                     -- NULL: none
CREATE INDEX run_challenged ON run (challenged, id) WHERE challenged IS NOT NULL;
CREATE INDEX run_challenge ON run (id) WHERE challenge;

ALTER TABLE case_key ADD COLUMN unseeded INTEGER NOT NULL DEFAULT 0 -- its command has no seeded inputs
    CHECK (unseeded IN (0, 1));
ALTER TABLE case_key ADD COLUMN challenge INTEGER NOT NULL DEFAULT 0 -- 1: no job requested it, so its
    CHECK (challenge IN (0, 1));                                      -- cells are not shown

-- How the challenges of a cell were answered (daemon/jobs/challenge.h).  Commands that were measured
-- before were not challenged: a reproducible cell of theirs needs it.
ALTER TABLE cell ADD COLUMN challenges_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN challenges_repeated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN challenges_unchanged INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN challenges_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell ADD COLUMN challenge_run TEXT; -- the first run that was unchanged, else that repeated

-- The sums of what is intact are of the new columns, too.
UPDATE run SET sum = reprod_sum(id, job, item, case_key, device, challenge, intent_ms, pid,
    process_start, boot_id, started_ms, finished_ms, environment, cell, challenged, libraries, outcome,
    circumstances, refused, cause, iterations, distinct_digests, digest, input_digest,
    weight_sum, loss, algorithm, claim, min_ns, median_ns, max_ns, elements, bytes_hashed,
    device_read_back, wall_ns, max_rss_kb,
    (SELECT reprod_sums(d.digest, d.iterations, d.first_iteration) FROM run_digest d
     WHERE d.run = run.id),
    (SELECT reprod_sums(k.state, k.digest, k.share_ppm, k.words) FROM run_check k
     WHERE k.run = run.id))
    WHERE sum IS reprod_sum(id, job, item, case_key, device, intent_ms, pid,
    process_start, boot_id, started_ms, finished_ms, environment, cell, libraries, outcome,
    circumstances, refused, cause, iterations, distinct_digests, digest, input_digest,
    weight_sum, loss, algorithm, claim, min_ns, median_ns, max_ns, elements, bytes_hashed,
    device_read_back, wall_ns, max_rss_kb,
    (SELECT reprod_sums(d.digest, d.iterations, d.first_iteration) FROM run_digest d
     WHERE d.run = run.id),
    (SELECT reprod_sums(k.state, k.digest, k.share_ppm, k.words) FROM run_check k
     WHERE k.run = run.id));
UPDATE cell SET sum = reprod_sum(id, case_key, environment, subject, subject_name, has_reference, completed,
    unsupported, timeout, crashed, out_of_memory, lost, infra, cancelled, invalid,
    iterations, distinct_digests, devices, disturbed, contended, claimed, warned,
    completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns, max_ns,
    median_ns_sum, checks_passed, checks_failed, checks_given_up, checks_unanswered,
    checks_cut_off, digests_passed, check_share_ppm, challenges_passed, challenges_repeated,
    challenges_unchanged, challenges_failed, digest_runs, digest_iterations,
    digest_first_runs, digest_only_runs, last_failed_run, failed_check, failed_check_words,
    challenge_run, digest, verdict, reason, vouched_ms, changed_ms)
    WHERE sum IS reprod_sum(id, case_key, environment, subject, subject_name,
    has_reference, completed, unsupported, timeout, crashed, out_of_memory, lost, infra,
    cancelled, invalid, iterations, distinct_digests, devices, disturbed, contended,
    claimed, warned, completed_since_failure, last_completed_ms, first_ms, last_ms, min_ns,
    max_ns, median_ns_sum, checks_passed, checks_failed, checks_given_up,
    checks_unanswered, checks_cut_off, digests_passed, check_share_ppm, digest_runs,
    digest_iterations, digest_first_runs, digest_only_runs, last_failed_run, failed_check,
    failed_check_words, digest, verdict, reason, vouched_ms, changed_ms);
UPDATE case_key SET sum = reprod_sum(number, workload, version, variant, size, dtype, seed,
    is_control, no_control, siblings, kind,
    unseeded, challenge)
    WHERE sum IS reprod_sum(number, workload, version, variant, size, dtype, seed,
    is_control, no_control, siblings, kind);

-- What a challenge showed is a fact of the cell that it asked.
CREATE TRIGGER run_answered AFTER UPDATE ON run WHEN NEW.challenged IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.challenged, 1)
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
