-- Version 42: what came of the newest screening of each device is read from the index: a row
-- has facts of a kilobyte, and /metrics counts those of all devices.
DROP INDEX screening_device;
CREATE INDEX screening_device ON screening (device, number, outcome, planned_ms);
