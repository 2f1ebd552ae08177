/* What follows from the inputs of a case (db/case_keys.h): outcomes, cells and jobs; and
 * decisions about them. */
#ifndef DB_INPUTS_H
#define DB_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/evidence/inputs.h"

struct tx;

/* Why a completed run is invalid whose inputs have DIGEST, and not that of the case. */
void case_inputs_cause(const char *digest, const char *wanted, char *ret_cause,
                       size_t size);

/* Makes the stored runs agree with INPUTS, which changed: completed runs with other
 * inputs become invalid, those that were refused for these inputs complete; where inputs
 * are contested, nobody's are refused.  Their cells, and the counts of their jobs,
 * follow. */
enum err_code case_inputs_settle(struct tx *tx, int64_t siblings,
                                 const struct inputs *inputs, int64_t now_ms,
                                 struct err *err);

/* A person says which inputs of the case SIBLINGS are right; DIGEST "" withdraws what was
 * said.  ERR_NOT_FOUND: there is no such case.  ERR_INVALID: none of its runs has such
 * inputs. */
enum err_code case_inputs_decide(struct tx *tx, int64_t siblings, const char *digest,
                                 const char *reason, int64_t now_ms, struct err *err);

#endif
