-- Version 18: which of a cell's digests were compared with the float64 reference.

ALTER TABLE cell_digest ADD COLUMN checked TEXT -- by a run of the cell; failed: at least once
    CHECK (checked IN ('passed', 'failed'));
CREATE TEMP TABLE compared AS SELECT r.cell, x.digest, min(x.state) AS state
    FROM run r JOIN run_check x ON x.run = r.id WHERE x.digest IS NOT NULL GROUP BY r.cell, x.digest;
UPDATE cell_digest SET checked = c.state FROM compared c
    WHERE c.cell = cell_digest.cell AND c.digest = cell_digest.digest;
DROP TABLE compared;
