/* References: issues, changes and documents about a source of non-determinism.  Which
 * words and addresses those of workloads and of tables may use. */
#ifndef DAEMON_BASE_REFERENCE_H
#define DAEMON_BASE_REFERENCE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "issue", "pull request", …; ends with NULL. */
extern const char *const reference_kinds[];

bool reference_is_kind(const char *kind);

/* "https://" and what follows, of printable ASCII without quotes or angle brackets. */
bool reference_is_url(const char *url);

/* States, each with the month of the document that gives it, oldest first: "open 2020-06,
 * merged 2023-07".  A state is "open", "closed" or "merged". */
bool reference_is_state(const char *state);

#ifdef __cplusplus
}
#endif

#endif
