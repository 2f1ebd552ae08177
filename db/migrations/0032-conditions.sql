-- Version 32: which cells were not only measured under plain conditions, without a look at all of
-- their devices.

CREATE INDEX cell_device_conditions ON cell_device (cell) WHERE options <> '';
