/* A store of its own, for what targets make of their input. */
#ifndef TESTS_FUZZ_STORE_H
#define TESTS_FUZZ_STORE_H

#include "daemon/base/err.h"
#include "db/runs.h"

/* Stores RESULT as that of a fresh run of KEY, as the runner does, and takes it back.
 * KEY is the same for all calls in a process.  What runs_finish returns; RESULT's run is
 * completed as it was stored. */
enum err_code fuzz_store_result(const struct case_key *key, struct run_record *run,
                                struct run_result *result, struct err *err);

#endif
