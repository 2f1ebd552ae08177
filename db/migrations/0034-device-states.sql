-- Version 34: what may change the bits of a device and is no part of its environment, so that runs
-- before and after a flash are not compared with each other (db/dissent/device_states.h).

CREATE TABLE device_state (
    device TEXT NOT NULL,
    since  TEXT NOT NULL, -- runs of the device whose ids are greater had it, up to the next one
    state  TEXT NOT NULL CHECK (state = '' OR json_valid(state)), -- object; '': not known
    sum    INTEGER,
    PRIMARY KEY (device, since)
) STRICT, WITHOUT ROWID;
-- What a device says now holds for all its runs, unless it is known to have changed.
INSERT INTO device_state (device, since, state) SELECT d.id, '', iif(EXISTS (
        SELECT 1 FROM change x, json_each(x.facts) f WHERE f.value ->> 'device' = d.id
        AND f.value ->> 'name' IN ('vbios', 'ecc_mode', 'clock_policy')), '',
    (SELECT json_group_object(key, value) FROM (SELECT key,
        iif(typeof(value) = 'text', substr(value, 1, 40), value) AS value FROM json_each(d.attributes)
        WHERE key IN ('vbios', 'ecc_mode', 'clock_policy') AND atom IS NOT NULL ORDER BY key)))
    FROM device d;
DELETE FROM device_state WHERE state = '{}';
UPDATE device_state SET sum = reprod_sum(device, since, state);
INSERT INTO table_total SELECT 'device_state', count(*), reprod_xor(sum) FROM device_state;

CREATE TABLE cell_device_34 (
    cell        INTEGER NOT NULL REFERENCES cell (id),
    device      TEXT NOT NULL,
    options     TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT '',         -- of the device, when it computed them
    runs        INTEGER NOT NULL CHECK (runs >= 1),
    digest      TEXT CHECK (length(digest) = 32), -- of all their iterations; NULL: they differ
    last_ms     INTEGER NOT NULL DEFAULT 0,
    last_digest TEXT NOT NULL DEFAULT '',
    varied_ms   INTEGER NOT NULL DEFAULT 0,
    iterations  INTEGER NOT NULL DEFAULT 0,
    first_ms    INTEGER NOT NULL DEFAULT 0,       -- earliest start of a run
    first_run   TEXT NOT NULL DEFAULT '',         -- smallest id
    last_run    TEXT NOT NULL DEFAULT '',         -- greatest id
    mode        TEXT,                             -- the digest that most of its runs showed alone, then
                                                  -- the smallest; NULL: none did
    mode_runs   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (cell, device, options, state)
) STRICT, WITHOUT ROWID;
INSERT INTO cell_device_34 SELECT cell, device, options,
    ifnull((SELECT s.state FROM device_state s WHERE s.device = c.device), ''), runs, digest, last_ms,
    last_digest, varied_ms, iterations, first_ms, first_run, last_run, mode, mode_runs FROM cell_device c;
DROP TABLE cell_device;
ALTER TABLE cell_device_34 RENAME TO cell_device;
CREATE INDEX cell_device_conditions ON cell_device (cell) WHERE options <> '';

CREATE TABLE cell_device_digest_34 (
    cell       INTEGER NOT NULL REFERENCES cell (id),
    device     TEXT NOT NULL,
    options    TEXT NOT NULL,
    state      TEXT NOT NULL DEFAULT '',
    digest     TEXT NOT NULL CHECK (length(digest) = 32),
    runs       INTEGER NOT NULL CHECK (runs >= 1), -- that showed it
    iterations INTEGER NOT NULL,                   -- likewise
    only_runs  INTEGER NOT NULL,                   -- that showed no other
    PRIMARY KEY (cell, device, options, state, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO cell_device_digest_34 SELECT cell, device, options,
    ifnull((SELECT s.state FROM device_state s WHERE s.device = c.device), ''), digest, runs, iterations,
    only_runs FROM cell_device_digest c;
DROP TABLE cell_device_digest;
ALTER TABLE cell_device_digest_34 RENAME TO cell_device_digest;
