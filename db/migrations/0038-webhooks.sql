-- Version 38: who is told of events (daemon/webhooks/webhook.h), and what is on its way there.
CREATE TABLE webhook (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    secret TEXT,                  -- NULL: the configuration has it
    types TEXT NOT NULL,          -- names, with spaces between
    retry_ms INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    configured INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    disabled TEXT,                -- why; NULL: it is not
    created_ms INTEGER NOT NULL,
    failing_ms INTEGER,           -- since when no try succeeded
    delivered_ms INTEGER,         -- the last one
    delivered INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0, -- dead letters that found no room
    cause TEXT                    -- of the last failure
) STRICT;
CREATE TABLE webhook_delivery (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook INTEGER NOT NULL REFERENCES webhook (number),
    message TEXT NOT NULL,        -- its id as the receiver sees it: the same at each try
    type TEXT NOT NULL,
    at_ms INTEGER NOT NULL,       -- when it happened
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    attempts INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,
    tried_ms INTEGER,
    ended_ms INTEGER,
    status INTEGER,
    cause TEXT,
    UNIQUE (webhook, message)
) STRICT;
CREATE INDEX webhook_delivery_state ON webhook_delivery (webhook, state, next_ms);
-- Up to which event webhooks have taken theirs; no row while there is no webhook.
CREATE TABLE webhook_cursor (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    event INTEGER NOT NULL
) STRICT;
-- Hosts of which was told that they are lost, and not yet that they are back.
CREATE TABLE host_lost (
    host TEXT PRIMARY KEY,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO table_total
    SELECT 'webhook', count(*), reprod_xor(number) FROM webhook
    UNION ALL SELECT 'webhook_delivery', count(*), reprod_xor(number) FROM webhook_delivery
    UNION ALL SELECT 'webhook_cursor', count(*), reprod_xor(number) FROM webhook_cursor;
