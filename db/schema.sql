CREATE TABLE accepted_loss (
    number INTEGER PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    what   TEXT NOT NULL
, sum INTEGER) STRICT;
CREATE TABLE case_input (
    siblings INTEGER NOT NULL, -- as in case_key
    digest   TEXT NOT NULL CHECK (length(digest) = 32),
    device   TEXT NOT NULL,
    runs     INTEGER NOT NULL CHECK (runs >= 1),
    run      TEXT NOT NULL REFERENCES run (id), -- the smallest id of them
    PRIMARY KEY (siblings, digest, device)
) STRICT, WITHOUT ROWID;
CREATE TABLE case_key (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    workload   TEXT NOT NULL CHECK (workload <> ''),
    version    INTEGER NOT NULL CHECK (version >= 1),
    variant    TEXT NOT NULL CHECK (variant <> ''),
    size       TEXT NOT NULL CHECK (size <> ''),
    dtype      TEXT NOT NULL CHECK (dtype <> ''),
    seed       INTEGER NOT NULL,          -- the unsigned 64 bits, read as signed
    is_control INTEGER NOT NULL CHECK (is_control IN (0, 1)), -- must be seen to vary
    no_control TEXT NOT NULL, siblings INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL DEFAULT 'race' -- of a control: why it varies;
    CHECK (kind IN ('race', 'entropy', 'choice', 'poison')), sum INTEGER, unseeded INTEGER NOT NULL DEFAULT 0 -- its command has no seeded inputs
    CHECK (unseeded IN (0, 1)), challenge INTEGER NOT NULL DEFAULT 0 -- 1: no job requested it, so its
    CHECK (challenge IN (0, 1)),             -- why the workload has no control; '' if it has
    UNIQUE (workload, variant, size, dtype, seed, version)
) STRICT;
CREATE TABLE cell (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    case_key          INTEGER NOT NULL REFERENCES case_key (number),
    environment       INTEGER NOT NULL REFERENCES environment (number),
    completed         INTEGER NOT NULL DEFAULT 0, -- runs by outcome, from here …
    unsupported       INTEGER NOT NULL DEFAULT 0,
    timeout           INTEGER NOT NULL DEFAULT 0,
    crashed           INTEGER NOT NULL DEFAULT 0,
    out_of_memory     INTEGER NOT NULL DEFAULT 0,
    lost              INTEGER NOT NULL DEFAULT 0,
    infra             INTEGER NOT NULL DEFAULT 0,
    cancelled         INTEGER NOT NULL DEFAULT 0,
    invalid           INTEGER NOT NULL DEFAULT 0, -- … to here
    iterations        INTEGER NOT NULL DEFAULT 0, -- of completed runs
    distinct_digests  INTEGER NOT NULL DEFAULT 0, -- rows in cell_digest
    devices           INTEGER NOT NULL DEFAULT 0, -- rows in cell_device
    completed_since_failure INTEGER NOT NULL DEFAULT 0, -- completed, id > last_failed_run
    last_failed_run   TEXT,                       -- greatest id that failed; NULL: none did
    last_completed_ms INTEGER NOT NULL DEFAULT 0, -- latest end of a completed run; 0: none
    first_ms          INTEGER NOT NULL DEFAULT 0, -- earliest start of a run
    last_ms           INTEGER NOT NULL DEFAULT 0, -- latest end of a run
    min_ns            INTEGER NOT NULL DEFAULT 0, -- shortest iteration of completed runs
    max_ns            INTEGER NOT NULL DEFAULT 0, -- longest
    median_ns_sum     INTEGER NOT NULL DEFAULT 0, -- sum of the completed runs' medians
    digest            TEXT,                       -- most frequent (runs, then iterations,
                                                  -- then smallest); NULL: none yet
    digest_runs       INTEGER NOT NULL DEFAULT 0, -- runs that showed it
    digest_iterations INTEGER NOT NULL DEFAULT 0, -- iterations that showed it
    verdict           TEXT NOT NULL DEFAULT 'unmeasured' CHECK (verdict = 'reproducible'
        OR verdict = 'varies' OR verdict = 'inconclusive' OR verdict = 'unmeasured'
        OR verdict = 'failing' OR verdict = 'devices_disagree' OR verdict = 'unsupported'),
    reason            TEXT NOT NULL DEFAULT '',   -- the verdict in a sentence, with counts
    changed_ms        INTEGER NOT NULL DEFAULT 0, disturbed INTEGER NOT NULL DEFAULT 0, contended INTEGER NOT NULL DEFAULT 0, claimed INTEGER NOT NULL DEFAULT 0, warned INTEGER NOT NULL DEFAULT 0, subject TEXT NOT NULL DEFAULT 'model'
    CHECK (subject IN ('model', 'library', 'framework')), subject_name TEXT NOT NULL DEFAULT ''     -- as in job_item
    CHECK ((subject_name = '') = (subject = 'model')), vouched_ms INTEGER NOT NULL DEFAULT 0, has_reference INTEGER NOT NULL DEFAULT 1 -- 0: a command of the
    CHECK (has_reference IN (0, 1)), checks_passed INTEGER NOT NULL DEFAULT 0, checks_failed INTEGER NOT NULL DEFAULT 0, checks_given_up INTEGER NOT NULL DEFAULT 0, checks_unanswered INTEGER NOT NULL DEFAULT 0, check_share_ppm INTEGER NOT NULL DEFAULT 0, failed_check TEXT, failed_check_words TEXT, digest_first_runs INTEGER NOT NULL DEFAULT 0, digest_only_runs INTEGER NOT NULL DEFAULT 0, checks_cut_off INTEGER NOT NULL DEFAULT 0, digests_passed INTEGER NOT NULL DEFAULT 0, sum INTEGER, challenges_passed INTEGER NOT NULL DEFAULT 0, challenges_repeated INTEGER NOT NULL DEFAULT 0, challenges_unchanged INTEGER NOT NULL DEFAULT 0, challenges_failed INTEGER NOT NULL DEFAULT 0, challenge_run TEXT, agreement TEXT NOT NULL DEFAULT 'none' -- enum dissent_state
    CHECK (agreement = 'none' OR agreement = 'varies'
        OR agreement = 'disagree' OR agreement = 'both' OR agreement = 'undecided'), agreeing_devices INTEGER NOT NULL DEFAULT 0, agreeing_runs INTEGER NOT NULL DEFAULT 0, agreeing_iterations INTEGER NOT NULL DEFAULT 0, agreeing TEXT NOT NULL DEFAULT 'unmeasured'
    CHECK ((agreeing = 'unmeasured' OR agreeing = 'reproducible'
        OR agreeing = 'inconclusive' OR agreeing = 'failing' OR agreeing = 'unsupported')
        AND (agreeing = 'unmeasured' OR verdict = 'devices_disagree')
        AND (agreeing <> 'reproducible' OR (agreeing_runs >= 2 AND agreeing_devices >= 2))), -- when the verdict became what it is
    UNIQUE (environment, case_key),
    CONSTRAINT reproducible_is_earned CHECK (verdict <> 'reproducible' OR
        (completed >= 2 AND iterations >= 2 AND distinct_digests = 1 AND devices >= 1))
) STRICT;
CREATE TABLE cell_algorithm (
    cell      INTEGER NOT NULL REFERENCES cell (id),
    algorithm TEXT NOT NULL CHECK (algorithm <> ''),
    runs      INTEGER NOT NULL CHECK (runs >= 1),
    PRIMARY KEY (cell, algorithm)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_alike (
    cell    INTEGER NOT NULL REFERENCES cell (id),
    options TEXT NOT NULL,
    runs    INTEGER NOT NULL CHECK (runs >= 1),
    varied  INTEGER NOT NULL CHECK (varied IN (0, 1)), varied_ms INTEGER NOT NULL DEFAULT 0, -- a device has more than one digest
    PRIMARY KEY (cell, options)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_changes (
    cell    INTEGER PRIMARY KEY,
    changes INTEGER NOT NULL
) STRICT;
CREATE TABLE "cell_device" (
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
CREATE TABLE "cell_device_digest" (
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
CREATE TABLE cell_digest (
    cell       INTEGER NOT NULL REFERENCES cell (id),
    digest     TEXT NOT NULL CHECK (length(digest) = 32),
    runs       INTEGER NOT NULL, -- completed runs that showed it
    iterations INTEGER NOT NULL, -- iterations that showed it
    run        TEXT,             -- smallest run id whose last iteration surely showed it;
                                 -- NULL: none yet, and then no sums are known
    weight_sum TEXT,             -- of that run's last iteration
    loss       TEXT, first_runs INTEGER NOT NULL DEFAULT 0, only_runs INTEGER NOT NULL DEFAULT 0, checked TEXT -- by a run of the cell; failed: at least once
    CHECK (checked IN ('passed', 'failed')),             -- likewise; NULL also where the workload has none
    PRIMARY KEY (cell, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_dissenter (
    cell     INTEGER NOT NULL REFERENCES cell (id),
    device   TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (cell, device)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_history (
    cell             INTEGER NOT NULL REFERENCES cell (id),
    at_ms            INTEGER NOT NULL, -- strictly increasing within a cell
    run              TEXT,             -- whose storing changed it; NULL: no run did
    verdict          TEXT NOT NULL,    -- from here on
    reason           TEXT NOT NULL,
    runs             INTEGER NOT NULL, -- completed so far
    iterations       INTEGER NOT NULL,
    distinct_digests INTEGER NOT NULL, vouched_ms INTEGER NOT NULL DEFAULT 0, sum INTEGER,
    PRIMARY KEY (cell, at_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_time (
    cell   INTEGER NOT NULL REFERENCES cell (id),
    bucket INTEGER NOT NULL CHECK (bucket >= 0), -- 32 * power of two + part of it
    runs   INTEGER NOT NULL CHECK (runs >= 1),
    PRIMARY KEY (cell, bucket)
) STRICT, WITHOUT ROWID;
CREATE TABLE cell_verified (
    cell        INTEGER PRIMARY KEY,
    changes     INTEGER NOT NULL, -- as in cell_changes, when it was; another number: no more
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32), -- of the cell's rows, then
    at_ms       INTEGER NOT NULL
) STRICT;
CREATE TABLE change (
    number  INTEGER PRIMARY KEY,
    host    TEXT NOT NULL REFERENCES host (name),
    at_ms   INTEGER NOT NULL,                        -- when it was seen
    facts   TEXT NOT NULL CHECK (json_valid(facts)), -- array: stack, device, name, before,
                                                     -- after
    state   TEXT NOT NULL DEFAULT 'seen' CHECK (state IN ('seen', 'measuring', 'reported')),
    reports TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(reports)) -- array: the drift that
                                                     -- was measured since, once reported
, sum INTEGER) STRICT;
CREATE TABLE commits (
    lineage INTEGER NOT NULL, -- drawn when the database was made
    number  INTEGER NOT NULL
) STRICT;
CREATE TABLE device (
    id            TEXT NOT NULL PRIMARY KEY,      -- "cpu:host" or the GPU's UUID
    host          TEXT NOT NULL REFERENCES host (name), -- where it was seen last
    backend       TEXT NOT NULL,                  -- "cpu" or "cuda"
    model         TEXT NOT NULL,                  -- for people
    attributes    TEXT NOT NULL CHECK (json_valid(attributes)), -- object, as probed
    first_seen_ms INTEGER NOT NULL,
    last_seen_ms  INTEGER NOT NULL
, sum INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE device_environment (
    device      TEXT NOT NULL,
    stack       TEXT NOT NULL, -- of external ones with their workload: "external/NAME"
    environment INTEGER NOT NULL REFERENCES environment (number),
    first_run   TEXT NOT NULL, -- smallest id of a run that reported it there
    last_run    TEXT NOT NULL, -- greatest
    PRIMARY KEY (device, stack, environment)
) STRICT, WITHOUT ROWID;
CREATE TABLE device_stack_environment (
    device      TEXT NOT NULL,
    stack       TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environment (number),
    run         TEXT NOT NULL REFERENCES run (id), -- greatest id that reported one
    PRIMARY KEY (device, stack)
) STRICT, WITHOUT ROWID;
CREATE TABLE device_state (
    device TEXT NOT NULL,
    since  TEXT NOT NULL, -- runs of the device whose ids are greater had it, up to the next one
    state  TEXT NOT NULL CHECK (state = '' OR json_valid(state)), -- object; '': not known
    sum    INTEGER,
    PRIMARY KEY (device, since)
) STRICT, WITHOUT ROWID;
CREATE TABLE environment (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,       -- digest of the canonical JSON
    title         TEXT NOT NULL,              -- for people
    json          TEXT NOT NULL CHECK (json_valid(json)), -- canonical
    first_seen_ms INTEGER NOT NULL,           -- earliest start of its runs
    last_seen_ms  INTEGER NOT NULL,           -- latest end of its runs
    cells         INTEGER NOT NULL DEFAULT 0  -- how many cells it has
, sum INTEGER) STRICT;
CREATE TABLE "event" (
    id    INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind  TEXT NOT NULL CHECK (kind <> ''),
    data  TEXT NOT NULL CHECK (json_valid(data)) -- object
) STRICT;
CREATE TABLE host (
    name          TEXT NOT NULL PRIMARY KEY, -- as the agent reports it
    boot_id       TEXT NOT NULL,             -- of its last boot that was seen
    first_seen_ms INTEGER NOT NULL,
    last_seen_ms  INTEGER NOT NULL
, sum INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE host_facts (
    host  TEXT NOT NULL PRIMARY KEY REFERENCES host (name),
    facts TEXT NOT NULL CHECK (json_valid(facts)) -- object (daemon/evidence/changes.h)
, sum INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE host_lost (
    host TEXT PRIMARY KEY,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE input_decision (
    number   INTEGER PRIMARY KEY,
    siblings INTEGER NOT NULL,
    digest   TEXT CHECK (length(digest) = 32), -- NULL: the majority rules again
    reason   TEXT NOT NULL CHECK (reason <> ''),
    at_ms    INTEGER NOT NULL
, sum INTEGER) STRICT;
CREATE TABLE job (
    number           INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
    state            TEXT NOT NULL CHECK (state IN ('queued', 'running', 'finished',
                                                    'cancelled')),
    priority         TEXT NOT NULL CHECK (priority IN ('interactive', 'confirmation',
                                                       'scheduled', 'background')),
    survey           INTEGER NOT NULL CHECK (survey IN (0, 1)),
    stop_when_varies INTEGER NOT NULL CHECK (stop_when_varies IN (0, 1)),
    iterations       INTEGER NOT NULL CHECK (iterations >= 1),  -- of each run
    timeout_ms       INTEGER NOT NULL CHECK (timeout_ms >= 0),  -- of each run
    created_ms       INTEGER NOT NULL,
    finished_ms      INTEGER,            -- NULL: still open
    runs_total       INTEGER NOT NULL,   -- answers it will have when it is finished
    runs_done        INTEGER NOT NULL DEFAULT 0, -- answers so far, failures included
    runs_failed      INTEGER NOT NULL DEFAULT 0, -- failures so far
    items_open       INTEGER NOT NULL CHECK (items_open >= 0), -- neither done nor given up
    request          TEXT NOT NULL CHECK (json_valid(request)), -- as posted, canonical
    idempotency_key  TEXT UNIQUE, sum INTEGER,        -- NULL: posted without one
    CHECK ((state IN ('finished', 'cancelled')) = (finished_ms IS NOT NULL))
) STRICT;
CREATE TABLE job_item (
    job             INTEGER NOT NULL REFERENCES job (number),
    seq             INTEGER NOT NULL CHECK (seq >= 0),
    case_key        INTEGER NOT NULL REFERENCES case_key (number),
    device          TEXT NOT NULL CHECK (device <> ''), -- id of the device asked for
    stack           TEXT NOT NULL,
    runs_wanted     INTEGER NOT NULL CHECK (runs_wanted >= 1),
    runs_answered   INTEGER NOT NULL DEFAULT 0, -- completed, unsupported or failed
    runs_failed     INTEGER NOT NULL DEFAULT 0, -- of these, failed
    runs_unanswered INTEGER NOT NULL DEFAULT 0, -- lost or infra: run again
    given_up_reason TEXT,                       -- NULL: not given up
    milliseconds    INTEGER NOT NULL DEFAULT 0, options TEXT NOT NULL DEFAULT ''
    CHECK (options = '' OR (json_valid(options) AND json_type(options) = 'object')), timeout_ms INTEGER NOT NULL DEFAULT 0
    CHECK (timeout_ms >= 0), subject TEXT NOT NULL DEFAULT 'model'
    CHECK (subject IN ('model', 'library', 'framework')), subject_name TEXT NOT NULL DEFAULT '' -- "cuDNN"; '' of a model
    CHECK ((subject_name = '') = (subject = 'model')), sum INTEGER, runs_more INTEGER NOT NULL DEFAULT 0, -- device time of its finished runs
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE judged (
    rules INTEGER NOT NULL
) STRICT;
CREATE TABLE library_list (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    json   TEXT NOT NULL UNIQUE CHECK (json_valid(json)) -- array as reported
, sum INTEGER) STRICT;
CREATE TABLE localisation (
    job        INTEGER NOT NULL PRIMARY KEY REFERENCES job (number),
    runs_min   INTEGER NOT NULL CHECK (runs_min >= 2), -- before a place counts as earliest
    state      TEXT NOT NULL DEFAULT 'searching' CHECK (state IN ('searching', 'capturing',
               'localised', 'not_found', 'failed')),
    reason     TEXT NOT NULL DEFAULT '', -- of the state, in a sentence; '' while searching
    ended_ms   INTEGER,                  -- NULL: it goes on; the job is not finished before
    search     TEXT CHECK (search IS NULL OR json_valid(search)), -- what the traces showed:
                                         -- member "search" of the API's localisation
    difference TEXT CHECK (difference IS NULL OR json_valid(difference)), sum INTEGER, -- likewise
    CHECK ((state IN ('searching', 'capturing')) = (ended_ms IS NULL)),
    CHECK (state NOT IN ('capturing', 'localised') OR search IS NOT NULL)
) STRICT;
CREATE TABLE lost_commits (
    last_number INTEGER NOT NULL, -- of the database, when it was found
    witnessed   INTEGER NOT NULL, -- was durable
    found_ms    INTEGER NOT NULL,
    accepted_ms INTEGER           -- when a person acknowledged it
) STRICT;
CREATE TABLE peer (
    name         TEXT NOT NULL PRIMARY KEY,
    service      TEXT NOT NULL CHECK (length(service) = 16),
    reprod       TEXT NOT NULL,
    cursor       TEXT NOT NULL CHECK (length(cursor) = 26), -- id of the last run that was passed
    taken        INTEGER NOT NULL DEFAULT 0, -- runs
    known        INTEGER NOT NULL DEFAULT 0, -- that were here already
    folded       INTEGER NOT NULL DEFAULT 0, -- that it had folded before they were read: a gap
    of_peers     INTEGER NOT NULL DEFAULT 0, -- that it has from others: it does not hand them on
    pulled_ms    INTEGER NOT NULL,           -- the last page
    caught_up_ms INTEGER NOT NULL DEFAULT 0, -- the last page behind which there was nothing; 0: none
    waits_for    TEXT NOT NULL DEFAULT '',   -- its run that goes on and holds later ones back
    sum          INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE peer_job (
    job    INTEGER PRIMARY KEY REFERENCES job (number),
    origin INTEGER NOT NULL REFERENCES peer_origin (number), -- when the first of its runs was taken
    sum    INTEGER
) STRICT;
CREATE TABLE peer_origin (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    peer     TEXT NOT NULL CHECK (peer <> ''),            -- its name in the configuration, then
    service  TEXT NOT NULL CHECK (length(service) = 16),  -- as it calls itself
    reprod   TEXT NOT NULL,                               -- its version
    first_ms INTEGER NOT NULL,
    sum      INTEGER,
    UNIQUE (peer, service, reprod)
) STRICT;
CREATE TABLE peer_refusal (
    peer   TEXT NOT NULL,
    reason TEXT NOT NULL,    -- enum peer_refusal (daemon/jobs/peer_run.h)
    runs   INTEGER NOT NULL CHECK (runs >= 1),
    run    TEXT NOT NULL,    -- the last one
    words  TEXT NOT NULL,    -- what was wrong with it
    at_ms  INTEGER NOT NULL,
    sum    INTEGER,
    PRIMARY KEY (peer, reason)
) STRICT, WITHOUT ROWID;
CREATE TABLE quarantine (
    cell        INTEGER NOT NULL REFERENCES cell (id),
    run         TEXT NOT NULL,
    reason      TEXT NOT NULL CHECK (reason <> ''),
    found_ms    INTEGER NOT NULL,
    accepted_ms INTEGER, sum INTEGER, -- when a person acknowledged it; the cell stays what it is
    PRIMARY KEY (cell, run)
) STRICT, WITHOUT ROWID;
CREATE TABLE run (
    id               TEXT NOT NULL PRIMARY KEY CHECK (length(id) = 26), -- ULID
    job              INTEGER NOT NULL,
    item             INTEGER NOT NULL,
    case_key         INTEGER NOT NULL REFERENCES case_key (number), -- the item's
    device           TEXT NOT NULL,     -- the item's
    intent_ms        INTEGER NOT NULL,  -- when this row was made
    started_ms       INTEGER,           -- NULL: not known to have started
    finished_ms      INTEGER,           -- NULL: not finished
    pid              INTEGER,           -- NULL until started, with the next two
    process_start    INTEGER,           -- clock ticks, /proc/PID/stat
    boot_id          TEXT,
    environment      INTEGER REFERENCES environment (number), -- NULL: it never said
    cell             INTEGER REFERENCES cell (id), -- NULL: counts in none
    libraries        INTEGER REFERENCES library_list (number), -- NULL: it never said
    outcome          TEXT CHECK (outcome = 'completed' OR outcome = 'unsupported'
        OR outcome = 'timeout' OR outcome = 'crashed' OR outcome = 'out_of_memory'
        OR outcome = 'lost' OR outcome = 'infra' OR outcome = 'cancelled'
        OR outcome = 'invalid'),
    cause            TEXT,              -- why the outcome is not completed
    iterations       INTEGER NOT NULL DEFAULT 0, -- done
    distinct_digests INTEGER NOT NULL DEFAULT 0, -- more than one: they are in run_digest
    digest           TEXT,              -- of its first iteration
    input_digest     TEXT,              -- of all its inputs
    weight_sum       TEXT,              -- of its last iteration
    loss             TEXT,              -- likewise; NULL also where there is none
    algorithm        TEXT,              -- the real one, as reported
    claim            TEXT,              -- what the library promises
    min_ns           INTEGER,           -- of its iterations, as the next two
    median_ns        INTEGER,
    max_ns           INTEGER,
    elements         INTEGER,           -- output elements of an iteration
    bytes_hashed     INTEGER,           -- over all iterations
    device_read_back TEXT,              -- the device the process saw it was on
    wall_ns          INTEGER,           -- life of the process
    max_rss_kb       INTEGER, circumstances TEXT
    CHECK (circumstances IS NULL OR (json_valid(circumstances)
           AND json_type(circumstances) = 'object')), refused INTEGER NOT NULL DEFAULT 0 -- invalid for its inputs alone
    CHECK (refused IN (0, 1) AND (refused = 0 OR outcome = 'invalid')), sum INTEGER, challenge INTEGER NOT NULL DEFAULT 0 -- 1: case_key is not its item's
    CHECK (challenge IN (0, 1)), challenged INTEGER -- of a challenge: the cell that learns how it answered;
    REFERENCES cell (id), asked INTEGER NOT NULL DEFAULT 0 -- to compare its outputs; told until it is finished
    CHECK (asked = 0 OR asked = 1),           -- its peak of memory
    FOREIGN KEY (job, item) REFERENCES job_item (job, seq),
    CONSTRAINT outcome_ends_a_run CHECK ((outcome IS NULL) = (finished_ms IS NULL)),
    -- Proof of work.  NULL would pass a CHECK, hence ifnull, IS and IS NOT NULL.
    CONSTRAINT completed_has_iterations
        CHECK (outcome IS NOT 'completed' OR iterations >= 1),
    CONSTRAINT completed_has_elements
        CHECK (outcome IS NOT 'completed' OR ifnull(elements, 0) > 0),
    CONSTRAINT completed_hashed_bytes
        CHECK (outcome IS NOT 'completed' OR ifnull(bytes_hashed, 0) > 0),
    CONSTRAINT completed_on_its_device
        CHECK (outcome IS NOT 'completed' OR device_read_back IS device),
    CONSTRAINT completed_has_digest
        CHECK (outcome IS NOT 'completed' OR (digest IS NOT NULL AND
               length(digest) = 32 AND digest NOT GLOB '*[^0-9a-f]*')),
    CONSTRAINT completed_has_input_digest
        CHECK (outcome IS NOT 'completed' OR (input_digest IS NOT NULL AND
               length(input_digest) = 32 AND input_digest NOT GLOB '*[^0-9a-f]*')),
    CONSTRAINT completed_has_distinct_digests
        CHECK (outcome IS NOT 'completed' OR
               (distinct_digests >= 1 AND distinct_digests <= iterations)),
    CONSTRAINT completed_has_environment
        CHECK (outcome IS NOT 'completed' OR environment IS NOT NULL),
    CONSTRAINT completed_has_cell CHECK (outcome IS NOT 'completed' OR cell IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE TABLE "run_check" (
    run       TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    state     TEXT NOT NULL CHECK (state = 'asked' OR state = 'passed' OR state = 'failed'
        OR state = 'given_up' OR state = 'cut_off'),
    digest    TEXT CHECK (length(digest) = 32), -- of what was compared
    share_ppm INTEGER NOT NULL DEFAULT 0, -- passed: millionths of its bound, of the worst element
    words     TEXT,                       -- the worst element, or why it was given up
    CHECK ((digest IS NOT NULL) = (state IN ('passed', 'failed')))
) STRICT, WITHOUT ROWID;
CREATE TABLE run_digest (
    run             TEXT NOT NULL REFERENCES run (id),
    digest          TEXT NOT NULL CHECK (length(digest) = 32),
    iterations      INTEGER NOT NULL CHECK (iterations >= 1), -- how many showed it
    first_iteration INTEGER NOT NULL CHECK (first_iteration >= 0), -- the first of them
    PRIMARY KEY (run, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_log (
    run     TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    log     BLOB NOT NULL,    -- the last bytes
    written INTEGER NOT NULL  -- how many bytes the run wrote
, sum INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE run_summary (
    number        INTEGER PRIMARY KEY,
    cell          INTEGER NOT NULL REFERENCES cell (id),
    job           INTEGER NOT NULL,
    item          INTEGER NOT NULL,
    runs          INTEGER NOT NULL CHECK (runs >= 1),
    ids           BLOB NOT NULL CHECK (length(ids) = 26 * runs), -- ascending, one after the other
    first_run     TEXT NOT NULL CHECK (first_run = CAST(substr(ids, 1, 26) AS TEXT)),
    last_run      TEXT NOT NULL CHECK (last_run = CAST(substr(ids, -26) AS TEXT)),
    first_ms      INTEGER NOT NULL,  -- earliest start
    last_ms       INTEGER NOT NULL,  -- latest end
    iterations    INTEGER NOT NULL CHECK (iterations >= runs), -- of all of them
    digest        TEXT NOT NULL CHECK (length(digest) = 32),   -- of each iteration of each run
    input_digest  TEXT NOT NULL CHECK (length(input_digest) = 32),
    weight_sum    TEXT,              -- these, where not NULL, as in `run`
    loss          TEXT,
    algorithm     TEXT,
    claim         TEXT,
    circumstances TEXT,
    libraries     INTEGER REFERENCES library_list (number),
    elements      INTEGER NOT NULL CHECK (elements > 0),      -- of an iteration
    bytes_hashed  INTEGER NOT NULL CHECK (bytes_hashed > 0),  -- of all of them
    min_ns        INTEGER,           -- shortest iteration; NULL: no times are known
    max_ns        INTEGER,           -- longest
    median_ns_sum INTEGER,           -- sum of the runs' medians
    times         TEXT NOT NULL CHECK (json_valid(times)), -- object: how many medians fell into
                                     -- which bucket of daemon/evidence/times.h
    milliseconds  INTEGER NOT NULL,  -- lives of the processes, each in whole ones, together
    refused       INTEGER NOT NULL DEFAULT 0 CHECK (refused IN (0, 1)), -- as in `run`: then all
                                     -- of them count as invalid
    folded_ms     INTEGER NOT NULL,  -- when this row was made
    sum           INTEGER,           -- checksum of the others (db/integrity/checksums.h)
    FOREIGN KEY (job, item) REFERENCES job_item (job, seq)
) STRICT;
CREATE TABLE run_telemetry (
    run      TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    at_start TEXT CHECK (at_start IS NULL OR json_valid(at_start)), -- object; NULL: nothing
    at_end   TEXT CHECK (at_end IS NULL OR json_valid(at_end)), sum INTEGER,     -- likewise
    CONSTRAINT says_something CHECK (at_start IS NOT NULL OR at_end IS NOT NULL),
    CONSTRAINT is_small CHECK (ifnull(length(CAST(at_start AS BLOB)), 0) <= 4096
                               AND ifnull(length(CAST(at_end AS BLOB)), 0) <= 4096)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_tensor (
    run  TEXT NOT NULL REFERENCES run (id),
    role TEXT NOT NULL CHECK (role IN ('in', 'out')),
    seq  INTEGER NOT NULL CHECK (seq >= 0),
    name TEXT NOT NULL, -- '': it has none
    blob INTEGER NOT NULL REFERENCES tensor_blob (number), sum INTEGER,
    PRIMARY KEY (run, role, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_trace (
    run     TEXT NOT NULL PRIMARY KEY REFERENCES run (id),
    trace   INTEGER NOT NULL REFERENCES trace (number),
    records INTEGER NOT NULL CHECK (records BETWEEN 1 AND 262144), -- kept in it …
    dropped INTEGER NOT NULL CHECK (dropped >= 0)                  -- … and those beyond
, sum INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE schedule (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
    name          TEXT NOT NULL UNIQUE CHECK (name <> ''),
    every_seconds INTEGER NOT NULL CHECK (every_seconds >= 0), -- 0: it has a calendar
    calendar      TEXT NOT NULL,             -- five fields, UTC; '': it has a period
    spread_seconds INTEGER NOT NULL,         -- -1: chosen by reprod
    paused        INTEGER NOT NULL CHECK (paused IN (0, 1)),
    created_ms    INTEGER NOT NULL,          -- where periods are counted from
    next_ms       INTEGER NOT NULL,          -- when it is due
    skipped       INTEGER NOT NULL DEFAULT 0, -- times due while its last job was open
    problem       TEXT NOT NULL DEFAULT '',  -- why no job was made when it was last due
    problem_ms    INTEGER NOT NULL DEFAULT 0,
    request       TEXT NOT NULL CHECK (json_valid(request)), -- of its jobs, canonical
    idempotency_key TEXT UNIQUE,             -- NULL: posted without one
    posted        TEXT NOT NULL, sum INTEGER,             -- as it was posted, canonical
    CHECK ((every_seconds = 0) = (calendar <> ''))
) STRICT;
CREATE TABLE schedule_job (
    schedule INTEGER NOT NULL REFERENCES schedule (number) ON DELETE CASCADE,
    due_ms   INTEGER NOT NULL,
    job      INTEGER NOT NULL REFERENCES job (number), sum INTEGER,
    PRIMARY KEY (schedule, due_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE screening (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    device      TEXT NOT NULL REFERENCES device (id),
    host        TEXT NOT NULL,
    facts       TEXT NOT NULL CHECK (json_valid(facts)),       -- object
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 32), -- of both
    reason      TEXT NOT NULL CHECK (reason IN ('new', 'returned', 'moved', 'upgraded')),
    words       TEXT NOT NULL,    -- what changed, "" if nothing did
    at_ms       INTEGER NOT NULL, -- when that was seen
    planned_ms  INTEGER,          -- when its jobs were made, with those of others that have
                                  -- the same; NULL: not yet
    outcome     TEXT CHECK (outcome IN ('passed', 'dissents', 'inconclusive')), -- NULL: not yet
    cause       TEXT NOT NULL DEFAULT '', -- of the outcome
    counts      TEXT CHECK (counts IS NULL OR json_valid(counts)), -- object; NULL: nothing was judged
    ended_ms    INTEGER, sum INTEGER,
    CHECK ((outcome IS NULL) = (ended_ms IS NULL))
) STRICT;
CREATE TABLE screening_job (
    screening INTEGER NOT NULL REFERENCES screening (number),
    job       INTEGER NOT NULL REFERENCES job (number), sum INTEGER,
    PRIMARY KEY (screening, job)
) STRICT, WITHOUT ROWID;
CREATE TABLE table_total (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL, -- how many there are
    sums INTEGER NOT NULL  -- exclusive or of their sums
) STRICT, WITHOUT ROWID;
CREATE TABLE tensor_blob (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 32), -- of dtype, shape and data
    dtype  TEXT NOT NULL,
    shape  TEXT NOT NULL CHECK (json_valid(shape)), -- array
    total  INTEGER NOT NULL CHECK (total >= 0),     -- bytes of the whole tensor
    bytes  INTEGER NOT NULL CHECK (bytes BETWEEN 0 AND total), -- of these, from the
                                                    -- beginning, are here
    data   BLOB NOT NULL CHECK (length(data) = bytes)
, sum INTEGER) STRICT;
CREATE TABLE trace (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL CHECK (length(digest) = 32), -- as at the end of `packed`
    packed BLOB NOT NULL
) STRICT;
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
CREATE TABLE webhook_cursor (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    event INTEGER NOT NULL
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
CREATE VIEW cell_control (cell, control, vouches) AS
    SELECT c.id, o.id, s.kind = k.kind
        AND NOT EXISTS (SELECT 1 FROM quarantine q WHERE q.cell = o.id)
    FROM cell c JOIN case_key k ON k.number = c.case_key AND NOT k.is_control
    JOIN case_key s ON s.siblings = k.siblings AND s.is_control
    JOIN cell o ON o.case_key = s.number AND +o.environment = +c.environment;
CREATE INDEX case_input_run ON case_input (run);
CREATE INDEX case_key_group ON case_key (workload, version, size, dtype, seed);
CREATE INDEX case_key_siblings ON case_key (siblings);
CREATE INDEX cell_broken_claim ON cell (id)
    WHERE claimed > 0 AND claimed = completed AND distinct_digests > 1;
CREATE INDEX cell_case_key ON cell (case_key, environment);
CREATE INDEX cell_device_conditions ON cell_device (cell) WHERE options <> '';
CREATE INDEX cell_dissenter_device ON cell_dissenter (device, cell);
CREATE INDEX cell_history_run ON cell_history (run) WHERE run IS NOT NULL;
CREATE INDEX change_open ON change (number) WHERE state <> 'reported';
CREATE INDEX device_environment_environment ON device_environment (environment);
CREATE INDEX environment_last_seen ON environment (last_seen_ms, number);
CREATE INDEX input_decision_case ON input_decision (siblings, number);
CREATE INDEX job_open ON job (id) WHERE state IN ('queued', 'running');
CREATE INDEX job_requested ON job (id) WHERE priority <> 'background' OR survey = 1;
CREATE INDEX quarantine_open ON quarantine (found_ms) WHERE accepted_ms IS NULL;
CREATE INDEX run_case_key ON run (case_key, id);
CREATE INDEX run_cell ON run (cell, id) WHERE cell IS NOT NULL;
CREATE INDEX run_challenge ON run (id) WHERE challenge;
CREATE INDEX run_challenged ON run (challenged, id) WHERE challenged IS NOT NULL;
CREATE INDEX run_device ON run (device, id);
CREATE INDEX run_job ON run (job, id);
CREATE INDEX run_not_completed ON run (outcome, id) WHERE outcome <> 'completed';
CREATE INDEX run_open ON run (id) WHERE outcome IS NULL;
CREATE INDEX run_summary_cell ON run_summary (cell);
CREATE INDEX run_summary_job ON run_summary (job, item);
CREATE INDEX run_summary_span ON run_summary (last_run, first_run);
CREATE INDEX run_tensor_blob ON run_tensor (blob);
CREATE INDEX run_trace_trace ON run_trace (trace);
CREATE INDEX schedule_job_job ON schedule_job (job);
CREATE INDEX screening_device ON screening (device, number, outcome, planned_ms);
CREATE INDEX screening_job_job ON screening_job (job);
CREATE INDEX screening_open ON screening (number) WHERE outcome IS NULL;
CREATE INDEX screening_planned ON screening (planned_ms) WHERE planned_ms IS NOT NULL;
CREATE INDEX trace_digest ON trace (digest);
CREATE INDEX webhook_delivery_state ON webhook_delivery (webhook, state, next_ms);
CREATE TRIGGER job_item_updated AFTER UPDATE OF options, subject, subject_name, stack ON job_item
    BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM (SELECT DISTINCT cell FROM run
        WHERE job = NEW.job AND item = NEW.seq AND cell IS NOT NULL
        UNION SELECT cell FROM run_summary WHERE job = NEW.job AND item = NEW.seq) WHERE true
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_answered AFTER UPDATE ON run WHEN NEW.challenged IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.challenged, 1)
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_deleted AFTER DELETE ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = OLD.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_inserted AFTER INSERT ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = NEW.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_check_updated AFTER UPDATE ON run_check BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id IN (OLD.run, NEW.run)
        AND cell IS NOT NULL ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_deleted AFTER DELETE ON run WHEN OLD.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_digest_deleted AFTER DELETE ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = OLD.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_digest_inserted AFTER INSERT ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id = NEW.run AND cell IS NOT NULL
        ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_digest_updated AFTER UPDATE ON run_digest BEGIN
    INSERT INTO cell_changes SELECT cell, 1 FROM run WHERE id IN (OLD.run, NEW.run)
        AND cell IS NOT NULL ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_inserted AFTER INSERT ON run WHEN NEW.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_moved AFTER UPDATE OF cell ON run
    WHEN OLD.cell IS NOT NULL AND OLD.cell IS NOT NEW.cell BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_deleted AFTER DELETE ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_inserted AFTER INSERT ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_summary_updated AFTER UPDATE ON run_summary BEGIN
    INSERT INTO cell_changes VALUES (OLD.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER run_updated AFTER UPDATE ON run WHEN NEW.cell IS NOT NULL BEGIN
    INSERT INTO cell_changes VALUES (NEW.cell, 1) ON CONFLICT DO UPDATE SET changes = changes + 1;
END;
INSERT INTO commits VALUES (random(), 0);
INSERT INTO judged VALUES
    (0);
INSERT INTO sqlite_sequence VALUES
    ('case_key', 0),
    ('cell', 0),
    ('environment', 0),
    ('job', 0),
    ('library_list', 0),
    ('schedule', 0),
    ('screening', 0),
    ('tensor_blob', 0),
    ('trace', 0);
INSERT INTO table_total VALUES
    ('accepted_loss', 0, 0),
    ('case_key', 0, 0),
    ('cell', 0, 0),
    ('cell_history', 0, 0),
    ('change', 0, 0),
    ('device', 0, 0),
    ('device_state', 0, 0),
    ('environment', 0, 0),
    ('event', 0, 0),
    ('host', 0, 0),
    ('host_facts', 0, 0),
    ('input_decision', 0, 0),
    ('job', 0, 0),
    ('job_item', 0, 0),
    ('library_list', 0, 0),
    ('localisation', 0, 0),
    ('lost_commits', 0, 0),
    ('peer', 0, 0),
    ('peer_job', 0, 0),
    ('peer_origin', 0, 0),
    ('peer_refusal', 0, 0),
    ('quarantine', 0, 0),
    ('run_log', 0, 0),
    ('run_summary', 0, 0),
    ('run_telemetry', 0, 0),
    ('run_tensor', 0, 0),
    ('run_trace', 0, 0),
    ('schedule', 0, 0),
    ('schedule_job', 0, 0),
    ('screening', 0, 0),
    ('screening_job', 0, 0),
    ('tensor_blob', 0, 0),
    ('webhook', 0, 0),
    ('webhook_cursor', 0, 0),
    ('webhook_delivery', 0, 0);
