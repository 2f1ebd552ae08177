-- Version 14: a control vouches only for what is exposed to its kind.

ALTER TABLE case_key ADD COLUMN kind TEXT NOT NULL DEFAULT 'race' -- of a control: why it varies;
    CHECK (kind IN ('race', 'entropy', 'choice', 'poison'));      -- else: what it is exposed to
UPDATE case_key SET kind = 'entropy' WHERE workload = 'hash_seed_order'
    OR (workload = 'dropout' AND variant = 'unseeded');
UPDATE case_key SET kind = 'poison' WHERE workload = 'uninitialized_read';
UPDATE case_key SET kind = 'choice'
    WHERE workload IN ('conv_autotune', 'inference_autotune', 'algorithm_cache');

-- The cells that depend on a control, and the controls: siblings in the same environment.  The
-- unary + keeps SQLite from walking through all cells of an environment.
DROP VIEW cell_control;
CREATE VIEW cell_control (cell, control, vouches) AS
    SELECT c.id, o.id, s.kind = k.kind
    FROM cell c JOIN case_key k ON k.number = c.case_key AND NOT k.is_control
    JOIN case_key s ON s.siblings = k.siblings AND s.is_control
    JOIN cell o ON o.case_key = s.number AND +o.environment = +c.environment;
