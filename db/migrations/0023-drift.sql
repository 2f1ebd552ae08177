-- Version 23: which environments a device showed, from when to when.

-- Ids of runs grow with time, and minima and maxima do not depend on the order of arrival.
CREATE TABLE device_environment (
    device      TEXT NOT NULL,
    stack       TEXT NOT NULL, -- of external ones with their workload: "external/NAME"
    environment INTEGER NOT NULL REFERENCES environment (number),
    first_run   TEXT NOT NULL, -- smallest id of a run that reported it there
    last_run    TEXT NOT NULL, -- greatest
    PRIMARY KEY (device, stack, environment)
) STRICT, WITHOUT ROWID;
CREATE INDEX device_environment_environment ON device_environment (environment);
INSERT INTO device_environment
    SELECT r.device, i.stack || iif(i.stack = 'external' OR i.stack GLOB 'external-*',
        '/' || k.workload, '') AS scope, r.environment, min(r.id), max(r.id)
    FROM run r JOIN job_item i ON i.job = r.job AND i.seq = r.item
    JOIN case_key k ON k.number = r.case_key
    WHERE r.environment IS NOT NULL AND ifnull(r.device_read_back, r.device) = r.device
    GROUP BY r.device, scope, r.environment;
