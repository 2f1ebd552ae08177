-- Version 35: of logs, sensors, events, screenings, and what is in quarantine or was acknowledged, rows
-- that were taken away are missed, too (db/integrity/totals.h).  Events are never changed, and their
-- numbers stand for them.
ALTER TABLE screening ADD COLUMN sum INTEGER;
ALTER TABLE screening_job ADD COLUMN sum INTEGER;
ALTER TABLE quarantine ADD COLUMN sum INTEGER;
ALTER TABLE accepted_loss ADD COLUMN sum INTEGER;
UPDATE screening SET sum = reprod_sum(number, device, host, facts, fingerprint, reason, words, at_ms,
    planned_ms, outcome, cause, counts, ended_ms);
UPDATE screening_job SET sum = reprod_sum(screening, job);
UPDATE quarantine SET sum = reprod_sum(cell, run, reason, found_ms, accepted_ms);
UPDATE accepted_loss SET sum = reprod_sum(number, at_ms, what);
INSERT INTO table_total
    SELECT 'accepted_loss', count(*), reprod_xor(sum) FROM accepted_loss
    UNION ALL SELECT 'event', count(*), reprod_xor(id) FROM event
    UNION ALL SELECT 'quarantine', count(*), reprod_xor(sum) FROM quarantine
    UNION ALL SELECT 'run_log', count(*), reprod_xor(sum) FROM run_log
    UNION ALL SELECT 'run_telemetry', count(*), reprod_xor(sum) FROM run_telemetry
    UNION ALL SELECT 'screening', count(*), reprod_xor(sum) FROM screening
    UNION ALL SELECT 'screening_job', count(*), reprod_xor(sum) FROM screening_job;
