-- Version 24: what changed on hosts.

-- Whatever tells something writes its kind of event; the code that tells it says which.
CREATE TABLE event_24 (
    id    INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind  TEXT NOT NULL CHECK (kind <> ''),
    data  TEXT NOT NULL CHECK (json_valid(data)) -- object
) STRICT;
INSERT INTO event_24 SELECT id, at_ms, kind, data FROM event;
DROP TABLE event;
ALTER TABLE event_24 RENAME TO event;

-- What a host last said of itself, as far as it changes only when somebody changes it.
CREATE TABLE host_facts (
    host  TEXT NOT NULL PRIMARY KEY REFERENCES host (name),
    facts TEXT NOT NULL CHECK (json_valid(facts)) -- object (daemon/evidence/changes.h)
) STRICT, WITHOUT ROWID;

CREATE TABLE change (
    number  INTEGER PRIMARY KEY,
    host    TEXT NOT NULL REFERENCES host (name),
    at_ms   INTEGER NOT NULL,                        -- when it was seen
    facts   TEXT NOT NULL CHECK (json_valid(facts)), -- array: stack, device, name, before,
                                                     -- after
    state   TEXT NOT NULL DEFAULT 'seen' CHECK (state IN ('seen', 'measuring', 'reported')),
    reports TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(reports)) -- array: the drift that
                                                     -- was measured since, once reported
) STRICT;
CREATE INDEX change_open ON change (number) WHERE state <> 'reported';
