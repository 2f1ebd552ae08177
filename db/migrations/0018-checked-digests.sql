-- Version 18: which of a cell's digests were compared with the float64 reference.

ALTER TABLE cell_digest ADD COLUMN checked TEXT -- by a run of the cell; failed: at least once
    CHECK (checked IN ('passed', 'failed'));
UPDATE cell_digest SET checked = (SELECT min(x.state) FROM run r JOIN run_check x ON x.run = r.id
    WHERE r.cell = cell_digest.cell AND x.digest = cell_digest.digest);
