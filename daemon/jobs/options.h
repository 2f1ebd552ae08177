/* What a job requests of its runs, apart from their case: the circumstances under which
 * they compute, and what they record (workloads/PROTOCOL.md).  Here is the one reader and
 * one writer of both spellings: the options of a job's item, named as the worker's
 * arguments are, and the circumstances that a run reports.  Both are stored as canonical
 * JSON text: compact, members in order, "" for none.  Pure. */
#ifndef DAEMON_JOBS_OPTIONS_H
#define DAEMON_JOBS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/buf.h"
#include "daemon/trace/trace.h"

enum {
    RUN_OPTIONS_SIZE = 512, /* of the canonical text */
    RUN_CIRCUMSTANCES_SIZE = 128,
    RUN_DRAWN_SIZE = 64,
    RUN_CAPTURE_SIZE = TRACE_PLACE_MAX + 40
};

struct json_t;

/* Zero-initialised: none. */
struct run_circumstances {
    int64_t contention; /* loads on the run's device */
    /* "" for none, "random" where each process is to draw its own, or the value. */
    char memory_poison[RUN_DRAWN_SIZE];     /* 8 hex digits */
    char allocation_jitter[RUN_DRAWN_SIZE]; /* a seed, decimal */
    int64_t shared_import; /* 1: forked by a process that imported the framework */
};

/* Zero-initialised: none. */
struct run_options {
    struct run_circumstances circumstances;
    int64_t probes;                        /* every so many steps; 0: no probes */
    char probe_names[TRACE_PLACE_MAX + 1]; /* a glob; "": all */
    char probe_steps[48];           /* the first and the last, "100-199"; "": all */
    char capture[RUN_CAPTURE_SIZE]; /* what run_capture_write writes; "": nothing */
};

/* What a request for a job calls the circumstances; ends with NULL. */
extern const char *const run_circumstance_names[];

/* What a worker lists instead of memory_poison where it can fill memory with one byte
 * only: with patterns of four equal ones. */
#define RUN_POISON_OF_BYTES "memory_poison_bytes"

/* The first of CIRCUMSTANCES whose name is not in ALLOWED, an array, or, where that is
 * NULL, none that reprod's own workers know; NULL: there is none. */
const char *run_circumstances_beyond(const struct run_circumstances *circumstances,
                                     const struct json_t *allowed);

/* False: TEXT is malformed; RET_OPTIONS (RET_CIRCUMSTANCES) has the members that fit. */
bool run_options_read(const char *text, struct run_options *ret_options);
bool run_circumstances_read(const char *text,
                            struct run_circumstances *ret_circumstances);

/* False: they do not fit, and RET_TEXT is "". */
bool run_options_write(const struct run_options *options,
                       char ret_text[RUN_OPTIONS_SIZE]);
bool run_circumstances_write(const struct run_circumstances *circumstances,
                             char ret_text[RUN_CIRCUMSTANCES_SIZE]);

/* The options as the worker's arguments, a new JSON object; caller releases. */
struct json_t *run_options_arguments(const struct run_options *options);

/* A challenge to a run that has OPTIONS: it is asked plainly, but costs no import of its
 * own where the run does not. */
struct run_options run_options_of_challenge(const struct run_options *options);

/* Appends them in words: "contention 4, a shared import". */
void run_options_words(const struct run_options *options, struct buf *buf);

/* The moment and place whose tensors are captured: "ITERATION:STEP:PLACE".  Reading
 * returns the place, in TEXT, or NULL if TEXT is malformed. */
void run_capture_write(int32_t iteration, int64_t step, const char *place,
                       char ret_text[RUN_CAPTURE_SIZE]);
const char *run_capture_read(const char *text, int32_t *ret_iteration, int64_t *ret_step);

#endif
