-- Version 11: what libraries warn of, cell by cell.

-- Completed runs whose library said that its algorithm is not deterministic.
ALTER TABLE cell ADD COLUMN warned INTEGER NOT NULL DEFAULT 0;
UPDATE cell SET warned = (SELECT count(*) FROM run WHERE run.cell = cell.id
    AND run.outcome = 'completed' AND run.claim = 'non-deterministic')
    WHERE id IN (SELECT cell FROM run WHERE claim = 'non-deterministic');
