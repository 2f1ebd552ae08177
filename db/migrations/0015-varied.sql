-- Version 15: when a control last varied.

-- The two latest runs of a device under the same conditions that gave different digests: the time of
-- the earlier one.  It follows from the latest time of each digest, so the order in which runs are
-- stored does not matter.  A run that gives two digests differs from itself.
ALTER TABLE cell_device ADD COLUMN last_ms INTEGER NOT NULL DEFAULT 0; -- latest end of a run
ALTER TABLE cell_device ADD COLUMN last_digest TEXT NOT NULL DEFAULT ''; -- which that run gave
ALTER TABLE cell_device ADD COLUMN varied_ms INTEGER NOT NULL DEFAULT 0; -- as above; 0: never
ALTER TABLE cell_alike ADD COLUMN varied_ms INTEGER NOT NULL DEFAULT 0; -- the latest of its devices
CREATE TEMP TABLE shown AS
    SELECT r.cell, r.device, i.options, d.digest, max(r.finished_ms) AS ms
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    JOIN (SELECT id AS run, digest FROM run UNION SELECT run, digest FROM run_digest) d ON d.run = r.id
    WHERE r.outcome = 'completed' GROUP BY 1, 2, 3, 4;
CREATE TEMP TABLE ranked AS
    SELECT *, row_number() OVER (PARTITION BY cell, device, options ORDER BY ms DESC, digest) AS place
    FROM shown;
CREATE INDEX temp.ranked_place ON ranked (cell, device, options, place);
UPDATE cell_device AS c SET
    (last_ms, last_digest) = (SELECT ms, digest FROM ranked r WHERE r.cell = c.cell
        AND r.device = c.device AND r.options = c.options AND r.place = 1),
    varied_ms = ifnull((SELECT ms FROM ranked r WHERE r.cell = c.cell
        AND r.device = c.device AND r.options = c.options AND r.place = 2), 0)
    WHERE EXISTS (SELECT 1 FROM ranked r WHERE r.cell = c.cell AND r.device = c.device
        AND r.options = c.options);
UPDATE cell_alike AS a SET varied_ms = ifnull((SELECT max(varied_ms) FROM cell_device d
    WHERE d.cell = a.cell AND d.options = a.options), 0);
DROP TABLE ranked;
DROP TABLE shown;

-- When the control of a reproducible cell last varied, in whole hours (so that what depends on a
-- control is judged once an hour, not at each of its runs); 0: the cell is not reproducible.
ALTER TABLE cell ADD COLUMN vouched_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cell_history ADD COLUMN vouched_ms INTEGER NOT NULL DEFAULT 0;
-- What was judged before controls grew old counts from then.
UPDATE cell_history SET vouched_ms = at_ms WHERE verdict = 'reproducible';
