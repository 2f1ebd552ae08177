-- Version 37: what stands in events is in their total, too, and losses of commits have one
-- (db/integrity/totals.h).  Where events were missing before, they are missing after.
UPDATE table_total SET sums = (SELECT reprod_xor(reprod_sum(id, at_ms, kind, data)) FROM event)
    WHERE name = 'event' AND rows = (SELECT count(*) FROM event)
    AND sums = (SELECT reprod_xor(id) FROM event);
INSERT INTO table_total
    SELECT 'lost_commits', count(*), reprod_xor(reprod_sum(last_number, witnessed, found_ms, accepted_ms))
    FROM lost_commits;
