-- Version 29: how many rows a table that states facts has, and all their sums in one
-- (db/integrity/totals.h): a row that was taken away has no sum to be wrong.
CREATE TABLE table_total (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL, -- how many there are
    sums INTEGER NOT NULL  -- exclusive or of their sums
) STRICT, WITHOUT ROWID;
-- Facts that had no sum.
ALTER TABLE host_facts ADD COLUMN sum INTEGER;
ALTER TABLE change ADD COLUMN sum INTEGER;
UPDATE host_facts SET sum = reprod_sum(host, facts);
UPDATE change SET sum = reprod_sum(number, host, at_ms, facts, state, reports);
UPDATE job_item SET sum = reprod_sum(job, seq, case_key, device, stack, runs_wanted,
    given_up_reason, options, timeout_ms, subject, subject_name, runs_more)
    WHERE sum IS reprod_sum(job, seq, case_key, device, stack, runs_wanted,
    given_up_reason, options, timeout_ms, subject, subject_name);
INSERT INTO table_total
    SELECT 'case_key', count(*), reprod_xor(sum) FROM case_key
    UNION ALL SELECT 'cell_history', count(*), reprod_xor(sum) FROM cell_history
    UNION ALL SELECT 'change', count(*), reprod_xor(sum) FROM change
    UNION ALL SELECT 'device', count(*), reprod_xor(sum) FROM device
    UNION ALL SELECT 'environment', count(*), reprod_xor(sum) FROM environment
    UNION ALL SELECT 'host', count(*), reprod_xor(sum) FROM host
    UNION ALL SELECT 'host_facts', count(*), reprod_xor(sum) FROM host_facts
    UNION ALL SELECT 'input_decision', count(*), reprod_xor(sum) FROM input_decision
    UNION ALL SELECT 'job', count(*), reprod_xor(sum) FROM job
    UNION ALL SELECT 'job_item', count(*), reprod_xor(sum) FROM job_item
    UNION ALL SELECT 'library_list', count(*), reprod_xor(sum) FROM library_list
    UNION ALL SELECT 'localisation', count(*), reprod_xor(sum) FROM localisation
    UNION ALL SELECT 'run_summary', count(*), reprod_xor(sum) FROM run_summary
    UNION ALL SELECT 'run_tensor', count(*), reprod_xor(sum) FROM run_tensor
    UNION ALL SELECT 'run_trace', count(*), reprod_xor(sum) FROM run_trace
    UNION ALL SELECT 'schedule', count(*), reprod_xor(sum) FROM schedule
    UNION ALL SELECT 'schedule_job', count(*), reprod_xor(sum) FROM schedule_job
    UNION ALL SELECT 'tensor_blob', count(*), reprod_xor(sum) FROM tensor_blob;
