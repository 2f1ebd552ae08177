-- Version 42: what came of the newest screening of each device is read from the index alone.
-- /metrics counts those of all devices, and looked each row up for that.
DROP INDEX screening_device;
CREATE INDEX screening_device ON screening (device, number, outcome, planned_ms);
