/* Runs of other services: what one hands to another of a run (GET /v1/export), and pages
 * of them.  They are facts, as an agent would report them: no verdict, and no judgement
 * but the outcome.  Pure. */
#ifndef DAEMON_JOBS_PEER_RUN_H
#define DAEMON_JOBS_PEER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/id.h"
#include "daemon/jobs/device.h"
#include "daemon/jobs/run.h"

enum {
    /* Grows with what a page says, and with what makes a run `completed`: services that
     * differ in it do not pull from each other. */
    PEER_FORMAT = 1,
    PEER_NAME_SIZE = 33,
    PEER_SERVICE_SIZE = 17, /* 16 hex digits, of its database */
    PEER_VERSION_SIZE = 32,
    PEER_WORDS_SIZE = 256,
    PEER_STATE_SIZE = 1024,
    PEER_PAGE_RUNS = 100,        /* that a page passes over at most … */
    PEER_PAGE_BYTES = 256 << 10, /* … and how large it gets before it ends */
    PEER_AHEAD_MS = 10000,       /* of another clock that is still taken for right */
    PEER_LINE_MAX = 1 << 20      /* which is less than this, whatever its last run says */
};

/* Sorts before every run. */
#define PEER_CURSOR_FIRST "00000000000000000000000000"

/* Why a run is not taken. */
enum peer_refusal {
    PEER_TAKEN,        /* it is */
    PEER_MALFORMED,    /* it does not say what a run has to say */
    PEER_DAMAGED,      /* its service says that it is not what was stored */
    PEER_NO_PROOF,     /* it calls itself completed and is not */
    PEER_TOO_LONG,     /* a name has no room with the peer's before it */
    PEER_OTHER_RUN,    /* a run or job of another origin has its id */
    PEER_OTHER_ITEM,   /* its job's item is another one in another run of it */
    PEER_OTHER_CASE,   /* its case is declared otherwise here: control, subject */
    PEER_OTHER_STATE,  /* its device was in another state then, by what is on record here
                        */
    PEER_CONTRADICTORY /* the database refuses it */
};

/* "malformed", …; NULL for PEER_TAKEN. */
const char *peer_refusal_name(enum peer_refusal refusal);

struct peer_run {
    enum peer_refusal refusal; /* by what it says itself; then only run.id is filled */
    char words[PEER_WORDS_SIZE];
    /* Filled as runs_get fills it, but for what is of a database: cell, challenged,
     * trace.  A run that was refused for its inputs alone is `completed` here: who takes
     * it judges its inputs. */
    struct run_record run;
    struct run_digest *digests; /* owned */
    int digest_count;
    int64_t asked; /* iterations */
    int64_t job_created_ms;
    uint64_t item_seed; /* of the item's case; of a challenge it is another one */
    /* What its job declared of the item's case. */
    bool is_control, unseeded;
    char kind[CASE_NAME_SIZE], no_control[CASE_TITLE_SIZE];
    char options[RUN_OPTIONS_SIZE];
    struct device device; /* attributes_json is NULL: they are below */
    char boot_id[CASE_NAME_SIZE];
    char *attributes;            /* owned: JSON object */
    char state[PEER_STATE_SIZE]; /* of the device then (db/dissent/device_states.h) */
    char state_since[ID_SIZE];   /* "": ever since */
    char *environment, *environment_title; /* owned; NULL: it never said */
};

struct peer_page {
    char service[PEER_SERVICE_SIZE];
    char reprod[PEER_VERSION_SIZE];
    char since[ID_SIZE],
        cursor[ID_SIZE];     /* it has the runs between them: ] since, cursor ] */
    char waits_for[ID_SIZE]; /* a run that goes on: none behind it is handed out; "": none
                              */
    bool more;             /* there are runs behind the cursor, and none goes on there */
    bool cut;              /* as it was read: it ends before what is still to come */
    int64_t folded;        /* runs in between that are summaries now, and not here */
    int64_t of_peers;      /* runs in between that are of other services, and not here */
    struct peer_run *runs; /* owned */
    int count;
};

void peer_run_release(struct peer_run *run);
void peer_page_release(struct peer_page *page);

/* Refuses RUN, once. */
void peer_run_refuse(struct peer_run *run, enum peer_refusal refusal, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/* Whether RUN, which says that it is completed, has proof of its work, as a run of our
 * own must have (daemon/run/run_judge.h), as far as what is stored of a run shows it;
 * refuses it otherwise. */
bool peer_run_prove(struct peer_run *run);

/* Puts the name of PEER before names that each service gives anew: host ("east/gpu-001"),
 * stack ("east:cuda"), the device unless it has a UUID ("cpu:east/gpu-001"), and the
 * workload of a command of the configuration ("east/resnet").  Refuses RUN where one has
 * no room. */
bool peer_run_qualify(struct peer_run *run, const char *peer);

/* Whether it is the UUID of a GPU or of a MIG instance: the same wherever it is seen. */
bool peer_device_is_unique(const char *id);

#endif
