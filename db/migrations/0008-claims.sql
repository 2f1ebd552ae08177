-- Version 8: what libraries promise, cell by cell.

-- Completed runs whose library promised to be deterministic.
ALTER TABLE cell ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;
UPDATE cell SET claimed = (SELECT count(*) FROM run WHERE run.cell = cell.id
    AND run.outcome = 'completed' AND run.claim = 'deterministic')
    WHERE id IN (SELECT cell FROM run WHERE claim = 'deterministic');

-- Promises that were not kept.  Where only some of the runs promised it, which of them
-- differed is not known here.
CREATE INDEX cell_broken_claim ON cell (id)
    WHERE claimed > 0 AND claimed = completed AND distinct_digests > 1;
