-- Version 41: that a run was asked to compare its outputs stands in its own row, and a row of
-- run_check is what came of it.  Most runs show nothing but the digest that passed already:
-- these had a row made and deleted.
ALTER TABLE run ADD COLUMN asked INTEGER NOT NULL DEFAULT 0 -- to compare its outputs; told until it is finished
    CHECK (asked = 0 OR asked = 1);
UPDATE run SET asked = 1 WHERE outcome IS NULL AND id IN (SELECT run FROM run_check);
DELETE FROM run_check WHERE run IN (SELECT id FROM run WHERE outcome IS NULL);
