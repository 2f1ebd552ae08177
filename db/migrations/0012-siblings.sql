-- Version 12: the cases that share a control.

-- Siblings are cases that differ in their variant only: same workload, version, size, dtype and
-- seed.  A control among them vouches for the others.
ALTER TABLE case_key ADD COLUMN siblings INTEGER NOT NULL DEFAULT 0; -- number of the first of
                                                                     -- them that was stored
UPDATE case_key SET siblings = (SELECT min(s.number) FROM case_key s
    WHERE s.workload = case_key.workload AND s.version = case_key.version
    AND s.size = case_key.size AND s.dtype = case_key.dtype AND s.seed = case_key.seed);
CREATE INDEX case_key_siblings ON case_key (siblings);

-- The cells that depend on a control, and the controls: siblings in the same environment.  The
-- unary + keeps SQLite from walking through all cells of an environment.
CREATE INDEX cell_case_key ON cell (case_key, environment);
CREATE VIEW cell_control (cell, control) AS
    SELECT c.id, o.id
    FROM cell c JOIN case_key k ON k.number = c.case_key AND NOT k.is_control
    JOIN case_key s ON s.siblings = k.siblings AND s.is_control
    JOIN cell o ON o.case_key = s.number AND +o.environment = +c.environment;
